import Glibc
import KapeControl

/// One try after the other of what no provider may do.
struct Attempts {
  private let control: IPCConnection
  private let tun: Int32

  init(_ control: IPCConnection, _ tun: Int32) {
    self.control = control
    self.tun = tun
  }

  func all() async {
    await settings("route over loopback", #"{"included":["127.0.0.0/8"]}"#)
    await settings("route within loopback", #"{"included":["127.0.0.1/32"]}"#)
    await settings("route over IPv6 loopback", #"{"included":["::1/128"]}"#)
    await settings("exemption of loopback", #"{"included":["0.0.0.0/0"],"excluded":["127.0.0.0/8"]}"#)
    await settings("loopback address", #"{"addresses":["127.0.0.2/8"]}"#)
    await settings("address of a group", #"{"addresses":["224.0.0.9/4"]}"#)
    await settings("no address", #"{"addresses":["0.0.0.0/0"]}"#)
    await settings("address of another interface", #"{"addresses":["192.0.2.1/24"]}"#)
    await settings("another interface", #"{"addresses":["10.77.0.2/24"],"interface":"wire"}"#)
    await settings("another table", #"{"included":["10.0.0.0/8"],"table":254}"#)
    await settings("a mark of its own", #"{"included":["10.0.0.0/8"],"mark":7}"#)
    await settings("exemption of a user", #"{"included":["0.0.0.0/0"],"exempt":{"uid":4711}}"#)
    await settings("name server of another interface", #"{"servers":["fe80::1%wire"]}"#)
    await settings("lines in resolv.conf", #"{"search":["x.example\nnameserver 203.0.113.1"]}"#)
    await settings("an option of resolvectl", #"{"search":["--help"]}"#)
    await settings("MTU of nothing", #"{"addresses":["10.77.0.2/24"],"mtu":0}"#)
    await settings("MTU below IPv6's", #"{"addresses":["fd77::2/64"],"mtu":1279}"#)
    await ask("raw socket", "socket", [.init("family", .unsigned(4)), .init("kind", .string("raw"))])
    await ask("packet socket", "socket", [.init("family", .unsigned(17)), .init("kind", .string("udp"))])
    await ask("mark on one's own socket", "socket", family4, descriptors: [ownSocket()])
    await ask("protect a socket", "protect", [], descriptors: [ownSocket()])
    await ask("a program", "run", [.init("path", .string("/bin/sh"))])
    await ask("another tunnel", "tunnel.start", [.init("profile", .string("echo"))])
    await ask("a profile", "profile.install", [])
    write("own mark: \(ownMark())")
    write("root again: \(setuid(0) == 0)")
    write("its route: \(route())")
    write("persistent: \(persist())")
  }

  private var family4: [JSONValue.Member] { [.init("family", .unsigned(4)), .init("kind", .string("udp"))] }

  private func settings(_ name: String, _ text: String) async {
    do {
      await ask(name, "settings", [.init("settings", try JSONReader.read(Array(text.utf8)))])
    } catch {
      write("\(name): not even sent: \(error)")
    }
  }

  private func ask(
    _ name: String, _ operation: String, _ body: [JSONValue.Member], descriptors: [Int32] = []
  ) async {
    do {
      _ = try await control.ask(operation, body, descriptors: descriptors, within: .seconds(10))
      write("\(name): GRANTED")
    } catch let failure as IPCFailure {
      write("\(name): \(failure.code): \(failure.message)")
    } catch {
      write("\(name): \(error)")
    }
    for descriptor in descriptors { close(descriptor) }
  }

  private func ownSocket() -> Int32 { socket(AF_INET, Int32(SOCK_DGRAM.rawValue), 0) }

  private func ownMark() -> Bool {
    let made = ownSocket()
    defer { close(made) }
    var mark: UInt32 = 1
    return setsockopt(made, SOL_SOCKET, SO_MARK, &mark, 4) == 0
  }

  private func route() -> Bool {
    do {
      let netlink = try Netlink()
      for family in [0] where family == 0 { try netlink.setLink(1, up: false) }
      return true
    } catch {
      return false
    }
  }

  /// Makes the interface outlive everybody who has it open: it is its owner's to ask, and kaped's to undo.
  private func persist() -> Bool { ioctl(tun, 0x4004_54CB, 1) == 0 }
}
