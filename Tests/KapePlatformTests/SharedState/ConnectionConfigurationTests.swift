import Foundation
import Testing

@testable import KapePlatform

@Suite("§11: what the app wants of the tunnel, in config.json") struct ConnectionConfigurationTests {
  private let folder: ScratchFolder
  private let container: SharedContainer

  init() throws {
    let made = try ScratchFolder()
    folder = made
    container = try SharedContainer(group: "g", home: nil) { $0 == "KAPE_STATE_HOME" ? made.path : nil }
  }

  @Test("missing or corrupt file or key: the defaults")
  func defaults() throws {
    let texts = [
      nil, "", "{",
      #"{"locationId": 7, "selectedProtocol": "carrier pigeon", "dnsServers": "10.0.0.1", "usesProxy": 1}"#,
      #"{"locationId": "", "connectOnDemand": "yes"}"#,
    ]
    for text in texts {
      if let text { try folder.write("g/config.json", text) }
      let configuration = SharedConfiguration.load(container)
      #expect(configuration.connectionMode == .auto)
      #expect(configuration.selectedProtocol == .automatic)
      #expect(configuration.dnsServers == [])
      #expect(configuration.killSwitchMode == .off)
      #expect(!configuration.connectOnDemand && !configuration.usesProxy && !configuration.usesDedicatedIP)
    }
  }

  @Test("what was written is read again, by another process too, and the device's kind stays")
  func roundTrip() async throws {
    try await SharedConfiguration.update(container) {
      $0.deviceModel = "tablet"
      $0.connectionMode = .manual(locationId: "fr-paris")
      $0.selectedProtocol = .openvpn
      $0.dnsServers = ["10.0.0.53", "2001:db8::53"]
      $0.killSwitchMode = .standard
      $0.connectOnDemand = true
      $0.usesProxy = true
      $0.usesDedicatedIP = true
    }
    let read = SharedConfiguration.load(container)
    #expect(read.connectionMode == .manual(locationId: "fr-paris"))
    #expect(read.selectedProtocol == .openvpn)
    #expect(read.dnsServers == ["10.0.0.53", "2001:db8::53"])
    #expect(read.killSwitchMode == .standard)
    #expect(read.connectOnDemand && read.usesProxy && read.usesDedicatedIP)
    #expect(read.deviceModel == "tablet")
    try await SharedConfiguration.update(container) { $0.connectionMode = .auto }
    #expect(SharedConfiguration.load(container).connectionMode == .auto)
  }

  @Test("§7.4: resolvers are trimmed, without blanks, repeats and what is no address, in their order")
  func resolvers() throws {
    try folder.write(
      "g/config.json", #"{"dnsServers": [" 10.0.0.2", "", "dns.test", "10.0.0.1\n", "10.0.0.2", 4, "::0:1"]}"#)
    #expect(SharedConfiguration.load(container).dnsServers == ["10.0.0.2", "10.0.0.1", "::1"])
  }

  @Test(
    "a kill switch mode that is not known is the strictest, never none", arguments: ["\"ultra\"", "7", "null", "{}"])
  func killSwitch(_ value: String) throws {
    try folder.write("g/config.json", #"{"killSwitchMode": \#(value)}"#)
    #expect(SharedConfiguration.load(container).killSwitchMode == .advanced)
  }
}
