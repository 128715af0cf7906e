/// What kaped keeps of an app's tunnel: whose it is, and what to start. Apps install them; nothing else is ever started.
package struct ProviderProfile: Equatable, Sendable {
  package static let mostArguments = 64
  /// The app's own configuration, which kaped does not look into.
  package static let mostConfiguration = 256 << 10

  package var id: String
  package var user: UInt32
  /// For a user without an account: the group that he had when he installed it.
  package var group: UInt32
  /// For people.
  package var name: String
  package var executable: ExecutableRecord
  package var arguments: [String]
  /// The folder of state that app and provider share, `AppGroupIdentifier` of their settings; empty: none was named.
  package var appGroup: String
  /// KAPE_STATE_HOME of the app, where it has one of its own.
  package var stateHome: String?
  package var isEnabled: Bool
  package var configuration: [UInt8]

  package init(
    id: String, user: UInt32, group: UInt32, name: String, executable: ExecutableRecord, arguments: [String] = [],
    appGroup: String = "", stateHome: String? = nil, isEnabled: Bool = true, configuration: [UInt8] = []
  ) {
    self.id = id
    self.user = user
    self.group = group
    self.name = name
    self.executable = executable
    self.arguments = arguments
    self.appGroup = appGroup
    self.stateHome = stateHome
    self.isEnabled = isEnabled
    self.configuration = configuration
  }

  /// Whether a text may be a part of a path: letters, digits, '.', '_' and '-', not beginning with a dot.
  package static func isPlainName(_ text: String) -> Bool {
    (1...64).contains(text.utf8.count) && text.first != "."
      && text.utf8.allSatisfy { byte in
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
          UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "."), UInt8(ascii: "_"), UInt8(ascii: "-"):
          true
        default: false
        }
      }
  }

  package var json: JSONValue {
    var members: [JSONValue.Member] = [
      .init("id", .string(id)), .init("uid", .number(user)), .init("gid", .number(group)),
      .init("name", .string(name)), .init("executable", executable.json), .init("argv", .strings(arguments)),
      .init("group", .string(appGroup)), .init("enabled", .bool(isEnabled)),
      .init("configuration", .string(Base64.encode(configuration))),
    ]
    if let stateHome { members.append(.init("state_home", .string(stateHome))) }
    return .object(members)
  }

  package init(_ value: JSONValue) throws(JSONFields.Fault) {
    var fields = try JSONFields(value, "profile")
    let wanted = try Wanted(&fields, id: "id")
    guard var executable = try fields.object("executable") else {
      throw JSONFields.Fault(description: "profile.executable: it is missing")
    }
    self.init(
      id: wanted.id, user: UInt32(try fields.unsigned("uid", limit: UInt64(UInt32.max))),
      group: UInt32(try fields.unsigned("gid", limit: UInt64(UInt32.max))), name: wanted.name,
      executable: try ExecutableRecord(&executable), arguments: wanted.arguments, appGroup: wanted.appGroup,
      stateHome: wanted.stateHome, isEnabled: wanted.isEnabled, configuration: wanted.configuration)
    try fields.end()
  }

  /// The part that the app says.
  package struct Wanted: Sendable {
    package var id: String
    package var name: String
    package var arguments: [String]
    package var appGroup: String
    package var stateHome: String?
    package var isEnabled: Bool
    package var configuration: [UInt8]

    /// `name`: of the member that holds the profile's identifier.
    package init(_ fields: inout JSONFields, id name: String) throws(JSONFields.Fault) {
      id = try fields.string(name, limit: 64)
      guard isPlainName(id) else {
        throw JSONFields.Fault(description: "the profile's identifier: letters, digits, '.', '_' and '-' are expected")
      }
      self.name = try fields.optionalString("name", limit: 255) ?? ""
      arguments = try fields.texts("argv", limit: mostArguments, length: 4096, "a text without NUL") {
        $0.utf8.contains(0) ? nil : $0
      }
      appGroup = try fields.optionalString("group", limit: 64) ?? ""
      guard appGroup.isEmpty || isPlainName(appGroup) else {
        throw JSONFields.Fault(description: "profile.group: letters, digits, '.', '_' and '-' are expected")
      }
      stateHome = try fields.optionalString("state_home", limit: 4095)
      if let stateHome, !stateHome.hasPrefix("/") || stateHome.utf8.contains(0) {
        throw JSONFields.Fault(description: "profile.state_home: an absolute path is expected")
      }
      isEnabled = try fields.bool("enabled")
      configuration = try fields.data("configuration", limit: mostConfiguration) ?? []
    }
  }
}
