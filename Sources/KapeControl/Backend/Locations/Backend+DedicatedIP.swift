import KapeCrypto

extension Backend {
  /// What a dedicated IP's token stands for. Neither the user nor the subscription comes into it.
  func dedicatedIP(_ request: HTTPRequest) throws -> HTTPResponse {
    let connection = try connection(try bearer(request))
    try limit(.dedicatedIP, connection.holders[0])
    guard connection.entitlements.contains(settings.dedicatedIPEntitlement) else {
      throw Refusal(403, .notEntitled, "the token does not carry the entitlement \(settings.dedicatedIPEntitlement)")
    }
    let token = try members(request, ["token"])["token"]?.string ?? ""
    guard (1...256).contains(token.utf8.count) else {
      throw Refusal(400, .invalidRequest, "token must have 1 to 256 bytes")
    }
    let found = try database.row(
      "SELECT ip, expires FROM dedicated_ips WHERE hash = ?", .blob(SHA256.hash(Array(token.utf8))),
      map: { (ip: $0.text(0), expires: $0.integer(1)) })
    guard let found, let dedicated = settings.dedicatedIPs.first(where: { $0.ip == found.ip }) else {
      throw Refusal(404, .unknownDedicatedIP, "there is no dedicated IP of that token")
    }
    let now = clock.seconds
    guard found.expires > now else { throw Refusal(410, .dedicatedIPExpired, "the dedicated IP's term has ended") }
    guard !dedicated.isUnderMaintenance else {
      throw Refusal(409, .dedicatedIPUnderMaintenance, "the dedicated IP is under maintenance; try again later")
    }
    let access = try sign(
      .dedicatedIP, expires: min(found.expires, now + settings.lifetimes.dedicatedIPToken),
      ["dedicated_ip": .string(dedicated.ip), "jti": .string(RandomText.identifier())])
    return .json([
      "ip": .string(dedicated.ip), "location_id": .string(dedicated.location), "expires_at": .time(found.expires),
      "access_token": .string(access), "endpoints": .array(try dedicated.endpoints.map { try json($0) }),
    ])
  }
}
