internal import CSodium

/// Hashes passwords with Argon2id (RFC 9106), one at a time on a thread of its own.
package actor PasswordHasher {
  /// What a hash takes whoever makes one.
  package struct Cost: Sendable {
    var operations: UInt64
    var memory: Int

    /// 64 MiB and about a tenth of a second.
    package static let usual = Cost(
      operations: UInt64(crypto_pwhash_OPSLIMIT_INTERACTIVE), memory: Int(crypto_pwhash_MEMLIMIT_INTERACTIVE))
    /// For tests.
    static let least = Cost(operations: UInt64(crypto_pwhash_OPSLIMIT_MIN), memory: Int(crypto_pwhash_MEMLIMIT_MIN))
  }

  struct Failure: Error, CustomStringConvertible {
    var description: String { "there is not enough memory to hash a password" }
  }

  /// Longer ones are wrong.
  static let longest = 1024

  private let executor = QueueExecutor("kape.backend.passwords")
  package nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

  /// What the password of nobody is compared with, so that an e-mail address that nobody has takes as long as another.
  private var nobody: String?

  private let cost: Cost

  init(_ cost: Cost) { self.cost = cost }

  /// Text that holds the salt and the parameters too.
  func hash(_ password: String) throws -> String {
    var text = [CChar](repeating: 0, count: Int(crypto_pwhash_STRBYTES))
    let status = crypto_pwhash_str_alg(
      &text, password, UInt64(password.utf8.count), cost.operations, cost.memory, crypto_pwhash_ALG_ARGON2ID13)
    guard status == 0 else { throw Failure() }
    return String(decoding: text.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
  }

  /// nil for `hash`: there is nobody of that name. False then, as late as otherwise.
  func isRight(_ password: String, for hash: String?) throws -> Bool {
    guard password.utf8.count <= Self.longest else { return false }
    if nobody == nil { nobody = try self.hash("") }
    guard let against = hash ?? nobody else { return false }
    let isRight = crypto_pwhash_str_verify(against, password, UInt64(password.utf8.count)) == 0
    return isRight && hash != nil
  }
}
