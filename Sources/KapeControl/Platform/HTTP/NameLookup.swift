import Glibc
import KapeControl

/// An address of a host, as the system's calls take it.
struct HostAddress: @unchecked Sendable {
  // Unchecked: plain bytes.
  var storage: sockaddr_storage
  var size: socklen_t
  var family: Int32 { Int32(storage.ss_family) }

  /// The address alone, in numbers.
  var text: String {
    var copy = storage
    return withUnsafeTemporaryAllocation(of: CChar.self, capacity: Int(NI_MAXHOST)) { buffer in
      buffer.initialize(repeating: 0)
      guard let start = buffer.baseAddress else { return "?" }
      let result = withUnsafePointer(to: &copy) {
        $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
          getnameinfo($0, size, start, socklen_t(buffer.count), nil, 0, NI_NUMERICHOST)
        }
      }
      return result == 0 ? String(cString: start) : "?"
    }
  }
}

enum NameLookup {
  /// More are not tried.
  static let most = 8

  /// The addresses of the host, in the order to try them: as the system prefers, the families in turn (RFC 8305,
  /// section 4). Blocks; a thread of its own calls it.
  static func addresses(of host: String, port: UInt16) throws(KapeHTTPError.Cause) -> [HostAddress] {
    var hints = addrinfo()
    hints.ai_family = AF_UNSPEC
    hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
    hints.ai_flags = AI_NUMERICSERV
    var list: UnsafeMutablePointer<addrinfo>?
    let result = getaddrinfo(host, String(port), &hints, &list)
    guard result == 0 else { throw .nameNotFound(String(cString: gai_strerror(result))) }
    defer { freeaddrinfo(list) }
    var found: [HostAddress] = []
    var next = list
    while let entry = next?.pointee {
      next = entry.ai_next
      guard let address = entry.ai_addr, Int(entry.ai_addrlen) <= MemoryLayout<sockaddr_storage>.size else { continue }
      var storage = sockaddr_storage()
      withUnsafeMutableBytes(of: &storage) {
        $0.copyMemory(from: UnsafeRawBufferPointer(start: address, count: Int(entry.ai_addrlen)))
      }
      found.append(HostAddress(storage: storage, size: entry.ai_addrlen))
    }
    guard !found.isEmpty else { throw .nameNotFound("it has none") }
    return Array(inTurn(found).prefix(most))
  }

  private static func inTurn(_ addresses: [HostAddress]) -> [HostAddress] {
    guard let first = addresses.first else { return [] }
    let same = addresses.filter { $0.family == first.family }
    let other = addresses.filter { $0.family != first.family }
    return (0..<max(same.count, other.count)).flatMap { same.dropFirst($0).prefix(1) + other.dropFirst($0).prefix(1) }
  }
}

/// The C library's words for an errno.
func systemText(_ code: Int32) -> String {
  SystemError.text(of: code)
}
