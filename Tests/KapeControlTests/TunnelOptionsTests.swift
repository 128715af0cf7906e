import Testing

@testable import KapeControl

@Suite struct TunnelOptionsTests {
  private func options(_ environment: [String: String]) throws -> TunnelOptions {
    try TunnelOptions { environment[$0] }
  }

  @Test func nothing_set_means_the_defaults() throws {
    #expect(try options([:]) == TunnelOptions())
    #expect(try options(["KAPE_AEAD": "", "KAPE_BACKEND": "", "KAPE_FALLBACKS": ""]) == TunnelOptions())
  }

  @Test func every_fallback_has_a_name_of_its_own() throws {
    let names = TunnelOptions.Fallbacks.names
    #expect(Set(names.map(\.name)).count == names.count)
    #expect(Set(names.map(\.value.rawValue)).count == names.count)
    let all = try options(["KAPE_FALLBACKS": names.map(\.name).joined(separator: ",")])
    #expect(all.fallbacks.rawValue == names.reduce(0) { $0 | $1.value.rawValue })
    #expect(all.fallbacks.list == names.map(\.name).joined(separator: ","))
  }

  @Test func unknown_values_are_errors_that_name_the_known_ones() throws {
    let error = #expect(throws: TunnelOptions.Invalid.self) { try options(["KAPE_BACKEND": "kqueue"]) }
    #expect(error?.description.contains("io_uring") == true)
    let cipher = #expect(throws: TunnelOptions.Invalid.self) { try options(["KAPE_AEAD": "rot13"]) }
    #expect(cipher?.description.contains("openssl") == true)
    #expect(throws: TunnelOptions.Invalid.self) { try options(["KAPE_FALLBACKS": "no-tso,no-such"]) }
  }
}
