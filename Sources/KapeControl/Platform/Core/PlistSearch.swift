package import Foundation
import KapeControl

/// Where a property list of the main bundle is looked for. SwiftPM puts a target's resources into a folder beside the
/// executable of which `Bundle.main` knows nothing, and a distribution puts them elsewhere again.
package struct PlistSearch: Sendable {
  /// Of the program that runs; "" when it is not known.
  package var executable: String
  /// What KAPE_PLIST_DIR says; nil when it is not to be heeded.
  package var given: String?
  package var systemFolder = "/etc"

  package init(executable: String, given: String?, systemFolder: String = "/etc") {
    self.executable = executable
    self.given = given
    self.systemFolder = systemFolder
  }

  package static var ofThisProcess: PlistSearch {
    let given = ProcessTrust.environmentIsTheUsers ? variable("KAPE_PLIST_DIR") : nil
    return PlistSearch(
      executable: Bundle.main.executablePath ?? "", given: given.flatMap { $0.hasPrefix("/") ? $0 : nil })
  }

  /// The path of the first that is there.
  package func find(_ name: String, in bundle: Bundle) -> String? {
    guard Self.isFileName(name) else { return nil }
    if let path = bundle.path(forResource: name, ofType: "plist") { return path }
    guard bundle == Bundle.main else { return nil }
    return folders().lazy.map { $0 + "/" + name + ".plist" }.first(where: Files.exists)
  }

  /// Each place in words, for the error that tells that it is in none.
  func descriptions(_ name: String) -> [String] {
    guard Self.isFileName(name) else { return ["nowhere, because '\(name)' is not the name of a file"] }
    var places = ["the bundle itself (\(Bundle.main.bundlePath))"]
    if given == nil { places.append("the folder that KAPE_PLIST_DIR names (it names none)") }
    let resources = resourceFolders()
    if resources.isEmpty { places.append("*.resources in \(folder) (there is none)") }
    return places + folders()
  }

  private func folders() -> [String] {
    var folders = [given].compactMap(\.self) + resourceFolders()
    if !executable.isEmpty {
      folders.append(
        ((folder as NSString).deletingLastPathComponent as NSString).appendingPathComponent("share/\(program)"))
      folders.append(systemFolder + "/" + program)
    }
    return folders
  }

  private func resourceFolders() -> [String] {
    guard !executable.isEmpty else { return [] }
    return Files.names(in: folder).filter { $0.hasSuffix(".resources") }.map { folder + "/" + $0 }
  }

  private var folder: String { (executable as NSString).deletingLastPathComponent }
  private var program: String { (executable as NSString).lastPathComponent }

  private static func isFileName(_ name: String) -> Bool {
    !name.isEmpty && !name.contains("/") && !name.contains("\0") && name.utf8.count <= 200
  }
}
