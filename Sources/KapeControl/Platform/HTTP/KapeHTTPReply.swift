public import Foundation

/// What a server answered.
public struct KapeHTTPReply: Sendable {
  /// 200 to 599.
  public let status: Int
  public let headers: KapeHTTPHeaders
  public let body: Data
  /// The host that answered, with the port.
  public let host: String

  init(_ response: HTTPResponseParser, host: String) {
    status = response.status
    headers = KapeHTTPHeaders(response.fields)
    body = Data(response.body)
    self.host = host
  }

  /// Whether the status is one of success: 200 to 299.
  public var isSuccess: Bool { (200..<300).contains(status) }

  /// The body read as JSON.
  ///
  /// - Throws: `KapeHTTPError`, `status` when the server reports no success, `notJSON` when the body is something else.
  public func json<Value: Decodable>(as type: Value.Type, decoder: JSONDecoder = JSONDecoder()) throws -> Value {
    guard isSuccess else { throw KapeHTTPError(host: host, cause: .status(status)) }
    do {
      return try decoder.decode(type, from: body)
    } catch let error as DecodingError {
      throw KapeHTTPError(host: host, cause: .notJSON(error.place))
    } catch {
      throw KapeHTTPError(host: host, cause: .notJSON("\(type) cannot be made of it"))
    }
  }
}

extension DecodingError {
  /// What is wrong where, without what is there: that may be a secret.
  fileprivate var place: String {
    switch self {
    case .keyNotFound(let key, let context): "\(Self.text(context.codingPath + [key])) is missing"
    case .valueNotFound(_, let context): "\(Self.text(context.codingPath)) has no value"
    case .typeMismatch(let type, let context): "\(Self.text(context.codingPath)) is no \(type)"
    case .dataCorrupted(let context): "\(Self.text(context.codingPath)) cannot be read"
    @unknown default: "it cannot be read"
    }
  }

  private static func text(_ path: [any CodingKey]) -> String {
    path.isEmpty ? "the whole" : path.map { $0.intValue.map(String.init) ?? $0.stringValue }.joined(separator: ".")
  }
}
