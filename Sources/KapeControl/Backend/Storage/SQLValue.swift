/// What a statement's parameter is given.
enum SQLValue: Sendable, Equatable, ExpressibleByStringLiteral, ExpressibleByIntegerLiteral, ExpressibleByNilLiteral {
  case null
  case integer(Int64)
  case text(String)
  case blob([UInt8])

  init(stringLiteral value: String) { self = .text(value) }
  init(integerLiteral value: Int64) { self = .integer(value) }
  init(nilLiteral: ()) { self = .null }

  static func optional(_ value: Int64?) -> SQLValue { value.map { .integer($0) } ?? .null }
  static func optional(_ value: String?) -> SQLValue { value.map { .text($0) } ?? .null }
  static func bool(_ value: Bool) -> SQLValue { .integer(value ? 1 : 0) }
}
