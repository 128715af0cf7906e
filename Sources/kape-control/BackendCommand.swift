import Glibc
import KapeBackend
import KapeCommandLine
import KapeControl

/// The backend in the foreground.
enum BackendCommand: Command {
  static let name = "backend"
  static let summary = "serve sign-in, subscriptions, tokens, locations and key exchange for the SDK"
  static let help = """
    usage: kape backend [--state FOLDER] [--settings FILE] [--listen ADDRESS:PORT] [--verbose] [--test-clock]
           kape backend --check FILE
           kape backend --print-settings

    Serves what docs/backend.openapi.json describes, until SIGTERM or SIGINT. The first start makes keys, a CA, users
    with random passwords, and a file of settings where none is given; it prints the passwords once and keeps them in
    credentials.json. Later starts find everything.

      --state FOLDER           what outlives it, for its owner only (default $XDG_STATE_HOME/kape/backend)
      --settings FILE          JSON: users, clients, locations, servers, paths, lifetimes, limits
                               (default FOLDER/settings.json)
      --listen ADDRESS:PORT    in place of the settings' address; port 0: one that is free. An address that is reached
                               from elsewhere takes the setting tls
      --verbose                a line for each request on standard error; no token, key or password is ever in one
      --check FILE             says what is wrong with a file of settings, and ends
      --print-settings         prints the settings that a first start writes, and ends
      --test-clock             for tests: expiries, limits and rotations go by a clock that "advance SECONDS" on
                               FOLDER/control.sock moves on

    exit status: 0 ended by a signal, or done; 1 failed; 2 usage or settings; 4 the folder is in use

    """
  static let syntax = CommandSyntax(
    options: ["--verbose", "--print-settings", "--test-clock"],
    optionsWithValue: ["--state", "--settings", "--listen", "--check"])

  private struct Arguments {
    var state: String?
    var settings: String?
    var listen: String?
    var check: String?
    var printsSettings = false
    var isVerbose = false
    var hasTestClock = false
  }

  static func run(_ arguments: [String]) async -> ExitCode {
    guard syntax.fault(in: arguments) == nil else { return usage(arguments) }
    let parsed = parse(arguments)
    if parsed.printsSettings { return Console.result(BackendSettings.defaultText) }
    do {
      if let path = parsed.check {
        _ = try settings(path)
        Console.out("\(path): nothing is wrong")
        return .done
      }
      return try await serve(parsed)
    } catch let error as SettingsFault {
      Console.error(error.description)
      return .usage
    } catch StateDirectory.Failure.inUse(let path) {
      Console.error("\(StateDirectory.Failure.inUse(path))")
      return .inUse
    } catch {
      Console.error("backend: \(error)")
      return .failed
    }
  }

  private static func parse(_ arguments: [String]) -> Arguments {
    var result = Arguments()
    var rest = arguments[...]
    while let argument = rest.popFirst() {
      switch argument {
      case "--verbose": result.isVerbose = true
      case "--print-settings": result.printsSettings = true
      case "--test-clock": result.hasTestClock = true
      case "--state": result.state = rest.popFirst()
      case "--settings": result.settings = rest.popFirst()
      case "--listen": result.listen = rest.popFirst()
      default: result.check = rest.popFirst()
      }
    }
    return result
  }

  // MARK: Settings

  private struct SettingsFault: Error, CustomStringConvertible {
    let description: String
  }

  private static func settings(_ path: String) throws -> BackendSettings {
    guard let text = try Files.read(path, limit: 16 << 20) else {
      throw SettingsFault(description: "\(path): there is no such file")
    }
    return try settings(text, path)
  }

  private static func settings(_ text: [UInt8], _ path: String, listen: String? = nil) throws -> BackendSettings {
    do {
      return try BackendSettings(parsing: text, listen: listen)
    } catch {
      throw SettingsFault(description: error.problems.map { "\(path): \($0)" }.joined(separator: "\n"))
    }
  }

  private static func defaultState() throws -> String {
    if let folder = variable("XDG_STATE_HOME"), folder.hasPrefix("/") { return folder + "/kape/backend" }
    guard let home = variable("HOME"), home.hasPrefix("/") else {
      throw SettingsFault(description: "backend: neither XDG_STATE_HOME nor HOME is set: say --state FOLDER")
    }
    return home + "/.local/state/kape/backend"
  }

  // MARK: Serving

  private static func serve(_ arguments: Arguments) async throws -> ExitCode {
    signal(SIGPIPE, SIG_IGN)
    // What the database and its companions are made with.
    umask(0o077)
    let signals = try TerminationSignals()
    let state = try StateDirectory(arguments.state ?? defaultState())
    let lock = try state.lock()
    let path = arguments.settings ?? state.settings
    if arguments.settings == nil, !Files.exists(path) {
      try state.write(Array(BackendSettings.defaultText.utf8), to: "settings.json")
    }
    guard let text = try Files.read(path, limit: 16 << 20) else {
      throw SettingsFault(description: "\(path): there is no such file")
    }
    let log = EventLog(level: arguments.isVerbose ? .verbose : .error, of: "service", "backend")
    let clock: any BackendClock = arguments.hasTestClock ? AdjustableBackendClock() : SystemBackendClock()
    let server = try await BackendServer(
      settings: settings(text, path, listen: arguments.listen), state: state, clock: clock, log: log,
      controlSocket: arguments.hasTestClock ? state.controlSocket : nil)
    show(server, state)
    _ = try await signals.next(Reactor())
    await server.stop()
    _ = lock
    return .done
  }

  private static func show(_ server: BackendServer, _ state: StateDirectory) {
    if !server.made.isEmpty {
      Console.out("made at random, and kept in \(state.file("credentials.json")):")
      for user in server.made.users { Console.out("  user \(user.email)  password \(user.password)") }
      for dedicated in server.made.dedicatedIPs {
        Console.out("  dedicated IP \(dedicated.ip)  token \(dedicated.token)")
      }
    }
    for exchange in server.keyExchanges { Console.out("key exchange on \(exchange)") }
    Console.out("listening on \(server.url)")
  }
}
