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

  @Test func threads_are_told_by_number() throws {
    #expect(try options([:]).threads == 1)
    #expect(try options(["KAPE_THREADS": ""]).threads == 1)
    var told = try options(["KAPE_THREADS": "2"])
    #expect(told.threads == 2)
    try told.setThreads("\(TunnelOptions.threadLimit)", from: "--threads")
    #expect(told.threads == TunnelOptions.threadLimit)
    for wrong in ["0", "-1", "two", "2.5", "", " 2", "\(TunnelOptions.threadLimit + 1)", "99999999999999999999"] {
      let error = #expect(throws: TunnelOptions.Invalid.self) { try told.setThreads(wrong, from: "--threads") }
      #expect(error?.description == "--threads \(wrong): not a number from 1 to \(TunnelOptions.threadLimit)")
    }
    #expect(told.threads == TunnelOptions.threadLimit)
    let error = #expect(throws: TunnelOptions.Invalid.self) { try options(["KAPE_THREADS": "many"]) }
    #expect(error?.description.contains("KAPE_THREADS") == true)
  }

  @Test func unknown_values_are_errors_that_name_the_known_ones() throws {
    let error = #expect(throws: TunnelOptions.Invalid.self) { try options(["KAPE_BACKEND": "kqueue"]) }
    #expect(error?.description.contains("io_uring") == true)
    let cipher = #expect(throws: TunnelOptions.Invalid.self) { try options(["KAPE_AEAD": "rot13"]) }
    #expect(cipher?.description.contains("openssl") == true)
    #expect(throws: TunnelOptions.Invalid.self) { try options(["KAPE_FALLBACKS": "no-tso,no-such"]) }
  }
}
