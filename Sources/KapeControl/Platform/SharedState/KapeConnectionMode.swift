/// Where a connection goes.
public enum KapeConnectionMode: Hashable, Sendable {
  /// The best-rated location of those that were measured, else the first of the list. Nothing is measured or fetched for
  /// it.
  case auto
  case manual(locationId: String)
}
