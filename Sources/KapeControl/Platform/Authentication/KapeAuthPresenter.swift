public import Foundation

/// Shows the issuer's page to whoever signs in.
public protocol KapeAuthPresenter: Sendable {
  /// Opens the page in a browser, and returns once it is open, not when somebody has signed in.
  func open(_ url: URL) async throws
}
