import Foundation

/// Any JSON value, for what is passed on without being understood.
package enum AnyJSON: Codable, Equatable, Sendable {
  case null
  case bool(Bool)
  case number(Double)
  case string(String)
  case array([AnyJSON])
  case object([String: AnyJSON])

  package init(from decoder: any Decoder) throws {
    let value = try decoder.singleValueContainer()
    if value.decodeNil() {
      self = .null
    } else if let flag = try? value.decode(Bool.self) {
      self = .bool(flag)
    } else if let number = try? value.decode(Double.self) {
      self = .number(number)
    } else if let text = try? value.decode(String.self) {
      self = .string(text)
    } else if let values = try? value.decode([AnyJSON].self) {
      self = .array(values)
    } else {
      self = .object(try value.decode([String: AnyJSON].self))
    }
  }

  package func encode(to encoder: any Encoder) throws {
    var value = encoder.singleValueContainer()
    switch self {
    case .null: try value.encodeNil()
    case .bool(let flag): try value.encode(flag)
    case .number(let number):
      if let whole = Int64(exactly: number) { try value.encode(whole) } else { try value.encode(number) }
    case .string(let text): try value.encode(text)
    case .array(let values): try value.encode(values)
    case .object(let values): try value.encode(values)
    }
  }
}
