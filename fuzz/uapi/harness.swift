/// The reader of the configuration protocol on any bytes: cut anywhere it reads the same; and the writer of its answers
/// on what was read.

import KapeCrypto
import KapeProtocols

@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzUAPI(_ start: UnsafePointer<UInt8>?, _ size: Int) -> CInt {
  let input = UnsafeBufferPointer(start: start, count: size)
  guard let seed = input.first else { return 0 }
  let bytes = Array(input.dropFirst())
  let whole = read(bytes, pieces: { bytes.count })
  var state = UInt32(seed)
  let cut = read(bytes) {
    state = state &* 1_664_525 &+ 1_013_904_223
    return Int(state >> 24) % (seed % 4 == 0 ? 1 : 64) + 1
  }
  precondition(whole.requests == cut.requests && whole.isClosed == cut.isClosed, "it matters how the stream is cut")
  for request in whole.requests {
    if case .set(let change) = request { answer(change) }
  }
  return 0
}

private func read(_ bytes: [UInt8], pieces: () -> Int) -> (requests: [WireGuardUAPIRequest], isClosed: Bool) {
  var reader = WireGuardUAPIReader { $0 == "eth0" ? 2 : nil }
  var requests: [WireGuardUAPIRequest] = []
  var start = 0
  while start < bytes.count {
    let end = min(bytes.count, start + max(1, pieces()))
    let piece = Array(bytes[start..<end])
    reader.append(piece.span.bytes)
    while let request = reader.next() {
      precondition(requests.last != .unknownOperation, "something was read behind the end")
      requests.append(request)
    }
    start = end
  }
  precondition(!reader.isClosed || reader.next() == nil)
  _ = reader.isInsideRequest
  return (requests, reader.isClosed)
}

/// A `get` after that change, on a device that had nothing: each of its peers with its first prefixes.
private func answer(_ change: WireGuardInterfaceChange) {
  var buffer = SecretBuffer()
  let status = WireGuardInterfaceStatus(
    privateKey: change.privateKey, listenPort: change.listenPort ?? 0, firewallMark: change.firewallMark ?? 0)
  WireGuardUAPIResponse.append(status, to: &buffer)
  for peer in change.peers {
    var status = WireGuardPeerStatus(publicKey: peer.publicKey)
    status.presharedKey = peer.presharedKey
    status.endpoint = peer.endpoint
    status.persistentKeepalive = peer.persistentKeepalive ?? 0
    status.allowedIPs = peer.allowedIPs.map(\.prefix)
    WireGuardUAPIResponse.append(status, to: &buffer)
  }
  WireGuardUAPIResponse.append(.none, to: &buffer)
  // What can be set of an answer reads as a change: addresses and keys come back as they went.
  var text = Array("set=1\n".utf8)
  buffer.withBytes { bytes in
    for line in (0..<bytes.byteCount).map({ bytes.unsafeLoad(fromByteOffset: $0, as: UInt8.self) })
      .split(separator: UInt8(ascii: "\n"))
    {
      let isStatistic = ["last_", "tx_", "rx_", "errno="].contains { line.starts(with: $0.utf8) }
      if !isStatistic { text += Array(line) + [UInt8(ascii: "\n")] }
    }
  }
  text.append(UInt8(ascii: "\n"))
  guard case .set(let again) = read(text, pieces: { text.count }).requests.first else {
    preconditionFailure("an answer cannot be read: \(String(decoding: text, as: UTF8.self))")
  }
  precondition(again.peers.count == change.peers.count)
  for (peer, other) in zip(again.peers, change.peers) {
    precondition(peer.publicKey == other.publicKey && peer.endpoint == other.endpoint)
    precondition(peer.allowedIPs.map(\.prefix) == other.allowedIPs.map(\.prefix))
  }
}
