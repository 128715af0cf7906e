import Foundation
import KapePlatform
import Testing

@Suite("§16: where the property list of the main bundle is looked for") struct PlistSearchTests {
  private let folder: ScratchFolder
  private let search: PlistSearch

  init() throws {
    folder = try ScratchFolder()
    try folder.write("bin/app", "")
    search = PlistSearch(
      executable: folder.path + "/bin/app", given: folder.path + "/given", systemFolder: folder.path + "/etc")
  }

  private func find(_ search: PlistSearch? = nil) -> String? {
    (search ?? self.search).find("Staging", in: .main)?.replacing(folder.path + "/", with: "")
  }

  @Test("first hit wins: KAPE_PLIST_DIR, *.resources in name order, share, /etc")
  func order() throws {
    #expect(find() == nil)
    for path in ["etc/app", "share/app", "bin/b.resources", "bin/a.resources", "given"] {
      try folder.write(path + "/Staging.plist", plist: [:])
      #expect(find()?.hasPrefix(path) == true)
    }
    #expect(find(PlistSearch(executable: folder.path + "/bin/app", given: nil)) == "bin/a.resources/Staging.plist")
  }

  @Test("a file that cannot be read is named, and not passed over for the next place")
  func unreadableIsNotPassedOver() throws {
    try folder.write("given/Staging.plist", "nonsense")
    try folder.write("share/app/Staging.plist", plist: documentedValues())
    let path = try #require(search.find("Staging", in: .main))
    #expect(throws: KapeSDKSettingsError.invalidPlist(path: path)) {
      try KapeSDKSettings(contentsOf: URL(fileURLWithPath: path))
    }
  }

  @Test("another bundle is asked alone")
  func otherBundle() throws {
    try folder.write("given/Staging.plist", plist: [:])
    try folder.write("other/Production.plist", plist: documentedValues())
    let bundle = try #require(Bundle(path: folder.path + "/other"))
    #expect(search.find("Staging", in: bundle) == nil)
    #expect(throws: KapeSDKSettingsError.plistNotFound(name: "Staging")) {
      try KapeSDKSettings(bundle: bundle, plistName: "Staging")
    }
    #expect(try KapeSDKSettings(bundle: bundle, plistName: "Production").clientId == "example-app")
  }

  @Test("a name is one of a file, and cannot lead elsewhere")
  func names() throws {
    try folder.write("given/../Staging.plist", plist: [:])
    #expect(search.find("../Staging", in: .main) == nil)
    #expect(search.find("", in: .main) == nil)
    #expect(throws: KapeSDKSettingsError.plistNotFound(name: "../Staging")) {
      try KapeSDKSettings(plistName: "../Staging")
    }
  }

  @Test("not found: the error has the name that was asked for, and its text all places")
  func notFound() throws {
    #expect(KapeSDKSettings.defaultPlistName == "KapeSDK")
    #expect(throws: KapeSDKSettingsError.plistNotFound(name: "KapeSDK")) { try KapeSDKSettings() }
    let error = #expect(throws: KapeSDKSettingsError.plistNotFound(name: "Nowhere")) {
      try KapeSDKSettings(plistName: "Nowhere")
    }
    let text = try #require(error).localizedDescription
    let program = try #require(Bundle.main.executableURL).lastPathComponent
    for place in [Bundle.main.bundlePath, "KAPE_PLIST_DIR", ".resources", "/share/\(program)", "/etc/\(program)"] {
      #expect(text.contains(place), "\(text)")
    }
  }
}
