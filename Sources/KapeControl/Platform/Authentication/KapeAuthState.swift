/// Whether somebody is signed in.
public enum KapeAuthState: Hashable, Sendable {
  /// Somebody is, a guest too.
  case authenticated
  case unauthenticated
}
