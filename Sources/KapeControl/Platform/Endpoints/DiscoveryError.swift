/// Why endpoints, or a dedicated IP, could not be had. Texts are for people: without tokens and addresses.
package enum DiscoveryError: Error, Hashable, Sendable {
  /// The network, or the other end of it.
  case network(String)
  /// The answer is not what the backend's description says; where.
  case unusable(String)
  /// The backend knows no such location: the list is old, or the setting.
  case unknownLocation(String)
  /// The backend refused the token, a fresh one too.
  case refusedToken
  /// No more requests for so many seconds.
  case tooManyRequests(seconds: Int)
  /// Another status than the backend's description has.
  case status(Int)
}

extension DiscoveryError: CustomStringConvertible {
  package var description: String {
    switch self {
    case .network(let text): text
    case .unusable(let text): "the backend's answer cannot be used\(text)"
    case .unknownLocation(let id): "the backend knows no location '\(id)': fetch the locations anew and choose again"
    case .refusedToken: "the backend refused the connection token: sign in again"
    case .tooManyRequests(let seconds): "the backend takes no more requests for \(seconds) s"
    case .status(let code): "the backend answered with status \(code)"
    }
  }

  /// Whether what was known before may stand in for an answer: it may when the backend could not say anything about it.
  package var isTransient: Bool {
    switch self {
    case .network, .tooManyRequests, .unusable: true
    case .status(let code): code >= 500
    case .unknownLocation, .refusedToken: false
    }
  }

  /// As a session tells it.
  package var tunnelError: PacketTunnelError {
    switch self {
    case .network(let text): .network(text)
    case .refusedToken: .authenticationFailed(description)
    case .unusable, .unknownLocation, .tooManyRequests, .status: .configurationFailed(description)
    }
  }
}
