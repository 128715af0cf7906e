/// What two processes say to each other on a connection: requests, numbered by who asks, and replies to them. As JSON,
/// `{"v":1,"id":n,"op":"…",…}` and `{"v":1,"id":n,"ok":{…}}` or `{"v":1,"id":n,"error":{"code":"…","message":"…"}}`.
package enum IPCMessage: Equatable, Sendable {
  package static let version: UInt64 = 1

  case request(id: UInt64, operation: String, body: [JSONValue.Member])
  case reply(id: UInt64, Result<JSONValue, IPCFailure>)

  /// Why bytes are no message.
  package enum Invalid: Error, Equatable, CustomStringConvertible {
    case malformed(String)
    /// A message of another version of this protocol; `id` where it has one.
    case version(UInt64, id: UInt64)

    package var description: String {
      switch self {
      case .malformed(let reason): "this is no message: \(reason)"
      case .version(let other, _): "version \(other) of the protocol is not spoken here, only \(IPCMessage.version)"
      }
    }
  }

  package var json: JSONValue {
    switch self {
    case .request(let id, let operation, let body):
      .object(
        [.init("v", .unsigned(Self.version)), .init("id", .unsigned(id)), .init("op", .string(operation))] + body)
    case .reply(let id, .success(let value)):
      .object([.init("v", .unsigned(Self.version)), .init("id", .unsigned(id)), .init("ok", value)])
    case .reply(let id, .failure(let failure)):
      .object([.init("v", .unsigned(Self.version)), .init("id", .unsigned(id)), .init("error", failure.json)])
    }
  }

  package init(_ bytes: [UInt8]) throws(Invalid) {
    let value: JSONValue
    do throws(JSONReader.Failure) { value = try JSONReader.read(bytes) } catch { throw .malformed("\(error)") }
    guard case .object(var members) = value else { throw .malformed("an object is expected") }
    func take(_ name: String) -> JSONValue? {
      members.firstIndex { $0.name == name }.map { members.remove(at: $0).value }
    }
    let version = take("v")
    let id = take("id")
    guard case .unsigned(let version) = version else { throw .malformed("\"v\" is missing") }
    guard version == Self.version else {
      if case .unsigned(let id) = id { throw .version(version, id: id) }
      throw .version(version, id: 0)
    }
    guard case .unsigned(let id) = id else { throw .malformed("\"id\" is missing") }
    if let operation = take("op") {
      guard case .string(let operation) = operation, !operation.isEmpty, operation.utf8.count <= 64 else {
        throw .malformed("\"op\" is no name")
      }
      self = .request(id: id, operation: operation, body: members)
    } else if let answer = take("ok") {
      self = .reply(id: id, .success(answer))
    } else if let failure = take("error").flatMap(IPCFailure.init) {
      self = .reply(id: id, .failure(failure))
    } else {
      throw .malformed("it is neither a request nor a reply")
    }
  }
}

/// Why a request was refused or failed: a word for programs and a sentence for people.
package struct IPCFailure: Error, Equatable, Sendable, CustomStringConvertible {
  package enum Code: String, Sendable {
    /// Another version of the protocol.
    case version
    /// No such operation.
    case operation
    /// The request contradicts the protocol.
    case malformed
    /// The caller may not do this, whoever he is or in this state.
    case refused
    /// There is nothing of that name.
    case unknown
    /// A value in the request makes no sense.
    case invalid
    /// Not now: something else has to end first.
    case busy
    /// The system, or the other program, failed.
    case failed
    /// No answer in time.
    case late
    /// A code that this program does not know.
    case other
  }

  package var code: Code
  package var message: String

  package init(_ code: Code, _ message: String) {
    self.code = code
    self.message = message
  }

  package var description: String { message }

  var json: JSONValue {
    .object([.init("code", .string(code.rawValue)), .init("message", .string(message))])
  }

  init?(_ value: JSONValue) {
    guard case .object(let members) = value,
      case .string(let code)? = members.first(where: { $0.name == "code" })?.value,
      case .string(let message)? = members.first(where: { $0.name == "message" })?.value
    else { return nil }
    self.init(Code(rawValue: code) ?? .other, message)
  }
}
