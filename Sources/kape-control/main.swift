import KapeCommandLine

// The verbs that `kape` hands over to this program; each has a file of its own.
ControlProgram.main(
  CommandTable(
    [
      BackendCommand.self
    ], closing: "'kape COMMAND --help' says more. 'kape' has the other commands."))
