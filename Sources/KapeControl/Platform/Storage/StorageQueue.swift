package import Foundation

/// Calls a storage from one queue of its own, so that no thread of the cooperative pool waits for a disk, and a host's
/// storage never has two calls at once.
///
/// `@unchecked Sendable`: the storage was handed over (`sending`), and is touched on the queue alone.
package final class StorageQueue: @unchecked Sendable {
  private let queue = DispatchQueue(label: "kape.storage")
  private let storage: any StorageCallbackProtocol

  package init(_ storage: sending any StorageCallbackProtocol) { self.storage = storage }

  package func read(_ name: String) async throws -> Data? {
    try await withCheckedThrowingContinuation { continuation in
      queue.async { continuation.resume(with: Result { try self.storage.retrieveData(storageId: name) }) }
    }
  }

  package func write(_ name: String, _ data: Data) async throws {
    try await withCheckedThrowingContinuation { continuation in
      queue.async { continuation.resume(with: Result { try self.storage.storeData(storageId: name, data: data) }) }
    }
  }

  /// The same for a caller that cannot suspend.
  package func readNow(_ name: String) throws -> Data? {
    try queue.sync { try storage.retrieveData(storageId: name) }
  }
}
