/// A JSON value (RFC 8259) as it was read, for code that does without Foundation.
public enum JSONNode: Equatable, Sendable {
  case null
  case bool(Bool)
  case number(Double)
  case string(String)
  case array([JSONNode])
  case object([String: JSONNode])

  public subscript(name: String) -> JSONNode? {
    if case .object(let members) = self { members[name] } else { nil }
  }

  public var string: String? { if case .string(let text) = self { text } else { nil } }
  public var number: Double? { if case .number(let value) = self { value } else { nil } }
  public var array: [JSONNode]? { if case .array(let values) = self { values } else { nil } }
  public var bool: Bool? { if case .bool(let value) = self { value } else { nil } }

  /// nil unless it is an array of strings.
  public var strings: [String]? {
    guard let array else { return nil }
    let strings = array.compactMap(\.string)
    return strings.count == array.count ? strings : nil
  }
}
