import Glibc
import KapeCommandLine
import KapeControl

/// Runs this program again in the background: a new session, standard streams on /dev/null, every other descriptor
/// closed. Forking is not an option in a process that has threads.
enum Background {
  /// What the child has to say before the caller goes on.
  enum Report: Equatable {
    case ready
    /// Exit code and the lines for standard error.
    case failed(Int32, String)
  }

  /// Environment variable with the number of the descriptor to report on.
  static let reportVariable = "KAPE_REPORT_FD"

  /// Starts `/proc/self/exe` with `arguments` and waits until it has reported or ended. `inherited` are descriptors to
  /// hand over, each with the environment variable that is to have its number. With `keepsOutput` standard output and
  /// error stay those of the caller.
  static func start(
    _ arguments: [String], inherited: [(variable: String, descriptor: Int32)], environment extra: [String],
    keepsOutput: Bool
  ) throws(SystemError) -> Report {
    let pipe = try Pipe()
    makeFoldersAbsolute()

    var handedOver = inherited
    handedOver.append((reportVariable, pipe.writing.raw))
    var environment = currentEnvironment(without: handedOver.map(\.variable)) + extra
    // Clear of the numbers that they are to have in the child.
    let clear = firstInheritedDescriptor + Int32(handedOver.count)
    var copies: [Int32] = []
    defer { for copy in copies { close(copy) } }
    for (index, entry) in handedOver.enumerated() {
      let copy = fcntl(entry.descriptor, F_DUPFD_CLOEXEC, clear)
      guard copy >= 0 else { throw SystemError("\(entry.variable)=\(entry.descriptor)") }
      copies.append(copy)
      environment.append("\(entry.variable)=\(firstInheritedDescriptor + Int32(index))")
    }

    try startDetached(arguments, environment: environment, descriptors: copies, keepsOutput: keepsOutput)
    // The child's end must be the only one, so that its death ends the reading.
    for copy in copies { close(copy) }
    copies = []
    return read(pipe.endingWriting())
  }

  /// The child's side: tells the one who waits, once. Does nothing in a process that nobody waits for.
  static func report(_ report: Report) {
    guard let raw = reportDescriptor else { return }
    unsetenv(reportVariable)
    let text =
      switch report {
      case .ready: "0"
      case .failed(let code, let message): "\(code) \(message)"
      }
    Console.write(text + "\n", to: raw)
    close(raw)
  }

  /// Where to report, in a child that has not reported yet. It has an error to tell when nobody waits any more.
  static var reportDescriptor: Int32? { variable(reportVariable).flatMap { Int32($0) } }

  /// For a child that starts other programs before it reports: one that goes on must not keep the reader waiting.
  static func keepReportToOurselves() {
    if let raw = reportDescriptor { _ = fcntl(raw, F_SETFD, FD_CLOEXEC) }
  }

  static var isChild: Bool { variable(reportVariable) != nil }

  private static func read(_ reading: borrowing Descriptor) -> Report {
    var text: [UInt8] = []
    withUnsafeTemporaryAllocation(byteCount: 4096, alignment: 1) { buffer in
      while text.count < 65_536 {
        let size = Glibc.read(reading.raw, buffer.baseAddress, buffer.count)
        if size < 0 && errno == EINTR { continue }
        guard size > 0 else { break }
        text.append(contentsOf: buffer[..<size])
      }
    }
    if text.last == UInt8(ascii: "\n") { text.removeLast() }
    let line = String(decoding: text, as: UTF8.self)
    if line == "0" { return .ready }
    let parts = line.split(separator: " ", maxSplits: 1)
    guard let code = parts.first.flatMap({ Int32($0) }), parts.count == 2 else {
      return .failed(ExitCode.failed.rawValue, "the background process ended without a word")
    }
    return .failed(code, String(parts[1]))
  }

  /// Folders that the environment gives relative to this one's: the child goes to another.
  private static func makeFoldersAbsolute() {
    for name in ["KAPE_RUN_DIR", "KAPE_STATE_DIR"] {
      guard let path = variable(name), !path.isEmpty, !path.hasPrefix("/"), let folder = getcwd(nil, 0) else {
        continue
      }
      setenv(name, String(cString: folder) + "/" + path, 1)
      free(folder)
    }
  }

  private static func currentEnvironment(without names: [String]) -> [String] {
    var result: [String] = []
    var entry = environ
    while let text = entry.pointee {
      let line = String(cString: text)
      if !names.contains(where: { line.hasPrefix($0 + "=") }) { result.append(line) }
      entry += 1
    }
    return result
  }
}
