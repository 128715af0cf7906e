public import Foundation

/// Why locations could not be had or measured.
public enum KapeLocationError: Error, Equatable, Sendable {
  /// Nobody is signed in.
  case notSignedIn
  /// There is no list yet: `fetchLocations` comes first.
  case notFetched
  /// A tunnel is up, and nothing was measured before: what is measured now would be the tunnel.
  case tunnelIsUp
  /// No answer came.
  case network(String)
  /// The backend wants to be left alone for so many seconds.
  case rateLimited(seconds: Int)
  /// The backend's answer cannot be used, or it refused; how.
  case backend(String)
}

extension KapeLocationError: LocalizedError, CustomStringConvertible {
  public var description: String {
    switch self {
    case .notSignedIn: "nobody is signed in: sign in first"
    case .notFetched: "there are no locations to measure: call fetchLocations() first"
    case .tunnelIsUp: "a tunnel is up, and nothing was measured before: disconnect to measure"
    case .network(let text): "the backend was not reached: \(text)"
    case .rateLimited(let seconds): "too many requests: again in \(seconds) s"
    case .backend(let text): text
    }
  }

  public var errorDescription: String? { description }
}
