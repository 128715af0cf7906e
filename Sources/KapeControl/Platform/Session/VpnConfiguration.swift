/// One thing to connect to, with all that is needed for it: an endpoint, its parameters, and credentials.
public protocol VpnConfiguration: Sendable {
  /// `wireguard`, `openvpn` or `lightway`.
  var vpnProtocolName: String { get }
  /// What hides the protocol on the wire, for reports; `none` unless said otherwise.
  var obfuscationDescription: String { get }
  /// The cipher of the data, for reports; `none` unless said otherwise.
  var cipherDescription: String { get }
  /// Whether the connection goes by a proxy; false unless said otherwise.
  var isProxied: Bool { get }
}

extension VpnConfiguration {
  public var obfuscationDescription: String { "none" }
  public var cipherDescription: String { "none" }
  public var isProxied: Bool { false }
}
