/// Connects all endpoints of a group at the same time. The one with the lowest index that is online wins: as soon as all
/// before it have failed, or when they have had `preference` more time since the first was online.
struct LightwayRace: Sendable {
  struct Winner: Sendable {
    var index: Int
    var driver: any LightwayDriver
    var settings: PacketTunnelInterfaceSettings
  }

  /// None was online in time.
  struct TimedOut: Error {}

  /// For the first to be online.
  static let deadline = Duration.seconds(10)
  static let preference = Duration.milliseconds(500)

  let tasks: TaskEnvironment
  let makeDriver: @Sendable () -> any LightwayDriver
  let connect: @Sendable (any LightwayDriver, Int) async throws -> PacketTunnelInterfaceSettings

  /// Throws `TimedOut`, the error of the last that failed when all did, and `CancellationError`. Everything but the
  /// winner is stopped.
  func run(_ count: Int) async throws -> Winner {
    guard count > 0 else { throw PacketTunnelError.noConfiguration }
    let field = LightwayField(tasks: tasks, count: count)
    let runners = (0..<count).map { index in
      let driver = makeDriver()
      let task = tasks.spawn {
        let result: Result<PacketTunnelInterfaceSettings, any Error>
        do { result = .success(try await connect(driver, index)) } catch { result = .failure(error) }
        await field.finished(index, result)
      }
      return (driver: driver, task: task)
    }
    let outcome: Result<(index: Int, settings: PacketTunnelInterfaceSettings), any Error>
    do { outcome = .success(try await field.winner(deadline: Self.deadline, preference: Self.preference)) } catch {
      outcome = .failure(error)
    }
    let winner = try? outcome.get().index
    for (index, runner) in runners.enumerated() where index != winner {
      runner.task.cancel()
      // Nobody waits for those that lost: each has a good-bye to say.
      tasks.spawn { await runner.driver.stop() }
    }
    let first = try outcome.get()
    return Winner(index: first.index, driver: runners[first.index].driver, settings: first.settings)
  }
}

/// Where the runners of a race come in.
private actor LightwayField {
  private let tasks: TaskEnvironment
  private var results: [Result<PacketTunnelInterfaceSettings, any Error>?]
  private var lastError: any Error = PacketTunnelError.noConfiguration
  private var isLate = false
  private var preference = Duration.zero
  private var timer: SessionTimer?
  private let decision = Signal<(index: Int, settings: PacketTunnelInterfaceSettings)>()

  init(tasks: TaskEnvironment, count: Int) {
    self.tasks = tasks
    results = Array(repeating: nil, count: count)
  }

  func winner(
    deadline: Duration, preference: Duration
  ) async throws -> (index: Int, settings: PacketTunnelInterfaceSettings) {
    self.preference = preference
    let end = tasks.clock.schedule(after: deadline) { [decision] in
      decision.fire(.failure(LightwayRace.TimedOut()))
    }
    defer {
      end.cancel()
      timer?.cancel()
    }
    decide()
    return try await decision.wait()
  }

  func finished(_ index: Int, _ result: Result<PacketTunnelInterfaceSettings, any Error>) {
    results[index] = result
    if case .failure(let error) = result { lastError = error }
    decide()
  }

  private func decide() {
    var isOpen = false
    for (index, result) in results.enumerated() {
      switch result {
      case nil: isOpen = true
      case .failure: break
      case .success(let settings):
        if !isOpen || isLate { return decision.fire(.success((index, settings))) }
        waitForBetter()
        return
      }
    }
    if !isOpen { decision.fire(.failure(lastError)) }
  }

  private func waitForBetter() {
    guard timer == nil else { return }
    timer = tasks.clock.schedule(after: preference) { [tasks] in
      tasks.spawn { await self.timeForBetterIsOver() }
    }
  }

  private func timeForBetterIsOver() {
    isLate = true
    decide()
  }
}
