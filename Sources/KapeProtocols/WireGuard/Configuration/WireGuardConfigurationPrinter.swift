public import KapeCrypto

extension WireGuardConfiguration {
  /// What of the model is written.
  public enum Format: Sendable {
    /// Everything, for wg-quick.
    case wgQuick
    /// wg's own keys only, for `wg setconf`.
    case wg
  }

  /// Appends the file that says this, secrets included. Parsing it gives an equal model.
  /// Commands and search domains must be such as a file can hold: of one line, without '#'.
  public func write(_ format: Format = .wgQuick, to buffer: inout SecretBuffer) {
    buffer.append("[Interface]\n")
    if let privateKey = interface.privateKey {
      buffer.append("PrivateKey = ")
      buffer.append(base64: privateKey)
      buffer.append("\n")
    }
    if interface.listenPort != 0 { buffer.appendLine("ListenPort", "\(interface.listenPort)") }
    if interface.firewallMark != 0 {
      buffer.appendLine("FwMark", "0x" + String(interface.firewallMark, radix: 16))
    }
    if format == .wgQuick { writeWgQuickKeys(to: &buffer) }
    for peer in peers { write(peer, to: &buffer) }
  }

  private func writeWgQuickKeys(to buffer: inout SecretBuffer) {
    buffer.appendList("Address", interface.addresses.map(\.description))
    buffer.appendList("DNS", interface.dnsServers.map(\.description) + interface.dnsSearchDomains)
    if let mtu = interface.mtu { buffer.appendLine("MTU", "\(mtu)") }
    switch interface.table {
    case .automatic: break
    case .off: buffer.appendLine("Table", "off")
    case .number(let number): buffer.appendLine("Table", "\(number)")
    case .name(let name): buffer.appendLine("Table", name)
    }
    for command in interface.preUp { buffer.appendLine("PreUp", command) }
    for command in interface.postUp { buffer.appendLine("PostUp", command) }
    for command in interface.preDown { buffer.appendLine("PreDown", command) }
    for command in interface.postDown { buffer.appendLine("PostDown", command) }
    if interface.saveConfig { buffer.appendLine("SaveConfig", "true") }
  }

  private func write(_ peer: Peer, to buffer: inout SecretBuffer) {
    buffer.append("\n[Peer]\n")
    buffer.appendLine("PublicKey", peer.publicKey.base64)
    if let presharedKey = peer.presharedKey {
      buffer.append("PresharedKey = ")
      buffer.append(base64: presharedKey)
      buffer.append("\n")
    }
    buffer.appendList("AllowedIPs", peer.allowedIPs.map(\.description))
    if let endpoint = peer.endpoint { buffer.appendLine("Endpoint", endpoint.description) }
    if peer.persistentKeepalive != 0 { buffer.appendLine("PersistentKeepalive", "\(peer.persistentKeepalive)") }
  }
}

extension SecretBuffer {
  fileprivate mutating func appendLine(_ key: StaticString, _ value: String) {
    append(key)
    append(" = ")
    append(value)
    append("\n")
  }

  /// Nothing for an empty list.
  fileprivate mutating func appendList(_ key: StaticString, _ values: [String]) {
    if !values.isEmpty { appendLine(key, values.joined(separator: ", ")) }
  }
}
