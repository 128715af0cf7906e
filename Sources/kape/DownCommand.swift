import Glibc
import KapeCommandLine
import KapeControl

struct DownCommand: Command {
  static let name = "down"
  static let summary = "take a tunnel of 'kape up' down and put everything back"
  static let help = """
    usage: kape down NAME | FILE

    Ends the tunnel that 'kape up' made, runs its PreDown and PostDown commands, saves the configuration if the file
    says SaveConfig, and returns when everything that was changed is put back. When the process of that tunnel was
    killed, what it left behind is put back from its journal.

    exit status: 0 done; 1 something failed (it is down all the same), or there is no such tunnel; 2 usage

    """
  static let syntax = CommandSyntax(operands: 1...1)

  static func run(_ arguments: [String]) async -> ExitCode {
    guard syntax.fault(in: arguments) == nil, let argument = arguments.first else { return usage(arguments) }
    let name: String
    do {
      name = try RunningTunnel.name(argument)
    } catch {
      Console.error(error.description)
      return .usage
    }
    if let process = RunDirectory.holder(of: name) { return await end(name, process) }
    return await recover(name)
  }

  // MARK: One that runs

  private static func end(_ name: String, _ process: Int32) async -> ExitCode {
    var code: Int32?
    do throws(ControlConnection.Failure) {
      code = try ControlConnection.ask(
        name, .down, out: { Console.out($0) }, error: { Console.error($0) },
        raw: { Console.write($0 + "\n", to: STDERR_FILENO) })
    } catch {
      // It is only just coming up, or going down already: a signal works at any time.
      if case .notAnswering = error, process > 0 { kill(process, SIGTERM) }
    }
    // The name is free with the process's end.
    for _ in 0..<1200 {
      if RunDirectory.holder(of: name) == nil { break }
      usleep(50_000)
    }
    guard RunDirectory.holder(of: name) == nil else {
      Console.error("\(name): process \(process) does not end")
      return .failed
    }
    if let code { return ExitCode(rawValue: code) ?? .failed }
    // Ended without an answer: by a signal, and then all is put back, or by being killed.
    return Files.exists(RunDirectory.journal(of: name)) ? await recover(name) : .done
  }

  // MARK: One that was killed

  private static func recover(_ name: String) async -> ExitCode {
    guard Files.exists(RunDirectory.journal(of: name)) else {
      if (try? Recovery.restoreForgottenFile(name)) == true {
        Console.error("\(name): put \(NameServices.file) back as it was before")
        return .done
      }
      if let code = RunningTunnel.refused() { return code }
      Console.error("\(name): 'kape up' runs no tunnel of that name" + other(name))
      return .failed
    }
    do {
      let directory = try RunDirectory(name)
      _ = try await Recovery.run(directory) { Console.error("\(name): " + $0) }
      directory.remove()
      Console.error("\(name): its process had been killed; what it left behind is put back")
      return .done
    } catch let error as RunDirectory.Failure {
      Console.error("\(name): \(error)")
      if case .held = error { return .inUse }
      return .failed
    } catch {
      Console.error("\(name): \(error)")
      return .failed
    }
  }

  /// What else may be meant.
  private static func other(_ name: String) -> String {
    guard if_nametoindex(name) != 0 else { return "" }
    return "; there is an interface \(name) of another program, which 'wg-quick down' or 'ip link delete' may remove"
  }
}
