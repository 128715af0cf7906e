public import Foundation

/// Why signing in, or a call in somebody's name, failed.
public enum KapeAuthError: Error, Equatable, Sendable {
  /// Nobody is signed in.
  case notSignedIn
  /// The issuer does not take the session any more: it was revoked, or its term is over. Nobody is signed in now.
  case sessionEnded
  /// Whoever sat in front of the browser said no.
  case denied
  /// The issuer refused, with an error of RFC 6749 and its words.
  case refused(code: String, reason: String?)
  /// An answer that is not as the standards want it, or not from whom it has to be.
  case invalidResponse(String)
  /// Nobody came back from the browser in time.
  case timedOut
  /// Another sign-in has begun in place of this one.
  case superseded
  /// The browser could not be opened.
  case presenterFailed(String)
  /// No answer came.
  case network(String)
  /// The backend wants to be left alone until then.
  case rateLimited(until: Date)
  /// The backend cannot answer now.
  case unavailable(status: Int)
}

extension KapeAuthError: LocalizedError, CustomStringConvertible {
  public var description: String {
    switch self {
    case .notSignedIn: "nobody is signed in: sign in first, with login() or loginAsGuest()"
    case .sessionEnded: "the session has ended: sign in again"
    case .denied: "signing in was refused in the browser"
    case .refused(let code, let reason): "the issuer refused: \(code)" + (reason.map { ", \($0)" } ?? "")
    case .invalidResponse(let reason): "the issuer's answer is not used: \(reason)"
    case .timedOut: "nobody came back from the browser: sign in again, and finish there within ten minutes"
    case .superseded: "another sign-in has begun"
    case .presenterFailed(let reason): "the browser could not be opened: \(reason)"
    case .network(let reason): "the backend was not reached: \(reason)"
    case .rateLimited(let until): "too many requests: not before \(until.rfc3339)"
    case .unavailable(let status): "the backend cannot answer now (\(status)): try again later"
    }
  }

  public var errorDescription: String? { description }
}
