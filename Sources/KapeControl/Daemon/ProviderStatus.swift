/// What a tunnel is doing, as apps see it.
package enum ProviderStatus: String, Sendable, CaseIterable {
  case disconnected
  case connecting
  case connected
  /// Connected, and being established anew.
  case reasserting
  case disconnecting

  package var isUp: Bool { self != .disconnected && self != .disconnecting }
}

/// An error of an app's or a provider's, as far as it goes from one process to another.
package struct ProviderError: Error, Equatable, Sendable, CustomStringConvertible {
  /// kaped's own errors have this domain; their codes are those of `NEVPNError`.
  package static let daemonDomain = "KapeDaemonErrorDomain"

  package var domain: String
  package var code: Int64
  package var message: String

  package init(domain: String, code: Int64, message: String) {
    self.domain = domain
    self.code = code
    self.message = message
  }

  /// The connection failed, for a reason that people can read.
  package init(_ reason: String) {
    self.init(domain: Self.daemonDomain, code: 3, message: reason)
  }

  package var description: String { message }

  package var json: JSONValue {
    .object([
      .init("domain", .string(domain)), .init("code", code < 0 ? .negative(code) : .unsigned(UInt64(code))),
      .init("message", .string(message)),
    ])
  }

  package init(_ fields: inout JSONFields) throws(JSONFields.Fault) {
    self.init(
      domain: try fields.string("domain", limit: 255), code: try fields.signed("code"),
      message: try fields.string("message", limit: 4096))
    try fields.end()
  }
}

/// One moment of one tunnel.
package struct ProviderSnapshot: Equatable, Sendable {
  package var id: String
  package var status = ProviderStatus.disconnected
  /// Wall time in nanoseconds; 0: it is not connected.
  package var connectedSince: UInt64 = 0
  /// Why it ended last; nil: because somebody wanted it, or it never ran.
  package var lastError: ProviderError?
  /// While there is a tunnel.
  package var interface: String?

  package init(id: String) { self.id = id }

  package var json: JSONValue {
    .object([
      .init("id", .string(id)), .init("status", .string(status.rawValue)),
      .init("connected_since", .unsigned(connectedSince)), .init("error", lastError?.json ?? .null),
      .init("interface", .optional(interface)),
    ])
  }

  package init(_ value: JSONValue) throws(JSONFields.Fault) {
    var fields = try JSONFields(value, "status")
    id = try fields.string("id", limit: 64)
    let name = try fields.string("status", limit: 32)
    guard let status = ProviderStatus(rawValue: name) else {
      throw JSONFields.Fault(description: "status.status: no such status: \(name)")
    }
    self.status = status
    connectedSince = try fields.unsigned("connected_since")
    if var error = try fields.object("error") { lastError = try ProviderError(&error) }
    interface = try fields.optionalString("interface", limit: 15)
    try fields.end()
  }
}

/// How long kaped waits for others, each with what happens then.
package struct ProviderDeadlines: Sendable {
  /// A provider that was started introduces itself; else it is ended and the start has failed.
  package var launch: Duration = .seconds(10)
  /// It says that the tunnel is up, or why it is not; else it is ended and the start has failed.
  package var start: Duration = .seconds(120)
  /// It has stopped; else it is ended.
  package var stop: Duration = .seconds(2)
  /// It answers a message of its app; else there is no answer.
  package var message: Duration = .seconds(10)
  /// It stays after a tunnel's end, for the next; then it is asked to go.
  package var idle: Duration = .seconds(20)

  package init() {}
}
