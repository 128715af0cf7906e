import Foundation
import KapeControl
import Testing

@testable import KapePlatform

@Suite("§11, §16: watching the shared folder") struct SharedStateObserverTests {
  private let folder: ScratchFolder
  private let container: SharedContainer
  private let observer: SharedStateObserver

  init() throws {
    let made = try ScratchFolder()
    folder = made
    container = try SharedContainer(group: "g", home: nil) { $0 == "KAPE_STATE_HOME" ? made.path : nil }
    observer = SharedStateObserver(container, reactor: try Reactor())
  }

  private func modes(_ observer: SharedStateObserver) -> AsyncStream<KapeConnectionMode> {
    observer.values { SharedConfiguration.load($0).connectionMode }
  }

  private func choose(_ id: String) async throws {
    try await SharedConfiguration.update(container) { $0.connectionMode = .manual(locationId: id) }
  }

  @Test("the value as it is comes first, then each other one after a rename in the folder", .timeLimit(.minutes(1)))
  func follows() async throws {
    var values = modes(observer).makeAsyncIterator()
    #expect(await values.next() == .auto)
    for id in ["fr", "de", "fr"] {
      try await choose(id)
      #expect(await values.next() == .manual(locationId: id))
    }
    try FileManager.default.removeItem(atPath: container.configuration)
    #expect(await values.next() == .auto)
  }

  @Test(
    "what changes nothing of the value is not told: other files, other keys, the same again", .timeLimit(.minutes(1)))
  func quiet() async throws {
    var values = modes(observer).makeAsyncIterator()
    #expect(await values.next() == .auto)
    try await SharedStatusFile(container).write(SharedTunnelStatus(.connecting))
    try await SharedConfiguration.update(container) { $0.connectOnDemand = true }
    try await choose("fr")
    try await SharedStatusFile(container).clear()
    try await choose("de")
    var seen: [KapeConnectionMode?] = []
    repeat { seen.append(await values.next()) } while seen.last != .manual(locationId: "de")
    #expect(seen.allSatisfy { $0 == .manual(locationId: "fr") || $0 == .manual(locationId: "de") })
    #expect(seen.count <= 2)
  }

  @Test("one's own writes echo and do no harm: writing what was seen ends there", .timeLimit(.minutes(1)))
  func echoes() async throws {
    var values = modes(observer).makeAsyncIterator()
    #expect(await values.next() == .auto)
    for id in ["fr", "de"] {
      try await choose(id)
      let seen = await values.next()
      try await SharedConfiguration.update(container) { $0.connectionMode = seen ?? .auto }
    }
    try await choose("at")
    #expect(await values.next() == .manual(locationId: "at"))
  }

  @Test("a folder that is removed and made anew is watched again", .timeLimit(.minutes(1)))
  func folderGone() async throws {
    var values = modes(observer).makeAsyncIterator()
    #expect(await values.next() == .auto)
    try await choose("fr")
    #expect(await values.next() == .manual(locationId: "fr"))
    try FileManager.default.removeItem(atPath: container.path)
    #expect(await values.next() == .auto)
    try await choose("de")
    #expect(await values.next() == .manual(locationId: "de"))
    let aside = folder.path + "/aside"
    try FileManager.default.moveItem(atPath: container.path, toPath: aside)
    #expect(await values.next() == .auto)
    try await choose("at")
    #expect(await values.next() == .manual(locationId: "at"))
  }

  @Test("without inotify it looks again after each pause", .timeLimit(.minutes(1)))
  func withoutInotify() async throws {
    let (ticks, clock) = AsyncStream.makeStream(of: Void.self)
    let pauses = Pauses(ticks)
    let observer = SharedStateObserver(
      container, reactor: try Reactor(), watch: { _ in nil }, pause: { await pauses.next() })
    var values = modes(observer).makeAsyncIterator()
    #expect(await values.next() == .auto)
    for id in ["fr", "de"] {
      try await choose(id)
      clock.yield()
      #expect(await values.next() == .manual(locationId: id))
    }
    clock.finish()
  }

  private actor Pauses {
    private var iterator: AsyncStream<Void>.Iterator
    init(_ ticks: AsyncStream<Void>) { iterator = ticks.makeAsyncIterator() }
    func next() async {
      var iterator = iterator
      _ = await iterator.next(isolation: self)
      self.iterator = iterator
    }
  }

  @Test("it ends when its taker goes, and two takers do not disturb each other", .timeLimit(.minutes(1)))
  func ends() async throws {
    var first = modes(observer).makeAsyncIterator()
    do {
      var second = modes(observer).makeAsyncIterator()
      #expect(await second.next() == .auto)
    }
    #expect(await first.next() == .auto)
    try await choose("fr")
    #expect(await first.next() == .manual(locationId: "fr"))
    let task = Task { [observer] in
      var count = 0
      for await _ in modes(observer) { count += 1 }
      return count
    }
    task.cancel()
    #expect(await task.value <= 1)
  }
}
