import Foundation
import KapePlatform

/// A handle over a scripted backend, with a folder of its own for the session.
struct SDKSetup: Sendable {
  let clock = ManualClock()
  let backend: ScriptedBackend
  let settings: KapeSDKSettings

  let folder: ScratchFolder

  init(redirect: String = "http://127.0.0.1/callback") throws {
    folder = try ScratchFolder()
    backend = try ScriptedBackend(clock: clock)
    settings = try Self.settings(redirect: redirect)
  }

  static func settings(redirect: String = "http://127.0.0.1/callback") throws -> KapeSDKSettings {
    KapeSDKSettings(
      appGroupIdentifier: "group.example.sdk-tests", keychainService: "service", clientId: "example-app",
      issuerURL: URL(string: ScriptedBackend.issuer)!, redirectURL: URL(string: redirect)!, tenantId: "xv",
      apiBaseURL: URL(string: ScriptedBackend.api))
  }

  /// Of another process of the group, as it were.
  func handle(
    _ configure: (@Sendable (SdkConfiguration) -> Void)? = nil, _ change: (inout KapeSDKSettings) -> Void = { _ in }
  ) throws -> KapeSdkHandle {
    var settings = self.settings
    change(&settings)
    return try KapeSdkHandle(
      settings, nil, configure, SdkEnvironment(transport: backend, clock: clock, container: container))
  }

  var container: SharedContainer { SharedContainer(path: folder.path + "/group") }
  var sessionFolder: String { container.session(settings.keychainService) }

  /// A browser in which `user` signs in.
  func browser(_ user: String = "u1") -> ScriptedBrowser { ScriptedBrowser(backend: backend, user: user) }
}
