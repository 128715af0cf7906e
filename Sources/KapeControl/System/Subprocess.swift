internal import CLinux
import Glibc
import Synchronization

/// Another program, run to its end. It gets nothing of ours but what is said here: no blocked signal, no descriptor
/// besides its standard streams.
package struct Subprocess: Sendable {
  package enum Output: Sendable {
    /// Standard output and error are ours.
    case inherited
    /// Both go there, in pieces as they come.
    case sink(@Sendable (String) -> Void)

    /// The same by whole lines; the last may have no end.
    package static func lines(_ body: @escaping @Sendable (String) -> Void) -> Output {
      let pending = LineBuffer(body)
      return .sink { pending.take($0) }
    }
  }

  package struct Outcome: Equatable, Sendable, CustomStringConvertible {
    /// The exit status; nil when a signal ended it.
    package var status: Int32?
    package var signal: Int32 = 0

    package var isSuccess: Bool { status == 0 }
    package var description: String { status.map { "exit status \($0)" } ?? "ended by signal \(signal)" }
  }

  package var path: String
  /// With the program's name as the first.
  package var arguments: [String]
  /// For its standard input, /dev/null when nil. At most what a pipe holds (64 KiB) is taken.
  package var input: String?

  package init(_ path: String, _ arguments: [String], input: String? = nil) {
    self.path = path
    self.arguments = [path] + arguments
    self.input = input
  }

  /// Where a program is, along PATH and then the folders of system programs.
  package static func find(_ name: String) -> String? {
    let given = getenv("PATH").map { String(cString: $0) } ?? ""
    let folders = given.split(separator: ":").map(String.init) + ["/usr/sbin", "/usr/bin", "/sbin", "/bin"]
    return folders.map { $0 + "/" + name }.first { access($0, X_OK) == 0 }
  }

  /// Waits for its end on a thread of its own. A task that is cancelled ends it with SIGTERM, and so does `deadline`,
  /// with SIGKILL after a second more.
  package func run(_ output: Output = .inherited, within deadline: Duration? = nil) async throws -> Outcome {
    let process = Process()
    let limit = deadline.map { monotonicNow() + UInt64($0.components.seconds) * 1_000_000_000 }
    return try await withTaskCancellationHandler {
      try await onThread(always: true) { () throws(SystemError) in
        try run(process, output, until: limit)
      }
    } onCancel: {
      process.end(SIGTERM)
    }
  }

  private func run(_ process: Process, _ output: Output, until limit: UInt64?) throws(SystemError) -> Outcome {
    let inputEnd = try makeInput()
    guard case .sink = output else {
      try spawn(process, input: inputEnd.raw, output: -1)
      return try wait(for: process, output, -1, until: limit)
    }
    let pipe = try Pipe()
    try pipe.reading.setNonBlocking()
    try spawn(process, input: inputEnd.raw, output: pipe.writing.raw)
    let reading = pipe.endingWriting()
    return try wait(for: process, output, reading.raw, until: limit)
  }

  private func wait(
    for process: Process, _ output: Output, _ outputEnd: Int32, until limit: UInt64?
  ) throws(SystemError) -> Outcome {

    let handle = clinux_pidfd_open(process.identifier)
    guard handle >= 0 else { throw SystemError("pidfd_open") }
    let watched = Descriptor(owning: handle)
    var killAt = limit
    var outputIsOpen = outputEnd >= 0
    while true {
      var waits = [
        pollfd(fd: watched.raw, events: Int16(POLLIN), revents: 0),
        pollfd(fd: outputIsOpen ? outputEnd : -1, events: Int16(POLLIN), revents: 0),
      ]
      let ready = poll(&waits, 2, Self.milliseconds(until: killAt))
      if waits[1].revents != 0 { outputIsOpen = Self.pump(outputEnd, output) }
      if waits[0].revents != 0 { break }
      if ready == 0, let due = killAt, monotonicNow() >= due {
        process.end(due == limit ? SIGTERM : SIGKILL)
        killAt = due == limit ? due + 1_000_000_000 : nil
      }
    }
    // What it said last; a program that it left behind may hold the pipe open and is not waited for.
    if outputIsOpen { _ = Self.pump(outputEnd, output) }
    return process.reap()
  }

  private static func milliseconds(until limit: UInt64?) -> Int32 {
    guard let limit else { return -1 }
    let now = monotonicNow()
    return limit > now ? Int32(clamping: (limit - now) / 1_000_000 + 1) : 0
  }

  /// False: the other end is closed.
  private static func pump(_ descriptor: Int32, _ output: Output) -> Bool {
    guard case .sink(let sink) = output else { return false }
    var isOpen = true
    withUnsafeTemporaryAllocation(byteCount: 4096, alignment: 1) { buffer in
      while let size = retrying({ read(descriptor, buffer.baseAddress, buffer.count) }) {
        if size == 0 {
          isOpen = false
          return
        }
        sink(String(decoding: buffer[..<size], as: UTF8.self))
      }
    }
    return isOpen
  }

  private func makeInput() throws(SystemError) -> Descriptor {
    guard let input else {
      let null = open("/dev/null", O_RDONLY | O_CLOEXEC)
      guard null >= 0 else { throw SystemError("/dev/null") }
      return Descriptor(owning: null)
    }
    let pipe = try Pipe()
    try pipe.writing.setNonBlocking()
    try Files.write(Array(input.utf8), to: pipe.writing, "pipe")
    return pipe.endingWriting()
  }

  private func spawn(_ process: Process, input: Int32, output: Int32) throws(SystemError) {
    var actions = posix_spawn_file_actions_t()
    posix_spawn_file_actions_init(&actions)
    defer { posix_spawn_file_actions_destroy(&actions) }
    posix_spawn_file_actions_adddup2(&actions, input, STDIN_FILENO)
    if output >= 0 {
      posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO)
      posix_spawn_file_actions_adddup2(&actions, output, STDERR_FILENO)
    }
    clinux_spawn_actions_close_from(&actions, STDERR_FILENO + 1)
    var attributes = posix_spawnattr_t()
    posix_spawnattr_init(&attributes)
    defer { posix_spawnattr_destroy(&attributes) }
    var none = sigset_t()
    sigemptyset(&none)
    var all = sigset_t()
    sigfillset(&all)
    posix_spawnattr_setsigmask(&attributes, &none)
    posix_spawnattr_setsigdefault(&attributes, &all)
    posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETSIGMASK) | Int16(POSIX_SPAWN_SETSIGDEF))

    var words: [UnsafeMutablePointer<CChar>?] = arguments.map { strdup($0) }
    words.append(nil)
    defer { for word in words { free(word) } }
    var identifier = pid_t()
    let result = posix_spawn(&identifier, path, &actions, &attributes, words, environ)
    guard result == 0 else { throw SystemError(path, code: result) }
    process.started(identifier)
  }

  /// A child that is signalled only while it is not reaped: its number cannot be another's.
  private final class Process: Sendable {
    private struct State {
      var identifier: pid_t = 0
      /// Asked for before it was started.
      var early: Int32 = 0
    }
    private let state = Mutex(State())

    var identifier: pid_t { state.withLock { $0.identifier } }

    func started(_ identifier: pid_t) {
      state.withLock { state in
        state.identifier = identifier
        if state.early != 0 { kill(identifier, state.early) }
      }
    }

    func end(_ signal: Int32) {
      state.withLock { state in
        if state.identifier > 0 { kill(state.identifier, signal) } else { state.early = signal }
      }
    }

    func reap() -> Outcome {
      state.withLock { state in
        var status: Int32 = 0
        _ = retrying { waitpid(state.identifier, &status, 0) }
        state.identifier = -1
        let signal = status & 0x7F
        return signal == 0 ? Outcome(status: (status >> 8) & 0xFF) : Outcome(status: nil, signal: signal)
      }
    }
  }
}

/// Runs something that blocks on a thread of its own, so that no thread of the cooperative pool is held up. A task that
/// is cancelled does not wait for it, unless it has to be over first (`always`).
func onThread<Value: Sendable, Failure: Error>(
  always: Bool = false, _ work: @escaping @Sendable () throws(Failure) -> Value
) async throws -> Value {
  let answer = FirstAnswer<Value>()
  return try await withTaskCancellationHandler {
    try await withCheckedThrowingContinuation { continuation in
      answer.expect(continuation)
      do {
        try startThread(stackSize: 512 * 1024) {
          do throws(Failure) {
            answer.give(.success(try work()))
          } catch {
            answer.give(.failure(error))
          }
        }
      } catch {
        answer.give(.failure(error))
      }
    }
  } onCancel: {
    if !always { answer.give(.failure(CancellationError())) }
  }
}

/// Gathers pieces until there are whole lines; a last line without an end comes when the buffer goes.
private final class LineBuffer: Sendable {
  private let pending = Mutex("")
  private let body: @Sendable (String) -> Void

  init(_ body: @escaping @Sendable (String) -> Void) { self.body = body }

  deinit {
    let rest = pending.withLock { $0 }
    if !rest.isEmpty { body(rest) }
  }

  func take(_ piece: String) {
    let lines: String? = pending.withLock { pending in
      pending += piece
      guard let end = pending.lastIndex(of: "\n") else { return nil }
      let lines = String(pending[...end])
      pending = String(pending[pending.index(after: end)...])
      return lines
    }
    if let lines { body(lines) }
  }
}
