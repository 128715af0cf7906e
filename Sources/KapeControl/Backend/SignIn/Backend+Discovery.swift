extension Backend {
  static let scopes = ["openid", "profile", "email", "offline_access"]
  static let guestGrant = "urn:kape:params:oauth:grant-type:guest"

  /// Where an operation is, for everyone.
  func url(_ operation: Operation) -> JSON { .string(issuer + (settings.paths[operation] ?? operation.defaultPath)) }

  /// OpenID Connect Discovery 1.0, section 3; RFC 8414.
  func discover() -> HTTPResponse {
    .json(
      [
        "issuer": .string(issuer), "authorization_endpoint": url(.authorize), "token_endpoint": url(.token),
        "jwks_uri": url(.keys), "revocation_endpoint": url(.revoke), "response_types_supported": ["code"],
        "response_modes_supported": ["query"],
        "grant_types_supported": .strings(
          ["authorization_code", "refresh_token"] + (settings.guests.areAllowed ? [Self.guestGrant] : [])),
        "subject_types_supported": ["public"],
        "id_token_signing_alg_values_supported": .strings([TokenKind.idToken.algorithm.rawValue]),
        "scopes_supported": .strings(Self.scopes),
        "claims_supported": [
          "iss", "aud", "iat", "exp", "auth_time", "sub", "nonce", "at_hash", "email", "email_verified", "name",
          "is_guest",
        ],
        "token_endpoint_auth_methods_supported": ["none"], "revocation_endpoint_auth_methods_supported": ["none"],
        "code_challenge_methods_supported": ["S256"], "authorization_response_iss_parameter_supported": true,
      ], maxAge: 300)
  }
}
