import Dispatch
import Foundation
import NetworkExtension
import Synchronization
import Testing

@testable import KapePlatform

/// A flow of an embedder's own.
private final class OwnFlow: NEPacketTunnelFlow, @unchecked Sendable {
  struct State {
    var toEngine: [[Data]] = []
    var fromEngine: [Data] = []
    var families: [Int32] = []
  }
  let state = Mutex(State())

  override func readPackets(completionHandler: @escaping ([Data], [NSNumber]) -> Void) {
    let packets = state.withLock { $0.toEngine.isEmpty ? nil : $0.toEngine.removeFirst() }
    // Without packets it answers no more, as when the tunnel is gone.
    if let packets { completionHandler(packets, packets.map { _ in NSNumber(value: AF_INET) }) }
  }

  override func writePackets(_ packets: [Data], withProtocols protocols: [NSNumber]) -> Bool {
    state.withLock {
      $0.fromEngine += packets
      $0.families += protocols.map(\.int32Value)
    }
    return true
  }
}

@Suite struct PacketFlowBridgeTests {
  @Test(.timeLimit(.minutes(1))) func packetsPassWholeBothWays() async throws {
    let flow = OwnFlow()
    let sent = [Data([0x45, 1, 2]), Data([0x60] + Array(repeating: 7, count: 1400)), Data([0x45])]
    flow.state.withLock { $0.toEngine = [[sent[0], sent[1]], [sent[2]]] }
    let bridge = try PacketFlowBridge(flow)
    let end = try bridge.engineEnd()
    defer { close(end) }

    var received: [Data] = []
    while received.count < sent.count {
      var packet = Data(count: 2000)
      let size = packet.withUnsafeMutableBytes { recv(end, $0.baseAddress, $0.count, 0) }
      guard size > 0 else {
        await Task.yield()
        continue
      }
      received.append(packet.prefix(size))
    }
    #expect(received == sent)

    for packet in sent { _ = packet.withUnsafeBytes { send(end, $0.baseAddress, $0.count, 0) } }
    while flow.state.withLock({ $0.fromEngine.count }) < sent.count { await Task.yield() }
    #expect(flow.state.withLock { $0.fromEngine } == sent)
    #expect(flow.state.withLock { $0.families } == [AF_INET, AF_INET6, AF_INET])
    bridge.close()
  }
}
