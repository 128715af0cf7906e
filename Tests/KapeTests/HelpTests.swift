import KapeTestSupport
import Testing

@Suite struct HelpTests {
  /// Every verb, as the overview lists them.
  private static func verbs() throws -> [String] {
    let overview = try Execution.kape(["--help"])
    #expect(overview.status == 0)
    return overview.text.split(separator: "\n").filter { $0.hasPrefix("  ") }.compactMap {
      $0.split(separator: " ").first.map(String.init)
    }
  }

  private static func expectAScreen(_ text: String) {
    let lines = text.split(separator: "\n", omittingEmptySubsequences: false)
    #expect(lines.count <= 40, "\(text)")
    for line in lines { #expect(line.count <= 120, "\(line)") }
  }

  @Test func theHelpOfEveryVerbFitsAScreen() throws {
    let verbs = try Self.verbs()
    #expect(verbs.contains("wg") && verbs.contains("up") && verbs.contains("selftest") && verbs.count >= 11)
    for verb in verbs {
      let result = try Execution.kape([verb, "--help"])
      #expect(result.status == 0)
      #expect(result.text.hasPrefix("usage: kape \(verb)"))
      Self.expectAScreen(result.text)
    }
  }

  @Test func theOverviewFitsAScreen() throws { Self.expectAScreen(try Execution.kape(["--help"]).text) }
}
