internal import CMicroHTTPD
import KapeProtocols

// What libmicrohttpd calls, on its thread. `context` is the listener's core; the third word of a connection holds its
// exchange, which is retained from the request line to the end.

/// `@unchecked Sendable`: a suspended connection is touched by nobody but whoever resumes it.
private struct Suspended: @unchecked Sendable {
  let connection: OpaquePointer
}

func exchangeBegins(
  _ context: UnsafeMutableRawPointer?, _ target: UnsafePointer<CChar>?, _ connection: OpaquePointer?
) -> UnsafeMutableRawPointer? {
  guard let target else { return nil }
  return Unmanaged.passRetained(HTTPExchange(target: String(cString: target))).toOpaque()
}

func exchangeEnds(
  _ context: UnsafeMutableRawPointer?, _ connection: OpaquePointer?,
  _ slot: UnsafeMutablePointer<UnsafeMutableRawPointer?>?, _ reason: MHD_RequestTerminationCode
) {
  guard let slot, let pointer = slot.pointee else { return }
  slot.pointee = nil
  Unmanaged<HTTPExchange>.fromOpaque(pointer).release()
}

func exchangeHandles(
  _ context: UnsafeMutableRawPointer?, _ connection: OpaquePointer?, _ url: UnsafePointer<CChar>?,
  _ method: UnsafePointer<CChar>?, _ version: UnsafePointer<CChar>?, _ upload: UnsafePointer<CChar>?,
  _ uploadSize: UnsafeMutablePointer<Int>?, _ slot: UnsafeMutablePointer<UnsafeMutableRawPointer?>?
) -> MHD_Result {
  guard let context, let connection, let method, let uploadSize, let pointer = slot?.pointee else { return .NO }
  let core = Unmanaged<HTTPListener.Core>.fromOpaque(context).takeUnretainedValue()
  let exchange = Unmanaged<HTTPExchange>.fromOpaque(pointer).takeUnretainedValue()

  let isFirst = exchange.state.withLock { state in
    defer { state.hasBegun = true }
    return !state.hasBegun
  }
  if isFirst {
    let headers = headers(of: connection)
    let client = IPAddress.text(of: cmicrohttpd_client(connection))
    let request = exchange.state.withLock { state in
      state.request.method = String(cString: method)
      state.request.headers = headers
      state.request.client = client
      return state.request
    }
    let size = headers["content-length"]?.first.flatMap(Int.init) ?? 0
    guard size > core.limits.body * HTTPListener.patience else { return .YES }
    return send(core.refuser(request), on: connection)
  }
  if uploadSize.pointee > 0, let upload {
    let isTaken = exchange.take(
      UnsafeRawBufferPointer(start: upload, count: uploadSize.pointee), limit: core.limits.body)
    uploadSize.pointee = 0
    return isTaken ? .YES : .NO
  }
  let (request, response) = exchange.state.withLock { ($0.request, $0.response) }
  if let response { return send(response, on: connection) }
  guard core.begin() else { return .NO }
  let suspended = Suspended(connection: connection)
  MHD_suspend_connection(connection)
  Task {
    let response = await core.handler(request)
    exchange.state.withLock { $0.response = response }
    MHD_resume_connection(suspended.connection)
    core.end()
  }
  return .YES
}

private final class Headers {
  var values: [String: [String]] = [:]
}

private func headers(of connection: OpaquePointer) -> [String: [String]] {
  let headers = Headers()
  MHD_get_connection_values(
    connection, .HEADER_KIND,
    { context, _, name, value in
      guard let context, let name else { return .YES }
      let headers = Unmanaged<Headers>.fromOpaque(context).takeUnretainedValue()
      headers.values[String(cString: name).lowercased(), default: []].append(value.map { String(cString: $0) } ?? "")
      return .YES
    }, Unmanaged.passUnretained(headers).toOpaque())
  return headers.values
}

private func send(_ response: HTTPResponse, on connection: OpaquePointer) -> MHD_Result {
  var body = response.body
  let made = body.withUnsafeMutableBytes { body in
    MHD_create_response_from_buffer(body.count, body.baseAddress, .RESPMEM_MUST_COPY)
  }
  guard let made else { return .NO }
  defer { MHD_destroy_response(made) }
  for (name, value) in response.headers {
    guard MHD_add_response_header(made, name, value) == .YES else { return .NO }
  }
  MHD_add_response_header(made, "X-Content-Type-Options", "nosniff")
  return MHD_queue_response(connection, UInt32(response.status), made)
}
