/// What is wrong with a value of the right type, in words that hold nothing of it.
package struct WrongField: Error {
  package let reason: String
}

extension DecodingError {
  static func wrong(_ key: any CodingKey, _ reason: String, _ path: [any CodingKey]) -> DecodingError {
    .dataCorrupted(
      Context(codingPath: path + [key], debugDescription: reason, underlyingError: WrongField(reason: reason)))
  }

  /// `.port: not within 1 to 65535`, without a value of what was decoded.
  static func place(_ error: any Error) -> String {
    guard let error = error as? DecodingError else { return ": not as described" }
    switch error {
    case .typeMismatch(let type, let context): return place(context) + ": no \(type)"
    case .valueNotFound(let type, let context): return place(context) + ": no \(type)"
    case .keyNotFound(let key, let context): return place(context) + ": \(key.stringValue) is missing"
    case .dataCorrupted(let context):
      let wrong = context.underlyingError as? WrongField
      return place(context) + ": " + (wrong?.reason ?? (context.codingPath.isEmpty ? "not JSON" : "not as described"))
    @unknown default: return ": not as described"
    }
  }

  private static func place(_ context: Context) -> String {
    context.codingPath.last.map { $0.intValue == nil ? ".\($0.stringValue)" : "" } ?? ""
  }
}

/// One entry of a list, whatever is wrong with it.
struct ListEntry<Value: Decodable>: Decodable {
  let result: Result<Value, any Error>

  init(from decoder: any Decoder) throws {
    result = Result { try Value(from: decoder) }
  }
}
