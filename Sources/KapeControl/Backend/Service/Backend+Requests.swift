import KapeControl

extension Backend {
  /// Answers a request; never fails. `server`: whose key exchange it came to.
  func answer(_ request: HTTPRequest, _ router: Router, at server: WireGuardServer? = nil) async -> HTTPResponse {
    switch router.match(method: request.method, path: request.path) {
    case .none:
      return Refusal(404, .notFound, "there is nothing at this path").response
    case .otherMethods(let methods):
      let list = methods.joined(separator: ", ")
      return Refusal(405, .methodNotAllowed, "this path takes \(list)", headers: [("Allow", list)]).response
    case .operation(let operation, let values):
      let response = await answer(request, operation, values, server)
      log.verbose("request", ["operation": operation.rawValue, "status": "\(response.status)"])
      return response
    }
  }

  private func answer(
    _ request: HTTPRequest, _ operation: Operation, _ values: [String: String], _ server: WireGuardServer?
  ) async -> HTTPResponse {
    do {
      try Self.check(request, operation)
      return try await perform(operation, request, values, server)
    } catch let fault as TokenFault {
      return Self.response(to: fault.refusal, operation)
    } catch let refusal as Refusal {
      return Self.response(to: refusal, operation)
    } catch let refusal as OAuthRefusal {
      return refusal.response
    } catch {
      log.error("failure", ["operation": operation.rawValue, "reason": "\(error)"])
      return Self.response(to: .storage, operation)
    }
  }

  /// For a body that is not worth reading.
  static func refuse(_ request: HTTPRequest, _ router: Router) -> HTTPResponse {
    let refusal = Refusal(413, .tooLarge, "the body is larger than this server takes")
    guard case .operation(let operation, _) = router.match(method: request.method, path: request.path) else {
      return refusal.response
    }
    return response(to: refusal, operation)
  }

  private static func response(to refusal: Refusal, _ operation: Operation) -> HTTPResponse {
    if operation.isOAuth { return OAuthRefusal(refusal).response }
    if operation.isPage { return Page.problem(refusal) }
    if operation == .addKey {
      var response = HTTPResponse.json(
        ["status": "ERROR", "message": .string(refusal.detail)], status: refusal.status)
      response.headers += refusal.headers.filter { $0.name == "Retry-After" }
      return response
    }
    return refusal.response
  }

  /// Size and kind of the body.
  private static func check(_ request: HTTPRequest, _ operation: Operation) throws {
    guard operation.method == "POST" else { return }
    if request.isBodyTooLarge { throw Refusal(413, .tooLarge, "the body is larger than this server takes") }
    let wanted: String
    switch operation {
    case .signIn, .token, .revoke: wanted = "application/x-www-form-urlencoded"
    case .receipts, .connectionToken:
      if !request.body.isEmpty { throw Refusal(400, .invalidRequest, "this operation takes no body") }
      return
    default: wanted = "application/json"
    }
    guard request.contentType == wanted else {
      throw Refusal(415, .unsupportedMediaType, "the body must be \(wanted)")
    }
  }

  private func perform(
    _ operation: Operation, _ request: HTTPRequest, _ values: [String: String], _ server: WireGuardServer?
  ) async throws -> HTTPResponse {
    switch operation {
    case .discover: discover()
    case .keys: keys()
    case .authorize: try authorize(request)
    case .signIn: try await signIn(request)
    case .token: try token(request)
    case .revoke: try revoke(request)
    case .subscriptions: try subscriptions(request)
    case .receipts: try receipts(request)
    case .connectionToken: try connectionToken(request)
    case .locations: try locations(request)
    case .endpoints: try endpoints(request, values)
    case .dedicatedIP: try dedicatedIP(request)
    case .addKey:
      if let server {
        try await addKey(request, at: server)
      } else {
        throw Refusal(404, .notFound, "there is nothing at this path")
      }
    case .verifyOpenVPN: try verifyOpenVPN(request)
    case .verifyLightway: try verifyLightway(request)
    case .track: try track(request)
    }
  }

  // MARK: What several operations need

  /// Throws 429 when `who` has done it too often.
  func limit(_ operation: Operation, _ who: String) throws {
    guard let limit = settings.limits.operations[operation] else { return }
    try self.limit(operation.rawValue, who, limit)
  }

  func limit(_ what: String, _ who: String, _ limit: RateLimiter.Limit) throws {
    if let seconds = limiter.refusal(what, who, limit, at: clock.milliseconds) { throw Refusal.tooMany(after: seconds) }
  }

  /// The token of the Authorization field, with `Bearer` before it or bare.
  func bearer(_ request: HTTPRequest) throws -> String {
    let value = request.header("authorization").map { value in
      value.lowercased().hasPrefix("bearer ") ? value.dropFirst(7).trimmingBlanks : value.trimmingBlanks
    }
    guard let value, !value.isEmpty, !value.contains(" ") else {
      throw Refusal(
        401, .invalidToken, "an Authorization field with a token is wanted", headers: [("WWW-Authenticate", "Bearer")])
    }
    return value
  }

  /// The body as a JSON object with these members, all of them texts unless `others` names them, and no other.
  func members(_ request: HTTPRequest, _ texts: [String], others: [String] = []) throws -> [String: JSON] {
    let json: JSON
    do {
      json = try JSON(parsing: request.body)
    } catch {
      throw Refusal(400, .invalidRequest, "the body is not JSON: \(error.reason)")
    }
    guard case .object(let members) = json else { throw Refusal(400, .invalidRequest, "the body must be an object") }
    for name in texts + others where members[name] == nil {
      throw Refusal(400, .invalidRequest, "\(name) is missing")
    }
    for name in texts where members[name]?.string == nil {
      throw Refusal(400, .invalidRequest, "\(name) must be a text")
    }
    if let name = members.keys.sorted().first(where: { !texts.contains($0) && !others.contains($0) }) {
      throw Refusal(400, .invalidRequest, "\(name.prefix(64)) is not a member of this object")
    }
    return members
  }
}
