import Glibc
import KapeCommandLine
import KapeControl

// A provider's process in the making: before anything else, while there is one thread.
if CommandLine.arguments.dropFirst().first == ProviderLauncher.verb { exit(ProviderLauncher.main()) }

// The verbs that `kape` hands over to this program; each has a file of its own.
ControlProgram.main(
  CommandTable(
    [
      BackendCommand.self,
      DaemonCommand.self,
    ], closing: "'kape COMMAND --help' says more. 'kape' has the other commands."))
