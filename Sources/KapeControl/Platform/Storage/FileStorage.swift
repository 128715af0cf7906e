package import Foundation
import KapeControl

/// Secrets in files of one folder, 0600 in 0700: for the user that the process runs as, and for root.
package final class FileStorage: StorageCallbackProtocol, Sendable {
  private let folder: String

  package init(folder: String) { self.folder = folder }

  package func storeData(storageId: String, data: Data) throws {
    let file = WholeFile(folder + "/" + storageId)
    if data.isEmpty {
      try file.remove()
    } else {
      try OwnedFolder.make(folder)
      try file.write(data)
    }
  }

  package func retrieveData(storageId: String) throws -> Data? {
    try WholeFile(folder + "/" + storageId).read()
  }
}
