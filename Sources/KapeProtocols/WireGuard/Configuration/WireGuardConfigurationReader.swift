internal import KapeCrypto

extension WireGuardConfiguration {
  /// Reads a file's bytes, whatever they are. `file` is only for the diagnostics.
  ///
  /// Accepted is what wg-quick(8) and `wg setconf` accept (wireguard-tools 1.0.20210914), and besides: a byte order
  /// mark, `AllowedIPs =` without a value (no prefixes, with a warning), `+` and `-` before an allowed IP (as later
  /// versions have it), white space inside section headers and wg-quick's keys. Refused, though wg lets it pass: ports
  /// over 65,535 (it cuts them to 16 bits), a public key that is all zero, and values that wg-quick hands on unseen to
  /// programs that refuse them.
  public static func parse(_ bytes: RawSpan, file: String = "") -> ParsedConfiguration<WireGuardConfiguration> {
    var reader = WireGuardConfigurationReader(file: file)
    return reader.read(bytes)
  }

  public static func parse(_ text: String, file: String = "") -> ParsedConfiguration<WireGuardConfiguration> {
    parse(Array(text.utf8).span.bytes, file: file)
  }
}

struct WireGuardConfigurationReader {
  typealias Key = WireGuardConfigurationKey

  /// One [Peer] section as it stands in the file; sections of one public key are merged at the end.
  struct PeerSection {
    let line: Int
    var publicKey: PublicKey?
    /// Whether it names one, right or wrong.
    var hasPublicKeyLine = false
    var presharedKey: PresharedKey?
    var allowedIPs: [(change: WireGuardAllowedIPChange, line: Int)] = []
    var endpoint: WireGuardEndpoint?
    var persistentKeepalive: UInt16?
  }

  enum State {
    case beforeFirstSection, interface, peer, unknownSection
  }

  var diagnostics: DiagnosticList
  var interface = WireGuardConfiguration.Interface()
  var peerSections: [PeerSection] = []
  private var state = State.beforeFirstSection
  private var hasInterfaceSection = false
  private var saidOutsideOfSection = false
  /// Lines of the keys that count once: of the interface, and of the peer that is being read.
  private var interfaceLines: [Key: Int] = [:]
  private var peerLines: [Key: Int] = [:]

  init(file: String) {
    diagnostics = DiagnosticList(file: file)
  }

  mutating func read(_ bytes: RawSpan) -> ParsedConfiguration<WireGuardConfiguration> {
    if bytes.byteCount > WireGuardConfigurationLexer.fileLimit {
      diagnostics.error(
        nil, nil, "the file is larger than \(WireGuardConfigurationLexer.fileLimit >> 20) MiB",
        "a configuration is text; is this the right file?")
    } else {
      WireGuardConfigurationLexer.forEachItem(of: bytes) { item, text in take(item, text) }
    }
    let peers = mergedPeers()
    warnAboutTheWhole(peers)
    return ParsedConfiguration(
      configuration: diagnostics.hasErrors ? nil : WireGuardConfiguration(interface: interface, peers: peers),
      diagnostics: diagnostics.all,
      lines: Dictionary(uniqueKeysWithValues: interfaceLines.map { ($0.key.rawValue, $0.value) }))
  }

  private mutating func take(
    _ item: WireGuardConfigurationLexer.Item, _ text: borrowing WireGuardConfigurationLexer.Text
  ) {
    switch item {
    case .section(let line): takeSection(line, text.name)
    case .assignment(let line): takeAssignment(line, text)
    case .other(let line):
      let key = Key(text.name)
      diagnostics.error(
        line, key?.rawValue, "there is no '=' in this line",
        key.map { "write \($0.rawValue) = VALUE" } ?? "write KEY = VALUE, or # before a comment")
    case .lineTooLong(let line):
      diagnostics.error(
        line, nil, "the line is longer than \(WireGuardConfigurationLexer.lineLimit >> 20) MiB",
        "lists may be split over several lines of the same key")
    case .zeroByte(let line):
      diagnostics.error(line, nil, "there is a zero byte in this line", "save the file as plain text (UTF-8)")
    }
  }

  private mutating func takeSection(_ line: Int, _ header: String) {
    switch header.lowercased() {
    case "[interface]":
      state = .interface
      hasInterfaceSection = true
    case "[peer]":
      state = .peer
      peerSections.append(PeerSection(line: line))
      peerLines.removeAll(keepingCapacity: true)
    default:
      state = .unknownSection
      let near = NearMatch.find(header, among: Key.Section.allCases.map { "[\($0.rawValue)]" })
      diagnostics.error(
        line, nil, "\(ConfigurationText.quoted(header)) is no section of a WireGuard configuration",
        near.map { "did you mean \($0)?" } ?? "there are [Interface] and [Peer]")
    }
  }

  private mutating func takeAssignment(_ line: Int, _ text: borrowing WireGuardConfigurationLexer.Text) {
    guard let key = Key(text.name) else { return refuseUnknown(line, text.name) }
    switch state {
    case .unknownSection: return
    case .beforeFirstSection:
      if !saidOutsideOfSection {
        diagnostics.error(
          line, key.rawValue, "it stands before the first section", "put [\(key.section.rawValue)] on a line above it")
      }
      saidOutsideOfSection = true
      return
    case .interface, .peer:
      let section: Key.Section = state == .interface ? .interface : .peer
      if key.section != section {
        diagnostics.error(
          line, key.rawValue, "it stands in a [\(section.rawValue)] section",
          "move it to the [\(key.section.rawValue)] section")
        return
      }
    }
    noteRepeat(key, line)
    if key == .publicKey { peerSections[peerSections.count - 1].hasPublicKeyLine = true }
    if text.value.isEmpty { return takeEmpty(key, line) }
    text.value.withBytes { value in
      text.compactValue.withBytes { compact in
        if key.section == .peer {
          takePeer(key, line, compact)
        } else {
          takeInterface(key, line, value: value, compact: compact)
        }
      }
      if text.hasComment { warnAboutCutCommand(key, line, value) }
    }
  }

  private mutating func refuseUnknown(_ line: Int, _ name: String) {
    if state == .unknownSection { return }
    guard ConfigurationText.isKeyName(name) else {
      diagnostics.error(
        line, nil, "the text before '=' is no key of a WireGuard configuration", "write KEY = VALUE")
      return
    }
    if Key.isAmneziaWG(name) {
      diagnostics.error(
        line, name, "this is a key of AmneziaWG, whose packets WireGuard does not understand",
        "use a program that speaks AmneziaWG, or ask the provider for a WireGuard configuration")
      return
    }
    let near = NearMatch.find(name, among: Key.allCases.map(\.rawValue))
    diagnostics.error(
      line, name, "unknown key",
      near.map { "did you mean \($0)?" } ?? "see wg(8) and wg-quick(8) for the keys there are")
  }

  private mutating func noteRepeat(_ key: Key, _ line: Int) {
    if key.accumulates { return }
    let earlier =
      key.section == .interface
      ? interfaceLines.updateValue(line, forKey: key) : peerLines.updateValue(line, forKey: key)
    if let earlier {
      diagnostics.warning(
        line, key.rawValue, "it is in line \(earlier) already; this one counts", "keep one of the two lines")
    }
  }

  /// wg-quick takes an empty value for no value. wg refuses it; of its keys only the list may be empty here.
  private mutating func takeEmpty(_ key: Key, _ line: Int) {
    switch key {
    case .allowedIPs:
      diagnostics.warning(
        line, key.rawValue, "there is no value: this line adds no prefix", "leave the line out, or write the prefixes")
    case .address, .dns, .mtu, .table, .preUp, .postUp, .preDown, .postDown:
      diagnostics.warning(line, key.rawValue, "there is no value: the line does nothing", "leave the line out")
      if key == .mtu { interface.mtu = nil }
      if key == .table { interface.table = .automatic }
    case .saveConfig:
      diagnostics.error(line, key.rawValue, "there is no value", "write true or false")
    case .privateKey, .listenPort, .firewallMark, .publicKey, .presharedKey, .endpoint, .persistentKeepalive:
      diagnostics.error(line, key.rawValue, "there is no value", "write one, or leave the line out")
    }
  }

  private mutating func warnAboutCutCommand(_ key: Key, _ line: Int, _ value: RawSpan) {
    guard [.preUp, .postUp, .preDown, .postDown].contains(key) else { return }
    var single = 0
    var double = 0
    var index = 0
    while index < value.byteCount {
      if value[index] == UInt8(ascii: "'") { single += 1 }
      if value[index] == UInt8(ascii: "\"") { double += 1 }
      index += 1
    }
    if single % 2 == 1 || double % 2 == 1 {
      diagnostics.warning(
        line, key.rawValue, "the command ends at '#', inside quotation marks: a comment starts there for wg-quick too",
        "put the command into a script of its own")
    }
  }

  private mutating func warnAboutTheWhole(_ peers: [WireGuardConfiguration.Peer]) {
    if diagnostics.hasErrors { return }
    if !hasInterfaceSection {
      diagnostics.warning(nil, nil, "there is no [Interface] section", "add one with the interface's PrivateKey")
    } else if interface.privateKey == nil || interface.privateKey?.isZero == true {
      diagnostics.warning(
        nil, Key.privateKey.rawValue, "the interface has no private key: no handshake can succeed",
        "add PrivateKey = ... ('kape genkey' makes one), unless a PostUp command sets it")
    }
    if let mtu = interface.mtu, mtu < 1280, interface.addresses.contains(where: { $0.address.family == .ipv6 }) {
      diagnostics.warning(
        interfaceLines[.mtu], Key.mtu.rawValue, "IPv6 needs 1280 at least: its addresses will not be accepted",
        "raise it, or leave the line out")
    }
    if let own = interface.privateKey?.publicKey, let index = peers.firstIndex(where: { $0.publicKey == own }) {
      let line = peerSections.first { $0.publicKey == peers[index].publicKey }?.line
      diagnostics.warning(
        line, Key.publicKey.rawValue, "this is the interface's own public key: the peer is ignored",
        "write the other end's public key")
    }
  }
}
