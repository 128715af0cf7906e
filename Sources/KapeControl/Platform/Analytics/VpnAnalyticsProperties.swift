import Foundation

/// The six events as names and texts, for a collector.
enum VpnAnalyticsProperties {
  typealias Event = (name: String, properties: [String: String])

  static func of(_ event: VpnAnalyticsSessionBeginEvent) -> Event {
    (
      "vpn_session_begin",
      [
        "session_id": event.sessionId.uuidString, "connect_source": event.connectSource.rawValue,
      ].selecting(event.selectedProtocol, event.selectedLocationDescription)
    )
  }

  static func of(_ event: VpnAnalyticsSessionEndEvent) -> Event {
    (
      "vpn_session_end",
      [
        "session_id": event.sessionId.uuidString, "reason": event.reason.rawValue,
        "duration_ms": "\(event.durationMs)", "was_ever_connected": "\(event.wasEverConnected)",
        "connect_source": event.connectSource.rawValue,
      ].selecting(event.selectedProtocol, event.selectedLocationDescription)
    )
  }

  static func of(_ event: VpnAnalyticsConnectionBeginEvent) -> Event {
    (
      "vpn_connection_begin",
      [
        "session_id": event.sessionId.uuidString, "connection_id": event.connectionId.uuidString,
        "reason": event.reason.rawValue,
      ].selecting(event.selectedProtocol, event.selectedLocationDescription)
    )
  }

  static func of(_ event: VpnAnalyticsConnectionEndEvent) -> Event {
    var properties = [
      "session_id": event.sessionId.uuidString, "connection_id": event.connectionId.uuidString,
      "reason": event.reason.rawValue, "duration_ms": "\(event.durationMs)", "was_connected": "\(event.wasConnected)",
    ]
    properties["effective_protocol"] = event.effectiveProtocol
    properties["effective_obfuscation"] = event.effectiveObfuscation
    return (
      "vpn_connection_end", properties.selecting(event.selectedProtocol, event.selectedLocationDescription)
    )
  }

  static func of(_ event: VpnAnalyticsAttemptBeginEvent) -> Event {
    (
      "vpn_attempt_begin",
      [
        "session_id": event.sessionId.uuidString, "connection_id": event.connectionId.uuidString,
        "attempt_id": event.attemptId.uuidString, "protocol": event.configuration.vpnProtocolName,
        "obfuscation": event.configuration.obfuscationDescription, "cipher": event.configuration.cipherDescription,
        "is_proxied": "\(event.configuration.isProxied)",
      ].selecting(event.selectedProtocol, event.selectedLocationDescription)
    )
  }

  static func of(_ event: VpnAnalyticsAttemptEndEvent) -> Event {
    var properties = ["attempt_id": event.attemptId.uuidString, "elapsed_ms": "\(event.elapsedMs)"]
    switch event.result {
    case .connected: properties["result"] = "connected"
    case .cancelled: properties["result"] = "cancelled"
    case .failed(let error):
      properties["result"] = "failed"
      properties["error"] = loggable(error)
    }
    properties["endpoint_host"] = event.endpoint?.host
    properties["endpoint_protocol"] = event.endpoint?.protocolDescription
    return ("vpn_attempt_end", properties.selecting(event.selectedProtocol, event.selectedLocationDescription))
  }

  static func json(_ properties: [String: String]) -> String {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    return (try? encoder.encode(properties)).map { String(decoding: $0, as: UTF8.self) } ?? "{}"
  }
}

extension [String: String] {
  fileprivate func selecting(_ selectedProtocol: String, _ selectedLocation: String?) -> [String: String] {
    var result = self
    result["selected_protocol"] = selectedProtocol
    result["selected_location"] = selectedLocation
    return result
  }
}
