import Glibc
import Synchronization

/// Descriptors that came with a message: closed when nobody takes them.
package final class ReceivedDescriptors: Sendable {
  private let descriptors: Mutex<[Int32]>

  init(_ descriptors: [Int32]) { self.descriptors = Mutex(descriptors) }

  package var count: Int { descriptors.withLock { $0.count } }

  /// All of them, once: they are the caller's then.
  package func take() -> [Int32] {
    descriptors.withLock { descriptors in
      defer { descriptors = [] }
      return descriptors
    }
  }

  deinit { for descriptor in take() { close(descriptor) } }
}
