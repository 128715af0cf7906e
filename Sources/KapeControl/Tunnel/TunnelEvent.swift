internal import CKapeDataPlane
package import KapeProtocols

/// What happens to a tunnel, for those who watch it. Peers go by the engine's numbers, which are never used twice.
package struct TunnelEvent: Equatable, Sendable {
  package enum Kind: String, Sendable {
    case handshakeStarted = "handshake_started"
    case connected
    case rekeyed
    case handshakeFailed = "handshake_failed"
    case disconnected
    case endpointChanged = "endpoint_changed"
    case prefixMoved = "prefix_moved"
    case rebound
    case resolve
    case underLoad = "under_load"
    case clockBack = "clock_back"
    case fallback
    case linkError = "link_error"
    case insideGone = "interface_gone"
  }

  package var kind: Kind
  /// The status by name; "OK" where there is nothing to say.
  package var status: String
  /// The peer's number, 0: none.
  package var peer: UInt64
  package var other: UInt64
  /// By kind: an attempt's number, a prefix length, an errno, a fallback.
  package var value: UInt64
  /// By kind: a peer's new endpoint, or the one destination that a fallback is for; nil: none, or every one.
  package var address: SocketAddress?
  /// Events that were lost before this one.
  package var lost: UInt32

  package init(_ kind: Kind, value: UInt64 = 0) {
    self.kind = kind
    status = "OK"
    peer = 0
    other = 0
    self.value = value
    lost = 0
  }

  init?(_ event: kdp_event) {
    guard let kind = Self.kinds.first(where: { UInt32(event.kind) == $0.0.rawValue })?.1 else { return nil }
    self.kind = kind
    status = String(cString: kdp_status_describe(kdp_status(rawValue: UInt32(event.status))).pointee.name)
    peer = event.peer
    other = event.other
    value = event.value
    address = SocketAddress(dataPlane: event.address)
    lost = event.lost
  }

  /// The offloads that a fallback turned off, for `address` only when there is one.
  package var turnedOff: TunnelOptions.Fallbacks { .init(rawValue: UInt32(clamping: value)) }

  private static let kinds: [(kdp_event_kind, Kind)] = [
    (KDP_EVENT_HANDSHAKE_STARTED, .handshakeStarted), (KDP_EVENT_CONNECTED, .connected),
    (KDP_EVENT_REKEYED, .rekeyed), (KDP_EVENT_HANDSHAKE_FAILED, .handshakeFailed),
    (KDP_EVENT_DISCONNECTED, .disconnected), (KDP_EVENT_ENDPOINT_CHANGED, .endpointChanged),
    (KDP_EVENT_PREFIX_MOVED, .prefixMoved), (KDP_EVENT_REBIND, .rebound), (KDP_EVENT_RESOLVE, .resolve),
    (KDP_EVENT_UNDER_LOAD, .underLoad), (KDP_EVENT_CLOCK_BACK, .clockBack), (KDP_EVENT_FALLBACK, .fallback),
    (KDP_EVENT_LINK_ERROR, .linkError), (KDP_EVENT_INSIDE_GONE, .insideGone),
  ]
}
