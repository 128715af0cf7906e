package import KapeProtocols

extension Redaction {
  /// The text without what must not get into a log: addresses that tell where somebody is, keys and tokens.
  package static func hidingAll(in text: String) -> String {
    hidingKeys(in: hidingPublicAddresses(in: hidingTokens(in: text)))
  }

  /// Puts `<token>` in place of each JSON Web Token (RFC 7519): base64url of `{"` and two full stops behind it.
  package static func hidingTokens(in text: String) -> String {
    guard text.utf8.contains(UInt8(ascii: "e")) else { return text }
    var result = ""
    var rest = text[...]
    while let start = rest.range(of: "eyJ")?.lowerBound {
      result += rest[..<start]
      let end = rest[start...].firstIndex { !$0.isTokenCharacter } ?? rest.endIndex
      let run = rest[start..<end]
      result += run.count(where: { $0 == "." }) >= 2 ? "<token>" : run
      rest = rest[end...]
    }
    return result + rest
  }
}

extension Character {
  fileprivate var isTokenCharacter: Bool { isASCII && (isLetter || isNumber || "-_.".contains(self)) }
}
