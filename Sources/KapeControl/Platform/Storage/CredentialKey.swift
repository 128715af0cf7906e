import Foundation
import KapeControl
package import KapeCrypto

/// A key that systemd has given to the service (systemd.exec(5), LoadCredentialEncrypted=): the file `kape-session-key`
/// in $CREDENTIALS_DIRECTORY.
package struct CredentialKey: SealingKeySource {
  package static let fileName = "kape-session-key"
  private let folder: String?

  package init() { self.init(folder: variable("CREDENTIALS_DIRECTORY")) }

  package init(folder: String?) { self.folder = folder.flatMap { $0.hasPrefix("/") ? $0 : nil } }

  package var name: String { "the credential \(Self.fileName) of a systemd service" }

  package func sealingKey(isRequired: Bool) throws -> SealingKey? {
    guard let folder, let bytes = try Files.read(folder + "/" + Self.fileName, limit: 64) else { return nil }
    let line = bytes.last == UInt8(ascii: "\n") ? Array(bytes.dropLast()) : bytes
    if let key = SealingKey(bytes: bytes.span.bytes) ?? SealingKey(base64: line.span.bytes) { return key }
    throw SessionStorageError.invalidKey(name)
  }
}
