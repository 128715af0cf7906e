import Foundation

/// A folder that goes with the object.
final class ScratchFolder: Sendable {
  let path: String

  init() throws {
    let name = "kape-test-\(UUID().uuidString.prefix(12))"
    path = FileManager.default.temporaryDirectory.appendingPathComponent(name).path
    try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
  }

  deinit { try? FileManager.default.removeItem(atPath: path) }

  /// Makes the folders of `name` too; gives the whole path.
  @discardableResult
  func write(_ name: String, _ data: Data) throws -> String {
    let file = URL(fileURLWithPath: path).appendingPathComponent(name)
    try FileManager.default.createDirectory(at: file.deletingLastPathComponent(), withIntermediateDirectories: true)
    try data.write(to: file)
    return file.path
  }

  @discardableResult
  func write(_ name: String, _ text: String) throws -> String { try write(name, Data(text.utf8)) }

  @discardableResult
  func write(_ name: String, plist values: [String: Any]) throws -> String {
    try write(name, PropertyListSerialization.data(fromPropertyList: values, format: .xml, options: 0))
  }

  func mode(_ name: String) throws -> Int {
    let attributes = try FileManager.default.attributesOfItem(atPath: path + "/" + name)
    return (attributes[.posixPermissions] as? NSNumber)?.intValue ?? -1
  }
}
