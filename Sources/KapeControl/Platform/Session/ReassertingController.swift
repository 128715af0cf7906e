/// Tells the system that a tunnel which was up is being brought up again (`NEPacketTunnelProvider.reasserting`).
public protocol ReassertingController: AnyObject, Sendable {
  func setReasserting(_ reasserting: Bool) async
}
