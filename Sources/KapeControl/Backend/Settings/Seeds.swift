import KapeProtocols

/// A user that the database gets when it has none of that e-mail address. The password is made then, at random.
struct SeedUser: Sendable, Equatable {
  var email: String
  var name: String
  var subscriptions: [SeedSubscription]
}

struct SeedSubscription: Sendable, Equatable {
  var status: SubscriptionStatus
  var source: String
  var tier: String
  /// Seconds from when the user is made; less than zero: before that.
  var termEndsIn: Int64?
  var nextBillingIn: Int64?
  var cancelledIn: Int64?
  var billing: BillingPeriod?
  var lastAutoBillPaymentFailed: Bool
  var isBusiness: Bool
  var entitlements: [String]
}

struct BillingPeriod: Sendable, Equatable {
  var unit: String
  var count: Int64
}

enum SubscriptionStatus: String, Sendable, CaseIterable {
  case active
  case gracePeriod = "grace_period"
  case expired, cancelled, suspended
}

/// Where servers are, as an app shows it.
struct Location: Sendable, Equatable {
  var id: String
  var name: String
  var countryCode: String
  var continent: String
  var latitude: Double
  var longitude: Double
  /// The servers stand elsewhere.
  var isGeolocated: Bool
  var popularityOrder: Int64?
  var instanceCountMin: Int64
  var instanceCountMax: Int64
  var testIPs: [String]
  /// In pecking order.
  var endpoints: [Endpoint]
}

enum Endpoint: Sendable, Equatable {
  /// A server of the settings.
  case wireGuard(server: String)
  case openVPN(OpenVPN)
  case lightway(Lightway)
  case proxy(Proxy)

  enum Transport: String, Sendable, CaseIterable { case udp, tcp }
  enum ProxyAuthentication: String, Sendable, CaseIterable { case none, token }

  struct OpenVPN: Sendable, Equatable {
    var at: SocketAddress
    var transport: Transport
    var certDN: String
    var mtu: Int64
    var profile: String
    /// Path of a PEM file; nil: the backend's own CA.
    var caFile: String?
    var tlsAuthFile: String?
    var xorValue: Int64?
  }

  struct Lightway: Sendable, Equatable {
    var at: SocketAddress
    var transport: Transport
    var certDN: String
    var mtu: Int64
    var caFile: String?
    var isXor: Bool
  }

  struct Proxy: Sendable, Equatable {
    var at: SocketAddress
    var isTLS: Bool
    var certDN: String
    var authentication: ProxyAuthentication
  }

  /// As the filter of the discovery names it.
  var protocolID: String {
    switch self {
    case .wireGuard: "wireguard"
    case .openVPN: "openvpn"
    case .lightway: "lightway"
    case .proxy: "proxy"
    }
  }
}

/// An interface that `kape wg`, `kape up` or another program serves on this host, and the TLS listener where keys are
/// exchanged for it.
struct WireGuardServer: Sendable, Equatable {
  var name: String
  /// Path of the interface's configuration socket.
  var socket: String
  /// What apps are told to send packets to.
  var ip: IPAddress
  var port: UInt16
  /// What apps are told to exchange keys with, and what is listened on for that (nil: the same).
  var auth: SocketAddress
  var listen: SocketAddress?
  var certDN: String
  /// The server's address in the tunnel, and the network that peers get theirs from.
  var network: TunnelNetwork
  var dnsServers: [IPAddress]
}

struct DedicatedIP: Sendable, Equatable {
  var ip: String
  var location: String
  var endsIn: Int64
  var isUnderMaintenance: Bool
  var endpoints: [Endpoint.Lightway]
}
