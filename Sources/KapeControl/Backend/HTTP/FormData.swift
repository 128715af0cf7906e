/// application/x-www-form-urlencoded: a query, or the body of a form (https://url.spec.whatwg.org/#urlencoded-parsing).
struct FormData: Sendable, Equatable {
  struct Field: Sendable, Equatable {
    var name: String
    var value: String
  }

  var fields: [Field]

  init(fields: [Field]) { self.fields = fields }

  /// nil: a '%' without two hexadecimal digits, or what is not UTF-8 once decoded.
  init?(parsing bytes: [UInt8]) {
    fields = []
    for part in bytes.split(separator: UInt8(ascii: "&")) {
      let equals = part.firstIndex(of: UInt8(ascii: "=")) ?? part.endIndex
      guard let name = Self.decoded(part[..<equals], plusIsBlank: true),
        let value = Self.decoded(part[equals...].dropFirst(), plusIsBlank: true)
      else { return nil }
      fields.append(Field(name: name, value: value))
    }
  }

  /// The value of a field that is there once; an empty one is as good as none (RFC 6749, section 3.1).
  subscript(name: String) -> String? {
    let values = fields.filter { $0.name == name }
    guard values.count == 1, !values[0].value.isEmpty else { return nil }
    return values[0].value
  }

  /// A name that is there more than once.
  var repeatedName: String? {
    var seen: Set<String> = []
    return fields.first { !seen.insert($0.name).inserted }?.name
  }

  /// nil as for `init`. NUL is refused too.
  static func decoded(_ text: some Collection<UInt8>, plusIsBlank: Bool) -> String? {
    var bytes: [UInt8] = []
    var rest = text[...]
    while let byte = rest.popFirst() {
      switch byte {
      case UInt8(ascii: "%"):
        guard let high = rest.popFirst().flatMap(hexadecimal), let low = rest.popFirst().flatMap(hexadecimal) else {
          return nil
        }
        bytes.append(high << 4 | low)
      case UInt8(ascii: "+") where plusIsBlank: bytes.append(UInt8(ascii: " "))
      default: bytes.append(byte)
      }
    }
    guard !bytes.contains(0) else { return nil }
    return String(validating: bytes, as: UTF8.self)
  }

  private static func hexadecimal(_ byte: UInt8) -> UInt8? {
    switch byte {
    case UInt8(ascii: "0")...UInt8(ascii: "9"): byte - UInt8(ascii: "0")
    case UInt8(ascii: "a")...UInt8(ascii: "f"): byte - UInt8(ascii: "a") + 10
    case UInt8(ascii: "A")...UInt8(ascii: "F"): byte - UInt8(ascii: "A") + 10
    default: nil
    }
  }

  /// A value for a query: all but the unreserved characters percent-encoded (RFC 3986, section 2.3).
  static func encoded(_ text: String) -> String {
    var result = ""
    for byte in text.utf8 {
      switch byte {
      case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "a")...UInt8(ascii: "z"),
        UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_"),
        UInt8(ascii: "~"):
        result.unicodeScalars.append(Unicode.Scalar(byte))
      default: result += (byte < 16 ? "%0" : "%") + String(byte, radix: 16, uppercase: true)
      }
    }
    return result
  }
}
