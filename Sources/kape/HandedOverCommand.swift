import Glibc
import KapeCommandLine
import KapeControl

/// A verb that `kape-control` does, which is started from beside this program in its place: it needs libraries that a
/// tunnel does without.
protocol HandedOverCommand: Command {}

extension HandedOverCommand {
  static var help: String { "" }
  static var syntax: CommandSyntax { CommandSyntax() }
  static var answersHelp: Bool { true }

  static func run(_ arguments: [String]) async -> ExitCode {
    guard let own = Files.link("/proc/self/exe"), let slash = own.lastIndex(of: "/") else {
      Console.error("\(name): /proc is needed to find kape-control")
      return .missing
    }
    let path = own[...slash] + "kape-control"
    var words = ([String(path), name] + arguments).map { strdup($0) }
    words.append(nil)
    execv(String(path), words)
    let reason = SystemError.text(of: errno)
    for word in words { free(word) }
    Console.error(
      "\(name): \(path): \(reason); kape-control belongs beside kape: scripts/build makes both")
    return .missing
  }
}

enum BackendCommand: HandedOverCommand {
  static let name = "backend"
  static let summary = "serve sign-in, subscriptions, tokens, locations and key exchange for the SDK"
}

enum DaemonCommand: HandedOverCommand {
  static let name = "daemon"
  static let summary = "run kaped, which starts the tunnel providers of apps and sets up their network"
}
