import Foundation
import KapeTestSupport
import Testing

private let file = """
  \u{FEFF}[Interface]
  PrivateKey = AKsOlH9cqm9TBCCG0B7mndns9sq6YEaab9NOC52g+kg=
  Address = 10.77.0.2/32,fd77::2/128
  DNS = 10.77.0.1, corp.example
  PostUp = wg set %i peer x preshared-key <(echo oOVIheL46MDVaXMfaj/WyMfrHetnsQzUgvZofXccyWw=)
  SaveConfig = true

  # home
  [Peer]
  PublicKey = I2vw8FnZyVTLSKulnurfxTLpMnpkhhbeqaeI8oC0Mkc=
  PresharedKey = nm72df/I+hl9L7LWMfVPaaa5dt+29S4NkEcO+Vag2GM=
  Endpoint = [2001:db8::1]:51820
  AllowedIPs =
  AllowedIPs = 0.0.0.0/0

  """

@Suite struct CheckCommandTests {
  private static func check(_ verb: String, _ text: String) throws -> Execution {
    let path = FileManager.default.temporaryDirectory.appendingPathComponent(UUID().uuidString + ".conf").path
    try Data(text.utf8).write(to: URL(fileURLWithPath: path))
    defer { try? FileManager.default.removeItem(atPath: path) }
    return try Execution.kape([verb, path])
  }

  @Test func checkPrintsTheModelWithoutSecrets() throws {
    let result = try Self.check("check", file)
    #expect(result.status == 0)
    for part in [
      "private key: (hidden)", "public key: 8TXhAVhUfR6Zd5E5oMLzXP4rXJpbLA3Y0067iYFbgmI=", "10.77.0.2/32, fd77::2/128",
      "name servers: 10.77.0.1", "search domains: corp.example", "preshared key: (hidden)", "<(echo (hidden))",
      "peer: I2vw8FnZyVTLSKulnurfxTLpMnpkhhbeqaeI8oC0Mkc=", "endpoint: [2001:db8::1]:51820", "allowed ips: 0.0.0.0/0",
      "all IPv4 traffic goes through the tunnel", "the file is written anew",
    ] {
      #expect(result.text.contains(part), "\(part)\n\(result.text)")
    }
    for secret in ["AKsOlH", "oOVIhe", "nm72df"] {
      #expect(!result.text.contains(secret))
      #expect(!result.errors.contains(secret))
    }
    #expect(result.errors.contains(":13: warning: AllowedIPs: "))
  }

  @Test func checkPrintsEverythingThatIsWrong() throws {
    let result = try Self.check("check", "[Interface]\nPrivateKy = x\nMTU = 1\nJc = 3\n[Peer]\nEndpoint = a\n")
    #expect(result.status == 1)
    #expect(result.text == "")
    for part in [
      ".conf:2: error: PrivateKy: unknown key; did you mean PrivateKey?", ".conf:3: error: MTU: ", "AmneziaWG",
      ".conf:5: error: PublicKey: ", ".conf:6: error: Endpoint: 'a' has no port",
    ] {
      #expect(result.errors.contains(part), "\(part)\n\(result.errors)")
    }
  }

  @Test func whatCannotBeChecked() throws {
    #expect(try Execution.kape(["check", "/nowhere/x.conf"]).errors.contains("No such file"))
    #expect(try Execution.kape(["check", "/nowhere/x.conf"]).status == 1)
    #expect(try Self.check("check", "hello\n").errors.contains("unknown kind"))
    #expect(try Self.check("check", "client\ndev tun\n").status == 1)
    #expect(try Execution.kape(["check", "/"]).status == 1)
    #expect(try Execution.kape(["check", "no-such-name"]).errors.contains("/etc/wireguard/no-such-name.conf"))
  }

  @Test func stripKeepsWhatWgReads() throws {
    let result = try Self.check("strip", file)
    #expect(result.status == 0)
    #expect(
      result.text == """
        [Interface]
        PrivateKey = AKsOlH9cqm9TBCCG0B7mndns9sq6YEaab9NOC52g+kg=

        # home
        [Peer]
        PublicKey = I2vw8FnZyVTLSKulnurfxTLpMnpkhhbeqaeI8oC0Mkc=
        PresharedKey = nm72df/I+hl9L7LWMfVPaaa5dt+29S4NkEcO+Vag2GM=
        Endpoint = [2001:db8::1]:51820
        AllowedIPs = 0.0.0.0/0


        """)
    let wrong = try Self.check("strip", "[Interface]\nMTU = x\n")
    #expect(wrong.status == 2)
    #expect(wrong.text == "")
    #expect(wrong.errors.contains("MTU"))
    #expect(try Execution.kape(["strip", "/nowhere/x.conf"]).status == 1)
  }

  @Test func standardInputIsAFileToo() throws {
    let result = try Execution.kape(["check", "-"], input: Array(file.utf8))
    #expect(result.status == 0)
    #expect(result.text.contains("interface\n"))
  }
}
