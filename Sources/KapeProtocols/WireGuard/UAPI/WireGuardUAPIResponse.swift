public import KapeCrypto

/// Writes the answers of the configuration protocol, piece by piece: a caller with many peers sends and empties the
/// buffer between them, so that an answer never exists as a whole.
public enum WireGuardUAPIResponse {
  /// The interface's part of a `get`. What is not set is left out.
  public static func append(_ interface: WireGuardInterfaceStatus, to buffer: inout SecretBuffer) {
    if let privateKey = interface.privateKey, !privateKey.isZero {
      buffer.append("private_key=")
      buffer.append(hex: privateKey)
      buffer.append("\n")
    }
    if interface.listenPort != 0 { buffer.append("listen_port=", number: interface.listenPort) }
    if interface.firewallMark != 0 { buffer.append("fwmark=", number: interface.firewallMark) }
  }

  /// A peer's part of a `get`, with the prefixes that the status holds.
  public static func append(_ peer: WireGuardPeerStatus, to buffer: inout SecretBuffer) {
    buffer.append("public_key=")
    buffer.append(hex: peer.publicKey)
    buffer.append("\npreshared_key=")
    buffer.append(hex: peer.presharedKey ?? .zero)
    buffer.append("\nprotocol_version=1\n")
    if let endpoint = peer.endpoint {
      buffer.append("endpoint=")
      buffer.append(endpoint.description)
      buffer.append("\n")
    }
    buffer.append("last_handshake_time_sec=", number: peer.lastHandshake / 1_000_000_000)
    buffer.append("last_handshake_time_nsec=", number: peer.lastHandshake % 1_000_000_000)
    buffer.append("tx_bytes=", number: peer.sentBytes)
    buffer.append("rx_bytes=", number: peer.receivedBytes)
    buffer.append("persistent_keepalive_interval=", number: peer.persistentKeepalive)
    for prefix in peer.allowedIPs { append(prefix, to: &buffer) }
  }

  /// One more prefix of the peer that was written last.
  public static func append(_ prefix: IPPrefix, to buffer: inout SecretBuffer) {
    buffer.append("allowed_ip=")
    buffer.append(prefix.description)
    buffer.append("\n")
  }

  /// The end of every answer.
  public static func append(_ error: WireGuardUAPIError, to buffer: inout SecretBuffer) {
    buffer.append("errno=", number: error.code)
    buffer.append("\n")
  }
}

extension SecretBuffer {
  fileprivate mutating func append(_ key: StaticString, number: some FixedWidthInteger) {
    append(key)
    append(decimal: number)
    append("\n")
  }
}
