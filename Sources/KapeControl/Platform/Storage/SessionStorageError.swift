public import Foundation

/// Why a session that is stored cannot be used.
public enum SessionStorageError: Error, Equatable, Sendable {
  /// It is sealed, and this process has not got the key that the text names.
  case keyMissing(String)
  /// It is sealed with another key, or was changed.
  case wrongKey(String)
  /// A key is there, and is none.
  case invalidKey(String)
  /// The Secret Service cannot be asked, or refuses.
  case secretService(String)
}

extension SessionStorageError: LocalizedError, CustomStringConvertible {
  public var description: String {
    switch self {
    case .keyMissing(let name):
      "the session is sealed with \(name), which this process has not got: give it to app and tunnel alike, or sign in "
        + "again without it"
    case .wrongKey(let name):
      "the session cannot be opened with \(name): it was sealed with another key, or its file was changed; give back the "
        + "key that it was sealed with, or sign in again"
    case .invalidKey(let name): "\(name) is not a key: it has to be 32 bytes, or 44 characters of base64"
    case .secretService(let reason): "the Secret Service did not give a key: \(reason)"
    }
  }

  public var errorDescription: String? { description }
}
