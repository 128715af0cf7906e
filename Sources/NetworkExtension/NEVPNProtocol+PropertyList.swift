extension NETunnelProviderProtocol {
  /// As kaped keeps it. `app`: whose configuration it is.
  func propertyList(app: String) throws -> Data {
    var members: [String: Any] = ["app": app, "disconnectOnSleep": disconnectOnSleep]
    members["serverAddress"] = serverAddress
    members["username"] = username
    members["passwordReference"] = passwordReference
    members["providerConfiguration"] = providerConfiguration.map { PropertyListObjects.value($0) }
    members["providerBundleIdentifier"] = providerBundleIdentifier
    do {
      return try PropertyListObjects.encode(members) ?? Data()
    } catch {
      throw NEVPNError(
        .configurationInvalid, "protocolConfiguration.providerConfiguration: not a property list: \(error)")
    }
  }

  /// Nothing is lost when it cannot be read but what it said.
  convenience init(propertyList data: Data) {
    self.init()
    let members = PropertyListObjects.decode(data) ?? [:]
    serverAddress = members["serverAddress"] as? String
    username = members["username"] as? String
    passwordReference = members["passwordReference"] as? Data
    disconnectOnSleep = members["disconnectOnSleep"] as? Bool ?? false
    providerConfiguration = members["providerConfiguration"] as? [String: Any]
    providerBundleIdentifier = members["providerBundleIdentifier"] as? String
  }

  static func app(of data: Data) -> String? { PropertyListObjects.decode(data)?["app"] as? String }
}
