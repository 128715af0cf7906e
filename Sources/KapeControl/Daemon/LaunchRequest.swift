internal import KapeCrypto

/// What a launcher is told to do, in one message of the pair that it is born with.
struct LaunchRequest: Equatable, Sendable {
  enum Kind: Equatable, Sendable {
    /// Say which file it is, for a profile.
    case measure(path: String)
    /// Become the provider, if it is that file still.
    case launch(ExecutableRecord, arguments: [String], environment: [String])
  }

  var user: UInt32
  var group: UInt32
  var groups: [UInt32]
  var kind: Kind

  init(_ account: UserAccount, _ kind: Kind) {
    user = account.user
    group = account.group
    groups = account.groups
    self.kind = kind
  }

  var path: String {
    switch kind {
    case .measure(let path): path
    case .launch(let record, _, _): record.path
    }
  }

  var message: IPCMessage {
    var body: [JSONValue.Member] = [
      .init("uid", .number(user)), .init("gid", .number(group)),
      .init("groups", .array(groups.map { .number($0) })),
    ]
    switch kind {
    case .measure(let path):
      body.append(.init("path", .string(path)))
      return .request(id: 1, operation: "measure", body: body)
    case .launch(let record, let arguments, let environment):
      body.append(.init("executable", record.json))
      body.append(.init("argv", .strings(arguments)))
      body.append(.init("environment", .strings(environment)))
      return .request(id: 1, operation: "launch", body: body)
    }
  }

  init(_ message: IPCMessage) throws(JSONFields.Fault) {
    guard case .request(_, let operation, let body) = message else {
      throw JSONFields.Fault(description: "a request is expected")
    }
    var fields = try JSONFields(.object(body), operation)
    user = UInt32(try fields.unsigned("uid", limit: UInt64(UInt32.max - 1)))
    group = UInt32(try fields.unsigned("gid", limit: UInt64(UInt32.max - 1)))
    groups = []
    for value in try fields.array("groups", limit: 65_536) {
      guard case .unsigned(let number) = value, let group = UInt32(exactly: number) else {
        throw JSONFields.Fault(description: "\(operation).groups: numbers are expected")
      }
      groups.append(group)
    }
    if operation == "measure" {
      kind = .measure(path: try fields.string("path", limit: 4096))
    } else {
      guard var record = try fields.object("executable") else {
        throw JSONFields.Fault(description: "\(operation).executable: it is missing")
      }
      kind = .launch(
        try ExecutableRecord(&record),
        arguments: try fields.texts("argv", limit: 256, length: 4096, "a text") { $0 },
        environment: try fields.texts("environment", limit: 256, length: 8192, "a text") { $0 })
    }
    try fields.end()
  }
}
