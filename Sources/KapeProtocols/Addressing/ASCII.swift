/// Text as bytes: what the readers of configurations and protocols need, in the C locale.
extension RawSpan {
  /// Bounds-checked.
  subscript(index: Int) -> UInt8 { unsafeLoad(fromByteOffset: index, as: UInt8.self) }

  func firstIndex(of byte: UInt8, from start: Int = 0) -> Int? {
    var index = start
    while index < byteCount {
      if self[index] == byte { return index }
      index += 1
    }
    return nil
  }

  func lastIndex(of byte: UInt8) -> Int? {
    var index = byteCount - 1
    while index >= 0 {
      if self[index] == byte { return index }
      index -= 1
    }
    return nil
  }

  func contains(_ byte: UInt8) -> Bool { firstIndex(of: byte) != nil }

  /// Equal but for the case of ASCII letters.
  func equalsIgnoringCase(_ text: StaticString) -> Bool {
    guard byteCount == text.utf8CodeUnitCount else { return false }
    var index = 0
    while index < byteCount {
      if self[index].asciiLowercased != text.utf8Start[index].asciiLowercased { return false }
      index += 1
    }
    return true
  }

  func equals(_ text: StaticString) -> Bool {
    guard byteCount == text.utf8CodeUnitCount else { return false }
    var index = 0
    while index < byteCount {
      if self[index] != text.utf8Start[index] { return false }
      index += 1
    }
    return true
  }

  /// Without white space at both ends.
  var trimmedRange: Range<Int> {
    var start = 0
    var end = byteCount
    while start < end, self[start].isASCIISpace { start += 1 }
    while end > start, self[end - 1].isASCIISpace { end -= 1 }
    return start..<end
  }

  /// nil unless there are digits only and their value is at most `limit`. Leading zeros are allowed.
  func decimal(limit: UInt64) -> UInt64? {
    guard byteCount > 0 else { return nil }
    var value: UInt64 = 0
    var index = 0
    while index < byteCount {
      guard let digit = self[index].decimalDigit else { return nil }
      value = value * 10 + digit
      if value > limit { return nil }
      index += 1
    }
    return value
  }

  /// nil unless there are hexadecimal digits only and their value is at most `limit`.
  func hexadecimal(limit: UInt64) -> UInt64? {
    guard byteCount > 0 else { return nil }
    var value: UInt64 = 0
    var index = 0
    while index < byteCount {
      guard let digit = self[index].hexadecimalDigit else { return nil }
      value = value << 4 | digit
      if value > limit { return nil }
      index += 1
    }
    return value
  }

  /// nil when it is not UTF-8.
  var utf8String: String? {
    withUnsafeBytes { String(validating: $0, as: UTF8.self) }
  }
}

extension UInt8 {
  /// isspace(3) in the C locale.
  var isASCIISpace: Bool { self == 0x20 || (self >= 0x09 && self <= 0x0D) }
  var isASCIILetter: Bool { (self | 0x20) >= 0x61 && (self | 0x20) <= 0x7A }
  var asciiLowercased: UInt8 { self >= 0x41 && self <= 0x5A ? self | 0x20 : self }

  var decimalDigit: UInt64? { self >= 0x30 && self <= 0x39 ? UInt64(self - 0x30) : nil }

  var hexadecimalDigit: UInt64? {
    switch self {
    case 0x30...0x39: UInt64(self - 0x30)
    case 0x41...0x46: UInt64(self - 0x41 + 10)
    case 0x61...0x66: UInt64(self - 0x61 + 10)
    default: nil
    }
  }
}
