public import Foundation
import KapeControl

/// Opens the page in the user's browser, by `xdg-open`.
public struct XDGOpenPresenter: KapeAuthPresenter {
  /// Some desktops' `xdg-open` ends with the browser: after so long it has not failed.
  private static let patience = Duration.seconds(3)

  public init() {}

  /// - Throws: `KapeAuthError.presenterFailed`.
  public func open(_ url: URL) async throws {
    guard let program = Subprocess.find("xdg-open") else {
      throw KapeAuthError.presenterFailed(
        "xdg-open is not installed (package xdg-utils); install it, or give login(presenting:) a presenter that shows "
          + "the address")
    }
    let (outcomes, first) = AsyncStream.makeStream(of: String?.self)
    Task {
      do {
        let outcome = try await Subprocess(program, [url.absoluteString]).run(.sink { _ in })
        first.yield(outcome.isSuccess ? nil : "\(outcome)")
      } catch {
        first.yield(loggable(error))
      }
    }
    Task {
      try? await Task.sleep(for: Self.patience)
      first.yield(nil)
    }
    for await failure in outcomes {
      guard let failure else { return }
      throw KapeAuthError.presenterFailed("xdg-open: \(failure); is there a browser, and a desktop to show it?")
    }
  }
}
