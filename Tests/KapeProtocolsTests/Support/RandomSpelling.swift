import KapeCrypto
import KapeProtocols
import KapeTestSupport

/// Writes configurations in every way that is allowed, from a seed.
struct RandomSpelling {
  private var generator: SeededGenerator
  /// Few, so that peers and prefixes repeat.
  private let publicKeys: [String]

  init(seed: UInt64) {
    var generator = SeededGenerator(seed: seed)
    var keys: [String] = []
    for _ in 0..<4 {
      let bytes = (0..<32).map { _ in UInt8.random(in: 0...255, using: &generator) }
      keys.append(PublicKey(bytes: bytes.span.bytes)?.base64 ?? "")
    }
    publicKeys = keys
    self.generator = generator
  }

  private mutating func pick(_ choices: [String]) -> String { choices[generator.below(choices.count)] }

  /// What wg's reader sees as nothing; wg-quick's keys must not be broken by it.
  private mutating func blank() -> String { pick(["", "", " ", "\t", "  ", " \t "]) }

  private mutating func cased(_ text: String) -> String {
    switch generator.below(4) {
    case 0: return text
    case 1: return text.lowercased()
    case 2: return text.uppercased()
    default:
      var result = ""
      for character in text { result += generator.chance(2) ? character.lowercased() : character.uppercased() }
      return result
    }
  }

  private mutating func line(_ key: String, _ value: String) -> String {
    blank() + cased(key) + blank() + "=" + blank() + value + blank() + end()
  }

  private mutating func end() -> String {
    let comment = generator.chance(6) ? pick(["# c", "#", "#a=b#c", " # [Peer]"]) : ""
    let noise = generator.chance(8) ? pick(["\n", "\n# x\n", "\n  \n", "\n\t#= \n"]) : "\n"
    return comment + (generator.chance(12) ? "\r" : "") + noise
  }

  private mutating func list(_ values: [String]) -> String {
    var text = ""
    for (index, value) in values.enumerated() { text += (index == 0 ? "" : blank() + "," + blank()) + value }
    return text
  }

  mutating func prefix() -> String {
    switch generator.below(6) {
    case 0: return "10.\(generator.below(3)).0.0/\(8 + generator.below(25))"
    case 1: return "fd00:\(generator.below(3))::/\(generator.below(129))"
    case 2: return "192.0.2.\(generator.below(4))"
    case 3: return "2001:DB8::\(generator.below(4))"
    case 4: return pick(["0.0.0.0/0", "::/0", "::ffff:192.0.2.1/128", "10.0.0.0/08"])
    default: return "10.0.0.0/8"
    }
  }

  private mutating func prefixes() -> [String] {
    var result: [String] = []
    for _ in 0..<(1 + generator.below(5)) { result.append(prefix()) }
    return result
  }

  private mutating func endpoint() -> String {
    let port = pick(["51820", "1", "65535", "0", "00080", "domain", "+7"])
    let host = pick([
      "192.0.2.1", "[2001:db8::1]", "[192.0.2.2]", "2001:db8::7", "localhost", "[fe80::1%lo]", "[FE80::1%1]",
      "[localhost]",
      "LOCALHOST",
    ])
    return host + blank() + ":" + port
  }

  private mutating func interfaceSection(wgQuickKeys: Bool) -> String {
    var text = blank() + cased("[Interface]") + blank() + end()
    if !generator.chance(8) { text += line("PrivateKey", TestKeys.aPrivate) }
    if generator.chance(2) { text += line("ListenPort", pick(["0", "51820", "65535", "007", "domain", "+9"])) }
    if generator.chance(2) {
      text += line("FwMark", pick(["0", "off", "OFF", "0x1f", "4294967295", "010", "0xFFFFFFFF"]))
    }
    guard wgQuickKeys else { return text }
    for _ in 0..<generator.below(8) {
      switch generator.below(9) {
      case 0: text += line("Address", list(["10.0.0.\(generator.below(9))/24", "fd00::1/64"]))
      case 1: text += line("Address", "10.1.0.1 10.2.0.1/16")
      case 2: text += line("DNS", list(["10.0.0.53", "example.org", "fd00::53", "corp-1.example"]))
      case 3: text += line("MTU", pick(["1380", "1420", "9000"]))
      case 4: text += line("Table", pick(["off", "auto", "7"]))
      case 5: text += line("PostUp", pick(["echo up", "ip rule add a=b", "iptables -A X -i %i; true"]))
      case 6: text += line("PreUp", "echo \(generator.below(9))") + line("PreDown", "echo  two  blanks")
      case 7: text += line("PostDown", "echo 'x = y'")
      default: text += line("SaveConfig", pick(["true", "false", "TRUE"]))
      }
    }
    return text
  }

  private mutating func peerSection() -> String {
    var lines = [line("PublicKey", pick(publicKeys))]
    if generator.chance(3) { lines.append(line("PresharedKey", TestKeys.shared)) }
    for _ in 0..<generator.below(3) { lines.append(line("AllowedIPs", list(prefixes()))) }
    if generator.chance(2) { lines.append(line("Endpoint", endpoint())) }
    if generator.chance(2) {
      lines.append(line("PersistentKeepalive", pick(["0", "off", "Off", "25", "65535", "025"])))
    }
    return blank() + cased("[Peer]") + end() + lines.shuffled(using: &generator).joined()
  }

  /// A right file. Without wg-quick's keys, white space is put inside tokens too, where only wg ignores it.
  mutating func file(wgQuickKeys: Bool) -> String {
    var text = interfaceSection(wgQuickKeys: wgQuickKeys)
    for _ in 0..<generator.below(6) { text += peerSection() }
    if generator.chance(4) { text += cased("[Interface]") + "\n" }
    if generator.chance(3) {
      while text.hasSuffix("\n") { text.removeLast() }
    }
    guard !wgQuickKeys, generator.chance(3) else { return text }
    var result = ""
    for character in text {
      result.append(character)
      if character != "\n", character != "\r", character != "\r\n", generator.chance(20) {
        result += pick([" ", "\t"])
      }
    }
    return result
  }

  /// With a few characters changed, put in, taken out or moved.
  mutating func damaged(_ text: String) -> String {
    var bytes = Array(text.utf8)
    for _ in 0..<(1 + generator.below(3) / 2) where !bytes.isEmpty {
      let place = generator.below(bytes.count)
      let byte = Array("=#[]:/,.%+- \n\r\t0129afAFxX;off\"'\\".utf8).randomElement(using: &generator) ?? 0
      switch generator.below(6) {
      case 0: bytes[place] = byte
      case 1: bytes.insert(byte, at: place)
      case 2: bytes.remove(at: place)
      case 3: bytes.swapAt(place, generator.below(bytes.count))
      case 4: bytes.replaceSubrange(place..<min(place + 4, bytes.count), with: [])
      default:
        let junk = pick([
          "AllowedIPs=\n", "[Peer]\n", "MTU = 1\n", "PublicKey=\n", "x=y\n", "\u{FEFF}", "ListenPort=70000\n",
        ])
        bytes.insert(contentsOf: Array(junk.utf8), at: generator.chance(2) ? 0 : place)
      }
    }
    return String(decoding: bytes, as: UTF8.self)
  }
}
