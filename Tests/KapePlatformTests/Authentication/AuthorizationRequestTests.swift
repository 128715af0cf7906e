import Foundation
import Testing

@testable import KapePlatform

@Suite("§4: the way to the issuer's page and back") struct AuthorizationRequestTests {
  static func metadata(namesItself: Bool = true) throws -> OIDCMetadata {
    let text = """
      {"issuer": "https://id.example.com", "authorization_endpoint": "https://id.example.com/authorize",
       "token_endpoint": "https://id.example.com/token", "jwks_uri": "https://id.example.com/jwks",
       "authorization_response_iss_parameter_supported": \(namesItself)}
      """
    return try OIDCMetadata(Data(text.utf8), issuer: #require(URL(string: "https://id.example.com")))
  }

  private func request(_ redirect: String = "http://127.0.0.1:4711/callback", namesItself: Bool = true) throws
    -> AuthorizationRequest
  {
    AuthorizationRequest(
      try Self.metadata(namesItself: namesItself), clientId: "example-app",
      redirectURL: try #require(URL(string: redirect)))
  }

  private func outcome(_ request: AuthorizationRequest, _ text: String) throws -> AuthorizationRequest.Outcome {
    let text = text.replacing("STATE", with: request.state)
    return request.outcome(of: try #require(URL(string: text)))
  }

  @Test("the request has a code, PKCE with S256, state and nonce, each fresh") func parameters() throws {
    let (one, other) = (try request(), try request())
    let items = try #require(URLComponents(url: one.url, resolvingAgainstBaseURL: false)?.queryItems)
    let values = Dictionary(items.map { ($0.name, $0.value) }) { $1 }
    #expect(one.url.absoluteString.hasPrefix("https://id.example.com/authorize?"))
    #expect(values["response_type"] == "code" && values["client_id"] == "example-app")
    #expect(values["redirect_uri"] == "http://127.0.0.1:4711/callback")
    #expect(values["code_challenge_method"] == "S256" && values["code_challenge"] == one.proof.challenge)
    #expect(values["state"] == one.state && values["nonce"] == one.nonce)
    #expect(values["scope"]??.split(separator: " ").contains("openid") == true)
    #expect(one.url.absoluteString.contains(one.proof.verifier) == false)
    #expect(Set([one.state, one.nonce, other.state, other.nonce, one.proof.verifier, other.proof.verifier]).count == 6)
    #expect(one.state.utf8.count == 43)
  }

  @Test("an endpoint that has a query keeps it") func query() throws {
    var metadata = try Self.metadata()
    metadata.authorizationEndpoint = try #require(URL(string: "https://id.example.com/a?tenant=x"))
    let request = AuthorizationRequest(
      metadata, clientId: "c", redirectURL: try #require(URL(string: "app:/cb")))
    #expect(request.url.absoluteString.hasPrefix("https://id.example.com/a?tenant=x&response_type=code&"))
  }

  @Test(
    "an answer counts with the right state, address and issuer",
    arguments: [
      ("http://127.0.0.1:4711/callback?code=c1&state=STATE&iss=https%3A%2F%2Fid.example.com", "code(\"c1\")"),
      ("http://127.0.0.1:4711/callback?code=c1&iss=https%3A%2F%2Fid.example.com", "foreign"),
      ("http://127.0.0.1:4711/callback?code=c1&state=STATEx&iss=https%3A%2F%2Fid.example.com", "foreign"),
      ("http://127.0.0.1:4711/callback?code=c1&state=&iss=https%3A%2F%2Fid.example.com", "foreign"),
      ("http://127.0.0.1:4711/other?code=c1&state=STATE&iss=https%3A%2F%2Fid.example.com", "foreign"),
      ("http://127.0.0.1:4712/callback?code=c1&state=STATE&iss=https%3A%2F%2Fid.example.com", "foreign"),
      ("http://127.0.0.2:4711/callback?code=c1&state=STATE&iss=https%3A%2F%2Fid.example.com", "foreign"),
      ("https://127.0.0.1:4711/callback?code=c1&state=STATE&iss=https%3A%2F%2Fid.example.com", "foreign"),
      ("http://127.0.0.1:4711/callback?code=c1&code=c2&state=STATE&iss=https%3A%2F%2Fid.example.com", "foreign"),
      ("http://127.0.0.1:4711/callback?code=c1&state=STATE&state=x", "foreign"),
      ("http://127.0.0.1:4711/callback", "foreign"),
    ])
  func whichCount(_ url: String, _ expected: String) throws {
    #expect("\(try outcome(try request(), url))" == expected)
  }

  @Test("RFC 9207: a wrong issuer ends it, and so does none where the issuer names itself") func issuer() throws {
    let base = "http://127.0.0.1:4711/callback?code=c1&state=STATE"
    for request in [try request(), try request(namesItself: false)] {
      guard case .failed(.invalidResponse) = try outcome(request, base + "&iss=https%3A%2F%2Fevil.example.com") else {
        Issue.record("taken")
        continue
      }
    }
    guard case .failed(.invalidResponse) = try outcome(try request(), base) else {
      Issue.record("taken")
      return
    }
    #expect(try outcome(try request(namesItself: false), base) == .code("c1"))
  }

  @Test("errors come through, a refusal by its own name") func errors() throws {
    let base = "http://127.0.0.1:4711/callback?state=STATE&iss=https%3A%2F%2Fid.example.com"
    #expect(try outcome(try request(), base + "&error=access_denied") == .failed(.denied))
    #expect(
      try outcome(try request(), base + "&error=server_error&error_description=it%20broke")
        == .failed(.refused(code: "server_error", reason: "it broke")))
    guard case .failed(.invalidResponse) = try outcome(try request(), base) else {
      Issue.record("no code, and taken")
      return
    }
  }

  @Test("a redirect of the app's own scheme") func ownScheme() throws {
    let request = try request("com.example.app:/callback", namesItself: false)
    #expect(try outcome(request, "com.example.app:/callback?code=c&state=STATE") == .code("c"))
    #expect(try outcome(request, "com.example.other:/callback?code=c&state=STATE") == .foreign)
  }
}

@Suite("§4: what an issuer tells of itself") struct OIDCMetadataTests {
  private func read(_ issuer: String, _ change: (inout [String: Any]) -> Void = { _ in }) throws -> OIDCMetadata {
    var values: [String: Any] = [
      "issuer": issuer, "authorization_endpoint": "https://id.example.com/a",
      "token_endpoint": "https://id.example.com/t",
      "jwks_uri": "https://id.example.com/k",
    ]
    change(&values)
    let data = try JSONSerialization.data(withJSONObject: values)
    return try OIDCMetadata(data, issuer: #require(URL(string: "https://id.example.com")))
  }

  @Test("the well-known path is appended to the issuer's") func path() throws {
    for (issuer, url) in [
      ("https://id.example.com", "https://id.example.com/.well-known/openid-configuration"),
      ("https://id.example.com/", "https://id.example.com/.well-known/openid-configuration"),
      ("https://id.example.com/tenant/1", "https://id.example.com/tenant/1/.well-known/openid-configuration"),
    ] {
      #expect(OIDCMetadata.url(of: try #require(URL(string: issuer))).absoluteString == url)
    }
  }

  @Test(
    "the issuer is the same, character by character", arguments: ["https://id.example.com/", "https://ID.example.com"])
  func otherIssuer(_ issuer: String) throws {
    let error = #expect(throws: KapeAuthError.self) { try read(issuer) }
    #expect(error?.description.contains(issuer) == true && error?.description.contains("IssuerURL") == true)
    #expect(try read("https://id.example.com").namesItself == false)
  }

  @Test("endpoints have TLS, or are this machine") func endpoints() throws {
    for name in ["authorization_endpoint", "token_endpoint", "jwks_uri", "revocation_endpoint"] {
      for url in ["http://id.example.com/x", "ftp://id.example.com", "x", "https://", "https://id.example.com/#f"] {
        #expect(throws: KapeAuthError.self, "\(name) \(url)") { try read("https://id.example.com") { $0[name] = url } }
      }
      _ = try read("https://id.example.com") { $0[name] = "http://127.0.0.1:8480/x" }
    }
    #expect(throws: KapeAuthError.self) { try read("https://id.example.com") { $0["token_endpoint"] = nil } }
    #expect(throws: KapeAuthError.self) {
      try read("https://id.example.com") { $0["code_challenge_methods_supported"] = ["plain"] }
    }
  }
}
