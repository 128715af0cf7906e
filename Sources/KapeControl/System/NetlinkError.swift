internal import CKapeDataPlane

/// The kernel refused a request: what was asked, its errno, and its own words if it had any.
package struct NetlinkError: Error, Hashable, CustomStringConvertible {
  package var operation: String
  package var code: Int32
  package var text: String

  package init(_ operation: String, code: Int32, text: String = "") {
    self.operation = operation
    self.code = code
    self.text = text
  }

  init(_ operation: String, _ status: kdp_status, _ error: kdp_netlink_error) {
    self.operation = operation
    code = error.code
    text = withUnsafeBytes(of: error.text) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }
    if code == 0, let words = kdp_status_describe(status).pointee.text { text = String(cString: words) }
  }

  package var description: String {
    let reason = code == 0 ? text : SystemError.text(of: code) + (text.isEmpty ? "" : " (\(text))")
    return operation + ": " + reason
  }
}
