/// What of a file may be shown in a diagnostic.
enum ConfigurationText {
  static let quotedLimit = 60

  /// The text in quotation marks: printable, cut when it is long, and not at all when it looks like a key.
  static func quoted(_ text: RawSpan) -> String {
    text.withUnsafeBytes { quoted($0) }
  }

  static func quoted(_ text: String) -> String {
    var text = text
    return text.withUTF8 { quoted(UnsafeRawBufferPointer($0)) }
  }

  private static func quoted(_ bytes: UnsafeRawBufferPointer) -> String {
    if looksLikeKey(bytes) { return "a value that looks like a key" }
    var result = "'"
    for byte in bytes.prefix(quotedLimit) {
      switch byte {
      case UInt8(ascii: "\\"), UInt8(ascii: "'"): result += "\\" + String(UnicodeScalar(byte))
      case 0x20...0x7E: result.unicodeScalars.append(UnicodeScalar(byte))
      default: result += "\\x" + (byte < 16 ? "0" : "") + String(byte, radix: 16)
      }
    }
    return result + (bytes.count > quotedLimit ? "...'" : "'")
  }

  /// A run of 40 characters of base64 or hexadecimal.
  private static func looksLikeKey(_ bytes: UnsafeRawBufferPointer) -> Bool {
    var run = 0
    for byte in bytes {
      let fits =
        byte.isASCIILetter || byte.decimalDigit != nil || byte == UInt8(ascii: "+") || byte == UInt8(ascii: "/")
      run = fits ? run + 1 : 0
      if run >= 40 { return true }
    }
    return false
  }

  /// Short enough to be a name and too short to be a key: letters, digits, '_' and '-'.
  static func isKeyName(_ name: String) -> Bool {
    !name.isEmpty && name.utf8.count <= 32
      && name.utf8.allSatisfy {
        $0.isASCIILetter || $0.decimalDigit != nil || $0 == UInt8(ascii: "_") || $0 == UInt8(ascii: "-")
      }
  }
}
