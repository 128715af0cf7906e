import Synchronization

/// What a host can say before the SDK's parts are made. It is handed to the closure that `KapeSdkHandle` takes, and has no
/// effect afterwards.
public final class SdkConfiguration: Sendable {
  /// Where a key comes from that the session is sealed with. What is stored plain stays so until the next sign-in.
  public enum SessionSealing: Hashable, Sendable {
    /// The credential `kape-session-key` of a systemd service, where there is one (systemd.exec(5)); else none.
    case credential
    /// A key that the desktop's Secret Service keeps, made with the first sign-in. Where there is no session bus, as for a
    /// tunnel that starts before anybody has logged in, the session cannot be opened.
    case secretService
    case none
  }

  private struct State {
    var appVersion: String?
    var sealing = SessionSealing.credential
  }

  private let state = Mutex(State())
  private let storage = Mutex<StorageQueue?>(nil)

  init() {}

  /// The app's version, for the backend. nil: what the bundle says.
  public var appVersion: String? {
    get { state.withLock { $0.appVersion } }
    set { state.withLock { $0.appVersion = newValue } }
  }

  public var sessionSealing: SessionSealing {
    get { state.withLock { $0.sealing } }
    set { state.withLock { $0.sealing = newValue } }
  }

  /// Keeps the session in a storage of the host's, in place of files. Nothing is sealed then: that is the storage's matter.
  public func setStorage(_ storage: sending any StorageCallbackProtocol) {
    let queue = StorageQueue(storage)
    self.storage.withLock { $0 = queue }
  }

  var hostStorage: StorageQueue? { storage.withLock { $0 } }
}
