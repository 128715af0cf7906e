import Glibc
import KapeCommandLine
import KapeControl

/// The drop-in for wireguard-go.
struct WgCommand: Command {
  static let name = "wg"
  static let summary = "make a WireGuard interface for wg(8) and wg-quick(8), as wireguard-go does"
  static let help = """
    usage: kape wg [-f] [--threads N] [--keylog FILE] INTERFACE
           kape-wg [-f] [--threads N] [--keylog FILE] INTERFACE
           kape wg --version

    Makes the interface and serves /var/run/wireguard/INTERFACE.sock, so that wg and wg-quick configure it. Returns
    once that answers and goes on in the background; ends when the interface or the socket file is removed, and on
    SIGTERM and SIGINT.

      -f, --foreground   stay in the foreground (also WG_PROCESS_FOREGROUND=1)
      --threads N        pass packets on N threads, 1 (the default) to 31, also KAPE_THREADS: pays with many peers,
                         which are spread over them; 2 on an interface made with one queue: one a direction
      --keylog FILE      append all keys to FILE, for Wireshark: who has it can read the traffic and take our place

    environment
      LOG_LEVEL          verbose, error (the default) or silent; when it is set, the log of a process in the
                         background goes to the standard error that it was started with
      WG_TUN_FD          a TUN that is open already, as a number
      WG_UAPI_FD         a configuration socket that listens already
      KAPE_STATE_DIR     folder for what outlives a process (default /var/lib/kape)
      KAPE_AEAD          cipher provider: openssl, ipsec-mb or avx512; default: the best that passes its self test
      KAPE_BACKEND       auto, epoll or io_uring
      KAPE_FALLBACKS     offloads to do without: a list of no-vnet-header, no-tso, no-uso, no-udp-segment, no-udp-gro,
                         no-tun-join, no-io-uring

    exit status: 0 done; 1 failed; 2 usage; 3 no privilege or no TUN; 4 the name is in use

    """
  static let syntax = CommandSyntax(
    options: ["-f", "--foreground", "--version"], optionsWithValue: ["--keylog", "--threads"], operands: 1...1)

  struct Arguments: Equatable {
    var interface = ""
    var isForeground = false
    var keyLogPath: String?
    /// As it was given.
    var threads: String?
  }

  static func run(_ arguments: [String]) async -> ExitCode {
    if arguments == ["--version"] {
      Console.out(Version.line)
      return .done
    }
    guard var parsed = parse(arguments) else { return usage(arguments) }
    if variable("WG_PROCESS_FOREGROUND") == "1" { parsed.isForeground = true }
    guard isInterfaceName(parsed.interface) else {
      return fail(
        .usage, "'\(parsed.interface)' cannot be the name of an interface: 1 to 15 characters, no blank, no '/'")
    }
    if let path = parsed.keyLogPath {
      parsed.keyLogPath = absolute(path)
      // In the background nobody would see it.
      if !Background.isChild {
        Console.error(
          "warning: --keylog writes private, preshared and session keys to \(path): "
            + "who has that file can read the traffic and take our place")
      }
    }
    return parsed.isForeground ? await serve(parsed) : startInBackground(parsed)
  }

  static func parse(_ arguments: [String]) -> Arguments? {
    var result = Arguments()
    var rest = arguments[...]
    while let argument = rest.popFirst() {
      switch argument {
      case "-f", "--foreground": result.isForeground = true
      case "--keylog":
        guard let path = rest.popFirst(), !path.isEmpty else { return nil }
        result.keyLogPath = path
      case "--threads":
        guard let number = rest.popFirst() else { return nil }
        result.threads = number
      default:
        guard !argument.hasPrefix("-"), result.interface.isEmpty else { return nil }
        result.interface = argument
      }
    }
    return result.interface.isEmpty ? nil : result
  }

  /// What the kernel takes as a name; it puts a number for one %d.
  static func isInterfaceName(_ name: String) -> Bool {
    (1...15).contains(name.utf8.count) && name != "." && name != ".."
      && name.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F && $0 != 0x2F && $0 != 0x3A }
  }

  // MARK: In the background

  private static func startInBackground(_ arguments: Arguments) -> ExitCode {
    var command = ["kape", "wg", "-f"]
    if let path = arguments.keyLogPath { command += ["--keylog", path] }
    if let threads = arguments.threads { command += ["--threads", threads] }
    command.append(arguments.interface)
    var inherited: [(variable: String, descriptor: Int32)] = []
    for name in ["WG_TUN_FD", "WG_UAPI_FD"] {
      guard let text = variable(name), !text.isEmpty else { continue }
      guard let number = Int32(text), number >= 0 else { return fail(.usage, "\(name)=\(text): not a descriptor") }
      inherited.append((name, number))
    }
    let logsToTerminal = variable("LOG_LEVEL").map { !$0.isEmpty && $0 != "silent" } ?? false
    do throws(SystemError) {
      switch try Background.start(command, inherited: inherited, environment: [], keepsOutput: logsToTerminal) {
      case .ready: return .done
      case .failed(let code, let message):
        Console.error(message)
        return ExitCode(rawValue: code) ?? .failed
      }
    } catch {
      return fail(.failed, error.description)
    }
  }

  // MARK: The service

  private static func serve(_ arguments: Arguments) async -> ExitCode {
    signal(SIGPIPE, SIG_IGN)
    let service: WireGuardService
    let signals: TerminationSignals
    do {
      signals = try TerminationSignals()
      var options = try TunnelOptions(environment: variable)
      if let threads = arguments.threads { try options.setThreads(threads, from: "--threads") }
      var request = WireGuardService.Request(interface: arguments.interface, options: options)
      request.answersStatus = true
      request.tunDescriptor = try descriptor("WG_TUN_FD")
      request.socketDescriptor = try descriptor("WG_UAPI_FD")
      request.keyLog = try arguments.keyLogPath.map { path in try KeyLog(path: path) }
      let level = logLevel()
      service = try await WireGuardService(request) { EventLog(level: level, interface: $0) }
    } catch let error as WireGuardService.Failure {
      switch error {
      case .inUse(let text): return fail(.inUse, text)
      case .missing(let text): return fail(.missing, text)
      case .failed(let text): return fail(.failed, text)
      }
    } catch let error as TunnelOptions.Invalid {
      return fail(.usage, error.description)
    } catch {
      return fail(.failed, "\(error)")
    }
    Background.report(.ready)
    if case .failed(let reason) = await service.run(signals) {
      Console.error("\(service.interface): \(reason)")
      return .failed
    }
    return .done
  }

  /// To standard error, or to whoever waits for this process to be ready.
  private static func fail(_ code: ExitCode, _ text: String) -> ExitCode {
    if Background.isChild {
      Background.report(.failed(code.rawValue, text))
    } else {
      Console.error(text)
    }
    return code
  }

  private static func logLevel() -> EventLog.Level {
    switch variable("LOG_LEVEL") {
    case "verbose", "debug": .verbose
    case "silent": .silent
    default: .error
    }
  }

  /// A descriptor that was handed over. It is not handed on.
  private static func descriptor(_ name: String) throws(TunnelOptions.Invalid) -> Int32? {
    guard let text = variable(name), !text.isEmpty else { return nil }
    guard let number = Int32(text), number >= 0, fcntl(number, F_SETFD, FD_CLOEXEC) == 0 else {
      throw TunnelOptions.Invalid(description: "\(name)=\(text): not an open descriptor")
    }
    unsetenv(name)
    return number
  }

  private static func absolute(_ path: String) -> String {
    guard !path.hasPrefix("/"), let folder = getcwd(nil, 0) else { return path }
    defer { free(folder) }
    return String(cString: folder) + "/" + path
  }
}
