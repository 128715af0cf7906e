import Foundation

/// The platform's calls with their deadline: what comes back too late is closed.
extension TaskEnvironment {
  func establish(
    _ settings: PacketTunnelInterfaceSettings, on tunnel: any SystemTunnel
  ) async throws -> PacketTunnelInterface {
    let interface = try await bounded(platformDeadline) { result in
      if case .success(let interface) = result { close(interface.descriptor) }
    } _: {
      try await tunnel.establish(settings)
    }
    guard let interface else {
      throw PacketTunnelError.tunnelSetupFailed("the system did not set the interface up within \(platformDeadline)")
    }
    return interface
  }

  func makeSocket(_ kind: PacketTunnelSocketKind, on tunnel: any SystemTunnel) async throws -> PacketTunnelSocket {
    let socket = try await bounded(platformDeadline) { result in
      if case .success(let socket) = result { close(socket.descriptor) }
    } _: {
      try await tunnel.makeSocket(kind)
    }
    guard let socket else {
      throw PacketTunnelError.tunnelSetupFailed("the system gave no socket within \(platformDeadline)")
    }
    return socket
  }
}
