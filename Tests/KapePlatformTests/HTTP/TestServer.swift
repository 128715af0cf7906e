import Foundation

/// A server in a process of its own, on the loopback address, stopped when it is released.
final class TestServer: @unchecked Sendable {
  // Unchecked: the process is started once; its output is behind the lock.
  private let process = Process()
  private let folder: URL
  private let lock = NSLock()
  private var text = ""
  private(set) var port = 0

  struct Failed: Error { let output: String }

  /// What it has printed.
  var output: String { lock.withLock { text } }

  /// Python's `http.server`, with `ssl` when there is a certificate: it answers with what it was asked, in JSON.
  static func python(_ certificate: TestCertificate? = nil, host: String = "127.0.0.1") async throws -> TestServer {
    try await TestServer(
      certificate, ["python3", "-u", "-c", script, host, certificate == nil ? "plain" : "tls"], port: #/PORT (\d+)/#)
  }

  /// `openssl s_server` that answers a request for /NAME with the bytes of `files`.
  static func openssl(
    _ certificate: TestCertificate, files: [String: String] = [:], _ options: String...
  ) async throws -> TestServer {
    let answers = files.isEmpty ? [] : ["-HTTP"]
    return try await TestServer(
      certificate, files: files,
      ["openssl", "s_server", "-4", "-accept", "127.0.0.1:0", "-cert", "cert.pem", "-key", "key.pem"] + answers
        + options,
      port: #/ACCEPT 127\.0\.0\.1:(\d+)/#)
  }

  private init(
    _ certificate: TestCertificate?, files: [String: String] = [:], _ command: [String],
    port pattern: Regex<(Substring, Substring)>
  ) async throws {
    folder = FileManager.default.temporaryDirectory.appendingPathComponent("kape-http-" + UUID().uuidString)
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    if let certificate {
      try certificate.pem.write(to: folder.appendingPathComponent("cert.pem"), atomically: true, encoding: .utf8)
      try certificate.keyPEM.write(to: folder.appendingPathComponent("key.pem"), atomically: true, encoding: .utf8)
    }
    for (name, content) in files { try Data(content.utf8).write(to: folder.appendingPathComponent(name)) }
    process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
    // Not left behind when the tests are killed.
    process.arguments = ["timeout", "120"] + command
    process.currentDirectoryURL = folder
    let pipe = Pipe()
    process.standardOutput = pipe
    process.standardError = pipe
    // s_server ends with its input.
    process.standardInput = Pipe()
    pipe.fileHandleForReading.readabilityHandler = { [weak self] handle in
      let data = handle.availableData
      if data.isEmpty { handle.readabilityHandler = nil }
      self?.lock.withLock { self?.text += String(decoding: data, as: UTF8.self) }
    }
    try process.run()
    guard let found = try await waitFor({ $0.firstMatch(of: pattern)?.1 }), let port = Int(found) else {
      throw Failed(output: output)
    }
    self.port = port
  }

  deinit {
    process.terminate()
    try? FileManager.default.removeItem(at: folder)
  }

  /// Waits until its output holds something, for as long as it runs.
  func waitFor<Found>(_ find: (String) -> Found?) async throws -> Found? {
    while true {
      if let found = find(output) { return found }
      guard process.isRunning else { return find(output) }
      try await Task.sleep(for: .milliseconds(2))
    }
  }

  private static let script = """
    import http.server, json, socket, ssl, sys

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        collected = []

        def do_GET(self):
            if self.path == "/redirect":
                self.send_response(302)
                self.send_header("Location", "/elsewhere")
                self.send_header("Content-Length", "0")
                self.end_headers()
            elif self.path == "/unsized":
                # Closed without a word of TLS: nobody can tell whether that was all.
                self.send_response(200)
                self.end_headers()
                self.wfile.write(b"hello")
                self.close_connection = True
            elif self.path == "/chunked":
                self.send_response(200)
                self.send_header("Transfer-Encoding", "chunked")
                self.end_headers()
                for part in (b"hello", b", ", b"world"):
                    self.wfile.write(b"%x\\r\\n%s\\r\\n" % (len(part), part))
                self.wfile.write(b"0\\r\\n\\r\\n")
            else:
                self.answer(403 if self.path == "/forbidden" else 200, "")

        def do_POST(self):
            if self.path == "/closes":
                self.connection.shutdown(socket.SHUT_RDWR)
                self.close_connection = True
                return
            size = int(self.headers["Content-Length"])
            body = self.rfile.read(size).decode()
            if self.path.startswith("/collect/"):
                # /collect/503,429:7,202: these statuses one after the other, the last for all that follow.
                statuses = self.path.split("/")[2].split(",")
                status, _, wait = statuses[min(len(Handler.collected), len(statuses) - 1)].partition(":")
                Handler.collected.append(body)
                print("COLLECTED", status, body)
                self.send_response(int(status))
                if wait:
                    self.send_header("Retry-After", wait)
                self.send_header("Content-Length", "0")
                self.end_headers()
                return
            self.answer(200, body)

        def answer(self, status, body):
            answer = json.dumps({"method": self.command, "path": self.path, "body": body, "client": self.client_address[0],
                                 "headers": {k.lower(): v for k, v in self.headers.items()}}).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

    class Server(http.server.ThreadingHTTPServer):
        address_family = socket.AF_INET6 if ":" in sys.argv[1] else socket.AF_INET

    server = Server((sys.argv[1], 0), Handler)
    if sys.argv[2] == "tls":
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain("cert.pem", "key.pem")
        server.socket = context.wrap_socket(server.socket, server_side=True)
    print("PORT", server.server_address[1])
    server.serve_forever()
    """
}
