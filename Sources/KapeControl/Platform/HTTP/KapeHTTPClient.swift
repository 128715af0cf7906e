public import Foundation
import KapeControl

/// Asks servers over HTTP/1.1 and TLS: one connection a call, no cookies, no cache, no redirects (a 3xx is an answer like
/// any other). Headers, queries and bodies never get into a log or an error.
///
///     let client = KapeHTTPClient(anchors: .pem(authority), pinnedCommonName: certDn, timeout: .seconds(10))
///     let reply = try await client.get("https://192.0.2.1:1337/addKey", query: ["pubkey": key, "pt": token])
///     let answer = try reply.json(as: Answer.self)
public struct KapeHTTPClient: Sendable {
  /// Whose certificates are trusted.
  public var anchors: KapeHTTPAnchors
  /// The server's certificate has to have this common name, to the byte; the host's name is not compared then. Nil: the
  /// certificate has to be for the host (RFC 9525).
  public var pinnedCommonName: String?
  /// For a whole call, the look-up of the name included.
  public var timeout: Duration
  /// The most bytes that an answer's body may have.
  public var maximumBodySize: Int
  /// Whether `http:` may be asked, which everybody on the way can read and change.
  public var allowsPlainHTTP: Bool
  /// Where sockets come from.
  public var sockets: KapeHTTPSockets
  package var clock: any Clock<Duration> = ContinuousClock()
  package var logger = KapeLogger(subsystem: "KapeCore", category: "http")
  /// The addresses of a host; blocks.
  var lookUp: @Sendable (_ host: String, _ port: UInt16) throws -> [HostAddress] = NameLookup.addresses

  public init(
    anchors: KapeHTTPAnchors = .system, pinnedCommonName: String? = nil, timeout: Duration = .seconds(30),
    maximumBodySize: Int = 1 << 20, allowsPlainHTTP: Bool = false, sockets: KapeHTTPSockets = .system
  ) {
    self.anchors = anchors
    self.pinnedCommonName = pinnedCommonName
    self.timeout = timeout
    self.maximumBodySize = maximumBodySize
    self.allowsPlainHTTP = allowsPlainHTTP
    self.sockets = sockets
  }

  /// Asks for the URL. The query's names and values are percent-encoded and put behind the URL's own.
  ///
  /// - Throws: `KapeHTTPError`; `CancellationError` when the task is cancelled. An answer of any status is no error.
  public func get(
    _ url: String, query: [String: String] = [:], headers: [String: String] = [:]
  ) async throws -> KapeHTTPReply {
    try await send(.get, url, query, headers, nil)
  }

  /// Sends the body.
  ///
  /// - Throws: as `get`.
  public func post(
    _ url: String, query: [String: String] = [:], headers: [String: String] = [:], body: Data,
    contentType: String = "application/octet-stream"
  ) async throws -> KapeHTTPReply {
    try await send(.post, url, query, headers.merging(["Content-Type": contentType]) { $1 }, body)
  }

  /// Sends the value as JSON.
  ///
  /// - Throws: as `get`; `badRequest` when the value cannot be JSON.
  public func post(
    _ url: String, query: [String: String] = [:], headers: [String: String] = [:], json: some Encodable,
    encoder: JSONEncoder = JSONEncoder()
  ) async throws -> KapeHTTPReply {
    guard let body = try? encoder.encode(json) else {
      let target = try HTTPTarget(url, query: [:], allowsPlainHTTP: allowsPlainHTTP)
      throw KapeHTTPError(host: target.name, cause: .badRequest("\(type(of: json)) cannot be JSON"))
    }
    return try await post(url, query: query, headers: headers, body: body, contentType: "application/json")
  }

  /// Sends the pairs as a form (application/x-www-form-urlencoded), in the order of their names.
  ///
  /// - Throws: as `get`.
  public func post(
    _ url: String, query: [String: String] = [:], headers: [String: String] = [:], form: [String: String]
  ) async throws -> KapeHTTPReply {
    let pairs = form.sorted { $0.key < $1.key }.map { HTTPTarget.encoded($0.key) + "=" + HTTPTarget.encoded($0.value) }
    return try await post(
      url, query: query, headers: headers, body: Data(pairs.joined(separator: "&").utf8),
      contentType: "application/x-www-form-urlencoded")
  }

  private func send(
    _ method: HTTPRequest.Method, _ url: String, _ query: [String: String], _ headers: [String: String], _ body: Data?
  ) async throws -> KapeHTTPReply {
    let target = try HTTPTarget(url, query: query, allowsPlainHTTP: allowsPlainHTTP)
    let request = try HTTPRequest(method, target, headers: headers, body: body)
    do {
      let trust = TLSTrust(anchors: target.isTLS ? try anchors.certificates() : nil, commonName: pinnedCommonName)
      let exchange = HTTPExchange(
        request, trust: trust, limits: HTTPResponseParser.Limits(body: maximumBodySize), stop: try StopSignal())
      let response = try await run(exchange, target)
      logger.debug("\(method.rawValue) \(target.name): status \(response.status), \(response.body.count) bytes")
      return KapeHTTPReply(response, host: target.name)
    } catch let cause as KapeHTTPError.Cause {
      let error = KapeHTTPError(host: target.name, cause: cause)
      logger.debug("\(method.rawValue) \(error)")
      throw error
    } catch let error as SystemError {
      throw KapeHTTPError(host: target.name, cause: .notReached("\(error)"))
    }
  }

  private func run(_ exchange: HTTPExchange, _ target: HTTPTarget) async throws -> HTTPResponseParser {
    let (lookUp, sockets) = (lookUp, sockets)
    do {
      return try await within(timeout, of: clock, target.name) {
        let addresses = try await onCallThread(stop: exchange.stop) { try lookUp(target.host, target.port) }
        exchange.begin(.makingSockets)
        let candidates = try await Self.candidates(addresses, sockets)
        return try await onCallThread(stop: exchange.stop) { try exchange.run(candidates) }
      }
    } catch is DeadlineExceeded {
      throw KapeHTTPError.Cause.timedOut(while: exchange.phase.rawValue)
    }
  }

  /// A socket for each address; those for which there can be none are left out, unless there is none at all.
  private static func candidates(
    _ addresses: [HostAddress], _ sockets: KapeHTTPSockets
  ) async throws -> [ConnectionRace.Candidate] {
    var candidates: [ConnectionRace.Candidate] = []
    var failure: (any Error)?
    for address in addresses {
      try Task.checkCancellation()
      do {
        let socket = OwnedDescriptor(try await sockets.make(address.family))
        candidates.append(ConnectionRace.Candidate(address: address, socket: socket))
      } catch {
        failure = error
      }
    }
    guard candidates.isEmpty, let failure else { return candidates }
    if failure is KapeHTTPError.Cause || failure is CancellationError { throw failure }
    throw KapeHTTPError.Cause.notReached("no socket: \(loggable(failure))")
  }
}
