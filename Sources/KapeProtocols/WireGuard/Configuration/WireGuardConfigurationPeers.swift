internal import KapeCrypto

/// The values of [Peer], and how sections become peers.
extension WireGuardConfigurationReader {
  mutating func takePeer(_ key: Key, _ line: Int, _ value: RawSpan) {
    let index = peerSections.count - 1
    switch key {
    case .publicKey:
      guard let publicKey = PublicKey(base64: value) else { return refuseKey(key, line, value.byteCount) }
      if publicKey.isZero {
        diagnostics.error(line, key.rawValue, "the key is all zero: no peer can have it", "write the peer's public key")
      }
      peerSections[index].publicKey = publicKey
    case .presharedKey:
      guard let presharedKey = PresharedKey(base64: value) else { return refuseKey(key, line, value.byteCount) }
      peerSections[index].presharedKey = presharedKey
    case .endpoint: takeEndpoint(line, value)
    case .persistentKeepalive:
      guard let seconds = value.equalsIgnoringCase("off") ? 0 : value.decimal(limit: 65_535) else {
        return refuse(key, line, value, "is no interval", "write seconds from 1 to 65535, or off")
      }
      peerSections[index].persistentKeepalive = UInt16(seconds)
    case .allowedIPs: takeAllowedIPs(line, value)
    case .privateKey, .listenPort, .firewallMark, .address, .dns, .mtu, .table, .preUp, .postUp, .preDown, .postDown,
      .saveConfig:
      break
    }
  }

  private mutating func takeEndpoint(_ line: Int, _ value: RawSpan) {
    do {
      peerSections[peerSections.count - 1].endpoint = try WireGuardEndpoint(text: value)
    } catch {
      switch error {
      case .unclosedBracket:
        refuse(.endpoint, line, value, "has no ']' after the address", "write [ADDRESS]:PORT")
      case .portMissing:
        refuse(.endpoint, line, value, "has no port", "write HOST:PORT, or [ADDRESS]:PORT for IPv6")
      case .portInvalid:
        refuse(.endpoint, line, value, "has no valid port at its end", "write a number from 1 to 65535 after the colon")
      case .hostInvalid:
        refuse(.endpoint, line, value, "has neither an address nor a host name before the port", "write HOST:PORT")
      }
    }
  }

  private mutating func takeAllowedIPs(_ line: Int, _ value: RawSpan) {
    var start = 0
    while start <= value.byteCount {
      let end = value.firstIndex(of: UInt8(ascii: ","), from: start) ?? value.byteCount
      takeAllowedIP(line, value.extracting(start..<end))
      start = end + 1
    }
  }

  private mutating func takeAllowedIP(_ line: Int, _ value: RawSpan) {
    if value.byteCount == 0 {
      diagnostics.error(
        line, Key.allowedIPs.rawValue, "there is nothing between, before or after a comma", "take the comma away")
      return
    }
    let removes = value[0] == UInt8(ascii: "-")
    let text = removes || value[0] == UInt8(ascii: "+") ? value.extracting(1..<value.byteCount) : value
    guard let parts = AddressWithLength(text: text, allowsNetmask: false),
      let prefix = IPPrefix(parts.address, length: parts.length)
    else {
      return refuse(
        .allowedIPs, line, value, "is no prefix", "write ADDRESS/LENGTH, such as 10.0.0.0/24 or ::/0")
    }
    if prefix.address != parts.address {
      diagnostics.warning(
        line, Key.allowedIPs.rawValue, "\(parts.address)/\(parts.length) has bits beyond its length",
        "\(prefix) is what counts")
    }
    peerSections[peerSections.count - 1].allowedIPs.append((.init(prefix, remove: removes), line))
  }

  /// As a device takes the sections one after the other: a further section of the same key changes what it names, and
  /// its prefixes replace those before; a prefix goes to the last peer that names it.
  mutating func mergedPeers() -> [WireGuardConfiguration.Peer] {
    struct Owner {
      let peer: Int
      let section: Int
      let position: Int
    }
    var peers: [WireGuardConfiguration.Peer] = []
    var indexByKey: [PublicKey: Int] = [:]
    var newestSection: [Int] = []
    var owners: [IPPrefix: Owner] = [:]
    var position = 0

    for (number, section) in peerSections.enumerated() {
      guard let publicKey = section.publicKey else {
        if !section.hasPublicKeyLine {
          diagnostics.error(
            section.line, Key.publicKey.rawValue, "this [Peer] section has none", "add PublicKey = ... to it")
        }
        continue
      }
      let index: Int
      if let known = indexByKey[publicKey] {
        index = known
        diagnostics.warning(
          section.line, Key.publicKey.rawValue,
          "the peer has a section in line \(peerSections[newestSection[index]].line) already; its AllowedIPs are replaced",
          "write one section for each peer")
        newestSection[index] = number
      } else {
        index = peers.count
        indexByKey[publicKey] = index
        peers.append(WireGuardConfiguration.Peer(publicKey: publicKey))
        newestSection.append(number)
      }
      if let presharedKey = section.presharedKey {
        peers[index].presharedKey = presharedKey.isZero ? nil : presharedKey
      }
      if let endpoint = section.endpoint { peers[index].endpoint = endpoint }
      if let seconds = section.persistentKeepalive { peers[index].persistentKeepalive = seconds }

      for (change, line) in section.allowedIPs {
        let owner = owners[change.prefix].flatMap { newestSection[$0.peer] == $0.section ? $0 : nil }
        if change.remove {
          if owner?.peer == index {
            owners[change.prefix] = nil
          } else {
            diagnostics.warning(
              line, Key.allowedIPs.rawValue, "-\(change.prefix) takes away what the peer does not have", "leave it out")
          }
          continue
        }
        if let owner, owner.peer != index {
          diagnostics.warning(
            line, Key.allowedIPs.rawValue,
            "\(change.prefix) belongs to the peer of line \(peerSections[owner.section].line) already; it moves to this one",
            "give each prefix to one peer")
        }
        owners[change.prefix] = Owner(
          peer: index, section: number, position: owner?.peer == index ? owner?.position ?? position : position)
        position += 1
      }
    }
    let sorted = owners.filter { newestSection[$0.value.peer] == $0.value.section }
      .sorted { $0.value.position < $1.value.position }
    for (prefix, owner) in sorted {
      peers[owner.peer].allowedIPs.append(prefix)
    }
    return peers
  }
}
