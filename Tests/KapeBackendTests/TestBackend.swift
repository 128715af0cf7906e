import Foundation
import KapeControl
import KapeCrypto
import Testing

@testable import KapeBackend

/// A backend without listeners, in a folder of its own, at a time that stands still until it is moved on.
final class TestBackend: Sendable {
  static let start: Int64 = 1_800_000_000
  let clock = AdjustableBackendClock(standingAt: start * 1000)
  let backend: Backend
  let state: StateDirectory
  /// At this start.
  let made: Seeding.Made
  let passwords: [String: String]
  let dedicatedIPs: [String: String]
  private let router: Router
  private let settings: BackendSettings
  private let removes: Bool

  static let usual = """
    {
      "clients": [
        {"id": "app", "redirect_uris": ["http://127.0.0.1/callback", "app.example:/callback"]},
        {"id": "other", "redirect_uris": ["https://other.example.com/callback"]}
      ],
      "users": [
        {
          "email": "paying@example.com", "name": "Paying",
          "subscriptions": [
            {"status": "expired", "term_ends_in": "-1 d", "entitlements": ["kape.vpn"]},
            {"term_ends_in": "400 d", "billing_period": {"unit": "month", "count": 1},
             "entitlements": ["kape.vpn", "kape.dedicated_ip"]},
            {"tier": "storage", "entitlements": ["kape.storage"]}
          ]
        }
      ],
      "tracking": {"project_tokens": ["project"]},
      MORE
    }
    """

  init(_ more: String = "\"listen\": \"127.0.0.1:0\"", in folder: String? = nil) async throws {
    let path = folder ?? FileManager.default.temporaryDirectory.appendingPathComponent(UUID().uuidString).path
    removes = folder == nil
    if folder == nil { try await Template.shared.copy(to: path) }
    state = try StateDirectory(path)
    settings = try BackendSettings(parsing: Array(Self.usual.replacingOccurrences(of: "MORE", with: more).utf8))
    backend = try Backend(
      settings: settings, state: state, issuer: "http://127.0.0.1:8480", clock: clock,
      log: EventLog(level: .silent, of: "service", "test"), passwordCost: .least)
    made = try await backend.prepare()
    let credentials = try Credentials(in: state)
    passwords = credentials.passwords
    dedicatedIPs = credentials.dedicatedIPs
    router = Router(settings.paths)
  }

  deinit { if removes { try? FileManager.default.removeItem(atPath: state.path) } }

  func advance(_ seconds: Int64) async {
    clock.advance(seconds: seconds)
    await backend.sweep()
  }

  // MARK: Requests

  func send(_ request: HTTPRequest, at server: WireGuardServer? = nil) async -> HTTPResponse {
    await backend.answer(request, router, at: server)
  }

  func get(_ target: String, token: String? = nil, _ headers: [String: String] = [:]) async -> HTTPResponse {
    await send(Self.request("GET", target, token, headers))
  }

  func post(
    _ target: String, token: String? = nil, _ headers: [String: String] = [:], type: String? = nil, body: String = ""
  ) async -> HTTPResponse {
    var request = Self.request("POST", target, token, headers)
    if let type { request.headers["content-type"] = [type] }
    request.body = Array(body.utf8)
    return await send(request)
  }

  private static func request(
    _ method: String, _ target: String, _ token: String?, _ headers: [String: String]
  ) -> HTTPRequest {
    var fields = headers.mapValues { [$0] }
    if let token { fields["authorization"] = ["Bearer " + token] }
    return HTTPRequest(method: method, target: target, headers: fields, client: "127.0.0.1")
  }

  func form(_ target: String, _ fields: [String: String], _ headers: [String: String] = [:]) async -> HTTPResponse {
    let body = fields.map { "\($0.key)=\(FormData.encoded($0.value))" }.joined(separator: "&")
    return await post(target, headers, type: "application/x-www-form-urlencoded", body: body)
  }

  // MARK: Signing in

  static let verifier = String(repeating: "v", count: 64)
  static let challenge = Base64URL.encode(SHA256.hash(Array(verifier.utf8)))
  static let redirectURI = "http://127.0.0.1:50123/callback"
  static let query = [
    "response_type": "code", "client_id": "app", "redirect_uri": redirectURI, "scope": "openid email profile",
    "state": "s t&=a", "nonce": "n", "code_challenge": challenge, "code_challenge_method": "S256",
  ]

  func authorize(_ changes: [String: String?] = [:], cookie: String? = nil) async -> HTTPResponse {
    var query = Self.query.mapValues(Optional.some)
    for (name, value) in changes { query[name] = value }
    let text = query.compactMap { name, value in value.map { "\(name)=\(FormData.encoded($0))" } }.sorted()
    return await get(
      "/oauth2/authorize?" + text.joined(separator: "&"), cookie.map { ["cookie": $0] } ?? [:])
  }

  /// What the form says.
  struct Form {
    var sealed: String
    var cookie: String
  }

  func openForm(_ changes: [String: String?] = [:]) async throws -> Form {
    let page = await authorize(changes)
    try #require(page.status == 200)
    let sealed = try #require(page.text.firstMatch(of: /name="request" value="([^"]+)"/)).1
    let cookie = try #require(page.header("Set-Cookie")).prefix { $0 != ";" }
    return Form(sealed: String(sealed), cookie: String(cookie))
  }

  func sendForm(_ form: Form, _ changes: [String: String] = [:], password: String? = nil) async -> HTTPResponse {
    let fields = [
      "request": form.sealed, "action": "sign_in", "username": "paying@example.com",
      "password": password ?? passwords["paying@example.com"] ?? "",
    ]
    return await self.form("/oauth2/authorize", fields.merging(changes) { $1 }, ["cookie": form.cookie])
  }

  func code(_ changes: [String: String?] = [:]) async throws -> String {
    let answer = await sendForm(try await openForm(changes))
    try #require(answer.status == 303)
    return try #require(answer.redirected["code"])
  }

  func redeem(_ code: String, _ changes: [String: String] = [:]) async -> HTTPResponse {
    await form(
      "/oauth2/token",
      [
        "grant_type": "authorization_code", "client_id": "app", "code": code, "redirect_uri": Self.redirectURI,
        "code_verifier": Self.verifier,
      ].merging(changes) { $1 })
  }

  /// Signs in all the way.
  func signIn() async throws -> JSON {
    let answer = await redeem(try await code())
    try #require(answer.status == 200, "\(answer.text)")
    return answer.json
  }

  func refresh(_ token: String?, _ changes: [String: String] = [:]) async -> HTTPResponse {
    await form(
      "/oauth2/token",
      ["grant_type": "refresh_token", "client_id": "app", "refresh_token": token ?? ""].merging(changes) { $1 })
  }

  func guest(_ secret: String = Base64URL.encode(SecretMemory.randomBytes(32))) async -> HTTPResponse {
    await form(
      "/oauth2/token", ["grant_type": Backend.guestGrant, "client_id": "app", "guest_secret": secret])
  }

  // MARK: Tokens

  static let clientHeaders = [
    "x-client-app-version": "1.0", "x-client-device-model": "desktop", "x-client-os": "linux",
    "x-client-os-version": "12", "x-sdk-version": "1",
  ]

  func receipts(_ identity: String) async -> HTTPResponse {
    await post("/srs2/subscription_receipts", token: identity, Self.clientHeaders)
  }

  func connectionToken(_ receipt: String) async -> HTTPResponse {
    await post("/srs2/connection_tokens", token: receipt, Self.clientHeaders)
  }

  /// From signing in to a connection token.
  func connection() async throws -> String {
    let identity = try #require(try await signIn()["access_token"]?.string)
    let receipt = try #require(await receipts(identity).json.strings?.first)
    let answer = await connectionToken(receipt)
    try #require(answer.status == 200, "\(answer.text)")
    return answer.text
  }
}

/// The folder of a backend that was started once: keys take long to make, and each test needs some.
private actor Template {
  static let shared = Template()
  private var made: Task<String, any Error>?

  func copy(to path: String) async throws {
    let task =
      made
      ?? Task {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent("kape-backend-" + UUID().uuidString)
        _ = try await TestBackend(in: folder.path)
        return folder.path
      }
    made = task
    try FileManager.default.copyItem(atPath: try await task.value, toPath: path)
  }
}

extension Backend {
  /// Changes the database behind the backend's back.
  func execute(_ sql: StaticString) throws { try database.run(sql) }
}

extension HTTPResponse {
  var text: String { String(decoding: body, as: UTF8.self) }
  var json: JSON { (try? JSON(parsing: body)) ?? .null }

  func header(_ name: String) -> String? { headers.first { $0.name == name }?.value }

  /// What a redirect tells.
  var redirected: FormData {
    let query = (header("Location") ?? "").split(separator: "?", maxSplits: 1).dropFirst().first ?? ""
    return FormData(parsing: Array(query.utf8)) ?? FormData(fields: [])
  }
}

/// Of a token, without looking at its signature.
func claims(_ token: String?) throws -> JSON { JSON(try unverified(token).claims) }
func kid(_ token: String?) throws -> String { try #require(unverified(token).signature.keyIdentifier) }

private func unverified(_ token: String?) throws -> JSONWebToken {
  let token = try #require(token)
  return try JSONWebToken(unverified: token)
}
