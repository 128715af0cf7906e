internal import CKapeDataPlane
import Glibc

/// Why something of a tunnel failed: the data plane's status, and the errno where a system call was behind it.
package struct TunnelError: Error, Equatable, CustomStringConvertible {
  package var operation: String
  /// The status by name, "LIMIT" for one.
  package var status: String
  /// An errno that says the same to those who know only those.
  package var code: Int32
  private var text: String

  init(_ operation: String, _ status: kdp_status, systemCode: Int32 = errno) {
    self.operation = operation
    let description = kdp_status_describe(status).pointee
    self.status = String(cString: description.name)
    text = String(cString: description.text)
    switch status {
    case KDP_SYSTEM:
      code = systemCode == 0 ? EIO : systemCode
      text = SystemError.text(of: code)
    case KDP_NO_MEMORY, KDP_LIMIT: code = ENOMEM
    case KDP_INVALID_ARGUMENT, KDP_LOW_ORDER_KEY: code = EINVAL
    case KDP_UNSUPPORTED: code = EOPNOTSUPP
    case KDP_CLOSED: code = ENODEV
    case KDP_NOT_FOUND: code = ENOENT
    case KDP_EXISTS: code = EEXIST
    default: code = EIO
    }
  }

  /// The worker had ended, or did so before it came to this.
  package var isClosed: Bool { status == "CLOSED" }

  package var description: String { "\(operation): \(text)" }
}
