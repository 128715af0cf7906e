internal import KapeProtocols

/// What the app wants of the tunnel. What is missing, or cannot be read, is the default, except where that would take
/// protection away.
extension SharedConfiguration {
  /// `.auto` unless a location was chosen.
  package var connectionMode: KapeConnectionMode {
    get { self[string: "locationId"].flatMap { $0.isEmpty ? nil : .manual(locationId: $0) } ?? .auto }
    set {
      self[string: "locationId"] =
        switch newValue {
        case .auto: nil
        case .manual(let id): id
        }
    }
  }

  package var selectedProtocol: KapeProtocolPreference {
    get { self[string: "selectedProtocol"].flatMap(KapeProtocolPreference.init) ?? .automatic }
    set { self[string: "selectedProtocol"] = newValue.rawValue }
  }

  /// Resolvers of the user's own, in the order of use, each once; what is no IP address is passed over.
  package var dnsServers: [String] {
    get {
      guard case .array(let values) = self.values["dnsServers"] else { return [] }
      return values.reduce(into: []) { servers, value in
        guard case .string(let text) = value, let address = IPAddress(Self.trimmed(text)) else { return }
        if !servers.contains("\(address)") { servers.append("\(address)") }
      }
    }
    set { values["dnsServers"] = newValue.isEmpty ? nil : .array(newValue.map { .string($0) }) }
  }

  private static func trimmed(_ text: String) -> String {
    let isSpace = { (character: Character) in character.isWhitespace }
    return String(String(text.drop(while: isSpace)).reversed().drop(while: isSpace).reversed())
  }

  /// One that this version does not know is the strictest: never silently none.
  package var killSwitchMode: KapeKillSwitchMode {
    get {
      guard let value = values["killSwitchMode"] else { return .off }
      guard case .string(let text) = value else { return .advanced }
      return KapeKillSwitchMode(rawValue: text) ?? .advanced
    }
    set { self[string: "killSwitchMode"] = newValue.rawValue }
  }

  package var connectOnDemand: Bool {
    get { flag("connectOnDemand") }
    set { values["connectOnDemand"] = .bool(newValue) }
  }

  /// Whether Lightway goes by a proxy, and nothing else is tried.
  package var usesProxy: Bool {
    get { flag("usesProxy") }
    set { values["usesProxy"] = .bool(newValue) }
  }

  /// Whether the tunnel goes to the dedicated IP whose token is kept with the session.
  package var usesDedicatedIP: Bool {
    get { flag("usesDedicatedIP") }
    set { values["usesDedicatedIP"] = .bool(newValue) }
  }

  private func flag(_ key: String) -> Bool {
    if case .bool(let value) = values[key] { value } else { false }
  }
}
