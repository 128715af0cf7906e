import Synchronization

/// What there is to tell of a race when it is over.
final class RaceReport: Sendable {
  private struct State {
    var isUnderWay = false
    var timedOut = false
    var winner: Int?
  }
  private let state = Mutex(State())

  /// Endpoints are being tried, or were.
  var isUnderWay: Bool {
    get { state.withLock { $0.isUnderWay } }
    set { state.withLock { $0.isUnderWay = newValue } }
  }
  var timedOut: Bool {
    get { state.withLock { $0.timedOut } }
    set { state.withLock { $0.timedOut = newValue } }
  }
  var winner: Int? {
    get { state.withLock { $0.winner } }
    set { state.withLock { $0.winner = newValue } }
  }
}
