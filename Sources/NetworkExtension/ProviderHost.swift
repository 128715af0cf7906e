internal import Glibc
internal import KapeControl

/// Turns what kaped says on a provider's connection into calls of the provider, one tunnel after the other.
actor ProviderHost {
  private let connection: IPCConnection
  private let make: @Sendable () -> NEPacketTunnelProvider
  private var provider: NEPacketTunnelProvider?
  /// kaped waits no longer for a provider that stops.
  private static let stopDeadline: Duration = .seconds(2)

  init(_ connection: IPCConnection, _ make: @escaping @Sendable () -> NEPacketTunnelProvider) {
    self.connection = connection
    self.make = make
  }

  /// Until kaped hangs up. A tunnel that is there still is told to stop then.
  func run() async {
    await connection.run { request in await self.answer(request) }
    guard let provider else { return }
    self.provider = nil
    _ = try? await within(Self.stopDeadline, of: ContinuousClock(), "the provider") {
      await withCheckedContinuation { continuation in
        let once = Once { (_: Void) in continuation.resume() }
        provider.stopTunnel(with: .providerDisabled) { once(()) }
      }
    }
  }

  private func answer(_ request: IPCRequest) async {
    do {
      var fields = try request.fields
      switch request.operation {
      case "start": try await start(request, &fields)
      case "stop":
        let reason = NEProviderStopReason(rawValue: Int(try fields.unsigned("reason", limit: 1000))) ?? .none
        try fields.end()
        await stop(reason, request)
      case "message":
        let data = Data(try fields.data("data", limit: IPCFrame.largest) ?? [])
        try fields.end()
        message(data, request)
      case "ended":
        // kaped has taken the tunnel down for a reason that the provider knows.
        release()
        await request.reply()
      case "sleep":
        let once = Once { (_: Void) in Task { await request.reply() } }
        if let provider { provider.sleep { once(()) } } else { once(()) }
      case "wake":
        provider?.wake()
        await request.reply()
      default: throw IPCFailure(.operation, "no such operation: \(request.operation)")
      }
    } catch let failure as IPCFailure {
      await request.refuse(failure)
    } catch {
      await request.refuse(IPCFailure(.malformed, "\(error)"))
    }
  }

  // MARK: Calls

  private func start(_ request: IPCRequest, _ fields: inout JSONFields) async throws {
    let interface = try fields.string("interface", limit: 15)
    let mark = UInt32(try fields.unsigned("mark", limit: UInt64(UInt32.max)))
    let options = Data(try fields.data("options", limit: IPCFrame.largest) ?? [])
    let configuration = Data(try fields.data("configuration", limit: IPCFrame.largest) ?? [])
    _ = try fields.optionalString("profile", limit: 64)
    try fields.end()
    guard request.descriptors.count == 1, let descriptor = request.descriptors.take().first else {
      throw IPCFailure(.malformed, "a start comes with the tunnel's interface")
    }
    let host = DaemonTunnelHost(connection, Descriptor(owning: descriptor), interface: interface, mark: mark)
    release()
    let made = make()
    made.setProtocolConfiguration(NETunnelProviderProtocol(propertyList: configuration))
    made.host = host
    provider = made
    let once = Once { (error: (any Error)?) in
      let carried = error.map { ProviderError($0).json } ?? .null
      Task { await request.reply(.object([.init("error", carried)])) }
    }
    made.startTunnel(options: Self.options(options)) { once($0) }
  }

  private static func options(_ data: Data) -> [String: NSObject]? {
    guard !data.isEmpty, let members = PropertyListObjects.decode(data) else { return nil }
    return members.compactMapValues(PropertyListObjects.object)
  }

  private func stop(_ reason: NEProviderStopReason, _ request: IPCRequest) async {
    guard let provider else {
      await request.reply()
      return
    }
    let once = Once { (_: Void) in
      Task {
        await self.release(provider)
        await request.reply()
      }
    }
    provider.stopTunnel(with: reason) { once(()) }
  }

  private func release(_ stopped: NEPacketTunnelProvider) {
    if provider === stopped { release() }
  }

  private func release() {
    provider?.host = nil
    provider = nil
  }

  private func message(_ data: Data, _ request: IPCRequest) {
    let once = Once { (answer: Data?) in
      let text = answer.map { Base64.encode($0) }
      Task { await request.reply(.object([.init("data", .optional(text))])) }
    }
    guard let provider else { return once(nil) }
    provider.handleAppMessage(data) { once($0) }
  }
}
