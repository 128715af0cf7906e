import Foundation
import KapeCrypto
import KapePlatform
import Synchronization

/// An issuer and backend in memory, by the descriptions of docs/backend.openapi.json as far as sign-in goes: refresh tokens
/// rotate and are watched for reuse, tokens expire by the test's clock. Faults are put in by the test.
final class ScriptedBackend: BackendTransport {
  static let issuer = "https://id.example.com"
  static let api = "https://api.example.com/v1"

  struct Family {
    var user: String
    var current: String
    /// The token before, and the attempt under which it was exchanged.
    var used: [String: String?] = [:]
    var isRevoked = false
  }

  struct State {
    var requests: [BackendRequest] = []
    /// Codes, with what they were asked for.
    var codes: [String: [String: String]] = [:]
    var families: [Family] = []
    var serial = 0
    var subscriptions: [KapeSubscription] = []
    var receipts: [[String]] = [["xv.vpn"]]
    /// Answers for paths, each used once.
    var faults: [String: [Fault]] = [:]
    var keyIdentifier = "k1"
    var claims: [String: String] = [:]
    var metadata: [String: String] = [:]
    var revoked: [String] = []
    var refusedTokens: Set<String> = []
    var connectionRefusal: Int?
    /// Called when a request has come, before it is answered.
    var gate: (@Sendable (BackendRequest) async -> Void)?
  }

  enum Fault: Sendable {
    case network
    case status(Int, [String: String])
    case body(String)
  }

  let clock: any SessionClock
  let state = Mutex(State())
  private let key: SigningKey
  private let rotated: SigningKey

  init(clock: any SessionClock) throws {
    self.clock = clock
    key = try SigningKey(generating: .es256)
    rotated = try SigningKey(generating: .es256)
  }

  func change(_ body: (inout State) -> Void) { state.withLock { body(&$0) } }

  func count(_ path: String, where matches: (BackendRequest) -> Bool = { _ in true }) -> Int {
    state.withLock { state in state.requests.count { $0.url.path.hasSuffix(path) && matches($0) } }
  }

  func refreshCount() -> Int { count("/token") { ScriptedBackend.form($0)["grant_type"] == "refresh_token" } }

  func fail(_ path: String, _ faults: Fault...) { change { $0.faults[path, default: []] += faults } }

  func send(_ request: BackendRequest) async throws -> BackendResponse {
    let gate = state.withLock { state in
      state.requests.append(request)
      return state.gate
    }
    await gate?(request)
    let path = request.url.path
    let fault = state.withLock { state in
      state.faults.first { path.hasSuffix($0.key) && !$0.value.isEmpty }.map { state.faults[$0.key]?.removeFirst() }
        ?? nil
    }
    switch fault {
    case .network: throw POSIXError(.ECONNREFUSED)
    case .status(let status, let fields): return BackendResponse(status: status, fields: fields)
    case .body(let text): return BackendResponse(status: 200, body: Data(text.utf8))
    case nil: return try answer(request)
    }
  }

  private func answer(_ request: BackendRequest) throws -> BackendResponse {
    switch request.url.absoluteString {
    case Self.issuer + "/.well-known/openid-configuration": return try json(metadata())
    case Self.issuer + "/jwks": return BackendResponse(status: 200, body: keySet())
    case Self.issuer + "/token": return try token(Self.form(request))
    case Self.issuer + "/revoke":
      state.withLock { state in
        let token = Self.form(request)["token"] ?? ""
        state.revoked.append(token)
        for index in state.families.indices where state.families[index].current == token {
          state.families[index].isRevoked = true
        }
      }
      return BackendResponse(status: 200)
    case Self.api + "/srs2/subscriptions":
      return try authorized(request, "access") { state in
        try json(["subscriptions": state.subscriptions])
      }
    case Self.api + "/srs2/subscription_receipts":
      return try authorized(request, "access") { state in
        try json(
          state.receipts.enumerated().map { index, entitlements in
            try self.sign(
              ["kind": "receipt", "subscription_id": "s\(index)"], lists: ["entitlements": entitlements], for: 3600)
          })
      }
    case Self.api + "/srs2/connection_tokens":
      return try authorized(request, "receipt") { state in
        if let status = state.connectionRefusal { return BackendResponse(status: status) }
        return BackendResponse(status: 200, body: Data(try self.sign(["kind": "connection"], for: 900).utf8))
      }
    default: return BackendResponse(status: 404)
    }
  }

  private func authorized(
    _ request: BackendRequest, _ kind: String, _ body: (State) throws -> BackendResponse
  ) throws -> BackendResponse {
    let bearer = request.fields["authorization"] ?? ""
    guard bearer.hasPrefix("Bearer "), let token = try? JSONWebToken(unverified: String(bearer.dropFirst(7))),
      token.claims["kind"]?.string == kind, (token.expiresAt ?? 0) > clock.wallTime.timeIntervalSince1970
    else { return BackendResponse(status: 401) }
    return try state.withLock { state in
      if state.refusedTokens.contains(String(bearer.dropFirst(7))) { return BackendResponse(status: 401) }
      return try body(state)
    }
  }

  // MARK: Tokens

  private func token(_ form: [String: String]) throws -> BackendResponse {
    switch form["grant_type"] {
    case "authorization_code":
      guard let asked = state.withLock({ $0.codes.removeValue(forKey: form["code"] ?? "") }),
        asked["redirect_uri"] == form["redirect_uri"], asked["client_id"] == form["client_id"],
        let proof = ProofKey(verifier: form["code_verifier"] ?? ""), proof.challenge == asked["code_challenge"]
      else { return try refused("invalid_grant") }
      let refresh = state.withLock { state in
        state.serial += 1
        state.families.append(Family(user: asked["user"] ?? "u1", current: "r\(state.serial)"))
        return "r\(state.serial)"
      }
      return try tokens(user: asked["user"] ?? "u1", refresh: refresh, nonce: asked["nonce"])
    case "refresh_token": return try refresh(form["refresh_token"] ?? "", form["attempt"])
    case "urn:kape:params:oauth:grant-type:guest":
      guard let secret = Base64URL.decode(form["guest_secret"] ?? ""), secret.count == 32 else {
        return try refused("invalid_grant")
      }
      return try tokens(user: "guest-" + Base64URL.encode(SHA256.hash(secret)).prefix(22), refresh: nil, nonce: nil)
    default: return try refused("unsupported_grant_type")
    }
  }

  /// One that was used comes again: a repetition when the attempt is the same and the next was not used, else a theft.
  private func refresh(_ token: String, _ attempt: String?) throws -> BackendResponse {
    let granted = state.withLock { state -> (String, String)? in
      guard let index = state.families.firstIndex(where: { $0.current == token || $0.used.keys.contains(token) }) else {
        return nil
      }
      var family = state.families[index]
      defer { state.families[index] = family }
      let isRepetition = family.used[token].map { $0 != nil && $0 == attempt } ?? true
      guard !family.isRevoked, isRepetition else {
        family.isRevoked = true
        return nil
      }
      family.used[token] = attempt
      state.serial += 1
      family.current = "r\(state.serial)"
      return (family.user, family.current)
    }
    guard let (user, next) = granted else { return try refused("invalid_grant") }
    return try tokens(user: user, refresh: next, nonce: nil)
  }

  private func tokens(user: String, refresh: String?, nonce: String?) throws -> BackendResponse {
    let access = try sign(["kind": "access", "sub": user], for: 900)
    let extra = state.withLock { $0.claims }
    var claims = ["sub": user, "aud": "example-app", "email": "\(user)@example.com"]
    if let nonce { claims["nonce"] = nonce }
    claims["at_hash"] = Base64URL.encode(Array(SHA256.hash(Array(access.utf8)).prefix(16)))
    claims.merge(extra) { $1 }
    var answer: [String: AnyJSON] = [
      "access_token": .string(access), "token_type": .string("Bearer"), "expires_in": .number(900),
      "scope": .string("openid"), "id_token": .string(try sign(claims, for: 900)),
    ]
    if let refresh { answer["refresh_token"] = .string(refresh) }
    return try json(answer)
  }

  /// A signed token; times are the clock's, the issuer ours unless the claims say otherwise.
  func sign(_ claims: [String: String], lists: [String: [String]] = [:], for seconds: Int) throws -> String {
    let now = Int(clock.wallTime.timeIntervalSince1970)
    var values: [String: AnyJSON] = [
      "iss": .string(Self.issuer), "iat": .number(Double(now)), "exp": .number(Double(now + seconds)),
      "jti": .string(UUID().uuidString),
    ]
    for (name, value) in claims { values[name] = value == "(none)" ? nil : .string(value) }
    for (name, value) in lists { values[name] = .array(value.map { .string($0) }) }
    // A lock that is held already says the same.
    let identifier = claims["kind"] == nil ? state.withLock { $0.keyIdentifier } : "k1"
    let header = Base64URL.encode(Array("{\"alg\":\"ES256\",\"kid\":\"\(identifier)\"}".utf8))
    let signed = header + "." + Base64URL.encode(Array(try JSONEncoder().encode(values)))
    let signer = identifier == "k1" ? key : rotated
    return signed + "." + Base64URL.encode(try signer.signature(of: Array(signed.utf8)))
  }

  private func keySet() -> Data {
    let identifier = state.withLock { $0.keyIdentifier }
    let keys = [("k1", key), ("k2", rotated)].prefix(identifier == "k1" ? 1 : 2).map { name, key -> String in
      guard case .p256(let x, let y) = key.publicKey.parameters else { return "{}" }
      return
        "{\"kty\":\"EC\",\"crv\":\"P-256\",\"kid\":\"\(name)\",\"x\":\"\(Base64URL.encode(x))\",\"y\":\"\(Base64URL.encode(y))\"}"
    }
    return Data("{\"keys\":[\(keys.joined(separator: ","))]}".utf8)
  }

  private func metadata() -> [String: AnyJSON] {
    var values: [String: AnyJSON] = [
      "issuer": .string(Self.issuer), "authorization_endpoint": .string(Self.issuer + "/authorize"),
      "token_endpoint": .string(Self.issuer + "/token"), "jwks_uri": .string(Self.issuer + "/jwks"),
      "revocation_endpoint": .string(Self.issuer + "/revoke"),
      "code_challenge_methods_supported": .array([.string("S256")]),
      "authorization_response_iss_parameter_supported": .bool(true),
    ]
    for (name, value) in state.withLock({ $0.metadata }) { values[name] = .string(value) }
    return values
  }

  private func refused(_ code: String) throws -> BackendResponse {
    var response = try json(["error": code, "error_description": "so it is"])
    response.status = 400
    return response
  }

  private func json(_ value: some Encodable) throws -> BackendResponse {
    BackendResponse(status: 200, fields: ["content-type": "application/json"], body: try JSONEncoder().encode(value))
  }

  /// The pairs of a form, and the attempt that the header names.
  static func form(_ request: BackendRequest) -> [String: String] {
    var parts = URLComponents()
    parts.percentEncodedQuery = request.body.map { String(decoding: $0, as: UTF8.self) }
    var values = Dictionary((parts.queryItems ?? []).map { ($0.name, $0.value ?? "") }) { $1 }
    values["attempt"] = request.fields["idempotency-key"]
    return values
  }

  /// What somebody at the sign-in page does: the URL that the browser is sent back to.
  func authorize(_ url: URL, user: String = "u1", change: (inout [String: String]) -> Void = { _ in }) -> URL? {
    let items = URLComponents(url: url, resolvingAgainstBaseURL: false)?.queryItems ?? []
    var asked = Dictionary(items.map { ($0.name, $0.value ?? "") }) { $1 }
    asked["user"] = user
    let code = UUID().uuidString
    let stored = asked
    state.withLock { $0.codes[code] = stored }
    var answer = ["code": code, "state": asked["state"] ?? "", "iss": Self.issuer]
    change(&answer)
    let query = answer.map { FormEncoding.encode($0) + "=" + FormEncoding.encode($1) }.joined(separator: "&")
    return URL(string: (asked["redirect_uri"] ?? "") + "?" + query)
  }
}
