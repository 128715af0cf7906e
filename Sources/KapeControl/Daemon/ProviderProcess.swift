internal import CLinux
import Glibc
import Synchronization

/// A child of kaped: a launcher, which becomes a provider.
final class ProviderProcess: Sendable {
  struct Ending: Equatable, Sendable, CustomStringConvertible {
    /// nil: a signal ended it.
    var status: Int32?
    var signal: Int32

    var description: String { status.map { "exit status \($0)" } ?? "signal \(signal)" }
  }

  /// What is said to it and by it until it has become the provider.
  private static let patience: Duration = .seconds(10)

  let process: StartedProcess
  let output: ProviderOutput
  private let socket: Descriptor
  private let handle: Descriptor
  private let reactor: Reactor
  private let reaped = Mutex(false)
  private let end = Mutex<Task<Ending, Never>?>(nil)

  /// Starts a launcher, which waits to be told what to do. It has nothing of this process but its socket.
  init(_ reactor: Reactor) throws(SystemError) {
    let pair = try UnixSocket.pair()
    let pipe = try Pipe()
    try pipe.reading.setNonBlocking()
    let identifier = try Self.spawn(pair.second.raw, output: pipe.writing.raw)
    let handle = clinux_pidfd_open(identifier)
    guard handle >= 0, let process = StartedProcess(identifier) else {
      let error = SystemError("pidfd_open")
      kill(identifier, SIGKILL)
      _ = retrying { waitpid(identifier, nil, 0) }
      throw error
    }
    self.handle = Descriptor(owning: handle)
    self.process = process
    self.reactor = reactor
    let copy = fcntl(pair.first.raw, F_DUPFD_CLOEXEC, 0)
    guard copy >= 0 else { throw SystemError("fcntl") }
    socket = Descriptor(owning: copy)
    try socket.setNonBlocking()
    output = ProviderOutput(pipe.endingWriting(), reactor)
  }

  private static func spawn(_ socket: Int32, output: Int32) throws(SystemError) -> Int32 {
    var actions = posix_spawn_file_actions_t()
    posix_spawn_file_actions_init(&actions)
    defer { posix_spawn_file_actions_destroy(&actions) }
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0)
    posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO)
    posix_spawn_file_actions_adddup2(&actions, output, STDERR_FILENO)
    // To itself, should it be number 3, it is passed on all the same.
    posix_spawn_file_actions_adddup2(&actions, socket, ProviderLauncher.socket)
    clinux_spawn_actions_close_from(&actions, ProviderLauncher.socket + 1)
    clinux_spawn_actions_change_folder(&actions, "/")
    var attributes = posix_spawnattr_t()
    posix_spawnattr_init(&attributes)
    defer { posix_spawnattr_destroy(&attributes) }
    var none = sigset_t()
    sigemptyset(&none)
    var all = sigset_t()
    sigfillset(&all)
    posix_spawnattr_setsigmask(&attributes, &none)
    posix_spawnattr_setsigdefault(&attributes, &all)
    posix_spawnattr_setflags(
      &attributes, Int16(POSIX_SPAWN_SETSIGMASK) | Int16(POSIX_SPAWN_SETSIGDEF) | Int16(CLINUX_POSIX_SPAWN_SETSID))
    var process = pid_t()
    // The program as it runs, whatever has its name by now.
    let result = withCStrings(["kaped", ProviderLauncher.verb]) { arguments in
      withCStrings(launcherEnvironment) { environment in
        posix_spawn(&process, "/proc/self/exe", &actions, &attributes, arguments, environment)
      }
    }
    guard result == 0 else { throw SystemError("start a launcher", code: result) }
    return process
  }

  /// A program that is not installed may need to be told where its libraries are.
  private static var launcherEnvironment: [String] {
    ["PATH=/usr/bin:/bin"] + (variable("LD_LIBRARY_PATH").map { ["LD_LIBRARY_PATH=" + $0] } ?? [])
  }

  // MARK: Telling it what to be

  /// For a launcher that was to measure a file.
  func measured(_ request: LaunchRequest) async throws -> ExecutableRecord {
    guard let answer = try await told(request) else { throw IPCFailure(.failed, "the launcher ended without a word") }
    do throws(JSONFields.Fault) {
      var fields = try JSONFields(answer, "executable")
      return try ExecutableRecord(&fields)
    } catch {
      throw IPCFailure(.failed, "\(error)")
    }
  }

  /// Returns when it is the provider: the launcher's socket closes with its program. Throws `IPCFailure` with the reason.
  func launched(_ request: LaunchRequest) async throws {
    _ = try await told(request)
  }

  private func told(_ request: LaunchRequest) async throws -> JSONValue? {
    guard let bytes = IPCFrame.encode(request.message) else { throw IPCFailure(.invalid, "the profile is too large") }
    var rest = bytes[...]
    while !rest.isEmpty {
      let sent = rest.withUnsafeBytes { part in
        retrying { send(socket.raw, part.baseAddress, part.count, Int32(MSG_NOSIGNAL)) }
      }
      if let sent {
        rest = rest.dropFirst(sent)
      } else {
        guard errno == EAGAIN else { throw IPCFailure(.failed, "the launcher ended without a word") }
        try await reactor.writable(socket.raw, within: Self.patience)
      }
    }
    var answer: [UInt8] = []
    while answer.count <= IPCFrame.largest {
      try await reactor.readable(socket.raw, within: Self.patience)
      var part = [UInt8](repeating: 0, count: 4096)
      guard let size = retrying({ recv(socket.raw, &part, part.count, 0) }) else {
        guard errno == EAGAIN else { throw SystemError("recv") }
        continue
      }
      if size == 0 { break }
      answer += part[..<size]
    }
    if answer.isEmpty { return nil }
    guard case .reply(_, let result) = try IPCMessage(Array(answer.dropFirst(IPCFrame.headerSize))) else { return nil }
    return try result.get()
  }

  // MARK: Its end

  /// How it ended. Whatever else is in its group is ended too.
  var ending: Ending {
    get async {
      let task = end.withLock { end in
        if let end { return end }
        let made = Task { await self.wait() }
        end = made
        return made
      }
      return await task.value
    }
  }

  private func wait() async -> Ending {
    try? await reactor.readable(handle.raw)
    // The number is its own until it is waited for, and so is the group's.
    kill(-process.identifier, SIGKILL)
    return reaped.withLock { isReaped in
      isReaped = true
      var status: Int32 = 0
      _ = retrying { waitpid(process.identifier, &status, 0) }
      let signal = status & 0x7F
      return signal == 0 ? Ending(status: status >> 8 & 0xFF, signal: 0) : Ending(status: nil, signal: signal)
    }
  }

  /// With its group.
  func signal(_ number: Int32) {
    reaped.withLock { isReaped in
      if !isReaped { kill(-process.identifier, number) }
    }
  }
}
