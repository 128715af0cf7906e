import Foundation
import KapePlatform
import Synchronization

/// Everything that a reporter is told.
enum AnalyticsEvent: Sendable {
  case sessionBegin(VpnAnalyticsSessionBeginEvent)
  case sessionEnd(VpnAnalyticsSessionEndEvent)
  case connectionBegin(VpnAnalyticsConnectionBeginEvent)
  case connectionEnd(VpnAnalyticsConnectionEndEvent)
  case attemptBegin(VpnAnalyticsAttemptBeginEvent)
  case attemptEnd(VpnAnalyticsAttemptEndEvent)

  /// As traces are written down.
  var short: String {
    switch self {
    case .sessionBegin: "sBegin"
    case .sessionEnd(let event): "sEnd(\(event.reason))"
    case .connectionBegin(let event): "cBegin(\(event.reason))"
    case .connectionEnd(let event): "cEnd(\(event.reason))"
    case .attemptBegin: "aBegin"
    case .attemptEnd(let event):
      switch event.result {
      case .connected: "aEnd(connected)"
      case .cancelled: "aEnd(cancelled)"
      case .failed(let error): "aEnd(failed \(error.cause.rawValue))"
      }
    }
  }
}

final class RecordingAnalytics: VpnConnectionAnalytics {
  private let recorded = Mutex<[AnalyticsEvent]>([])
  var events: [AnalyticsEvent] { recorded.withLock { $0 } }
  var trace: [String] { events.map(\.short) }

  private func record(_ event: AnalyticsEvent) { recorded.withLock { $0.append(event) } }

  func sessionDidBegin(_ event: VpnAnalyticsSessionBeginEvent) { record(.sessionBegin(event)) }
  func sessionDidEnd(_ event: VpnAnalyticsSessionEndEvent) { record(.sessionEnd(event)) }
  func connectionDidBegin(_ event: VpnAnalyticsConnectionBeginEvent) { record(.connectionBegin(event)) }
  func connectionDidEnd(_ event: VpnAnalyticsConnectionEndEvent) { record(.connectionEnd(event)) }
  func attemptDidBegin(_ event: VpnAnalyticsAttemptBeginEvent) { record(.attemptBegin(event)) }
  func attemptDidEnd(_ event: VpnAnalyticsAttemptEndEvent) { record(.attemptEnd(event)) }
}

/// One piece of work after the other, each of which takes a time of the simulation's.
final class SimulatedQueue: SerialQueue {
  private struct State {
    var work: [@Sendable () -> Void] = []
    var isBusy = false
  }
  private let time: SimulatedTime
  private let takes: Duration
  private let state = Mutex(State())

  init(time: SimulatedTime, takes: Duration = .zero) {
    self.time = time
    self.takes = takes
  }

  func enqueue(_ work: @escaping @Sendable () -> Void) {
    let begins = state.withLock { state in
      state.work.append(work)
      defer { state.isBusy = true }
      return !state.isBusy
    }
    if begins { next() }
  }

  private func next() {
    time.schedule(after: takes) { [self] in
      let work = state.withLock { $0.work.removeFirst() }
      work()
      let isEmpty = state.withLock { state in
        state.isBusy = !state.work.isEmpty
        return state.work.isEmpty
      }
      if !isEmpty { next() }
    }
  }
}

/// Every state that a session was seen in.
final class RecordingObserver: SessionObserver {
  private let seen = Mutex<[SessionState]>([])
  let journal: Journal?

  init(_ journal: Journal? = nil) { self.journal = journal }

  var states: [SessionState] { seen.withLock { $0 } }
  var last: SessionState { seen.withLock { $0.last } ?? SessionState() }

  /// Without repeats, from the one before the first.
  var statuses: [KapeVPNConnectionStatus] {
    states.map(\.status).reduce(into: [.disconnected]) { if $0.last != $1 { $0.append($1) } }
  }

  func sessionDidChange(_ state: SessionState) {
    let previous = seen.withLock { seen in
      defer { seen.append(state) }
      return seen.last ?? SessionState()
    }
    if previous.status != state.status { journal?.add("status \(state.status)") }
    if previous.lastError != state.lastError {
      journal?.add("error \(state.lastError.map { "\($0.cause)" } ?? "none")")
    }
  }
}

extension RecordingAnalytics {
  /// Of the attempts, in order.
  var configurations: [any VpnConfiguration] {
    events.compactMap { event in
      if case .attemptBegin(let begin) = event { begin.configuration } else { nil }
    }
  }
}
