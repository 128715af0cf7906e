/// One controller with what is under way in it. Belongs to the session's actor.
final class ControllerSlot {
  let controller: any ConnectionController
  let reporter: SlotReporter
  var hasReporter = false
  /// `connect` or `runVPN`, until it has returned.
  var call: Task<Void, Never>?
  /// Takes the last connection down, until the controller has said that it is.
  var unwinding: Task<Void, Never>?

  init(_ controller: any ConnectionController, _ reporter: SlotReporter) {
    self.controller = controller
    self.reporter = reporter
  }

  /// Whether a call of it is under way.
  var isBusy: Bool { call != nil || unwinding != nil }
  var name: String { String(describing: type(of: controller)) }
}

extension ConnectionController {
  func accepts(_ configuration: any VpnConfiguration) -> Bool { configuration is Configuration }

  func connect(toAny configuration: any VpnConfiguration) async throws {
    guard let configuration = configuration as? Configuration else { throw PacketTunnelError.protocolNotBundled }
    try await connect(configuration)
  }
}
