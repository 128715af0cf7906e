public import Foundation

/// Why a call of `KapeHTTPClient` failed. It names the host; of what was asked and answered it holds nothing, so that it
/// may go into a log.
public struct KapeHTTPError: Error, Equatable, Sendable, CustomStringConvertible, LocalizedError {
  public enum Cause: Error, Equatable, Sendable {
    /// The address is none that can be asked, with what is wrong with it.
    case badURL(String)
    /// A header that cannot be sent, or a body that cannot be made.
    case badRequest(String)
    /// `http:` where it was not allowed.
    case plainHTTPRefused
    /// The certificates to trust cannot be read.
    case badAnchors
    /// The name has no address, in the resolver's words.
    case nameNotFound(String)
    /// No address could be connected to, in the system's words.
    case notReached(String)
    /// No TLS connection came about.
    case tls(String)
    /// The server is not who it should be: its chain, its dates, its name or its common name.
    case certificateRefused(String)
    /// The time was over while this was done.
    case timedOut(while: String)
    /// The connection ended in the midst.
    case connectionLost(String)
    /// The answer is not HTTP that can be relied on.
    case badReply(String)
    /// More than the limit, in bytes.
    case bodyTooLarge(limit: Int)
    /// The server answered with this status where success was needed.
    case status(Int)
    /// The body is not the JSON that was asked for; where it is not.
    case notJSON(String)
  }

  /// The host as it was asked for, with the port.
  public var host: String
  public var cause: Cause

  public init(host: String, cause: Cause) {
    self.host = host
    self.cause = cause
  }

  public var description: String { "\(host): \(cause.text)" }
  public var errorDescription: String? { description }
}

extension KapeHTTPError.Cause {
  var text: String {
    switch self {
    case .badURL(let reason): "not an address that can be asked: \(reason)"
    case .badRequest(let reason): "not a request that can be sent: \(reason)"
    case .plainHTTPRefused: "http without TLS is not allowed here; use https"
    case .badAnchors: "the certificates to trust are not PEM or DER certificates"
    case .nameNotFound(let reason): "no address for the name: \(reason)"
    case .notReached(let reason): "cannot be reached: \(reason)"
    case .tls(let reason): "no TLS connection: \(reason)"
    case .certificateRefused(let reason): "certificate refused: \(reason)"
    case .timedOut(let doing): "no answer in time while \(doing)"
    case .connectionLost(let reason): "connection lost: \(reason)"
    case .badReply(let reason): "not a proper HTTP answer: \(reason)"
    case .bodyTooLarge(let limit): "the answer is larger than \(limit) bytes"
    case .status(let status): "answered with status \(status)"
    case .notJSON(let reason): "the answer is not the JSON that was asked for: \(reason)"
    }
  }

  init(_ error: HTTPParseError) {
    switch error {
    case .truncated: self = .connectionLost("the answer is not whole")
    case .bodyTooLarge(let limit): self = .bodyTooLarge(limit: limit)
    default: self = .badReply("\(error)")
    }
  }
}
