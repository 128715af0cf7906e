import Combine
import Foundation
import KapeTestSupport
import Synchronization
import Testing

@testable import KapePlatform

@Suite("§3.2: the handle") struct HandleTests {
  private let setup: SDKSetup

  init() throws { setup = try SDKSetup() }

  private func model() -> String? { SharedConfiguration.load(setup.container).deviceModel }

  private func handle(_ deviceModel: String?) throws -> KapeSdkHandle {
    try KapeSdkHandle(
      setup.settings, deviceModel, nil,
      SdkEnvironment(transport: setup.backend, clock: setup.clock, container: setup.container))
  }

  @Test("settings that a program has changed are checked") func validation() throws {
    var settings = setup.settings
    settings.keychainService = "../other"
    let changed = settings
    #expect(throws: KapeSDKSettingsError.invalidValue(key: "KeychainService")) { try KapeSdkHandle(settings: changed) }
  }

  @Test("both initialisers, the group's folder and tracking, in a process of an app") func overloads() async throws {
    let plist = try setup.folder.write("KapeSDK.plist", plist: documentedValues())
    let run = try await blocking { [folder = setup.folder] in
      try Execution.run([probe, "handle", plist], environment: ["KAPE_STATE_HOME": folder.path + "/state"])
    }
    #expect(run.text == "synchronous\nasynchronous\nsame tracking\n")
    #expect(try setup.folder.mode("state/group.example.vpn") == 0o700)
    #expect(try setup.folder.mode("state/group.example.vpn/config.json") == 0o600)
  }

  @Test("configure is called once, before anything is made; its storage is used") func configure() async throws {
    let calls = Mutex(0)
    let folder = setup.folder.path + "/elsewhere"
    let handle = try setup.handle { configuration in
      calls.withLock { $0 += 1 }
      configuration.setStorage(FileStorage(folder: folder))
    }
    _ = try await handle.awaitSdkManager()
    _ = try await handle.awaitSdkManager()
    #expect(calls.withLock { $0 } == 1)
    let client = KapeAuthClient(handle: handle)
    try await client.loginAsGuest()
    #expect(FileManager.default.fileExists(atPath: folder + "/session"))
    #expect(!FileManager.default.fileExists(atPath: setup.sessionFolder + "/session"))
  }

  @Test("§6.1: the device model is recorded for the tunnel, which reports the same, and writes nothing for it")
  func deviceModel()
    async throws
  {
    #expect(model() == nil)
    _ = try await handle("tablet").awaitSdkManager()
    #expect(model() == "tablet")
    let number =
      try FileManager.default.attributesOfItem(atPath: setup.container.configuration)[.systemFileNumber] as? Int
    let tunnel = try handle(model())
    _ = try await tunnel.awaitSdkManager()
    let after =
      try FileManager.default.attributesOfItem(atPath: setup.container.configuration)[.systemFileNumber] as? Int
    #expect(number == after)
    _ = try await handle(nil).awaitSdkManager()
    #expect(model() == "tablet")
    _ = try await handle("mobile").awaitSdkManager()
    #expect(model() == "mobile")
  }

  @Test("the header has a kind that the backend takes") func header() {
    for kind in ["desktop", "mobile", "tablet", "firetv", "appletv"] { #expect(DeviceModel.header(kind) == kind) }
    for other in [nil, "", "Desktop", "phone15,2"] { #expect(DeviceModel.header(other) == "desktop") }
    let details = ClientDetails(appVersion: " 1.0 \u{7}é\n", deviceModel: "tablet")
    #expect(details.appVersion == "1.0" && details.deviceModel == "tablet")
    #expect(ClientDetails(appVersion: String(repeating: "9", count: 80), deviceModel: nil).appVersion.count == 64)
    #expect(ClientDetails(appVersion: " ", deviceModel: nil).appVersion == "unknown")
  }

  @Test("a folder that cannot be made fails the manager, with its path") func folder() async throws {
    try FileManager.default.createDirectory(atPath: setup.folder.path, withIntermediateDirectories: true)
    try setup.folder.write("group", "a file in the way")
    let handle = try handle(nil)
    let error = await #expect(throws: (any Error).self) { try await handle.awaitSdkManager() }
    #expect("\(try #require(error))".contains("/group"))
  }
}
