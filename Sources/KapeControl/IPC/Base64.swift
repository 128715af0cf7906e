/// RFC 4648, section 4, with padding and nothing else.
package enum Base64 {
  private static let digits = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8)

  package static func encode(_ bytes: some Sequence<UInt8>) -> String {
    var text: [UInt8] = []
    var group: UInt32 = 0
    var count = 0
    for byte in bytes {
      group = group << 8 | UInt32(byte)
      count += 1
      if count == 3 {
        append(group, 4, to: &text)
        group = 0
        count = 0
      }
    }
    if count > 0 {
      append(group << UInt32(8 * (3 - count)), count + 1, to: &text)
      text += Array(repeating: UInt8(ascii: "="), count: 3 - count)
    }
    return String(decoding: text, as: UTF8.self)
  }

  private static func append(_ group: UInt32, _ count: Int, to text: inout [UInt8]) {
    for index in 0..<count { text.append(digits[Int(group >> UInt32(18 - 6 * index)) & 63]) }
  }

  /// nil unless it is what `encode` gives for some bytes.
  package static func decode(_ text: String) -> [UInt8]? {
    let text = Array(text.utf8)
    guard text.count % 4 == 0 else { return nil }
    let padding = text.suffix(2).count { $0 == UInt8(ascii: "=") }
    var bytes: [UInt8] = []
    bytes.reserveCapacity(text.count / 4 * 3)
    var group: UInt32 = 0
    for (index, digit) in text.enumerated() {
      let isPadding = index >= text.count - padding
      guard let value = isPadding ? (digit == UInt8(ascii: "=") ? 0 : nil) : value(of: digit) else { return nil }
      group = group << 6 | value
      guard index % 4 == 3 else { continue }
      let kept = index == text.count - 1 ? 3 - padding : 3
      for part in 0..<kept { bytes.append(UInt8(truncatingIfNeeded: group >> UInt32(16 - 8 * part))) }
      // Bits that no byte takes must be zero, or two texts would mean the same.
      if kept < 3, group & (1 << UInt32(8 * (3 - kept)) - 1) != 0 { return nil }
      group = 0
    }
    return bytes
  }

  private static func value(of digit: UInt8) -> UInt32? {
    switch digit {
    case UInt8(ascii: "A")...UInt8(ascii: "Z"): UInt32(digit - UInt8(ascii: "A"))
    case UInt8(ascii: "a")...UInt8(ascii: "z"): UInt32(digit - UInt8(ascii: "a")) + 26
    case UInt8(ascii: "0")...UInt8(ascii: "9"): UInt32(digit - UInt8(ascii: "0")) + 52
    case UInt8(ascii: "+"): 62
    case UInt8(ascii: "/"): 63
    default: nil
    }
  }
}
