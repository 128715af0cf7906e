internal import CKapeDataPlane
internal import CLinux
import Glibc

/// A TUN interface that this process serves, by one queue or several. Closing it deletes the interface, unless it was
/// made persistent.
package final class TunInterface: Sendable {
  package enum Failure: Error, Equatable {
    /// Another descriptor is attached to it.
    case busy
    case system(SystemError)
  }

  /// The name when it was opened.
  package let name: String
  private let handle: Handle

  /// The descriptors are used by the worker's threads; the rest is never written after `init`. That makes it safe to
  /// share.
  private struct Handle: @unchecked Sendable { let tun: UnsafeMutableBufferPointer<kdp_tun> }

  /// Makes the interface, or attaches to a persistent one, which may have been made with one queue only: then with that
  /// one. An empty name, or one with `%d`, lets the kernel number it.
  package static func open(name: String, fallbacks: UInt32, queues: Int = 1) throws(Failure) -> TunInterface {
    let asOne = { tun in kdp_tun_open(name, fallbacks, tun) }
    let asSeveral = { tun in kdp_tun_open_queues(name, fallbacks, UInt32(queues), tun) }
    do throws(Failure) {
      return try TunInterface(queues: queues, queues == 1 ? asOne : asSeveral)
    } catch {
      guard case .system(let reason) = error, reason.code == EINVAL, if_nametoindex(name) != 0 else { throw error }
      return try TunInterface(queues: 1, queues == 1 ? asSeveral : asOne)
    }
  }

  /// Takes over a descriptor that is attached already.
  package convenience init(adopting descriptor: Int32, fallbacks: UInt32) throws(Failure) {
    try self.init(queues: 1) { kdp_tun_adopt(descriptor, fallbacks, $0) }
  }

  private init(queues: Int, _ open: (UnsafeMutablePointer<kdp_tun>) -> kdp_status) throws(Failure) {
    let tun = UnsafeMutableBufferPointer<kdp_tun>.allocate(capacity: queues)
    tun.initialize(repeating: kdp_tun())
    errno = 0
    let status = tun.baseAddress.map(open) ?? KDP_INVALID_ARGUMENT
    guard status == KDP_OK else {
      // A descriptor of another kind is refused without a system call.
      let code = status == KDP_SYSTEM ? errno : EOPNOTSUPP
      tun.deallocate()
      throw code == EBUSY ? .busy : .system(SystemError("TUN", code: code))
    }
    handle = Handle(tun: tun)
    name = withUnsafeBytes(of: tun[0].name) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }
  }

  deinit {
    for index in handle.tun.indices { kdp_tun_close(&handle.tun[index]) }
    handle.tun.deallocate()
  }

  var queues: UnsafeBufferPointer<kdp_tun> { UnsafeBufferPointer(handle.tun) }
  /// Of the first queue.
  package var descriptor: Int32 { handle.tun[0].fd }

  /// Whether the interface exists still, in whichever network namespace.
  package var isAttached: Bool {
    var request = InterfaceRequest()
    return clinux_ioctl(descriptor, UInt(CLINUX_TUNGETIFF), &request) == 0
  }

  /// Name and index now, in the network namespace of the calling thread; nil when it is not there.
  package func currentIndex() -> UInt32? {
    var request = InterfaceRequest()
    guard clinux_ioctl(descriptor, UInt(CLINUX_TUNGETIFF), &request) == 0 else { return nil }
    let index = withUnsafeBytes(of: &request.name) { bytes in
      bytes.baseAddress.map { if_nametoindex($0.assumingMemoryBound(to: CChar.self)) } ?? 0
    }
    return index == 0 ? nil : index
  }

  /// Sets the interface's MTU; needs CAP_NET_ADMIN.
  package func setMTU(_ mtu: Int) throws(SystemError) {
    let socket = Glibc.socket(AF_INET, Int32(SOCK_DGRAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
    guard socket >= 0 else { throw SystemError("socket") }
    let owner = Descriptor(owning: socket)
    var request = InterfaceRequest()
    guard clinux_ioctl(descriptor, UInt(CLINUX_TUNGETIFF), &request) == 0 else { throw SystemError("ioctl(TUNGETIFF)") }
    request.value = Int32(mtu)
    guard clinux_ioctl(owner.raw, UInt(SIOCSIFMTU), &request) == 0 else { throw SystemError("ioctl(SIOCSIFMTU)") }
  }

  /// A monitor for the interface in the network namespace where it is now: a WireGuard interface may be made in one
  /// namespace and moved to another, while its sockets stay. Entering a foreign namespace needs CAP_SYS_ADMIN.
  package func monitor() throws -> LinkMonitor {
    let namespace = clinux_ioctl(descriptor, UInt(CLINUX_TUNGETDEVNETNS), nil)
    guard namespace >= 0 else {
      let error = SystemError("ioctl(TUNGETDEVNETNS)")
      // A kernel before 5.4 does not tell: then by its name, here.
      if let index = currentIndex() { return try LinkMonitor(index: index) }
      throw error
    }
    let owner = Descriptor(owning: namespace)
    let raw = owner.raw
    if isOwnNamespace(raw) {
      guard let index = currentIndex() else { throw SystemError("if_nametoindex", code: ENODEV) }
      return try LinkMonitor(index: index)
    }
    let outcome = Outcome()
    // The thread ends with the foreign namespace; the netlink socket stays in it.
    try onOwnThread {
      do {
        guard setns(raw, Int32(CLINUX_CLONE_NEWNET)) == 0 else { throw SystemError("setns") }
        guard let index = self.currentIndex() else { throw SystemError("if_nametoindex") }
        outcome.result = .success(try LinkMonitor(index: index))
      } catch {
        outcome.result = .failure(error)
      }
    }
    return try outcome.result.get()
  }

  /// Up or not, without privilege and from any namespace: a TUN takes writes only while it is up. Nil when it is gone.
  package func probe() -> Bool? {
    var question = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
    guard poll(&question, 1, 0) >= 0 else { return nil }
    if question.revents & Int16(POLLERR | POLLNVAL) != 0 { return nil }
    return question.revents & Int16(POLLOUT) != 0
  }
}

/// Whether a descriptor of a network namespace is that of the calling thread.
private func isOwnNamespace(_ descriptor: Int32) -> Bool {
  var other = stat()
  var own = stat()
  return fstat(descriptor, &other) == 0 && stat("/proc/thread-self/ns/net", &own) == 0
    && other.st_ino == own.st_ino && other.st_dev == own.st_dev
}

/// Written by one thread that is joined before it is read.
private final class Outcome: @unchecked Sendable {
  var result: Result<LinkMonitor, any Error> = .failure(SystemError("setns", code: EPERM))
}

/// `struct ifreq` as TUNGETIFF and SIOCSIFMTU use it.
private struct InterfaceRequest {
  var name: (UInt64, UInt64) = (0, 0)
  var value: Int32 = 0
  var rest: (Int32, UInt64, UInt64) = (0, 0, 0)
}
