package import KapeCrypto
package import KapeProtocols

/// What there is to say about one interface, at one moment. No secret is in it.
package struct InterfaceReport: Equatable, Sendable {
  package var name: String
  /// Who runs it: "kape up", or the name of the program that answers for it.
  package var program: String
  /// 0: not known.
  package var process: Int32 = 0
  package var configurationFile: String?
  /// Wall time, ns; 0: not known.
  package var upSince: UInt64 = 0
  package var publicKey: PublicKey?
  package var listenPort: UInt16 = 0
  package var firewallMark: UInt32 = 0
  /// "epoll" or "io_uring".
  package var backend: String?
  package var fallbacks: [String] = []
  /// That packets pass on; nil: not told.
  package var threads: Int?
  /// Of the interface, that they read; nil: not told.
  package var queues: Int?
  package var settings: AppliedSettings?
  package var peers: [Peer] = []
  /// nil: not told by whoever runs it.
  package var traffic: Traffic?
  /// Counters that are not zero, by name, in the order of the data plane.
  package var counters: [Counter] = []
  /// The newest last.
  package var events: [Event] = []
  package var warnings: [String] = []

  package init(name: String, program: String) {
    self.name = name
    self.program = program
  }

  package struct Peer: Equatable, Sendable {
    package var publicKey: PublicKey
    package var hasPresharedKey = false
    package var endpoint: SocketAddress?
    /// As the configuration names it.
    package var endpointName: String?
    package var allowedIPs: [IPPrefix] = []
    package var persistentKeepalive: UInt16 = 0
    /// Wall time, ns; 0: never.
    package var latestHandshake: UInt64 = 0
    /// nil: not told.
    package var hasSession: Bool?
    package var receivedBytes: UInt64 = 0
    package var sentBytes: UInt64 = 0
    /// nil: not told.
    package var insideReceivedBytes: UInt64?
    package var insideSentBytes: UInt64?
    /// Bytes a second, of messages; nil: not measured.
    package var receivedRate: UInt64?
    package var sentRate: UInt64?

    package init(publicKey: PublicKey) { self.publicKey = publicKey }
  }

  package struct Traffic: Equatable, Sendable {
    package struct Count: Equatable, Sendable {
      package var packets: UInt64
      package var bytes: UInt64

      package init(packets: UInt64, bytes: UInt64) {
        self.packets = packets
        self.bytes = bytes
      }
    }
    package var insideReceived: Count
    package var insideSent: Count
    package var wireReceived: Count
    package var wireSent: Count

    package init(insideReceived: Count, insideSent: Count, wireReceived: Count, wireSent: Count) {
      self.insideReceived = insideReceived
      self.insideSent = insideSent
      self.wireReceived = wireReceived
      self.wireSent = wireSent
    }
  }

  package struct Counter: Equatable, Sendable {
    package var name: String
    package var value: UInt64

    package init(_ name: String, _ value: UInt64) {
      self.name = name
      self.value = value
    }
  }

  package struct Event: Equatable, Sendable {
    /// Wall time, ns.
    package var time: UInt64
    package var text: String

    package init(time: UInt64, text: String) {
      self.time = time
      self.text = text
    }
  }

  /// Fills in the rates from an earlier report of the same interface.
  package mutating func measureRates(since earlier: InterfaceReport, nanoseconds: UInt64) {
    guard nanoseconds > 0 else { return }
    let before = Dictionary(earlier.peers.map { ($0.publicKey, $0) }, uniquingKeysWith: { first, _ in first })
    func rate(_ now: UInt64, _ then: UInt64) -> UInt64 {
      UInt64(Double(now &- min(then, now)) * 1e9 / Double(nanoseconds))
    }
    for index in peers.indices {
      guard let old = before[peers[index].publicKey] else { continue }
      peers[index].receivedRate = rate(peers[index].receivedBytes, old.receivedBytes)
      peers[index].sentRate = rate(peers[index].sentBytes, old.sentBytes)
    }
  }
}

/// What a tunnel set up of the system.
package struct AppliedSettings: Equatable, Sendable {
  package var addresses: [InterfaceAddress] = []
  package var mtu: UInt32 = 0
  package var routes: [Route] = []
  package var rules: [PolicyRule] = []
  /// Families of which everything goes through the tunnel.
  package var fullTunnels: [IPAddress.Family] = []
  /// The table of the full tunnel, which is its mark too; nil: there is none.
  package var table: UInt32?
  package var guardTables: [String] = []
  /// How name servers were set; nil: they were not.
  package var nameServiceMethod: String?
  package var nameServers: [ScopedAddress] = []
  package var searchDomains: [String] = []

  package init() {}
}
