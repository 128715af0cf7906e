import KapeCommandLine
import KapeCrypto
import KapeProtocols

struct StripCommand: Command {
  static let name = "strip"
  static let summary = "print a configuration without what only wg-quick knows"
  static let help = """
    usage: kape strip FILE | NAME

    Prints a wg-quick file as wg takes it: without Address, DNS, MTU, Table, PreUp, PostUp, PreDown, PostDown and
    SaveConfig. NAME stands for /etc/wireguard/NAME.conf. The output holds the keys. To bring a running interface
    to what its file says:

        wg syncconf wg0 <(kape strip wg0)

    exit status: 0 done; 1 the file cannot be read; 2 it is no WireGuard configuration, or not a right one

    """
  static let syntax = CommandSyntax(operands: 1...1, takesStandardInput: true)

  static func run(_ arguments: [String]) async -> ExitCode {
    guard syntax.fault(in: arguments) == nil, let path = arguments.first.map(ConfigurationPath.find) else {
      return usage(arguments)
    }
    do {
      let content = try InputFile.read(path)
      let diagnostics = content.withBytes { bytes in WireGuardConfiguration.parse(bytes, file: path).diagnostics }
      let errors = diagnostics.filter { $0.severity == .error }
      if !errors.isEmpty {
        for error in errors { Console.error(error.description) }
        return .usage
      }
      var output = SecretBuffer(capacity: content.count + 2)
      content.withBytes { bytes in WireGuardConfiguration.strip(bytes, to: &output) }
      return SecretOutput.write(output) ? .done : .failed
    } catch {
      Console.error(error.reason)
      return .failed
    }
  }
}
