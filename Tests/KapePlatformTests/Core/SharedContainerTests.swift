import Foundation
import Testing

@testable import KapePlatform

@Suite("§16: the folder that the processes of a group share") struct SharedContainerTests {
  private func path(home: String? = "/home/u", _ variables: [String: String]) throws -> String {
    try SharedContainer(group: "group.example", home: home) { variables[$0] }.path
  }

  @Test("KAPE_STATE_HOME, else XDG_STATE_HOME/kape, else ~/.local/state/kape")
  func order() throws {
    #expect(try path(["KAPE_STATE_HOME": "/s", "XDG_STATE_HOME": "/x"]) == "/s/group.example")
    #expect(try path(["XDG_STATE_HOME": "/x"]) == "/x/kape/group.example")
    #expect(try path(["KAPE_STATE_HOME": "", "XDG_STATE_HOME": ""]) == "/home/u/.local/state/kape/group.example")
    // As the specification of the variable asks for.
    #expect(try path(["XDG_STATE_HOME": "relative"]) == "/home/u/.local/state/kape/group.example")
  }

  @Test("what does not lead to a folder is an error that says what to set")
  func errors() {
    #expect(throws: SharedContainerError.relative("state")) { try path(["KAPE_STATE_HOME": "state"]) }
    #expect(throws: SharedContainerError.noHome) { try path(home: nil, [:]) }
    #expect(SharedContainerError.relative("state").description.contains("KAPE_STATE_HOME"))
  }

  @Test("the files have the documented names")
  func names() throws {
    let container = try SharedContainer(group: "g", home: "/h") { _ in nil }
    #expect(container.configuration == "/h/.local/state/kape/g/config.json")
    #expect(container.status == "/h/.local/state/kape/g/status.json")
    #expect(container.locations == "/h/.local/state/kape/g/locations.json")
    #expect(container.session("svc") == "/h/.local/state/kape/g/session/svc")
  }

  @Test("it is made for its owner alone, also where it was open before; another's, or a link, is refused")
  func owner() throws {
    let folder = try ScratchFolder()
    let container = try SharedContainer(group: "g", home: nil) { $0 == "KAPE_STATE_HOME" ? folder.path + "/a/b" : nil }
    try container.make()
    #expect(try folder.mode("a/b/g") == 0o700)
    chmod(container.path, 0o755)
    try container.make()
    #expect(try folder.mode("a/b/g") == 0o700)
    symlink(container.path, folder.path + "/a/b/link")
    let link = try SharedContainer(group: "link", home: nil) { $0 == "KAPE_STATE_HOME" ? folder.path + "/a/b" : nil }
    #expect(throws: (any Error).self) { try link.make() }
  }
}
