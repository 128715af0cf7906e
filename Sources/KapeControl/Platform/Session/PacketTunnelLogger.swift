/// Where the tunnel side logs to. The message is only made when the logger asks for it.
public protocol PacketTunnelLogger: Sendable {
  func trace(_ message: @autoclosure () -> String)
  func debug(_ message: @autoclosure () -> String)
  func info(_ message: @autoclosure () -> String)
  func warning(_ message: @autoclosure () -> String)
  func error(_ message: @autoclosure () -> String)
}
