import NetworkExtension
import Synchronization

/// A tunnel without a server: whoever is asked for an echo through it answers. What it is to do besides, or wrong, is in
/// the options of the start.
final class EchoProvider: NEPacketTunnelProvider, @unchecked Sendable {
  private let answered = Mutex(0)
  private let kept: String

  struct Refused: LocalizedError {
    var errorDescription: String? { "the options say so" }
  }

  override init() {
    kept = "made by its own init"
    super.init()
  }

  override func startTunnel(options: [String: NSObject]? = nil) async throws {
    let wanted = EchoOptions(options)
    if wanted.has("crash") { fatalError("the options say so") }
    if wanted.has("hang") { try await Task.sleep(for: .seconds(3600)) }
    if wanted.has("refuse") { throw Refused() }
    if !wanted.has("bare") { try await setTunnelNetworkSettings(wanted.settings) }
    if wanted.has("cancel") {
      cancelTunnelWithError(Refused())
      return
    }
    echo()
  }

  override func stopTunnel(with reason: NEProviderStopReason, completionHandler: @escaping () -> Void) {
    print("stopped: \(reason)")
    completionHandler()
  }

  override func handleAppMessage(_ messageData: Data, completionHandler: ((Data?) -> Void)?) {
    let words = String(decoding: messageData, as: UTF8.self).split(separator: " ").map(String.init)
    let answer = completionHandler.map(Answer.init)
    Task {
      let text: String?
      do { text = try await self.say(words) } catch { text = "error: \(error)" }
      answer?.handler(text.map { Data($0.utf8) })
    }
  }

  private func say(_ words: [String]) async throws -> String? {
    switch words.first {
    case "answered": return "\(answered.withLock { $0 })"
    case "kept": return kept
    case "configuration": return "\((protocolConfiguration as? NETunnelProviderProtocol)?.providerConfiguration ?? [:])"
    case "environment":
      return ProcessInfo.processInfo.environment.map { "\($0.key)=\($0.value)" }.sorted().joined(separator: "\n")
    case "descriptors": return try descriptors()
    case "settings":
      try await setTunnelNetworkSettings(words.count > 1 ? EchoOptions(text: words[1]).settings : nil)
      return "applied"
    case "reasserting":
      reasserting = words.last == "true"
      return "told"
    case "socket": return try await socket()
    case "exit": exit(7)
    case "silent":
      try await Task.sleep(for: .seconds(3600))
      return nil
    default: return nil
    }
  }

  /// Of descriptors from outside; those that this process has made itself say so by their kind.
  private func descriptors() throws -> String {
    try FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd").sorted { (Int($0) ?? 0) < (Int($1) ?? 0) }
      .map { "\($0) " + ((try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/fd/" + $0)) ?? "-") }
      .joined(separator: "\n")
  }

  /// Makes one outside the tunnel, and tells its mark.
  private func socket() async throws -> String {
    let made = try await makeSocketOutsideTunnel(family: AF_INET, type: Int32(SOCK_DGRAM.rawValue))
    defer { close(made) }
    var mark: UInt32 = 0
    var size = socklen_t(4)
    guard getsockopt(made, SOL_SOCKET, SO_MARK, &mark, &size) == 0 else { return "no mark" }
    var other: UInt32 = 1
    let changes = setsockopt(made, SOL_SOCKET, SO_MARK, &other, 4) == 0
    return "mark \(mark), changeable \(changes)"
  }

  // MARK: Echoes

  private func echo() {
    let flow = packetFlow
    flow.readPackets { [weak self] packets, families in
      var answers: [Data] = []
      var theirs: [NSNumber] = []
      for (packet, family) in zip(packets, families) {
        guard let answer = Echo.answer(to: packet) else { continue }
        answers.append(answer)
        theirs.append(family)
      }
      if !answers.isEmpty, flow.writePackets(answers, withProtocols: theirs) {
        self?.answered.withLock { $0 += answers.count }
      }
      self?.echo()
    }
  }
}

/// The one handler, to be called from a task.
private struct Answer: @unchecked Sendable {
  let handler: (Data?) -> Void
}

/// RFC 792 and RFC 4443.
enum Echo {
  /// nil: it asks for none.
  static func answer(to packet: Data) -> Data? {
    var bytes = [UInt8](packet)
    guard bytes.count >= 28 else { return nil }
    if bytes[0] >> 4 == 4 {
      let header = Int(bytes[0] & 15) * 4
      guard bytes[9] == 1, bytes.count >= header + 8, bytes[header] == 8 else { return nil }
      swap(&bytes, 12, 16, 4)
      bytes[header] = 0
      adjust(&bytes, header + 2, by: 0x0800)
    } else {
      guard bytes.count >= 48, bytes[6] == 58, bytes[40] == 128 else { return nil }
      swap(&bytes, 8, 24, 16)
      bytes[40] = 129
      adjust(&bytes, 42, by: 0xFFFF - 0x0100)
    }
    return Data(bytes)
  }

  private static func swap(_ bytes: inout [UInt8], _ first: Int, _ second: Int, _ count: Int) {
    for index in 0..<count { bytes.swapAt(first + index, second + index) }
  }

  /// A checksum after the sum of what it covers became less by that much (RFC 1624).
  private static func adjust(_ bytes: inout [UInt8], _ at: Int, by change: UInt32) {
    var sum = UInt32(bytes[at]) << 8 + UInt32(bytes[at + 1]) + change
    sum = (sum & 0xFFFF) + sum >> 16
    bytes[at] = UInt8(sum >> 8 & 0xFF)
    bytes[at + 1] = UInt8(sum & 0xFF)
  }
}
