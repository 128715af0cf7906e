import Glibc
import KapeControl
import KapeCrypto

/// The backend's own CA, made at the first start: `ca.pem`, which apps are given, and `ca.key`. Servers' certificates are
/// made anew at each start and never on the disk.
struct CertificateAuthority {
  private let authority: Certificate
  /// PEM.
  let certificate: String

  private static let certificateFile = "ca.pem"
  private static let keyFile = "ca.key"
  private static let days = 3650
  private static let serverDays = 397

  init(in state: StateDirectory) throws {
    if let pem = try state.read(Self.certificateFile) {
      guard let key = try state.read(Self.keyFile) else {
        throw Certificate.Failure(
          reason: "\(state.file(Self.keyFile)) is missing: put it back, or remove ca.pem too for a new CA")
      }
      authority = try Certificate(pem: pem, key: key)
    } else {
      let name = "Kape backend CA " + RandomText.identifier().prefix(8)
      authority = try Certificate.make(commonName: name, names: [], days: Self.days, issuer: nil)
      // The certificate last: who finds it finds the key.
      try state.write(Array(authority.keyPEM.utf8), to: Self.keyFile)
      try state.write(Array(authority.pem.utf8), to: Self.certificateFile)
    }
    certificate = authority.pem
  }

  /// A server's certificate for a new key, good for a year and a month. `names` besides the common name.
  func identity(commonName: String, names: [String]) throws -> HTTPListener.Identity {
    let all = (Self.isHostName(commonName) ? [commonName] : []) + names
    let made = try Certificate.make(
      commonName: commonName, names: all, days: Self.serverDays, issuer: authority)
    return HTTPListener.Identity(certificate: made.pem + certificate, key: made.keyPEM)
  }

  private static func isHostName(_ text: String) -> Bool {
    text.utf8.allSatisfy { byte in
      (0x61...0x7A).contains(byte | 0x20) || (0x30...0x39).contains(byte) || byte == 0x2D || byte == 0x2E
    }
  }
}
