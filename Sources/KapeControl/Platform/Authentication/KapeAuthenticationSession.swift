/// Who is signed in.
public struct KapeAuthenticationSession: Hashable, Sendable {
  public var userId: String
  /// nil for guests, and where the issuer does not tell.
  public var email: String?
  /// The e-mail address, or the name where there is none; nil for guests.
  public var displayName: String?
  /// Whether it is an identity that was made on this device, without an account. Whether there are subscriptions says
  /// nothing about it.
  public var isGuest: Bool

  public init(userId: String, email: String? = nil, displayName: String? = nil, isGuest: Bool) {
    self.userId = userId
    self.email = email
    self.displayName = displayName
    self.isGuest = isGuest
  }

  init(_ stored: StoredSession) {
    let isGuest = stored.kind == .guest
    self.init(
      userId: stored.userId, email: isGuest ? nil : stored.email, displayName: isGuest ? nil : stored.displayName,
      isGuest: isGuest)
  }
}
