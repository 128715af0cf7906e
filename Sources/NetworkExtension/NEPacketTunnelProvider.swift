internal import KapeControl
internal import KapeProtocols
internal import Synchronization

/// A provider of a tunnel that carries IP packets. Subclass it, override `startTunnel` and `stopTunnel`, in either of
/// their forms, and give the subclass to `KapeTunnelHost.run`.
open class NEPacketTunnelProvider: NETunnelProvider, @unchecked Sendable {
  private let flow = NEPacketTunnelFlow()

  /// The packets of the tunnel's interface.
  open var packetFlow: NEPacketTunnelFlow { flow }

  package override var host: (any TunnelHost)? {
    get { super.host }
    set {
      super.host = newValue
      flow.attach(newValue?.tun)
    }
  }

  /// The tunnel is to start. `options`: what the app gave to `startTunnel`. The tunnel counts as up when
  /// `completionHandler` is called with nil, and as failed with an error. The base calls the form that waits.
  open func startTunnel(
    options: [String: NSObject]? = nil, completionHandler: @escaping @Sendable ((any Error)?) -> Void
  ) {
    let options = Unshared(options)
    Task {
      do {
        try await startTunnel(options: options.value)
        completionHandler(nil)
      } catch {
        completionHandler(error)
      }
    }
  }

  /// The same for a subclass that waits: the tunnel is up when it returns. The base does nothing.
  open func startTunnel(options: [String: NSObject]? = nil) async throws {}

  /// The tunnel is to end. After `completionHandler`, and two seconds after the call at the latest, the process may be
  /// ended and everything that was applied is taken away. The base calls the form that waits.
  open func stopTunnel(with reason: NEProviderStopReason, completionHandler: @escaping @Sendable () -> Void) {
    Task {
      await stopTunnel(with: reason)
      completionHandler()
    }
  }

  /// The same for a subclass that waits. The base does nothing.
  open func stopTunnel(with reason: NEProviderStopReason) async {}

  /// Ends the tunnel from the provider's side. `stopTunnel` is not called.
  open func cancelTunnelWithError(_ error: (any Error)?) { host?.cancel(error) }
}

// MARK: Linux

extension NEPacketTunnelProvider {
  /// A socket whose packets never go into the tunnel, non-blocking and closed in other programs; the caller closes it.
  /// A provider has no privilege to make one itself. `family`: AF_INET or AF_INET6; `type`: `SOCK_DGRAM` for UDP, or
  /// `SOCK_STREAM` for TCP.
  public func makeSocketOutsideTunnel(family: Int32, type: Int32) async throws -> Int32 {
    guard let host else { throw NETunnelProviderError(.networkSettingsFailed, "this provider has no tunnel") }
    let families: [Int32: IPAddress.Family] = [AF_INET: .ipv4, AF_INET6: .ipv6]
    let kinds: [Int32: OutsideSocket.Kind] = [
      Int32(SOCK_DGRAM.rawValue): .udp, Int32(SOCK_STREAM.rawValue): .tcp,
    ]
    guard let family = families[family], let kind = kinds[type] else {
      throw POSIXError(.EPROTONOSUPPORT)
    }
    return try await host.makeSocket(OutsideSocket(family, kind))
  }

  /// The tunnel's TUN descriptor with its interface's name and its mark, for engines that read and write it themselves
  /// instead of `packetFlow`: one of the two, not both.
  package var tun: HostedTun? { host?.tun }
}
