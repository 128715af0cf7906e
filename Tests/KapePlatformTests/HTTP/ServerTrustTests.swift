import Foundation
import Testing

@testable import KapePlatform

/// Who is trusted. Each server would answer; whom the client does not trust is never asked.
@Suite struct ServerTrustTests {
  private static let answer = ["ok": "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"]

  private func ask(_ certificate: TestCertificate, _ client: KapeHTTPClient, host: String = "127.0.0.1") async throws
    -> KapeHTTPError?
  {
    let server = try await TestServer.openssl(certificate, files: Self.answer)
    do {
      let reply = try await client.get("https://\(host):\(server.port)/ok")
      #expect(reply.body == Data("ok".utf8))
      return nil
    } catch let error as KapeHTTPError {
      #expect(error.host == "\(host):\(server.port)")
      // It prints the name of each file that it is asked for.
      #expect(!server.output.contains("FILE:"))
      return error
    }
  }

  @Test func aPinnedCommonNameStandsForTheHostName() async throws {
    let authority = try TestCertificate.authority()
    let certificate = try TestCertificate(commonName: "server-1", issuer: authority)
    for anchors in [KapeHTTPAnchors.pem("# ours\n" + authority.pem), .der([authority.der])] {
      #expect(try await ask(certificate, KapeHTTPClient(anchors: anchors, pinnedCommonName: "server-1")) == nil)
    }
    let other = KapeHTTPClient(anchors: .pem(authority.pem), pinnedCommonName: "server-2")
    #expect(
      try await ask(certificate, other)?.cause == .certificateRefused("its common name is not server-2"))
  }

  @Test(
    arguments: [
      ["server-1\0.evil.test"], ["server-1.evil.test"], ["server-"], ["*"], ["*-1"], ["SERVER-1"], [" server-1"],
      ["server-1", "other"], ["other", "server-1"], ["server-1", "server-1"], [],
    ])
  func anotherCommonNameIsRefused(_ names: [String]) async throws {
    let authority = try TestCertificate.authority()
    let certificate = try TestCertificate(
      commonNames: names.map { Array($0.utf8) }, alternatives: "DNS:server-1,IP:127.0.0.1", issuer: authority)
    let client = KapeHTTPClient(anchors: .pem(authority.pem), pinnedCommonName: "server-1")
    #expect(try await ask(certificate, client)?.cause == .certificateRefused("its common name is not server-1"))
  }

  @Test func anEmptyPinTrustsNobody() async throws {
    let authority = try TestCertificate.authority()
    let client = KapeHTTPClient(anchors: .pem(authority.pem), pinnedCommonName: "")
    let certificate = try TestCertificate(commonNames: [], alternatives: "IP:127.0.0.1", issuer: authority)
    #expect(try await ask(certificate, client)?.cause == .certificateRefused("its common name is not "))
  }

  @Test func withoutAPinTheCertificateIsForTheHost() async throws {
    let authority = try TestCertificate.authority()
    let client = KapeHTTPClient(anchors: .pem(authority.pem))
    func with(_ alternatives: String?) throws -> TestCertificate {
      try TestCertificate(commonName: "localhost", alternatives: alternatives, issuer: authority)
    }
    #expect(try await ask(with("IP:127.0.0.1"), client) == nil)
    #expect(try await ask(with("DNS:localhost"), client, host: "localhost") == nil)
    // A common name is no name of a host.
    for (alternatives, host) in [
      (nil, "localhost"), ("DNS:other.test", "localhost"), ("IP:127.0.0.2", "127.0.0.1"),
      ("DNS:127.0.0.1", "127.0.0.1"),
      ("DNS:local*", "localhost"), ("DNS:*", "localhost"),
    ] as [(String?, String)] {
      let cause = try await ask(with(alternatives), client, host: host)?.cause
      #expect(
        cause == .certificateRefused(host == "localhost" ? "hostname mismatch" : "IP address mismatch"),
        "\(alternatives ?? "none")")
    }
  }

  @Test func onlyTheAnchorsCount() async throws {
    let (authority, other) = (try TestCertificate.authority(), try TestCertificate.authority("Another Authority"))
    let certificate = try TestCertificate(commonName: "server-1", issuer: authority)
    for anchors in [KapeHTTPAnchors.pem(other.pem), .system] {
      let cause = try await ask(certificate, KapeHTTPClient(anchors: anchors, pinnedCommonName: "server-1"))?.cause
      guard case .certificateRefused = cause else { return #expect(cause == nil, "trusted by nobody") }
    }
    // The same name, another key.
    let double = try TestCertificate.authority()
    let cause = try await ask(
      certificate, KapeHTTPClient(anchors: .pem(double.pem), pinnedCommonName: "server-1"))?.cause
    guard case .certificateRefused = cause else { return #expect(cause == nil, "trusted by a double") }
    #expect(
      try await ask(
        certificate, KapeHTTPClient(anchors: .pem(double.pem + authority.pem), pinnedCommonName: "server-1")) == nil)
  }

  @Test func aCertificateThatIsNotAnAuthorityVouchesForNobody() async throws {
    let authority = try TestCertificate.authority()
    let server = try TestCertificate(commonName: "server-1", issuer: authority)
    let forged = try TestCertificate(commonName: "server-1", issuer: server)
    let client = KapeHTTPClient(anchors: .pem(authority.pem + server.pem), pinnedCommonName: "server-1")
    let cause = try await ask(forged, client)?.cause
    guard case .certificateRefused = cause else { return #expect(cause == nil, "vouched for by a server") }
    #expect(try await ask(server, KapeHTTPClient(anchors: .pem(server.pem), pinnedCommonName: "server-1")) == nil)
  }

  @Test func datesCount() async throws {
    let authority = try TestCertificate.authority()
    let client = KapeHTTPClient(anchors: .pem(authority.pem), pinnedCommonName: "server-1")
    let past = try TestCertificate(commonName: "server-1", issuer: authority, days: -3...(-1))
    #expect(try await ask(past, client)?.cause == .certificateRefused("certificate has expired"))
    let future = try TestCertificate(commonName: "server-1", issuer: authority, days: 1...3)
    #expect(try await ask(future, client)?.cause == .certificateRefused("certificate is not yet valid"))
  }

  @Test(arguments: [
    KapeHTTPAnchors.pem(""), .pem("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----"), .der([]),
  ])
  func anchorsThatAreNoneAreAnError(_ anchors: KapeHTTPAnchors) async throws {
    let certificate = try TestCertificate(commonName: "server-1")
    #expect(try await ask(certificate, KapeHTTPClient(anchors: anchors))?.cause == .badAnchors)
  }

  @Test func oldTLSIsRefused() async throws {
    let authority = try TestCertificate.authority()
    let server = try await TestServer.openssl(
      TestCertificate(commonName: "server-1", issuer: authority), files: Self.answer, "-tls1_1", "-cipher",
      "ALL:@SECLEVEL=0")
    let client = KapeHTTPClient(anchors: .pem(authority.pem), pinnedCommonName: "server-1")
    let error = await #expect(throws: KapeHTTPError.self) {
      try await client.get("https://127.0.0.1:\(server.port)/ok")
    }
    guard case .tls = error?.cause else { return #expect(error == nil, "old TLS") }
  }
}
