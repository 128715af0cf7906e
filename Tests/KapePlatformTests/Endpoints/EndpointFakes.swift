import Foundation
import KapeProtocols
import Synchronization

@testable import KapePlatform

/// Time that stands still until a test moves it.
final class ManualTime: SessionClock {
  private struct State {
    var now = Duration.zero
    var wall = Date(timeIntervalSince1970: 1_700_000_000)
    var timers: [Int: (due: Duration, action: @Sendable () -> Void)] = [:]
    var next = 0
  }
  private let state = Mutex(State())

  var now: Duration { state.withLock { $0.now } }
  var wallTime: Date { state.withLock { $0.wall } }
  var timers: Int { state.withLock { $0.timers.count } }

  func schedule(after delay: Duration, _ action: @escaping @Sendable () -> Void) -> SessionTimer {
    let id = state.withLock { state in
      state.next += 1
      state.timers[state.next] = (state.now + delay, action)
      return state.next
    }
    return SessionTimer { [self] in state.withLock { _ = $0.timers.removeValue(forKey: id) } }
  }

  func advance(by duration: Duration) {
    let due = state.withLock { state in
      state.now += duration
      state.wall += duration / .seconds(1)
      let due = state.timers.filter { $0.value.due <= state.now }
      for id in due.keys { state.timers[id] = nil }
      return due.values.sorted { $0.due < $1.due }
    }
    for timer in due { timer.action() }
  }

  /// The clock on the wall alone.
  func moveWall(by seconds: TimeInterval) { state.withLock { $0.wall += seconds } }
}

/// Tells what a test wants, and remembers what it was asked.
final class ScriptedEndpoints: EndpointDirectory {
  let source = "https://api.example.com"

  struct Question: Hashable { var location: String, protocols: String }
  private struct State {
    var access: (any Error)?
    var answers: [String: Result<[DiscoveredEndpoint], any Error>] = [:]
    var maxAge: Int?
    var saysLocation: String?
    var dedicated: Result<DedicatedIP, any Error> = .failure(DedicatedIPError.unavailable)
    var dedicatedTokens: [String] = []
    var questions: [Question] = []
    var accessChecks = 0
    var hold: (@Sendable () async -> Void)?
  }
  private let state = Mutex(State())

  var questions: [Question] { state.withLock { $0.questions } }
  var accessChecks: Int { state.withLock { $0.accessChecks } }
  var dedicatedTokens: [String] { state.withLock { $0.dedicatedTokens } }

  func set(_ location: String = "fr", _ endpoints: DiscoveredEndpoint..., maxAge: Int? = 3600) {
    state.withLock {
      $0.answers[location] = .success(endpoints)
      $0.maxAge = maxAge
    }
  }

  func fail(_ location: String = "fr", _ error: any Error) { state.withLock { $0.answers[location] = .failure(error) } }
  func refuse(_ error: (any Error)?) { state.withLock { $0.access = error } }
  func say(location: String) { state.withLock { $0.saysLocation = location } }
  func set(dedicated: Result<DedicatedIP, any Error>) { state.withLock { $0.dedicated = dedicated } }
  /// Runs before the next answers.
  func hold(_ body: (@Sendable () async -> Void)?) { state.withLock { $0.hold = body } }

  func checkAccess() async throws {
    if let error = state.withLock({ state in
      state.accessChecks += 1
      return state.access
    }) {
      throw error
    }
  }

  func endpoints(_ locationId: String, _ protocols: Set<DiscoveryProtocol>) async throws -> DiscoveryAnswer {
    let hold = state.withLock { state in
      state.questions.append(Question(location: locationId, protocols: protocols.list))
      return state.hold
    }
    await hold?()
    let (result, maxAge, says) = state.withLock { ($0.answers[locationId], $0.maxAge, $0.saysLocation) }
    guard let result else { throw DiscoveryError.unknownLocation(locationId) }
    var answer = try DiscoveryAnswer(Data(#"{"location_id": "", "endpoints": []}"#.utf8))
    answer.locationId = says ?? locationId
    answer.endpoints = try result.get()
    answer.maxAgeSeconds = maxAge
    return answer
  }

  func dedicatedIP(_ token: String) async throws -> DedicatedIP {
    try state.withLock { state in
      state.dedicatedTokens.append(token)
      return state.dedicated
    }.get()
  }
}

/// Keeps lines.
final class LogLines: PacketTunnelLogger {
  private let lines = Mutex([String]())
  var all: [String] { lines.withLock { $0 } }
  func contains(_ text: String) -> Bool { all.contains { $0.contains(text) } }

  private func add(_ level: String, _ message: String) { lines.withLock { $0.append("\(level): \(message)") } }
  func trace(_ message: @autoclosure () -> String) { add("trace", message()) }
  func debug(_ message: @autoclosure () -> String) { add("debug", message()) }
  func info(_ message: @autoclosure () -> String) { add("info", message()) }
  func warning(_ message: @autoclosure () -> String) { add("warning", message()) }
  func error(_ message: @autoclosure () -> String) { add("error", message()) }
}

/// A value that a test changes.
final class Changing<Content: Sendable>: Sendable {
  private let state: Mutex<Content>
  init(_ content: Content) { state = Mutex(content) }
  var value: Content {
    get { state.withLock { $0 } }
    set { state.withLock { $0 = newValue } }
  }
}
