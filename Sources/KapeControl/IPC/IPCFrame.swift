/// One message on the wire: its size as four bytes, the highest first, then its bytes. Descriptors travel with the first
/// byte.
package enum IPCFrame {
  package static let headerSize = 4
  package static let largest = 1 << 20
  /// With one message.
  package static let mostDescriptors = 4

  /// nil: it is too large.
  package static func encode(_ message: IPCMessage) -> [UInt8]? {
    let body = Array(message.json.compactText.utf8)
    guard body.count <= largest else { return nil }
    return withUnsafeBytes(of: UInt32(body.count).bigEndian) { Array($0) } + body
  }

  /// nil: no frame is that large, or that small.
  package static func size(_ header: [UInt8]) -> Int? {
    guard header.count == headerSize else { return nil }
    let size = header.reduce(0) { $0 << 8 | Int($1) }
    return (2...largest).contains(size) ? size : nil
  }
}
