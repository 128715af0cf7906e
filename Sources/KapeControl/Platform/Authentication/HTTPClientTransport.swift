import Foundation

/// The SDK's calls over `KapeHTTPClient`: TLS, or this machine.
struct HTTPClientTransport: BackendTransport {
  private let settings: KapeSDKSettings
  private let sockets: KapeHTTPSockets

  init(_ settings: KapeSDKSettings, sockets: KapeHTTPSockets = .system) {
    self.settings = settings
    self.sockets = sockets
  }

  func send(_ request: BackendRequest) async throws -> BackendResponse {
    var client = KapeHTTPClient(timeout: request.deadline, sockets: sockets)
    client.allowsPlainHTTP = LoopbackName.contains(request.url.host ?? "")
    switch request.trust {
    case .host: client.anchors = settings.caCertificates.isEmpty ? .system : .der(settings.caCertificates)
    case .commonName(let name, let anchors):
      client.anchors = .der(anchors)
      client.pinnedCommonName = name
    }
    let reply: KapeHTTPReply
    switch request.method {
    case .get: reply = try await client.get(request.url.absoluteString, headers: request.fields)
    case .post:
      var fields = request.fields
      let type = fields.removeValue(forKey: "content-type") ?? "application/octet-stream"
      reply = try await client.post(
        request.url.absoluteString, headers: fields, body: request.body ?? Data(), contentType: type)
    }
    let names = ["retry-after", "content-type"]
    let fields = Dictionary(uniqueKeysWithValues: names.compactMap { name in reply.headers[name].map { (name, $0) } })
    return BackendResponse(status: reply.status, fields: fields, body: reply.body)
  }
}
