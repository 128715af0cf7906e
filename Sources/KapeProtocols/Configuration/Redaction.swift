/// Hides what is a key by its form: 43 characters of base64 and '=', or 64 hexadecimal digits.
public enum Redaction {
  public static func hidingKeys(in text: String) -> String {
    let bytes = Array(text.utf8)
    var result: [UInt8] = []
    var index = 0
    while index < bytes.count {
      var end = index
      while end < bytes.count, isKeyCharacter(bytes[end]) { end += 1 }
      let isBase64 = end - index == 43 && end < bytes.count && bytes[end] == UInt8(ascii: "=")
      let isHexadecimal = end - index == 64 && bytes[index..<end].allSatisfy { $0.hexadecimalDigit != nil }
      if isBase64 || isHexadecimal {
        result += Array("(hidden)".utf8)
        index = isBase64 ? end + 1 : end
      } else {
        end = max(end, index + 1)
        result += bytes[index..<end]
        index = end
      }
    }
    return String(decoding: result, as: UTF8.self)
  }

  private static func isKeyCharacter(_ byte: UInt8) -> Bool {
    byte.isASCIILetter || byte.decimalDigit != nil || byte == UInt8(ascii: "+") || byte == UInt8(ascii: "/")
  }
}
