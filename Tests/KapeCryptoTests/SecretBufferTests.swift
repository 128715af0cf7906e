import KapeCrypto
import Testing

@Suite struct SecretBufferTests {
  private static func bytes(_ buffer: borrowing SecretBuffer) -> [UInt8] {
    buffer.withBytes { bytes in bytes.withUnsafeBytes { Array($0) } }
  }

  @Test func itHoldsWhatIsAppendedThroughEveryGrowth() {
    var buffer = SecretBuffer(capacity: 1)
    var expected: [UInt8] = []
    for round in 0..<300 {
      let piece = (0..<round).map { UInt8(truncatingIfNeeded: $0 &* 7 &+ round) }
      buffer.append(piece.span.bytes)
      buffer.append(UInt8(truncatingIfNeeded: round))
      expected += piece + [UInt8(truncatingIfNeeded: round)]
    }
    #expect(Self.bytes(buffer) == expected)
    buffer.removeFirst(1000)
    #expect(Self.bytes(buffer) == Array(expected[1000...]))
    buffer.removeFirst(buffer.count)
    #expect(Self.bytes(buffer).isEmpty)
  }

  /// The memory behind it is looked at through the room for the next append, which is the same memory.
  @Test func whatIsRemovedIsWiped() {
    var buffer = SecretBuffer(capacity: 4096)
    buffer.append(capacity: 2000) { room in
      room.initializeMemory(as: UInt8.self, repeating: 0xA5)
      return 2000
    }
    buffer.removeFirst(1500)
    buffer.append(capacity: 1500) { room in
      #expect(room.allSatisfy { $0 == 0 })
      return 0
    }
    buffer.removeAll()
    buffer.append(capacity: 2000) { room in
      #expect(room.allSatisfy { $0 == 0 })
      return 0
    }
    #expect(Self.bytes(buffer).isEmpty)
  }

  @Test func textAndNumbers() {
    var buffer = SecretBuffer()
    buffer.append("fixed ")
    buffer.append(String("v\u{e4}ri\u{e4}ble "))
    buffer.append(decimal: UInt64.max)
    buffer.append(decimal: Int32.min)
    #expect(String(decoding: Self.bytes(buffer), as: UTF8.self) == "fixed väriäble 18446744073709551615-2147483648")
  }

  @Test func aShortWriteCountsWhatWasWritten() {
    var buffer = SecretBuffer()
    let written = buffer.append(capacity: 100) { room in
      room[0] = 1
      room[1] = 2
      return 2
    }
    #expect(written == 2)
    #expect(Self.bytes(buffer) == [1, 2])
  }
}
