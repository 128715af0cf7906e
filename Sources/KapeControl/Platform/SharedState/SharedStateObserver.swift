import Foundation
package import KapeControl

/// Follows files of a group's folder. Word of a change is a rename there, seen by inotify; it says nothing but "look", so
/// that changes in quick succession may be seen as one, and those of this process are seen like any other's. Where inotify
/// is not to be had (a user has a limited number), it looks once a second.
package struct SharedStateObserver: Sendable {
  private let container: SharedContainer
  private let reactor: Reactor
  private let makeWatch: @Sendable (String) -> FolderWatch?
  private let pause: @Sendable () async throws -> Void

  package init(_ container: SharedContainer, reactor: Reactor) {
    self.init(
      container, reactor: reactor, watch: { FolderWatch($0) }, pause: { try await Task.sleep(for: .seconds(1)) })
  }

  init(
    _ container: SharedContainer, reactor: Reactor, watch: @escaping @Sendable (String) -> FolderWatch?,
    pause: @escaping @Sendable () async throws -> Void
  ) {
    self.container = container
    self.reactor = reactor
    makeWatch = watch
    self.pause = pause
  }

  /// What `read` gives, now and whenever it is another after a change. A slow taker gets the newest alone. It ends when
  /// its task is cancelled.
  package func values<Value: Equatable & Sendable>(
    of read: @escaping @Sendable (SharedContainer) -> Value
  ) -> AsyncStream<Value> {
    let (stream, continuation) = AsyncStream.makeStream(of: Value.self, bufferingPolicy: .bufferingNewest(1))
    let task = Task {
      await follow(read) { continuation.yield($0) }
      continuation.finish()
    }
    continuation.onTermination = { _ in task.cancel() }
    return stream
  }

  private func follow<Value: Equatable>(
    _ read: @Sendable (SharedContainer) -> Value, _ give: (Value) -> Void
  ) async {
    var last: Value?
    while !Task.isCancelled {
      // The folder may be made anew by somebody who clears the state.
      try? container.make()
      let identity = Identity(container.path)
      let watch = makeWatch(container.path)
      repeat {
        let value = read(container)
        if value != last {
          give(value)
          last = value
        }
        do {
          if let watch { try await watch.changed(reactor) } else { try await pause() }
        } catch {
          if Task.isCancelled { return }
          try? await pause()
          break
        }
      } while identity != nil && Identity(container.path) == identity && (watch != nil)
    }
  }

  /// Which folder it is.
  private struct Identity: Equatable {
    let device: dev_t
    let number: ino_t

    init?(_ path: String) {
      var information = stat()
      guard stat(path, &information) == 0 else { return nil }
      device = information.st_dev
      number = information.st_ino
    }
  }
}
