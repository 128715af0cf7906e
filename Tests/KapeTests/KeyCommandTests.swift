import Foundation
import Glibc
import KapeTestSupport
import Testing

private let privateKey = "AKsOlH9cqm9TBCCG0B7mndns9sq6YEaab9NOC52g+kg="
private let publicKey = "8TXhAVhUfR6Zd5E5oMLzXP4rXJpbLA3Y0067iYFbgmI="

@Suite struct KeyCommandTests {
  @Test(arguments: ["genkey", "genpsk"])
  func aNewKeyIsALineOfBase64(_ verb: String) throws {
    let first = try Execution.kape([verb])
    let second = try Execution.kape([verb])
    #expect(first.status == 0)
    #expect(first.output.count == 45)
    #expect(first.text.hasSuffix("=\n"))
    #expect(Data(base64Encoded: String(first.text.dropLast()))?.count == 32)
    #expect(first.text != second.text)
  }

  @Test func thePublicKeyOfAPrivateOne() throws {
    for input in [privateKey, privateKey + "\n", privateKey + "\r\n \t\n"] {
      let result = try Execution.kape(["pubkey"], input: Array(input.utf8))
      #expect(result.text == publicKey + "\n")
      #expect(result.status == 0)
    }
  }

  @Test(
    arguments: [
      ("", "not the correct length or format"), (String(privateKey.dropLast()), "not the correct length or format"),
      (" " + privateKey, "not the correct length or format"), (privateKey + "\nx", "Trailing characters"),
    ])
  func whatIsNoPrivateKeyIsRefused(_ input: String, _ reason: String) throws {
    let result = try Execution.kape(["pubkey"], input: Array(input.utf8))
    #expect(result.status == 1)
    #expect(result.text == "")
    #expect(result.errors.contains(reason))
    #expect(!result.errors.contains(privateKey.prefix(8)))
  }

  @Test func aFileThatEverybodyMayReadIsWarnedAbout() throws {
    let directory = FileManager.default.temporaryDirectory.appendingPathComponent(UUID().uuidString)
    try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(at: directory) }
    for (mask, warns) in [("022", true), ("077", false), ("027", false)] {
      let path = directory.appendingPathComponent(mask).path
      for verb in ["genkey", "genpsk"] {
        let program = URL(fileURLWithPath: "/proc/self/exe").resolvingSymlinksInPath().deletingLastPathComponent()
        let result = try Execution.run(
          ["sh", "-c", "umask \(mask); '\(program.path)/kape' \(verb) > '\(path)'; rm '\(path)'"])
        #expect(
          result.errors
            == (warns
              ? "Warning: writing to world accessible file.\nConsider setting the umask to 077 and trying again.\n"
              : ""),
          "umask \(mask)")
      }
    }
  }

  /// The same cases, put to wg.
  @Test(.enabled(if: access("/usr/bin/wg", X_OK) == 0, "needs wg"))
  func wgSaysTheSame() throws {
    for input in [
      privateKey, privateKey + "\n", "", privateKey + "x", privateKey + "\n\n ", "x" + privateKey, privateKey + "=",
    ] {
      let ours = try Execution.kape(["pubkey"], input: Array(input.utf8))
      let theirs = try Execution.run(["wg", "pubkey"], input: Array(input.utf8))
      #expect(ours.text == theirs.text, "\(input)")
      #expect(ours.status == theirs.status, "\(input)")
    }
    let made = try Execution.kape(["genkey"])
    let ours = try Execution.kape(["pubkey"], input: made.output)
    let theirs = try Execution.run(["wg", "pubkey"], input: made.output)
    #expect(ours.text == theirs.text)
  }

  @Test func aCommandLineThatMakesNoSense() throws {
    for arguments in [
      ["genkey", "x"], ["genpsk", "x"], ["pubkey", "x"], ["check"], ["check", "a", "b"], ["strip"], ["nothing"], [],
    ] {
      let result = try Execution.kape(arguments)
      #expect(result.status == 2, "\(arguments)")
      #expect(result.text == "")
      #expect(!result.errors.isEmpty)
    }
  }
}
