package import Foundation
package import KapeCrypto

/// Seals what another storage keeps, with a key that comes from elsewhere: a key beside the file would protect nothing.
///
/// What is there keeps its form: it is rewritten sealed or plain as it was, because the other process may not have the
/// key. Something new is sealed where there is a key.
package final class SealedStorage: StorageCallbackProtocol {
  private static let mark = Data("kape-sealed-1\n".utf8)

  private let base: any StorageCallbackProtocol
  private let key: any SealingKeySource
  /// Bound into each box, so that one place's is not taken for another's.
  private let context: String

  package init(_ base: any StorageCallbackProtocol, key: any SealingKeySource, context: String) {
    self.base = base
    self.key = key
    self.context = context
  }

  package func storeData(storageId: String, data: Data) throws {
    guard !data.isEmpty else { return try base.storeData(storageId: storageId, data: data) }
    let isSealed = try base.retrieveData(storageId: storageId).map { $0.starts(with: Self.mark) }
    guard isSealed != false, let key = try key.sealingKey(isRequired: isSealed == true) else {
      // Never plain in place of what was sealed.
      if isSealed == true { throw SessionStorageError.keyMissing(key.name) }
      return try base.storeData(storageId: storageId, data: data)
    }
    let box = SealedBox.seal(Array(data), key: key, context: context(of: storageId))
    try base.storeData(storageId: storageId, data: Self.mark + Data(box))
  }

  package func retrieveData(storageId: String) throws -> Data? {
    guard let data = try base.retrieveData(storageId: storageId), data.starts(with: Self.mark) else {
      return try base.retrieveData(storageId: storageId)
    }
    guard let key = try self.key.sealingKey(isRequired: true) else {
      throw SessionStorageError.keyMissing(self.key.name)
    }
    let box = Array(data.dropFirst(Self.mark.count))
    guard let plain = SealedBox.open(box, key: key, context: context(of: storageId)) else {
      throw SessionStorageError.wrongKey(self.key.name)
    }
    return Data(plain)
  }

  private func context(of storageId: String) -> [UInt8] { Array((context + "\n" + storageId).utf8) }
}

/// Where the key comes from.
package protocol SealingKeySource: Sendable {
  /// For people.
  var name: String { get }
  /// nil: there is none, and what is stored is not sealed. With `isRequired` something is sealed already, and a source
  /// that would make a new key must not.
  func sealingKey(isRequired: Bool) throws -> SealingKey?
}
