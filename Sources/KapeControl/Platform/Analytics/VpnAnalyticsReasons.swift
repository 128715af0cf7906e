/// Why a connection begins.
public enum PacketTunnelConnectReason: String, Codable, CaseIterable, Sendable {
  case initial
  case networkLoss
  case pathChange
  case resumed
}

/// Why a session ended.
public enum PacketTunnelSessionDisconnectReason: String, Codable, CaseIterable, Sendable {
  case userInitiated
  case noEndpointsAvailable
}

/// Why a connection ended.
public enum PacketTunnelConnectionDisconnectReason: String, Codable, CaseIterable, Sendable {
  case userInitiated
  case noEndpointsAvailable
  case connectionError
  case cancelled
  case paused
}

/// What came of an attempt.
public enum PacketTunnelAttemptResult: Hashable, Sendable {
  case connected
  case failed(PacketTunnelError)
  case cancelled
}

/// Who asked for a session.
public enum PacketTunnelConnectSource: String, Codable, CaseIterable, Sendable {
  case manual
  case onDemand
  case startup
}
