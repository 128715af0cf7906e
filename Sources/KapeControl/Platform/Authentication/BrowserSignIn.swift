import Foundation
import Synchronization

/// The part of a sign-in that happens in a browser: opened by a presenter, ended by the redirect, which comes either to the
/// listener or by `handle`, from an app that the system gives it to. One at a time: a new one takes the place of another.
final class BrowserSignIn: Sendable {
  static let patience = Duration.seconds(600)

  private let clock: any SessionClock
  private let logger: KapeLogger
  private let pending = Mutex<Pending?>(nil)

  private struct Pending {
    let number: UUID
    let request: AuthorizationRequest
    let result: AsyncStream<Result<String, KapeAuthError>>.Continuation
  }

  init(clock: any SessionClock, logger: KapeLogger) {
    self.clock = clock
    self.logger = logger
  }

  /// The code that the issuer gave.
  ///
  /// - Throws: `KapeAuthError`; `CancellationError`; what the presenter throws.
  func code(
    _ metadata: OIDCMetadata, _ settings: KapeSDKSettings, presenter: any KapeAuthPresenter
  ) async throws -> (code: String, request: AuthorizationRequest) {
    let listener = try LoopbackListener(settings.redirectURL)
    let request = AuthorizationRequest(
      metadata, clientId: settings.clientId, redirectURL: listener?.redirectURL ?? settings.redirectURL)
    let listening = Task { await listener?.run { self.take($0) } }
    defer { listening.cancel() }
    let number = UUID()
    let results = begin(number, request)
    defer { end(number) }
    let timer = clock.schedule(after: Self.patience) { self.finish(number, .failure(.timedOut)) }
    defer { timer.cancel() }
    try await presenter.open(request.url)
    for await result in results { return (try result.get(), request) }
    throw CancellationError()
  }

  /// A URL that the system has given to the app.
  func handle(_ url: URL) {
    if take(url) == .notFound { logger.warning("a callback that no sign-in waits for was not used") }
  }

  private func begin(_ number: UUID, _ request: AuthorizationRequest) -> AsyncStream<Result<String, KapeAuthError>> {
    let (stream, continuation) = AsyncStream.makeStream(of: Result<String, KapeAuthError>.self)
    let before = pending.withLock { pending in
      defer { pending = Pending(number: number, request: request, result: continuation) }
      return pending
    }
    before?.result.yield(.failure(.superseded))
    return stream
  }

  private func end(_ number: UUID) {
    pending.withLock { pending in
      if pending?.number == number { pending = nil }
    }
  }

  private func finish(_ number: UUID, _ result: Result<String, KapeAuthError>) {
    let waiting = pending.withLock { pending in
      guard let waiting = pending, waiting.number == number else { return nil as Pending? }
      pending = nil
      return waiting
    }
    waiting?.result.yield(result)
  }

  /// Only the first right answer counts; a page of somebody who guesses ends nothing.
  @discardableResult
  private func take(_ url: URL) -> LoopbackPage {
    guard let waiting = pending.withLock({ $0 }) else { return .notFound }
    switch waiting.request.outcome(of: url) {
    case .foreign: return .notFound
    case .code(let code):
      finish(waiting.number, .success(code))
      return .done
    case .failed(let error):
      finish(waiting.number, .failure(error))
      return .failed(error == .denied ? "It was refused." : "The answer of the sign-in page was not accepted.")
    }
  }
}
