import Testing

@testable import KapeProtocols

@Suite struct EngineStatusTests {
  /// The Swift cases and the C enum are the same list, in the same order.
  @Test func everyStatusHasTheNameOfItsCounterpart() {
    let names: [(EngineStatus, String)] = [
      (.ok, "OK"), (.again, "AGAIN"), (.outFull, "OUT_FULL"), (.poolEmpty, "POOL_EMPTY"),
      (
        .noMemory,
        "NO_MEMORY"
      ), (.limit, "LIMIT"), (.invalidArgument, "INVALID_ARGUMENT"), (.unsupported, "UNSUPPORTED"),
      (.notFound, "NOT_FOUND"), (.exists, "EXISTS"), (.closed, "CLOSED"), (.system, "SYSTEM"),
      (
        .tooShort,
        "TOO_SHORT"
      ), (.tooLong, "TOO_LONG"), (.truncated, "TRUNCATED"), (.unknownType, "UNKNOWN_TYPE"),
      (.malformed, "MALFORMED"), (.authenticationFailed, "AUTHENTICATION_FAILED"), (.replayed, "REPLAYED"),
      (.keyExpired, "KEY_EXPIRED"), (.unknownSession, "UNKNOWN_SESSION"), (.unknownPeer, "UNKNOWN_PEER"),
      (.badMAC1, "BAD_MAC1"), (.badMAC2, "BAD_MAC2"), (.badCookie, "BAD_COOKIE"), (.cookieSent, "COOKIE_SENT"),
      (.rateLimited, "RATE_LIMITED"), (.staleTimestamp, "STALE_TIMESTAMP"), (.flood, "FLOOD"),
      (
        .lowOrderKey,
        "LOW_ORDER_KEY"
      ), (.unexpectedMessage, "UNEXPECTED_MESSAGE"), (.noKey, "NO_KEY"), (.noRoute, "NO_ROUTE"),
      (.noEndpoint, "NO_ENDPOINT"), (.notIP, "NOT_IP"), (.wrongSource, "WRONG_SOURCE"), (.tooBig, "TOO_BIG"),
      (.stagedDropped, "STAGED_DROPPED"), (.keepalive, "KEEPALIVE"), (.handshakeTimeout, "HANDSHAKE_TIMEOUT"),
      (.eventsLost, "EVENTS_LOST"), (.ecnDropped, "ECN_DROPPED"), (.checksum, "CHECKSUM"),
      (
        .sendRefused,
        "SEND_REFUSED"
      ), (.sendTooBig, "SEND_TOO_BIG"), (.insideRefused, "INSIDE_REFUSED"),
      (
        .selfTestFailed,
        "SELF_TEST_FAILED"
      ), (.handedOver, "HANDED_OVER"), (.handoverFull, "HANDOVER_FULL"),
    ]
    #expect(EngineStatus.allCases.count == EngineStatus.dataPlaneCount)
    #expect(names.map(\.0) == EngineStatus.allCases)
    for (status, name) in names {
      #expect(status.name == name)
      #expect(!status.text.isEmpty)
    }
  }

  @Test func nothingFromOutsideIsFatalOnDatagrams() {
    for status in EngineStatus.allCases where status.fault == .peer || status.fault == .network {
      #expect(!status.isFatalOnDatagrams, "\(status.name)")
    }
    #expect(EngineStatus.authenticationFailed.isFatalOnStreams)
    #expect(EngineStatus.closed.isFatalOnDatagrams)
    #expect(EngineStatus.invalidArgument.fault == .caller)
    #expect(EngineStatus.noMemory.fault == .local)
    #expect(EngineStatus.ok.fault == .none)
  }
}
