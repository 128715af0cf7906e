import Foundation
import KapeCrypto
import Testing

@testable import KapePlatform

@Suite("§16: a session that is sealed with a key from elsewhere") struct SealedStorageTests {
  private let folder: ScratchFolder
  private let files: FileStorage
  private let session = Data("{\"secret\": 1}".utf8)
  private let key = Data(SecretMemory.randomBytes(32))

  init() throws {
    folder = try ScratchFolder()
    files = FileStorage(folder: folder.path + "/s")
  }

  private func credential(_ content: Data?) throws -> CredentialKey {
    if let content { try folder.write("credentials/kape-session-key", content) }
    return CredentialKey(folder: folder.path + "/credentials")
  }

  private func sealed(_ key: CredentialKey, _ context: String = "service") -> SealedStorage {
    SealedStorage(files, key: key, context: context)
  }

  @Test("what is new is sealed where there is a key, and plain where there is none") func new() throws {
    let storage = sealed(try credential(key))
    try storage.storeData(storageId: "session", data: session)
    let kept = try files.retrieveData(storageId: "session")
    let raw = try #require(kept)
    #expect(raw.range(of: Data("secret".utf8)) == nil && raw.count > session.count)
    #expect(try storage.retrieveData(storageId: "session") == session)
    #expect(try storage.retrieveData(storageId: "tokens") == nil)
    let plain = sealed(CredentialKey(folder: nil))
    try plain.storeData(storageId: "other", data: session)
    #expect(try files.retrieveData(storageId: "other") == session)
  }

  @Test("two seals of the same are not alike") func fresh() throws {
    let storage = sealed(try credential(key))
    try storage.storeData(storageId: "session", data: session)
    let first = try files.retrieveData(storageId: "session")
    try storage.storeData(storageId: "session", data: session)
    #expect(try files.retrieveData(storageId: "session") != first)
  }

  @Test("what is there keeps its form, so that a process without the key is not shut out by one with it")
  func form() throws {
    try files.storeData(storageId: "session", data: session)
    let storage = sealed(try credential(key))
    try storage.storeData(storageId: "session", data: Data("renewed".utf8))
    #expect(try files.retrieveData(storageId: "session") == Data("renewed".utf8))
    try storage.storeData(storageId: "session", data: Data())
    #expect(try files.retrieveData(storageId: "session") == nil)
    try storage.storeData(storageId: "session", data: session)
    #expect(try files.retrieveData(storageId: "session") != session)
  }

  @Test("without the key, with another, for another service or name, or changed: an error that names the key")
  func closed() throws {
    let right = try credential(key)
    try sealed(right).storeData(storageId: "session", data: session)
    let without = sealed(CredentialKey(folder: folder.path + "/nowhere"))
    #expect(throws: SessionStorageError.keyMissing(right.name)) { try without.retrieveData(storageId: "session") }
    #expect(throws: SessionStorageError.keyMissing(right.name)) {
      try without.storeData(storageId: "session", data: session)
    }
    #expect(throws: SessionStorageError.wrongKey(right.name)) {
      try sealed(right, "other").retrieveData(storageId: "session")
    }
    let kept = try files.retrieveData(storageId: "session")
    let box = try #require(kept)
    try files.storeData(storageId: "tokens", data: box)
    #expect(throws: SessionStorageError.wrongKey(right.name)) { try sealed(right).retrieveData(storageId: "tokens") }
    for index in [20, box.count / 2, box.count - 1] {
      var changed = box
      changed[index] ^= 1
      try files.storeData(storageId: "session", data: changed)
      #expect(throws: SessionStorageError.wrongKey(right.name)) { try sealed(right).retrieveData(storageId: "session") }
    }
    try files.storeData(storageId: "session", data: box.prefix(30))
    #expect(throws: SessionStorageError.wrongKey(right.name)) { try sealed(right).retrieveData(storageId: "session") }
    try files.storeData(storageId: "session", data: box)
    let other = try credential(Data(SecretMemory.randomBytes(32)))
    #expect(throws: SessionStorageError.wrongKey(other.name)) { try sealed(other).retrieveData(storageId: "session") }
    #expect(SessionStorageError.wrongKey(right.name).localizedDescription.contains("kape-session-key"))
  }

  @Test("the credential is 32 bytes, or a line of base64; anything else is told") func credentials() throws {
    func bytes(_ key: SealingKey?) -> [UInt8]? { key?.withUnsafeBytes { Array($0) } }
    #expect(bytes(try credential(key).sealingKey(isRequired: false)) == Array(key))
    for text in [key.base64EncodedString(), key.base64EncodedString() + "\n"] {
      #expect(bytes(try credential(Data(text.utf8)).sealingKey(isRequired: false)) == Array(key))
    }
    for content in [Data(), Data(count: 31), Data(count: 33), Data("secret\n".utf8), Data(count: 100)] {
      let credential = try credential(content)
      #expect(throws: SessionStorageError.invalidKey(credential.name)) { try credential.sealingKey(isRequired: false) }
    }
    #expect(try CredentialKey(folder: "relative").sealingKey(isRequired: false) == nil)
    #expect(try CredentialKey(folder: nil).sealingKey(isRequired: true) == nil)
  }
}
