import Glibc
import Testing

@testable import KapeControl

@Suite struct ReactorTests {
  @Test func a_byte_that_comes_later_ends_the_wait() async throws {
    let reactor = try Reactor()
    let pipe = try Pipe()
    let writing = pipe.writing.raw
    let task = Task {
      try await Task.sleep(for: .milliseconds(20))
      var byte: UInt8 = 7
      _ = write(writing, &byte, 1)
    }
    try await reactor.readable(pipe.reading.raw, within: .seconds(60))
    var byte: UInt8 = 0
    #expect(read(pipe.reading.raw, &byte, 1) == 1)
    #expect(byte == 7)
    try await task.value
  }

  @Test func a_deadline_ends_the_wait_with_ETIMEDOUT() async throws {
    let reactor = try Reactor()
    let pipe = try Pipe()
    let start = ContinuousClock.now
    await #expect(throws: SystemError("wait", code: ETIMEDOUT)) {
      try await reactor.readable(pipe.reading.raw, within: .milliseconds(50))
    }
    #expect(ContinuousClock.now - start >= .milliseconds(50))
  }

  @Test func a_cancelled_wait_ends_and_the_descriptor_can_be_waited_for_again() async throws {
    let reactor = try Reactor()
    let pipe = try Pipe()
    let reading = pipe.reading.raw
    let task = Task { try await reactor.readable(reading) }
    try await Task.sleep(for: .milliseconds(20))
    task.cancel()
    await #expect(throws: CancellationError.self) { try await task.value }
    var byte: UInt8 = 1
    _ = write(pipe.writing.raw, &byte, 1)
    try await reactor.readable(reading, within: .seconds(60))
  }

  @Test func a_wait_cancelled_before_it_begins_ends_at_once() async throws {
    let reactor = try Reactor()
    let pipe = try Pipe()
    let reading = pipe.reading.raw
    let task = Task {
      while !Task.isCancelled { await Task.yield() }
      try await reactor.readable(reading)
    }
    task.cancel()
    await #expect(throws: CancellationError.self) { try await task.value }
  }

  @Test func a_closed_number_is_an_error_not_a_hang() async throws {
    let reactor = try Reactor()
    await #expect(throws: SystemError("epoll_ctl", code: EBADF)) { try await reactor.readable(9999) }
  }

  @Test func many_descriptors_are_served_at_once() async throws {
    let reactor = try Reactor()
    let pipes = try Pipes(count: 50)
    let served = try await withThrowingTaskGroup(of: UInt8.self) { group in
      for descriptor in pipes.reading {
        group.addTask {
          try await reactor.readable(descriptor, within: .seconds(60))
          var byte: UInt8 = 0
          _ = read(descriptor, &byte, 1)
          return byte
        }
      }
      for (index, descriptor) in pipes.writing.enumerated() {
        var byte = UInt8(index)
        _ = write(descriptor, &byte, 1)
      }
      return try await group.reduce(into: Set<UInt8>()) { $0.insert($1) }
    }
    #expect(served.count == 50)
  }
}

/// Many pipes, closed together.
private final class Pipes: Sendable {
  let reading: [Int32]
  let writing: [Int32]

  init(count: Int) throws {
    var reading: [Int32] = []
    var writing: [Int32] = []
    for _ in 0..<count {
      var ends: [Int32] = [0, 0]
      guard pipe(&ends) == 0 else { throw SystemError("pipe") }
      reading.append(ends[0])
      writing.append(ends[1])
    }
    self.reading = reading
    self.writing = writing
  }

  deinit { for descriptor in reading + writing { close(descriptor) } }
}
