extension Backend {
  /// Who sent a request.
  struct Identity {
    let user: String
    let isGuest: Bool
  }

  /// Checks the identity token, its sign-in included.
  func identity(_ request: HTTPRequest) throws -> Identity {
    let claims = try verify(try bearer(request), .identity)
    guard let user = claims["sub"]?.string, let jti = claims["jti"]?.string,
      case .bool(let isGuest) = claims["is_guest"]
    else { throw TokenFault.malformed }
    if isGuest {
      guard settings.guests.areAllowed else { throw TokenFault.revoked }
      return Identity(user: user, isGuest: true)
    }
    let family = String(jti.prefix { $0 != "." })
    let isGood = try database.row(
      "SELECT 1 FROM families WHERE id = ? AND user = ? AND revoked = 0", .text(family), .text(user)
    ) { _ in true }
    guard isGood != nil else { throw TokenFault.revoked }
    return Identity(user: user, isGuest: false)
  }
}
