public import Foundation

/// What is wrong with the settings. The description says which key or file, and what to do; the log has one line with the
/// file's path.
public enum KapeSDKSettingsError: Error, Equatable, Sendable {
  /// There is no property list of this name, in none of the places.
  case plistNotFound(name: String)
  /// The file is there and cannot be read, is larger than a MiB, or is no property list with a dictionary in it.
  case invalidPlist(path: String)
  /// A required key that is not there; or an optional one, thrown where its value is needed.
  case missingKey(String)
  /// A value of another type or form than the key's.
  case invalidValue(key: String)
}

extension KapeSDKSettingsError: CustomStringConvertible {
  public var description: String {
    switch self {
    case .plistNotFound(let name):
      "there is no \(name).plist; for the main bundle these places were looked at, in this order: "
        + PlistSearch.ofThisProcess.descriptions(name).joined(separator: "; ")
        + " (another bundle is asked alone). Put the file into one of them, or pass the name of one that is there."
    case .invalidPlist(let path):
      "\(path) is not a property list with a dictionary at its top, cannot be read, or is larger than 1 MiB. "
        + "`plutil -lint`, or any XML parser, tells where it breaks."
    case .missingKey(let key):
      "the settings have no \(key): add it to the property list, as \(SettingsKey.form(of: key))"
    case .invalidValue(let key):
      "the value of \(key) in the settings is not \(SettingsKey.form(of: key))"
    }
  }
}

extension KapeSDKSettingsError: LocalizedError {
  public var errorDescription: String? { description }
}
