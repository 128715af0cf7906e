import Foundation
import KapeCrypto

/// The OIDC issuer of the settings: its metadata and keys, kept for an hour, and the calls of its token endpoint.
actor Issuer {
  private static let keptFor: TimeInterval = 3600

  private let settings: KapeSDKSettings
  private let transport: any BackendTransport
  private let clock: any SessionClock
  private var metadata: (value: OIDCMetadata, until: Date)?
  private var keys: (value: JSONWebKeySet, until: Date)?

  init(_ settings: KapeSDKSettings, transport: any BackendTransport, clock: any SessionClock) {
    self.settings = settings
    self.transport = transport
    self.clock = clock
  }

  func discover() async throws -> OIDCMetadata {
    if let metadata, clock.wallTime < metadata.until { return metadata.value }
    let response = try await get(OIDCMetadata.url(of: settings.issuerURL), "metadata")
    let value = try OIDCMetadata(response, issuer: settings.issuerURL)
    metadata = (value, clock.wallTime + Self.keptFor)
    return value
  }

  /// The code of an authorization response for tokens (RFC 6749, section 4.1.3; RFC 7636, section 4.5).
  func exchange(_ code: String, of request: AuthorizationRequest) async throws -> TokenGrant {
    try await grant([
      "grant_type": "authorization_code", "client_id": settings.clientId, "code": code,
      "redirect_uri": request.redirectURL.absoluteString, "code_verifier": request.proof.verifier,
    ])
  }

  /// A refresh token for the next (RFC 6749, section 6). `attempt` is the same when this very refresh is repeated, by
  /// which the issuer tells a repetition from a theft (draft-ietf-httpapi-idempotency-key-header).
  func refresh(_ token: String, attempt: String) async throws -> TokenGrant {
    try await grant(
      ["grant_type": "refresh_token", "client_id": settings.clientId, "refresh_token": token],
      fields: ["idempotency-key": "\"\(attempt)\""])
  }

  func guest(_ secret: String) async throws -> TokenGrant {
    try await grant([
      "grant_type": "urn:kape:params:oauth:grant-type:guest", "client_id": settings.clientId, "guest_secret": secret,
    ])
  }

  /// Ends a refresh token and what came of it (RFC 7009). An issuer that does not offer it is not asked.
  func revoke(_ token: String) async throws {
    guard let endpoint = try await discover().revocationEndpoint else { return }
    let request = BackendRequest.form(
      endpoint, ["token": token, "token_type_hint": "refresh_token", "client_id": settings.clientId])
    let response = try await send(request)
    guard response.status == 200 else { throw TokenGrant.failure(response, now: clock.wallTime) }
  }

  /// Who has signed in.
  ///
  /// - Throws: `KapeAuthError.invalidResponse`, with the reason.
  func verify(_ idToken: String, expected: (OIDCMetadata) -> IDToken.Expectation) async throws -> IDToken {
    let expectation = expected(try await discover())
    do {
      do {
        return try IDToken(idToken, keys: try await keySet(), expected: expectation, now: clock.wallTime)
      } catch JSONWebTokenError.unknownKey {
        // The issuer may have changed its keys since.
        keys = nil
        return try IDToken(idToken, keys: try await keySet(), expected: expectation, now: clock.wallTime)
      }
    } catch let error as JSONWebTokenError {
      throw KapeAuthError.invalidResponse("the ID token: \(error)")
    }
  }

  private func keySet() async throws -> JSONWebKeySet {
    if let keys, clock.wallTime < keys.until { return keys.value }
    let body = try await get(try await discover().keysURL, "keys")
    let value = try JSONWebKeySet(parsing: Array(body))
    keys = (value, clock.wallTime + Self.keptFor)
    return value
  }

  private func get(_ url: URL, _ what: String) async throws -> Data {
    let response = try await send(BackendRequest(.get, url, fields: ["accept": "application/json"]))
    switch response.status {
    case 200: return response.body
    case 429:
      throw KapeAuthError.rateLimited(until: RetryAfter.date(response.fields["retry-after"], now: clock.wallTime))
    case 500...: throw KapeAuthError.unavailable(status: response.status)
    default: throw KapeAuthError.invalidResponse("\(url.absoluteString) for its \(what) answered \(response.status)")
    }
  }

  private func grant(
    _ values: KeyValuePairs<String, String>, fields: [String: String] = [:]
  ) async throws -> TokenGrant {
    var request = BackendRequest.form(try await discover().tokenEndpoint, values)
    request.fields.merge(fields) { $1 }
    return try TokenGrant(try await send(request), now: clock.wallTime)
  }

  private func send(_ request: BackendRequest) async throws -> BackendResponse {
    try await transport.sendOrFail(request)
  }
}

extension BackendTransport {
  /// The same, with what went wrong as a `KapeAuthError`.
  func sendOrFail(_ request: BackendRequest) async throws -> BackendResponse {
    do {
      return try await send(request)
    } catch let error as CancellationError {
      throw error
    } catch let error as KapeAuthError {
      throw error
    } catch {
      throw KapeAuthError.network(loggable(error))
    }
  }
}
