package import KapeProtocols

/// A server to measure the way to.
package struct LatencyTarget: Hashable, Sendable {
  package var address: IPAddress
  /// For a connection by TCP, where pings are not allowed or not answered.
  package var port: UInt16

  package init(_ address: IPAddress, port: UInt16 = 443) {
    self.address = address
    self.port = port
  }
}

/// How a round trip is measured.
package enum LatencyMethod: String, CaseIterable, Sendable {
  /// An ICMP echo by a datagram socket, which needs no privilege where net.ipv4.ping_group_range allows it (icmp(7)).
  case echo
  /// The time that a connection by TCP takes, or its refusal.
  case connection
}

/// Measures round trips.
package protocol LatencyProbe: Sendable {
  /// One round trip; nil: no answer in time, or no way there.
  ///
  /// - Throws: `LatencyNotPermitted` when this process may not measure in that way; `CancellationError`.
  func roundTrip(to target: LatencyTarget, by method: LatencyMethod, within limit: Duration) async throws -> Duration?
}

/// The system does not let this process measure in that way.
package struct LatencyNotPermitted: Error {
  package init() {}
}
