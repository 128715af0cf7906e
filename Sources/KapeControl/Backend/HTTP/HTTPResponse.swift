/// What is answered.
struct HTTPResponse: Sendable {
  var status: Int
  var headers: [(name: String, value: String)]
  var body: [UInt8]

  init(_ status: Int, headers: [(name: String, value: String)] = [], body: [UInt8] = []) {
    self.status = status
    self.headers = headers
    self.body = body
  }

  /// Kept by nobody unless `maxAge`, in seconds, says so.
  static func json(
    _ value: JSON, status: Int = 200, type: String = "application/json", maxAge: Int64? = nil
  ) -> HTTPResponse {
    HTTPResponse(
      status,
      headers: [("Content-Type", type), ("Cache-Control", maxAge.map { "private, max-age=\($0)" } ?? "no-store")],
      body: value.bytes)
  }

  static func text(_ text: String, type: String) -> HTTPResponse {
    HTTPResponse(200, headers: [("Content-Type", type), ("Cache-Control", "no-store")], body: Array(text.utf8))
  }
}
