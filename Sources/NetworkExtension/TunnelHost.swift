package import KapeControl

/// What a provider asks of the system. In a provider's process that is kaped; tests bring their own.
package protocol TunnelHost: Sendable {
  /// The TUN interface: valid from before `startTunnel` until `stopTunnel` has completed. nil: there is none.
  var tun: HostedTun? { get }

  /// Replaces all settings by these, or takes them away. When it throws, those that were there before are there still.
  func apply(_ settings: TunnelSettings?) async throws

  /// A new socket outside the tunnel, marked so that it stays outside; its owner closes it.
  func makeSocket(_ wanted: OutsideSocket) async throws -> Int32

  func setReasserting(_ isReasserting: Bool)

  /// The provider gives up by itself.
  func cancel(_ error: (any Error)?)
}

/// A TUN interface that kaped has made. The descriptor is the host's: who keeps it longer than the tunnel duplicates it.
package struct HostedTun: Equatable, Sendable {
  package var descriptor: Int32
  package var name: String
  /// The mark of sockets outside the tunnel.
  package var mark: UInt32

  package init(descriptor: Int32, name: String, mark: UInt32) {
    self.descriptor = descriptor
    self.name = name
    self.mark = mark
  }
}

/// Carries a value that is not `Sendable` to where it is used next. Safe where the giver does not touch it afterwards,
/// or where nobody changes it.
struct Unshared<Value>: @unchecked Sendable {
  let value: Value

  init(_ value: Value) { self.value = value }
}
