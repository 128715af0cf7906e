/// Which protocol a configuration file is for, told by its content.
public enum ConfigurationKind: String, Hashable, Sendable {
  /// wg-quick: sections in brackets.
  case wireGuard
  /// Directives, one a line.
  case openVPN
  /// YAML.
  case lightway

  /// Decided by the first line that only one kind can have. nil: no such line in the first 1,000.
  public static func detect(_ bytes: RawSpan) -> ConfigurationKind? {
    var start = WireGuardConfigurationLexer.start(of: bytes)
    var lines = 0
    while start < bytes.byteCount, lines < 1000 {
      let end = bytes.firstIndex(of: UInt8(ascii: "\n"), from: start) ?? bytes.byteCount
      let line = bytes.extracting(start..<end)
      if let kind = kind(ofLine: line.extracting(line.trimmedRange)) { return kind }
      start = end + 1
      lines += 1
    }
    return nil
  }

  private static func kind(ofLine line: RawSpan) -> ConfigurationKind? {
    guard line.byteCount > 0, line[0] != UInt8(ascii: "#"), line[0] != UInt8(ascii: ";") else { return nil }
    if isWireGuardSection(line) { return .wireGuard }
    if line.equals("---") || line.equals("%YAML 1.2") { return .lightway }
    var end = 0
    while end < line.byteCount, !line[end].isASCIISpace, line[end] != UInt8(ascii: ":"), line[end] != UInt8(ascii: "=")
    { end += 1 }
    let isYAMLKey =
      end > 0 && end < line.byteCount && line[end] == UInt8(ascii: ":")
      && (end + 1 == line.byteCount || line[end + 1].isASCIISpace)
    if isYAMLKey, line[0].isASCIILetter || line[0] == UInt8(ascii: "\"") { return .lightway }
    guard let word = line.extracting(0..<end).utf8String, end == line.byteCount || line[end].isASCIISpace else {
      return nil
    }
    return isOpenVPNDirective(word) ? .openVPN : nil
  }

  /// [Interface] or [Peer], with white space wherever wg allows it.
  private static func isWireGuardSection(_ line: RawSpan) -> Bool {
    guard line[0] == UInt8(ascii: "[") else { return false }
    var isSection = false
    WireGuardConfigurationLexer.readLine(line, 0) { item, text in
      let name = text.name.lowercased()
      if case .section = item { isSection = name == "[interface]" || name == "[peer]" }
    }
    return isSection
  }

  private static func isOpenVPNDirective(_ word: String) -> Bool {
    var word = word.lowercased()
    if word.hasPrefix("<"), word.hasSuffix(">") {
      word = String(word.dropFirst().dropLast())
      return word == "connection" || openVPNFileDirectives.contains(word)
    }
    if word.hasPrefix("--") { word.removeFirst(2) }
    return openVPNFileDirectives.contains(word) || openVPNDirectives.contains(word)
  }

  /// Directives that name a file, which may also stand in the configuration between <name> and </name>.
  private static let openVPNFileDirectives: Set<String> = [
    "ca", "cert", "key", "extra-certs", "dh", "pkcs12", "secret", "tls-auth", "tls-crypt", "tls-crypt-v2", "crl-verify",
    "auth-user-pass", "http-proxy-user-pass", "peer-fingerprint",
  ]

  /// Those that a profile can hardly be without, and those that generators write first.
  private static let openVPNDirectives: Set<String> = [
    "client", "server", "server-ipv6", "server-bridge", "mode", "tls-client", "tls-server", "dev", "dev-type",
    "dev-node",
    "proto", "remote", "remote-random", "remote-cert-tls", "remote-random-hostname", "local", "port", "lport", "rport",
    "bind", "nobind", "float", "topology", "ifconfig", "ifconfig-ipv6", "ifconfig-pool", "route", "route-ipv6",
    "route-gateway", "redirect-gateway", "pull", "push", "cipher", "data-ciphers", "data-ciphers-fallback",
    "ncp-ciphers",
    "auth", "auth-nocache", "auth-retry", "key-direction", "keepalive", "ping", "ping-restart", "persist-key",
    "persist-tun", "resolv-retry", "connect-retry", "connect-timeout", "server-poll-timeout", "verify-x509-name",
    "ns-cert-type", "tls-version-min", "tls-cipher", "tls-ciphersuites", "reneg-sec", "comp-lzo", "compress",
    "allow-compression", "tun-mtu", "mssfix", "fragment", "sndbuf", "rcvbuf", "fast-io", "verb", "mute",
    "mute-replay-warnings", "setenv", "setenv-safe", "script-security", "up", "down", "user", "group", "status", "log",
    "log-append", "management", "dhcp-option", "block-outside-dns", "explicit-exit-notify", "static-challenge",
    "client-config-dir", "client-to-client", "max-clients", "duplicate-cn", "verify-client-cert", "http-proxy",
    "socks-proxy", "pull-filter", "ignore-unknown-option", "config", "daemon", "writepid",
  ]
}
