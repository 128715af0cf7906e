import Glibc
internal import KapeCrypto
internal import KapeProtocols

/// Asks whoever serves an interface's configuration socket about it: `kape wg`, and others of the kind.
package enum ConfigurationProtocolClient {
  package static let folder = "/var/run/wireguard"
  static let deadline: Int32 = 5000
  /// About 300,000 peers.
  private static let answerLimit = 256 << 20

  package static func path(of interface: String) -> String { folder + "/" + interface + ".sock" }

  /// Interfaces that have a socket file.
  package static func names() -> [String] {
    Files.names(in: folder).filter { $0.hasSuffix(".sock") }.map { String($0.dropLast(5)) }
      .filter(ConfigurationFile.isInterfaceName)
  }

  /// nil: nobody answers. `socketPath`: where the socket is, unless it is where all others are.
  package static func report(_ name: String, at socketPath: String? = nil) -> InterfaceReport? {
    guard let socket = try? UnixSocket.connect(socketPath ?? path(of: name)) else { return nil }
    var reader = Reader(name: name)
    reader.report.process = UnixSocket.peer(socket)?.process ?? 0
    if let program = Files.link("/proc/\(reader.report.process)/exe")?.split(separator: "/").last {
      reader.report.program = program == "kape" ? "kape wg" : String(program)
    }
    let question: StaticString = "get=1\n\n"
    guard send(socket.raw, question.utf8Start, question.utf8CodeUnitCount, Int32(MSG_NOSIGNAL)) > 0 else { return nil }
    // The answer has the private key in it: it goes by in memory that is wiped.
    var buffer = SecretBuffer(capacity: 16_384)
    var total = 0
    while !reader.isComplete && total < answerLimit {
      var waited = pollfd(fd: socket.raw, events: Int16(POLLIN), revents: 0)
      guard poll(&waited, 1, deadline) == 1 else { return nil }
      let size = buffer.append(capacity: 16_384) { room in
        max(0, retrying { recv(socket.raw, room.baseAddress, room.count, 0) } ?? 0)
      }
      if size == 0 { break }
      total += size
      let used = buffer.withBytes { reader.read($0) }
      buffer.removeFirst(used)
    }
    return reader.isComplete && reader.isRight ? reader.report : nil
  }

  /// Takes the answer apart, line by line. Of keys that are secret it keeps only whether they are there.
  struct Reader {
    var report: InterfaceReport
    private(set) var isComplete = false
    private(set) var isRight = false

    init(name: String) { report = InterfaceReport(name: name, program: "another program") }

    /// Returns how many bytes were whole lines.
    mutating func read(_ bytes: RawSpan) -> Int {
      bytes.withUnsafeBytes { bytes in
        var start = 0
        while !isComplete, let end = bytes[start...].firstIndex(of: UInt8(ascii: "\n")) {
          take(bytes[start..<end])
          start = end + 1
        }
        return start
      }
    }

    private mutating func take(_ line: Slice<UnsafeRawBufferPointer>) {
      if line.isEmpty {
        isComplete = true
        return
      }
      guard let equals = line.firstIndex(of: UInt8(ascii: "=")) else { return }
      let key = String(decoding: line[..<equals], as: UTF8.self)
      let bytes = line[(equals + 1)...]
      switch key {
      case "private_key":
        report.publicKey = PrivateKey(hex: UnsafeRawBufferPointer(rebasing: bytes).bytes)?.publicKey
      case "preshared_key":
        update { $0.hasPresharedKey = bytes.contains { $0 != UInt8(ascii: "0") } }
      default: take(key, String(decoding: bytes, as: UTF8.self))
      }
    }

    private mutating func take(_ key: String, _ value: String) {
      switch key {
      case "listen_port": report.listenPort = UInt16(value) ?? 0
      case "fwmark": report.firewallMark = UInt32(value) ?? 0
      case "public_key": if let key = PublicKey(hex: value) { report.peers.append(.init(publicKey: key)) }
      case "endpoint":
        let endpoint = SocketAddress(text: Array(value.utf8).span.bytes)
        update { $0.endpoint = endpoint }
      case "persistent_keepalive_interval": update { $0.persistentKeepalive = UInt16(value) ?? 0 }
      case "allowed_ip": if let prefix = IPPrefix(value) { update { $0.allowedIPs.append(prefix) } }
      case "last_handshake_time_sec":
        update {
          $0.latestHandshake += (UInt64(value) ?? 0).multipliedReportingOverflow(by: 1_000_000_000).partialValue
        }
      case "last_handshake_time_nsec": update { $0.latestHandshake &+= UInt64(value) ?? 0 }
      case "rx_bytes": update { $0.receivedBytes = UInt64(value) ?? 0 }
      case "tx_bytes": update { $0.sentBytes = UInt64(value) ?? 0 }
      case "errno": isRight = value == "0"
      default: break
      }
    }

    private mutating func update(_ body: (inout InterfaceReport.Peer) -> Void) {
      if !report.peers.isEmpty { body(&report.peers[report.peers.count - 1]) }
    }
  }
}
