import KapeCommandLine
import KapeControl

struct StatusCommand: Command {
  static let name = "status"
  static let summary = "show tunnels: peers, handshakes, transfer, rates, what was set up, what went wrong"
  static let help = """
    usage: kape status [--json] [NAME]

    Shows one interface, or all that 'kape up' and 'kape wg' run. Rates are measured over a quarter of a second.
    Byte counts of a peer are those of WireGuard messages, as wg has them; "inside" are those of the packets in them.

      --json   as JSON, in the form that docs/status.schema.json describes

    exit status: 0 done; 1 there is no such interface, or it does not answer; 2 usage; 3 no privilege

    """
  static let syntax = CommandSyntax(options: ["--json"], operands: 0...1)

  static func run(_ arguments: [String]) async -> ExitCode {
    guard syntax.fault(in: arguments) == nil else { return usage(arguments) }
    let isJSON = arguments.contains("--json")
    let rest = arguments.filter { $0 != "--json" }
    var texts: [String] = []
    var code = ExitCode.done
    if let argument = rest.first {
      let name = (try? RunningTunnel.name(argument)) ?? argument
      guard let text = text(name, isJSON) else {
        if let code = RunningTunnel.refused() { return code }
        Console.error("\(name): no such interface of 'kape up' or 'kape wg' answers")
        return .failed
      }
      texts = [text]
    } else {
      let held = RunDirectory.names().filter { RunDirectory.holder(of: $0) != nil }
      let others = ConfigurationProtocolClient.names().filter { !held.contains($0) }
      for name in held {
        if let text = text(name, isJSON) {
          texts.append(text)
        } else {
          Console.error("\(name): it does not answer")
          code = .failed
        }
      }
      // A socket that nobody answers on is no interface.
      texts += others.compactMap { text($0, isJSON) }
    }
    if texts.isEmpty, let code = RunningTunnel.refused() { return code }
    var written = ExitCode.done
    if isJSON {
      written = Console.result(StatusJSON.document(texts, at: Timestamp.now()).text + "\n")
    } else if !texts.isEmpty {
      written = Console.result(texts.joined(separator: "\n") + "\n")
    }
    return written == .done ? code : written
  }

  /// From the process that runs it; nil when none answers.
  private static func text(_ name: String, _ isJSON: Bool) -> String? {
    var paths = [StatusSocket.path(of: name)]
    if RunDirectory.holder(of: name) != nil { paths.insert(RunDirectory.socket(of: name), at: 0) }
    for path in paths {
      var lines: [String] = []
      let code = try? ControlConnection.ask(
        path: path, isJSON ? .statusJSON : .statusText, patience: 10_000, out: { lines.append($0) },
        error: { Console.error($0) })
      if code == 0 { return lines.joined(separator: "\n") }
    }
    // One that another program serves.
    guard let report = ConfigurationProtocolClient.report(name) else { return nil }
    return isJSON ? StatusJSON.text(report) : StatusText.text([report], now: Timestamp.now())
  }
}
