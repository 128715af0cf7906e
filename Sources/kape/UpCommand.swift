import Glibc
import KapeCommandLine
import KapeControl
import KapeCrypto
import KapeProtocols

struct UpCommand: Command {
  static let name = "up"
  static let summary = "bring a tunnel up from a wg-quick file, as wg-quick does, and run it"
  static let help = """
    usage: kape up [-f] [--threads N] [--keylog FILE] FILE | NAME

    Makes the interface that the file describes and sets up all that wg-quick would: addresses, MTU, routes, a full
    tunnel by firewall mark, name servers, and the commands PreUp and PostUp. NAME stands for /etc/wireguard/NAME.conf;
    the interface is named after the file. Goes to the background once everything is up. 'wg show' works on it.

    'kape down NAME', SIGTERM or SIGINT take it down and put back whatever was changed; so does the next 'kape up' or
    'kape down' of that name when the process was killed.

      -f, --foreground   stay in the foreground and print a line for each change of state
      --threads N        pass packets on N threads; see 'kape wg --help'
      --keylog FILE      append all keys to FILE, for Wireshark: who has it can read the traffic and take our place

    environment
      KAPE_RUN_DIR       folder for the state of running tunnels (default /run/kape)
      KAPE_STATE_DIR     folder for what outlives them (default /var/lib/kape)
      LOG_LEVEL          with -f: verbose (the default), error or silent
      KAPE_AEAD, KAPE_BACKEND, KAPE_FALLBACKS, KAPE_THREADS   as for 'kape wg'

    exit status: 0 done; 1 failed, and everything is as before; 2 usage or configuration; 3 no privilege or no TUN;
    4 the name is in use

    """
  static let syntax = CommandSyntax(
    options: ["-f", "--foreground"], optionsWithValue: ["--keylog", "--threads"], operands: 1...1)

  struct Arguments: Equatable {
    var file = ""
    var isForeground = false
    var keyLogPath: String?
    /// As it was given.
    var threads: String?
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
        guard !argument.hasPrefix("-"), result.file.isEmpty else { return nil }
        result.file = argument
      }
    }
    return result.file.isEmpty ? nil : result
  }

  static func run(_ arguments: [String]) async -> ExitCode {
    guard let parsed = parse(arguments) else { return usage(arguments) }
    do throws(Refusal) {
      let request = try read(parsed)
      if parsed.isForeground || Background.isChild { return await serve(request) }
      return try startInBackground(parsed, request)
    } catch {
      return fail(error.code, error.text)
    }
  }

  private struct Refusal: Error {
    var code: ExitCode
    var text: String

    init(_ code: ExitCode, _ text: String) {
      self.code = code
      self.text = text
    }
  }

  // MARK: Configuration

  private static func read(_ arguments: Arguments) throws(Refusal) -> TunnelSession.Request {
    let file: ConfigurationFile
    do {
      file = try ConfigurationFile(arguments.file)
    } catch {
      throw Refusal(.usage, error.description)
    }
    if file.isNameCut {
      warn("the interface is \(file.interface): the first 15 characters of the name of \(file.path)")
    }
    var information = stat()
    if !arguments.isForeground, stat(file.path, &information) == 0, information.st_mode & S_IFMT == S_IFIFO {
      throw Refusal(
        .usage, "\(file.path): a pipe can be read once, and the process in the background reads it too; give -f")
    }
    let (configuration, lines) = try parse(file)
    guard let table = RoutingTables.resolve(configuration.interface.table) else {
      throw Refusal(
        .usage,
        "\(file.path): Table: there is no routing table of that name; give its number, or add it to rt_tables(5)")
    }
    do {
      var options = try TunnelOptions(environment: variable)
      if let threads = arguments.threads { try options.setThreads(threads, from: "--threads") }
      var request = TunnelSession.Request(
        file: file, configuration: configuration, table: table, options: options)
      request.listenPortLine = lines["ListenPort"]
      if let path = arguments.keyLogPath {
        warn(
          "--keylog writes private, preshared and session keys to \(path): "
            + "who has that file can read the traffic and take our place")
        request.keyLog = try KeyLog(path: path)
      }
      return request
    } catch let error as TunnelOptions.Invalid {
      throw Refusal(.usage, error.description)
    } catch {
      throw Refusal(.failed, "\(error)")
    }
  }

  private static func parse(
    _ file: ConfigurationFile
  ) throws(Refusal) -> (configuration: WireGuardConfiguration, lines: [String: Int]) {
    let content: SecretBuffer
    do {
      content = try InputFile.read(file.path)
    } catch {
      throw Refusal(.usage, error.reason)
    }
    switch content.withBytes({ bytes in ConfigurationKind.detect(bytes) }) {
    case .wireGuard: break
    case .openVPN, .lightway:
      throw Refusal(.usage, "\(file.path): this is not a WireGuard configuration, and no other kind is supported yet")
    case nil:
      throw Refusal(
        .usage, "\(file.path): unknown kind of configuration; a WireGuard configuration begins with [Interface]")
    }
    let parsed = content.withBytes { bytes in WireGuardConfiguration.parse(bytes, file: file.path) }
    guard let configuration = parsed.configuration else {
      throw Refusal(.usage, parsed.diagnostics.map(\.description).joined(separator: "\n"))
    }
    for diagnostic in parsed.diagnostics { warn(diagnostic.description) }
    var information = stat()
    if stat(file.path, &information) == 0, information.st_mode & 0o007 != 0 {
      warn("\(file.path) can be read by everybody, and so can the private key; chmod 600 changes that")
    }
    return (configuration, parsed.lines)
  }

  /// Said once: by the process that the person started.
  private static func warn(_ text: String) {
    if !Background.isChild { Console.error(text.contains("warning: ") ? text : "warning: " + text) }
  }

  // MARK: In the background

  private static let folderVariable = "KAPE_FOLDER"

  private static func startInBackground(_ arguments: Arguments, _ request: TunnelSession.Request) throws(Refusal)
    -> ExitCode
  {
    var command = ["kape", "up"]
    if let path = arguments.keyLogPath { command += ["--keylog", resolvedPath(path)] }
    if let threads = arguments.threads { command += ["--threads", threads] }
    command.append(absolute(arguments.file, request))
    do throws(SystemError) {
      let folder = getcwd(nil, 0).map { path in
        defer { free(path) }
        return String(cString: path)
      }
      let environment = folder.map { ["\(folderVariable)=\($0)"] } ?? []
      switch try Background.start(command, inherited: [], environment: environment, keepsOutput: true) {
      case .ready: return .done
      case .failed(let code, let message):
        Console.error(message)
        return ExitCode(rawValue: code) ?? .failed
      }
    } catch {
      throw Refusal(.failed, error.description)
    }
  }

  /// As it was given, but found from any folder. Links are not followed: the interface has the name that was given.
  private static func absolute(_ argument: String, _ request: TunnelSession.Request) -> String {
    if argument.hasPrefix("/") { return argument }
    if ConfigurationFile.isInterfaceName(argument), request.file.path == "\(ConfigurationFile.folder)/\(argument).conf"
    {
      return argument
    }
    guard let folder = getcwd(nil, 0) else { return argument }
    defer { free(folder) }
    return String(cString: folder) + "/" + argument
  }

  // MARK: The tunnel

  private static func serve(_ request: TunnelSession.Request) async -> ExitCode {
    signal(SIGPIPE, SIG_IGN)
    // Commands of the configuration expect the folder that the person is in.
    if Background.isChild, let folder = variable(folderVariable) { _ = chdir(folder) }
    Background.keepReportToOurselves()
    unsetenv(folderVariable)
    let signals: TerminationSignals
    let session: TunnelSession
    do {
      signals = try TerminationSignals()
      let reactor = try Reactor()
      let log = EventLog(level: logLevel(), interface: request.file.interface)
      session = try await TunnelSession(request, reactor: reactor, log: log) { Console.error($0) }
      try await bringUp(session, signals, reactor)
    } catch let error as TunnelSession.Failure {
      return fail(error)
    } catch {
      return fail(.failed, "\(error)")
    }
    if Background.isChild {
      // In the foreground they are lines of the log.
      for warning in await session.warnings { Console.error("warning: " + warning) }
      leaveTerminal()
    }
    Background.report(.ready)
    let ending = await session.run(signals)
    return await end(session, ending)
  }

  /// A signal while things are being set up undoes what was set up; so does the end of the process that waits for it.
  private static func bringUp(
    _ session: TunnelSession, _ signals: TerminationSignals, _ reactor: Reactor
  ) async throws(TunnelSession.Failure) {
    let work = Task { () async -> TunnelSession.Failure? in
      do throws(TunnelSession.Failure) {
        try await session.bringUp()
        return nil
      } catch {
        return error
      }
    }
    let watcher = Task {
      if (try? await signals.next(reactor)) != nil { work.cancel() }
    }
    let caller = Background.reportDescriptor.map { descriptor in
      Task {
        if (try? await reactor.readable(descriptor)) != nil { work.cancel() }
      }
    }
    let failure = await work.value
    watcher.cancel()
    caller?.cancel()
    // Its descriptor is closed when it is used.
    await caller?.value
    if let failure { throw failure }
    // It may have come in the very last moment.
    if work.isCancelled {
      _ = await session.takeDown(nil)
      await session.forget()
      throw .failed("interrupted")
    }
  }

  private static func end(_ session: TunnelSession, _ ending: TunnelSession.Ending) async -> ExitCode {
    var client: ControlClient?
    var code = ExitCode.done
    switch ending {
    case .asked(let who): client = who
    case .signal: break
    case .service(let reason):
      if case .failed(let text) = reason {
        Console.error(text)
        code = .failed
      }
    case .failed(let text):
      Console.error(text)
      code = .failed
    }
    let problems = await session.takeDown(client)
    for problem in problems {
      code = .failed
      if let client { client.error(problem) } else { Console.error(problem) }
    }
    if let client {
      for warning in await session.remarks { client.error(warning) }
    }
    await session.forget()
    client?.finish(code.rawValue)
    return code
  }

  /// In the background nobody reads what is written from now on, and no folder is kept busy.
  private static func leaveTerminal() {
    _ = chdir("/")
    let null = open("/dev/null", O_RDWR | O_CLOEXEC)
    guard null >= 0 else { return }
    dup2(null, STDOUT_FILENO)
    dup2(null, STDERR_FILENO)
    close(null)
  }

  private static func logLevel() -> EventLog.Level {
    if Background.isChild { return .silent }
    switch variable("LOG_LEVEL") {
    case "error": return .error
    case "silent": return .silent
    default: return .verbose
    }
  }

  private static func fail(_ failure: TunnelSession.Failure) -> ExitCode {
    switch failure {
    case .inUse(let text): fail(.inUse, text)
    case .missing(let text): fail(.missing, text)
    case .failed(let text): fail(.failed, text)
    }
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
}
