import Foundation
internal import KapeProtocols

/// The wire form, which the cache keeps too. Fields of a kind that is known are checked one by one; what is not in the
/// description of the backend is passed over.
extension DiscoveredEndpoint: Codable {
  private enum Key: String, CodingKey {
    case kind, ip, port, transport, mtu, profile, obfuscation, tls, authentication
    case authIP = "auth_ip"
    case authPort = "auth_port"
    case certDn = "cert_dn"
    case caCertificate = "ca_certificate"
    case tlsAuthKey = "tls_auth_key"
    case xorValue = "xor_value"
  }

  package init(from decoder: any Decoder) throws {
    let fields = Fields(try decoder.container(keyedBy: Key.self))
    switch try fields.values.decode(DiscoveryProtocol.self, forKey: .kind) {
    case .wireguard:
      self = .wireGuard(
        WireGuard(
          address: try fields.address(.ip), port: try fields.port(.port), authAddress: try fields.address(.authIP),
          authPort: try fields.port(.authPort), certDn: try fields.name(.certDn),
          obfuscation: try fields.name(.obfuscation)))
    case .openvpn:
      self = .openVPN(
        OpenVPN(
          address: try fields.address(.ip), port: try fields.port(.port),
          transport: try fields.values.decode(OpenVPNTransport.self, forKey: .transport),
          certDn: try fields.name(.certDn), mtu: try fields.mtu(.mtu),
          profile: try fields.values.decode(String.self, forKey: .profile),
          caCertificate: try fields.pem(.caCertificate),
          tlsAuthKey: try fields.values.decodeIfPresent(String.self, forKey: .tlsAuthKey),
          xorValue: try fields.byte(.xorValue), obfuscation: try fields.name(.obfuscation)))
    case .lightway:
      self = .lightway(
        Lightway(
          address: try fields.address(.ip), port: try fields.port(.port),
          transport: try fields.values.decode(LightwayTransport.self, forKey: .transport), mtu: try fields.mtu(.mtu),
          certDn: try fields.name(.certDn), caCertificate: try fields.pem(.caCertificate),
          obfuscation: try fields.name(.obfuscation)))
    case .proxy:
      self = .proxy(
        Proxy(
          address: try fields.address(.ip), port: try fields.port(.port),
          tls: try fields.values.decode(Bool.self, forKey: .tls), certDn: try fields.name(.certDn),
          authentication: try fields.values.decode(Proxy.Authentication.self, forKey: .authentication)))
    }
  }

  /// Reads values with what the backend's description says of them.
  private struct Fields {
    let values: KeyedDecodingContainer<Key>

    init(_ values: KeyedDecodingContainer<Key>) { self.values = values }

    func address(_ key: Key) throws -> IPAddress {
      guard let address = IPAddress(try values.decode(String.self, forKey: key)), !address.isUnspecified else {
        throw wrong(key, "not an IP address")
      }
      return address
    }

    func port(_ key: Key) throws -> UInt16 { UInt16(try number(key, in: 1...65_535)) }

    func mtu(_ key: Key) throws -> UInt16 { UInt16(try number(key, in: 576...65_535)) }

    func byte(_ key: Key) throws -> Int? {
      try values.decodeIfPresent(Int.self, forKey: key) == nil ? nil : number(key, in: 0...255)
    }

    private func number(_ key: Key, in range: ClosedRange<Int>) throws -> Int {
      let number = try values.decode(Int.self, forKey: key)
      guard range.contains(number) else { throw wrong(key, "not within \(range.lowerBound) to \(range.upperBound)") }
      return number
    }

    func name(_ key: Key) throws -> String {
      let name = try values.decode(String.self, forKey: key)
      guard !name.isEmpty, name.utf8.count <= 256,
        name.unicodeScalars.allSatisfy({ $0.value >= 0x20 && $0.value != 0x7F })
      else { throw wrong(key, "empty, too long or with control characters") }
      return name
    }

    func pem(_ key: Key) throws -> String {
      let text = try values.decode(String.self, forKey: key)
      guard text.contains("-----BEGIN CERTIFICATE-----") else { throw wrong(key, "no certificate in PEM") }
      return text
    }

    private func wrong(_ key: Key, _ reason: String) -> DecodingError { .wrong(key, reason, values.codingPath) }
  }

  package func encode(to encoder: any Encoder) throws {
    var values = encoder.container(keyedBy: Key.self)
    try values.encode(discoveryProtocol, forKey: .kind)
    try values.encode("\(address)", forKey: .ip)
    try values.encode(port, forKey: .port)
    switch self {
    case .wireGuard(let endpoint):
      try values.encode("\(endpoint.authAddress)", forKey: .authIP)
      try values.encode(endpoint.authPort, forKey: .authPort)
      try values.encode(endpoint.certDn, forKey: .certDn)
      try values.encode(endpoint.obfuscation, forKey: .obfuscation)
    case .openVPN(let endpoint):
      try values.encode(endpoint.transport, forKey: .transport)
      try values.encode(endpoint.certDn, forKey: .certDn)
      try values.encode(endpoint.mtu, forKey: .mtu)
      try values.encode(endpoint.profile, forKey: .profile)
      try values.encode(endpoint.caCertificate, forKey: .caCertificate)
      try values.encode(endpoint.tlsAuthKey, forKey: .tlsAuthKey)
      try values.encode(endpoint.xorValue, forKey: .xorValue)
      try values.encode(endpoint.obfuscation, forKey: .obfuscation)
    case .lightway(let endpoint):
      try values.encode(endpoint.transport, forKey: .transport)
      try values.encode(endpoint.mtu, forKey: .mtu)
      try values.encode(endpoint.certDn, forKey: .certDn)
      try values.encode(endpoint.caCertificate, forKey: .caCertificate)
      try values.encode(endpoint.obfuscation, forKey: .obfuscation)
    case .proxy(let endpoint):
      try values.encode(endpoint.tls, forKey: .tls)
      try values.encode(endpoint.certDn, forKey: .certDn)
      try values.encode(endpoint.authentication, forKey: .authentication)
    }
  }
}
