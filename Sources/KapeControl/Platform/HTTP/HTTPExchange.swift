import Glibc
import Synchronization

/// One request and its answer, on a thread that nothing else uses.
final class HTTPExchange: Sendable {
  /// What is being done, for the error that says that there was no time left.
  enum Phase: String, Sendable {
    case lookingUp = "looking up the name"
    case makingSockets = "making a socket"
    case connecting = "connecting"
    case securing = "setting up TLS"
    case sending = "sending the request"
    case waiting = "waiting for the answer"
    case receiving = "receiving the answer"
  }

  private let request: HTTPRequest
  private let trust: TLSTrust
  private let limits: HTTPResponseParser.Limits
  let stop: StopSignal
  private let current = Mutex(Phase.lookingUp)

  init(_ request: HTTPRequest, trust: TLSTrust, limits: HTTPResponseParser.Limits, stop: StopSignal) {
    self.request = request
    self.trust = trust
    self.limits = limits
    self.stop = stop
  }

  var phase: Phase { current.withLock { $0 } }
  func begin(_ phase: Phase) { current.withLock { $0 = phase } }

  /// Blocks until the answer is there. `KapeHTTPError.Cause`, or `CancellationError` once it is stopped.
  func run(_ candidates: [ConnectionRace.Candidate]) throws -> HTTPResponseParser {
    begin(.connecting)
    let socket = try ConnectionRace.connect(candidates, stop: stop)
    begin(.securing)
    let target = request.target
    let stream: any ByteStream =
      target.isTLS
      ? try TLSStream(socket, host: target.host, trust: trust, stop: stop) : PlainStream(socket, stop: stop)
    begin(.sending)
    var refusal: KapeHTTPError.Cause?
    do {
      let bytes = request.bytes()
      try bytes.withBytes { try $0.withUnsafeBytes { try stream.write($0) } }
    } catch let lost as KapeHTTPError.Cause {
      // A server may answer and close before it has read everything: its answer says more than the lost connection.
      refusal = lost
    }
    begin(.waiting)
    do {
      return try receive(from: stream)
    } catch let error as KapeHTTPError.Cause {
      throw refusal ?? error
    }
  }

  private func receive(from stream: any ByteStream) throws -> HTTPResponseParser {
    var parser = HTTPResponseParser(limits: limits)
    var buffer = [UInt8](repeating: 0, count: 16 * 1024)
    while !parser.isComplete {
      let count = try buffer.withUnsafeMutableBytes { try stream.read(into: $0) }
      begin(.receiving)
      do throws(HTTPParseError) {
        if count == 0 { try parser.finish() } else { try parser.append(Array(buffer[..<count])) }
      } catch {
        throw KapeHTTPError.Cause(error)
      }
    }
    return parser
  }
}
