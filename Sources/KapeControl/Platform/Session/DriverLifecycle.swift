/// The one connection of a controller: what is coming up, and what is up. Any call may come at any time.
actor DriverLifecycle {
  /// A connection that is up.
  struct Connection: Sendable {
    var driver: any PacketTunnelDriver
    var gateway: IpAddress?
  }

  private let tasks: TaskEnvironment
  private var rising: Task<Result<Connection, any Error>, Never>?
  private var connection: Connection?

  init(_ tasks: TaskEnvironment) { self.tasks = tasks }

  /// Takes down what there was, and has `bringUp` make the next, which leaves nothing behind when it throws. Cancelled
  /// when the caller is, and by `stop`.
  func connect(_ bringUp: @escaping @Sendable () async throws -> Connection) async throws {
    await stop()
    try Task.checkCancellation()
    let task = tasks.spawn { () -> Result<Connection, any Error> in
      do { return .success(try await bringUp()) } catch { return .failure(error) }
    }
    rising = task
    let result = await withTaskCancellationHandler {
      await task.value
    } onCancel: {
      task.cancel()
    }
    let isCurrent = rising == task
    if isCurrent { rising = nil }
    let made = try result.get()
    guard isCurrent, !task.isCancelled else {
      await made.driver.stop()
      throw CancellationError()
    }
    connection = made
  }

  func run() async -> PacketTunnelError? {
    guard let driver = connection?.driver else { return nil }
    return await driver.run()
  }

  func stop() async {
    let task = rising
    rising = nil
    let old = connection
    connection = nil
    task?.cancel()
    // What it may have made, `connect` takes down.
    _ = await task?.value
    await old?.driver.stop()
  }

  var gateway: IpAddress? { connection?.gateway }

  func currentDataUsage() async -> PacketTunnelDataUsage? {
    guard let driver = connection?.driver else { return nil }
    return await driver.currentDataUsage()
  }
}

extension PacketTunnelError {
  /// What a controller throws for `error`: cancellation as it is, the rest as an error of the tunnel.
  static func ofAttempt(_ error: any Error) -> any Error {
    error is CancellationError ? error : PacketTunnelError(fromController: error)
  }

  /// What an authenticator threw.
  static func ofAuthentication(_ error: any Error) -> any Error {
    if error is PacketTunnelError { return error }
    if error is CancellationError, Task.isCancelled { return error }
    return PacketTunnelError.authenticationFailed(loggable(error))
  }
}

extension AttemptReporter {
  /// One attempt from its begin to its end, whatever comes of it.
  func attempt(
    _ configuration: any VpnConfiguration, endpoint: PacketTunnelConnectedEndpoint, _ connect: () async throws -> Void
  ) async throws {
    let id = attemptDidBegin(configuration: configuration)
    do {
      try await connect()
      attemptDidEnd(id, result: .connected, endpoint: endpoint)
    } catch {
      let error = PacketTunnelError.ofAttempt(error)
      let result: PacketTunnelAttemptResult =
        if let error = error as? PacketTunnelError { .failed(error) } else { .cancelled }
      attemptDidEnd(id, result: result, endpoint: nil)
      throw error
    }
  }
}
