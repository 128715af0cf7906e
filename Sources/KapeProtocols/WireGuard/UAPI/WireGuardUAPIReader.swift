internal import KapeCrypto

/// What a client of the configuration protocol (version 1) asks for.
public enum WireGuardUAPIRequest: Equatable, Sendable {
  case get
  /// A whole transaction; nothing of it was wrong.
  case set(WireGuardInterfaceChange)
  /// Answer with this error and apply nothing. Reading goes on after the transaction's blank line.
  case refused(WireGuardUAPIError)
  /// Close the connection without an answer: this is no operation.
  case unknownOperation
}

/// Reads requests from a stream, however it is cut. A line has a limit, the number of peers has none; a transaction
/// that is not ended by a blank line is never given out.
///
///     var reader = WireGuardUAPIReader()
///     reader.append(bytes)
///     while let request = reader.next() { ... }
public struct WireGuardUAPIReader: ~Copyable, Sendable {
  /// The longest line that has a meaning is under 200 bytes.
  public static let lineLimit = 4096

  private enum State {
    case idle
    case get
    case set
    /// After an error, until the blank line; a new operation may come instead of it.
    case discarding
    case closed
  }

  private var buffer = SecretBuffer(capacity: 4096)
  private var state = State.idle
  private var change = WireGuardInterfaceChange()
  private let scopeIndex: @Sendable (String) -> UInt32?

  /// `scopeIndex` finds the interface that an endpoint's scope names.
  public init(scopeIndex: @escaping @Sendable (String) -> UInt32? = { InterfaceIndex.named($0) }) {
    self.scopeIndex = scopeIndex
  }

  /// Nothing more is read: the operation was unknown or a line too long.
  public var isClosed: Bool { state == .closed }
  /// A transaction has begun and not ended.
  public var isInsideRequest: Bool { state == .get || state == .set || !buffer.isEmpty }

  public mutating func append(_ bytes: RawSpan) {
    if state != .closed { buffer.append(bytes) }
  }

  /// The next request that is complete; nil: append more.
  public mutating func next() -> WireGuardUAPIRequest? {
    if state == .closed { return nil }
    var start = 0
    var request: WireGuardUAPIRequest?
    // The buffer is moved out while its bytes are looked at.
    var held = SecretBuffer(capacity: 0)
    swap(&held, &buffer)
    held.withBytes { bytes in
      while request == nil {
        guard let end = bytes.firstIndex(of: UInt8(ascii: "\n"), from: start) else {
          if bytes.byteCount - start > Self.lineLimit { request = refuseLongLine() }
          break
        }
        request = end - start > Self.lineLimit ? refuseLongLine() : take(bytes.extracting(start..<end))
        start = end + 1
      }
    }
    swap(&held, &buffer)
    if state == .closed { buffer.removeAll() } else { buffer.removeFirst(start) }
    return request
  }

  private mutating func refuseLongLine() -> WireGuardUAPIRequest {
    let wasInside = state == .set || state == .get
    finish(.closed)
    return wasInside ? .refused(.io) : .unknownOperation
  }

  private mutating func finish(_ next: State) {
    state = next
    change = WireGuardInterfaceChange()
  }

  private mutating func take(_ line: RawSpan) -> WireGuardUAPIRequest? {
    switch state {
    case .closed: return nil
    case .idle:
      if line.byteCount == 0 || start(line) { return nil }
      finish(.closed)
      return .unknownOperation
    case .discarding:
      if line.byteCount == 0 { state = .idle } else { _ = start(line) }
      return nil
    case .get:
      finish(line.byteCount == 0 ? .idle : .discarding)
      return line.byteCount == 0 ? .get : .refused(.invalid)
    case .set:
      if line.byteCount == 0 {
        let whole = change
        finish(.idle)
        return .set(whole)
      }
      do {
        try take(assignment: line)
        return nil
      } catch {
        finish(.discarding)
        return .refused(error)
      }
    }
  }

  private mutating func start(_ line: RawSpan) -> Bool {
    if line.equals("get=1") {
      state = .get
    } else if line.equals("set=1") {
      state = .set
    } else {
      return false
    }
    return true
  }

  private mutating func take(assignment line: RawSpan) throws(WireGuardUAPIError) {
    guard let equals = line.firstIndex(of: UInt8(ascii: "=")) else { throw .malformed }
    let key = line.extracting(0..<equals)
    let value = line.extracting((equals + 1)..<line.byteCount)
    if key.equals("public_key") {
      guard let publicKey = PublicKey(hex: value) else { throw .invalid }
      change.peers.append(WireGuardPeerChange(publicKey: publicKey))
    } else if change.peers.isEmpty {
      try takeInterface(key, value)
    } else {
      try Self.takePeer(key, value, &change.peers[change.peers.count - 1], scopeIndex)
    }
  }

  private mutating func takeInterface(_ key: RawSpan, _ value: RawSpan) throws(WireGuardUAPIError) {
    if key.equals("private_key") {
      guard let privateKey = PrivateKey(hex: value) else { throw .invalid }
      change.privateKey = privateKey
    } else if key.equals("listen_port") {
      guard let port = value.decimal(limit: 65_535) else { throw .invalid }
      change.listenPort = UInt16(port)
    } else if key.equals("fwmark") {
      guard let mark = value.decimal(limit: UInt64(UInt32.max)) else { throw .invalid }
      change.firewallMark = UInt32(mark)
    } else if key.equals("replace_peers"), value.equals("true") {
      change.replacePeers = true
    } else {
      throw .invalid
    }
  }

  private static func takePeer(
    _ key: RawSpan, _ value: RawSpan, _ peer: inout WireGuardPeerChange, _ scopeIndex: (String) -> UInt32?
  ) throws(WireGuardUAPIError) {
    if key.equals("allowed_ip") {
      peer.allowedIPs.append(try allowedIP(value))
    } else if key.equals("endpoint") {
      guard let endpoint = SocketAddress(text: value, scopeIndex: scopeIndex) else { throw .invalid }
      peer.endpoint = endpoint
    } else if key.equals("preshared_key") {
      guard let presharedKey = PresharedKey(hex: value) else { throw .invalid }
      peer.presharedKey = presharedKey
    } else if key.equals("persistent_keepalive_interval") {
      guard let seconds = value.decimal(limit: 65_535) else { throw .invalid }
      peer.persistentKeepalive = UInt16(seconds)
    } else if key.equals("replace_allowed_ips"), value.equals("true") {
      peer.replaceAllowedIPs = true
    } else if key.equals("remove"), value.equals("true") {
      peer.remove = true
    } else if key.equals("update_only"), value.equals("true") {
      peer.updateOnly = true
    } else if !(key.equals("protocol_version") && value.equals("1")) {
      throw .invalid
    }
  }

  private static func allowedIP(_ value: RawSpan) throws(WireGuardUAPIError) -> WireGuardAllowedIPChange {
    let removes = value.byteCount > 0 && value[0] == UInt8(ascii: "-")
    let text = value.extracting((removes ? 1 : 0)..<value.byteCount)
    guard text.contains(UInt8(ascii: "/")), let prefix = IPPrefix(text: text) else { throw .invalid }
    return WireGuardAllowedIPChange(prefix, remove: removes)
  }
}
