import Dispatch
import Glibc
import KapeCommandLine

/// `kape-control VERB ARGUMENTS`, as `kape VERB ARGUMENTS` starts it; under the name `kaped` the verb is `daemon`.
enum ControlProgram {
  /// Not async itself: the runtime opens descriptors before it starts a task, and would get those of closed streams.
  static func main(_ commands: CommandTable) -> Never {
    Console.openClosedStreams()
    Task.detached {
      var arguments = CommandLine.arguments[...]
      let program = arguments.popFirst() ?? ""
      if program.split(separator: "/").last == "kaped" { arguments = [DaemonCommand.name] + arguments }
      guard let verb = arguments.popFirst() else {
        Console.write(commands.overview, to: STDERR_FILENO)
        exit(ExitCode.usage.rawValue)
      }
      exit(await commands.run(verb, Array(arguments)).rawValue)
    }
    dispatchMain()
  }
}
