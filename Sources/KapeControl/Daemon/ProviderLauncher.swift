internal import CLinux
import Glibc

/// The moment between kaped and a provider: a process of one thread, started anew from kaped's own program with nothing of
/// it but one socket, which gives up every privilege for good and then becomes the provider. It opens the executable once,
/// with the user's rights, checks what it opened and executes that: there is no second look-up of the name that could
/// find another file.
package enum ProviderLauncher {
  /// The first argument of a launcher.
  package static let verb = "--launch-provider"
  static let socket: Int32 = 3

  private struct Failure: Error, CustomStringConvertible {
    var description: String
  }

  /// Returns an exit status; as a provider it never returns.
  package static func main() -> Int32 {
    let connection = Descriptor(owning: socket)
    do {
      try connection.setCloseOnExec()
      let request = try LaunchRequest(try receive(connection))
      let record = try run(request)
      reply(.success(record.json), connection)
      return 0
    } catch {
      reply(.failure(IPCFailure(.refused, "\(error)")), connection)
      return 1
    }
  }

  private static func run(_ request: LaunchRequest) throws -> ExecutableRecord {
    let file = try asUser(request) { () throws(ExecutableRecord.Refusal) in try ExecutableRecord.open(request.path) }
    let present = try ExecutableRecord(measuring: file, request.path)
    guard case .launch(let record, let arguments, let environment) = request.kind else { return present }
    try record.check(present)
    try drop(request)
    umask(0o077)
    guard chdir("/") == 0 else { throw SystemError("/") }
    let code = withCStrings(arguments) { arguments in
      withCStrings(environment) { environment in
        clinux_fexecve(file.raw, arguments, environment)
        return errno
      }
    }
    throw SystemError("execute \(request.path)", code: code)
  }

  // MARK: Rights

  private static func asUser<Failure: Error>(
    _ request: LaunchRequest, _ body: () throws(Failure) -> Descriptor
  ) throws -> Descriptor {
    let (user, group) = (geteuid(), getegid())
    guard clinux_set_groups(request.groups.count, request.groups) == 0, setegid(request.group) == 0,
      seteuid(request.user) == 0
    else { throw SystemError("become user \(request.user)") }
    let file = try body()
    guard seteuid(user) == 0, setegid(group) == 0 else { throw SystemError("become user \(user) again") }
    return file
  }

  /// For good: no user, group, capability or set-user-ID program brings anything back.
  private static func drop(_ request: LaunchRequest) throws {
    guard clinux_prctl(Int32(CLINUX_PR_SET_NO_NEW_PRIVS), 1) == 0 else { throw SystemError("prctl(NO_NEW_PRIVS)") }
    var capability: UInt = 0
    while clinux_prctl(Int32(CLINUX_PR_CAPBSET_READ), capability) >= 0 {
      guard clinux_prctl(Int32(CLINUX_PR_CAPBSET_DROP), capability) == 0 else {
        throw SystemError("give up capability \(capability) (it takes CAP_SETPCAP)")
      }
      capability += 1
    }
    guard clinux_set_groups(request.groups.count, request.groups) == 0, clinux_set_group(request.group) == 0,
      clinux_set_user(request.user) == 0
    else { throw SystemError("become user \(request.user)") }
    guard clinux_drop_capabilities() == 0 else { throw SystemError("capset") }
    guard getuid() == request.user, geteuid() == request.user, getgid() == request.group, getegid() == request.group
    else { throw Failure(description: "this process did not become user \(request.user)") }
    guard request.user == 0 || setuid(0) != 0 else { throw Failure(description: "a way back to root was left") }
  }

  // MARK: Socket

  /// One frame; this process has nothing else to do meanwhile.
  private static func receive(_ socket: borrowing Descriptor) throws -> IPCMessage {
    let header = try receive(IPCFrame.headerSize, socket)
    guard let size = IPCFrame.size(header) else { throw Failure(description: "no frame begins so") }
    return try IPCMessage(try receive(size, socket))
  }

  private static func receive(_ size: Int, _ socket: borrowing Descriptor) throws -> [UInt8] {
    var bytes: [UInt8] = []
    while bytes.count < size {
      var part = [UInt8](repeating: 0, count: size - bytes.count)
      guard let count = retrying({ recv(socket.raw, &part, part.count, 0) }), count > 0 else {
        throw Failure(description: "kaped has ended")
      }
      bytes += part[..<count]
    }
    return bytes
  }

  private static func reply(_ result: Result<JSONValue, IPCFailure>, _ socket: borrowing Descriptor) {
    guard let bytes = IPCFrame.encode(.reply(id: 1, result)) else { return }
    _ = send(socket.raw, bytes, bytes.count, Int32(MSG_NOSIGNAL))
  }
}
