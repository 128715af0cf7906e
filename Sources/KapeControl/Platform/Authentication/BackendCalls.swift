import Foundation

/// The calls of the backend that sign-in leads to (docs/backend.openapi.json), by the settings' `APIBaseURL`.
struct BackendCalls: Sendable {
  let settings: KapeSDKSettings
  let transport: any BackendTransport
  let details: ClientDetails
  let clock: any SessionClock

  enum Path: String, Sendable {
    case subscriptions = "/srs2/subscriptions"
    case receipts = "/srs2/subscription_receipts"
    case connectionTokens = "/srs2/connection_tokens"
  }

  /// Why the backend did not give what it was asked for.
  enum Refusal: Error, Equatable {
    /// 401: the token is not good any more, whatever its expiry says.
    case token
    /// 403: it does not carry the entitlement, or the subscription has ended.
    case entitlement
  }

  func subscriptions(_ identityToken: String) async throws -> [KapeSubscription] {
    let body = try await call(.get, .subscriptions, identityToken)
    do {
      return try JSONDecoder().decode(Subscriptions.self, from: body).subscriptions
    } catch {
      throw KapeAuthError.invalidResponse("subscriptions that cannot be read")
    }
  }

  /// Receipts, in the order of the subscriptions.
  func receipts(_ identityToken: String) async throws -> [String] {
    let body = try await call(.post, .receipts, identityToken, details.fields)
    guard let receipts = try? JSONDecoder().decode([String].self, from: body) else {
      throw KapeAuthError.invalidResponse("receipts that cannot be read")
    }
    return receipts
  }

  /// A connection token. It stands there bare; quotes, which the type of the answer promises, are taken off too.
  func connectionToken(_ receipt: String) async throws -> String {
    let body = try await call(.post, .connectionTokens, receipt, details.fields)
    let text = String(decoding: body, as: UTF8.self).trimmingCharacters(in: .whitespacesAndNewlines)
    let bare =
      text.hasPrefix("\"") && text.hasSuffix("\"") && text.count > 1 ? String(text.dropFirst().dropLast()) : text
    guard !bare.isEmpty, bare.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F && $0 != UInt8(ascii: "\"") }) else {
      throw KapeAuthError.invalidResponse("a connection token that cannot be read")
    }
    return bare
  }

  private func call(
    _ method: BackendRequest.Method, _ path: Path, _ token: String, _ fields: [String: String] = [:]
  ) async throws -> Data {
    let base = try settings.require(\.apiBaseURL, .apiBaseURL).absoluteString
    guard let url = URL(string: (base.hasSuffix("/") ? String(base.dropLast()) : base) + path.rawValue) else {
      throw KapeSDKSettingsError.invalidValue(key: SettingsKey.apiBaseURL.rawValue)
    }
    let request = BackendRequest(
      method, url, fields: fields.merging(["authorization": "Bearer \(token)"]) { $1 },
      body: method == .post ? Data() : nil)
    let response = try await transport.sendOrFail(request)
    switch response.status {
    case 200: return response.body
    case 401: throw Refusal.token
    case 403: throw Refusal.entitlement
    case 429:
      throw KapeAuthError.rateLimited(until: RetryAfter.date(response.fields["retry-after"], now: clock.wallTime))
    case 500...: throw KapeAuthError.unavailable(status: response.status)
    default: throw KapeAuthError.invalidResponse("\(path.rawValue) answered \(response.status)")
    }
  }

  private struct Subscriptions: Decodable { var subscriptions: [KapeSubscription] }
}
