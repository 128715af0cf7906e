/// One location more has been measured.
public struct KapeSmartLocationProgress: Hashable, Sendable {
  public var locationId: String
  /// The median round trip in milliseconds; nil: it did not answer.
  public var pingMs: Double?
  /// Locations that are done, this one among them.
  public var completed: Int
  public var total: Int

  public init(locationId: String, pingMs: Double?, completed: Int, total: Int) {
    self.locationId = locationId
    self.pingMs = pingMs
    self.completed = completed
    self.total = total
  }
}
