/// How long things may take in a session, and how it tries again.
package struct SessionPolicy: Sendable {
  /// For the first connection of a session; nil: as long as it takes.
  package var startDeadline: Duration?
  /// For `switchLocation` to connect; the session goes on trying after it.
  package var switchDeadline = Duration.seconds(60)
  /// For one call of a generator.
  package var generatorDeadline = Duration.seconds(60)
  /// For one connection attempt, whatever deadlines the controller has for the parts of it.
  package var connectDeadline = Duration.seconds(45)
  /// For a call of the platform: raising a lock, closing the interface, a flag.
  package var platformDeadline = Duration.seconds(10)
  /// For everything that goes down at a stop, or between two connections.
  package var stopDeadline = Duration.seconds(2)
  /// For the reporter to take the last events.
  package var flushDeadline = Duration.milliseconds(200)
  package var statisticsInterval = Duration.seconds(1)
  /// Word of one change of the network comes within this.
  package var pathSettling = Duration.milliseconds(200)
  /// At most one reconnection for changes of the network in this time.
  package var pathHoldDown = Duration.seconds(3)
  /// A connection that ended sooner counts as one that keeps failing.
  package var shortConnection = Duration.seconds(10)
  /// Failures in a row of configurations that come one at a time which are followed by the next at once, and short
  /// connections in a row likewise.
  package var failuresAtOnce = 8
  package var shortConnectionsAtOnce = 2
  package var backoff = Backoff()

  package init() {}

  /// Waits between tries.
  package struct Backoff: Sendable {
    /// By failures in a row; the last stands for all that follow.
    package var delays: [Duration] = [2, 4, 8, 16, 32, 60].map { .seconds($0) }
    /// A factor for each wait, so that many clients do not come at once. At most 1: the delays are upper bounds.
    package var jitter: @Sendable () -> Double = { Double.random(in: 0.8...1) }

    package init() {}

    package func delay(failures: Int) -> Duration {
      guard let longest = delays.last else { return .zero }
      let nominal = failures > delays.count ? longest : delays[max(0, failures - 1)]
      return nominal * min(1, max(0, jitter()))
    }
  }
}
