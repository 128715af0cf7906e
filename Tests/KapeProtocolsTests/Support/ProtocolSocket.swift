import Foundation
import Glibc
import KapeCrypto
import KapeProtocols
import Synchronization
import Testing

/// A device that is nothing but its configuration socket, so that the real `wg` can be asked what it makes of a file. It
/// answers a `get` with `status` and keeps what a `set` says.
final class ProtocolSocket: Sendable {
  static let directory = "/var/run/wireguard"
  /// The tools are there and the directory may be written to.
  static let isPossible =
    geteuid() == 0 && access("/usr/bin/wg", X_OK) == 0 && access("/usr/bin/wg-quick", X_OK) == 0
    && access("/usr/bin/unshare", X_OK) == 0

  struct Status: Sendable {
    var interface = WireGuardInterfaceStatus()
    var peers: [WireGuardPeerStatus] = []
  }

  let name: String
  private let listener: Int32
  private let received = Mutex<[WireGuardInterfaceChange]>([])
  private let status: Mutex<Status>

  init(_ suffix: String, status: Status = Status()) throws {
    name = "kt\(getpid() % 100_000)\(suffix)"
    self.status = Mutex(status)
    try FileManager.default.createDirectory(atPath: Self.directory, withIntermediateDirectories: true)
    let path = "\(Self.directory)/\(name).sock"
    unlink(path)
    let listener = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)
    var address = sockaddr_un()
    address.sun_family = sa_family_t(AF_UNIX)
    withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.utf8) }
    let bound = withUnsafePointer(to: &address) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        bind(listener, $0, socklen_t(MemoryLayout<sockaddr_un>.size))
      }
    }
    try #require(bound == 0 && listen(listener, 8) == 0)
    self.listener = listener
    Thread.detachNewThread { [weak self] in
      while true {
        let client = accept(listener, nil, nil)
        if client < 0 { return }
        guard let self else { return }
        self.serve(client)
        close(client)
      }
    }
  }

  func stop() {
    shutdown(listener, Int32(SHUT_RDWR))
    close(listener)
    unlink("\(Self.directory)/\(name).sock")
  }

  /// The transactions since the last call.
  func takeChanges() -> [WireGuardInterfaceChange] {
    received.withLock { changes in
      defer { changes = [] }
      return changes
    }
  }

  private func serve(_ client: Int32) {
    var reader = WireGuardUAPIReader()
    var chunk = [UInt8](repeating: 0, count: 777)
    while true {
      let size = read(client, &chunk, chunk.count)
      if size <= 0 { return }
      let received = Array(chunk[..<size])
      reader.append(received.span.bytes)
      while let request = reader.next() {
        var answer = SecretBuffer()
        switch request {
        case .get:
          let status = status.withLock { $0 }
          WireGuardUAPIResponse.append(status.interface, to: &answer)
          for peer in status.peers { WireGuardUAPIResponse.append(peer, to: &answer) }
          WireGuardUAPIResponse.append(.none, to: &answer)
        case .set(let change):
          self.received.withLock { $0.append(change) }
          WireGuardUAPIResponse.append(.none, to: &answer)
        case .refused(let error): WireGuardUAPIResponse.append(error, to: &answer)
        case .unknownOperation: return
        }
        let bytes = answer.bytes()
        var sent = 0
        while sent < bytes.count {
          let size = bytes[sent...].withUnsafeBytes { send(client, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL)) }
          if size <= 0 { return }
          sent += size
        }
      }
    }
  }
}
