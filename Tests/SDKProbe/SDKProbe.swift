import Foundation
import KapePlatform

/// `SDKProbe VERB ARGUMENT...`: what one process of a group does, for tests with several of them.
@main struct SDKProbe {
  static func main() async {
    do {
      try await run(Array(CommandLine.arguments.dropFirst()))
    } catch {
      print("error: \(error)")
      exit(1)
    }
  }

  private static func run(_ words: [String]) async throws {
    switch (words.first, Array(words.dropFirst())) {
    case ("defaults", let words): try Defaults.run(words)
    case ("log", let words): Log.run(words)
    case ("handle", let words): try await Handle.run(words)
    default:
      print("usage: SDKProbe defaults|log ...")
      exit(2)
    }
  }
}
