internal import KapeCrypto

/// The values of [Interface]: what of them is right, and what to say when it is not.
extension WireGuardConfigurationReader {
  mutating func takeInterface(_ key: Key, _ line: Int, value: RawSpan, compact: RawSpan) {
    switch key {
    case .privateKey:
      guard let privateKey = PrivateKey(base64: compact) else { return refuseKey(key, line, compact.byteCount) }
      interface.privateKey = privateKey
    case .listenPort:
      guard let port = ServicePort.parse(compact) else {
        return refuse(key, line, compact, "is no UDP port", "write a number from 0 (any) to 65535")
      }
      interface.listenPort = port
    case .firewallMark:
      guard let mark = Self.firewallMark(compact) else {
        return refuse(key, line, compact, "is no mark", "write a number from 0 to 0xffffffff, or off")
      }
      interface.firewallMark = mark
    case .mtu:
      guard let mtu = Self.unsigned(value, limit: 65_535), mtu >= 68 else {
        return refuse(key, line, value, "is no MTU", "write a number from 68 to 65535, or leave the line out")
      }
      interface.mtu = UInt16(mtu)
    case .table:
      guard let table = Self.table(value) else {
        return refuse(key, line, value, "is no routing table", "write off, auto, a number, or a name of rt_tables")
      }
      interface.table = table
    case .saveConfig:
      guard value.equalsIgnoringCase("true") || value.equalsIgnoringCase("false") else {
        return refuse(key, line, value, "is neither true nor false", "write true or false")
      }
      interface.saveConfig = value.equalsIgnoringCase("true")
    case .address: takeAddresses(line, value)
    case .dns: takeDNS(line, value)
    case .preUp: takeCommand(key, line, value) { $0.preUp.append($1) }
    case .postUp: takeCommand(key, line, value) { $0.postUp.append($1) }
    case .preDown: takeCommand(key, line, value) { $0.preDown.append($1) }
    case .postDown: takeCommand(key, line, value) { $0.postDown.append($1) }
    case .publicKey, .presharedKey, .allowedIPs, .endpoint, .persistentKeepalive: break
    }
  }

  mutating func refuse(_ key: Key, _ line: Int, _ value: RawSpan, _ reason: String, _ remedy: String) {
    diagnostics.error(line, key.rawValue, "\(ConfigurationText.quoted(value)) \(reason)", remedy)
  }

  /// Never quotes the value.
  mutating func refuseKey(_ key: Key, _ line: Int, _ size: Int) {
    let reason =
      size == 44 ? "this is not the base64 form of 32 bytes" : "a key has 44 characters, this has \(size)"
    diagnostics.error(line, key.rawValue, reason, "copy the whole key, with the '=' at its end")
  }

  private mutating func takeAddresses(_ line: Int, _ value: RawSpan) {
    forEachWord(value) { reader, word in
      if let address = InterfaceAddress(text: word) {
        reader.interface.addresses.append(address)
      } else {
        reader.refuse(
          .address, line, word, "is no address", "write ADDRESS/LENGTH, such as 10.0.0.2/24 or fd00::2/64")
      }
    }
  }

  /// What looks like an address to wg-quick is a server, anything else a search domain.
  private mutating func takeDNS(_ line: Int, _ value: RawSpan) {
    forEachWord(value) { reader, word in
      if Self.looksLikeAddress(word) {
        if let address = ScopedAddress(text: word) {
          reader.interface.dnsServers.append(address)
        } else {
          reader.refuse(
            .dns, line, word, "is no address of a name server", "write an IPv4 or IPv6 address without port")
        }
      } else if Self.isDomain(word), let domain = word.utf8String {
        reader.interface.dnsSearchDomains.append(domain)
      } else {
        reader.refuse(.dns, line, word, "is neither an address nor a domain", "write addresses and search domains")
      }
    }
  }

  private mutating func takeCommand(
    _ key: Key, _ line: Int, _ value: RawSpan, _ append: (inout WireGuardConfiguration.Interface, String) -> Void
  ) {
    guard let command = value.utf8String else {
      diagnostics.error(line, key.rawValue, "the command is not UTF-8", "save the file as UTF-8")
      return
    }
    append(&interface, command)
  }

  private mutating func forEachWord(_ value: RawSpan, _ body: (inout Self, RawSpan) -> Void) {
    var start = 0
    while start < value.byteCount {
      var end = start
      while end < value.byteCount, !value[end].isASCIISpace, value[end] != UInt8(ascii: ",") { end += 1 }
      if end > start { body(&self, value.extracting(start..<end)) }
      start = end + 1
    }
  }

  /// "off", decimal digits, or "0x" and hexadecimal ones; no other base.
  private static func firewallMark(_ text: RawSpan) -> UInt32? {
    if text.equalsIgnoringCase("off") { return 0 }
    if text.byteCount > 2, text.extracting(0..<2).equals("0x") {
      return text.extracting(2..<text.byteCount).hexadecimal(limit: UInt64(UInt32.max)).map { UInt32($0) }
    }
    return text.decimal(limit: UInt64(UInt32.max)).map { UInt32($0) }
  }

  /// As the `ip` program reads a number, but that a zero in front is not octal: it is refused.
  private static func unsigned(_ text: RawSpan, limit: UInt64) -> UInt64? {
    if text.byteCount > 2, text.extracting(0..<2).equalsIgnoringCase("0x") {
      return text.extracting(2..<text.byteCount).hexadecimal(limit: limit)
    }
    if text.byteCount > 1, text[0] == UInt8(ascii: "0") { return nil }
    return text.decimal(limit: limit)
  }

  private static func table(_ text: RawSpan) -> WireGuardConfiguration.RoutingTable? {
    if text.equalsIgnoringCase("off") { return .off }
    if text.equalsIgnoringCase("auto") { return .automatic }
    if let number = unsigned(text, limit: UInt64(UInt32.max)) { return .number(UInt32(number)) }
    guard text[0].isASCIILetter, text.byteCount <= 64, isDomain(text) else { return nil }
    return text.utf8String.map { .name($0) }
  }

  private static func looksLikeAddress(_ text: RawSpan) -> Bool {
    if text.contains(UInt8(ascii: ":")) { return true }
    var index = 0
    while index < text.byteCount {
      if text[index].decimalDigit == nil, text[index] != UInt8(ascii: ".") { return false }
      index += 1
    }
    return true
  }

  /// Letters, digits and `._~-`, as resolvconf and resolv.conf can carry them.
  private static func isDomain(_ text: RawSpan) -> Bool {
    guard text.byteCount <= 255 else { return false }
    var index = 0
    while index < text.byteCount {
      let byte = text[index]
      let isPunctuation =
        byte == UInt8(ascii: ".") || byte == UInt8(ascii: "_") || byte == UInt8(ascii: "~") || byte == UInt8(ascii: "-")
      if !byte.isASCIILetter, byte.decimalDigit == nil, !isPunctuation { return false }
      index += 1
    }
    return true
  }
}
