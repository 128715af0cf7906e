/// Sends events about the product's use to where the brand collects them. Nothing is sent, and nothing is kept, before
/// the user has opted in.
public protocol TrackingProtocol: Sendable {
  /// Says for which project and with which categories. With `optOutTrackingByDefault` this also opts out; without it an
  /// opt-in of before stays. Nobody is opted in by it.
  func initializeAsync(config: MixpanelConfiguration) async

  /// Lets events be sent from now on. It holds for this object's life: the app keeps the user's answer where its other
  /// processes find it, and each calls this.
  func optInTrackingAsync() async

  /// Sends nothing from now on, and forgets what waits to be sent.
  func optOutTrackingAsync() async

  /// Sends the event sooner or later, when the user has opted in and the category is one of the configuration's. Else it
  /// is dropped without a word.
  func trackAsync(event: String, properties: [String: String], category: EventCategory) async

  /// Sends what waits, and returns when that is done or cannot be done.
  func flushAsync() async

  /// Lets the following events be those of somebody else: for a change of account.
  func resetAsync() async
}

/// For which project events are sent, and which ones.
public struct MixpanelConfiguration: Hashable, Sendable {
  /// Names the project to the collector.
  public var projectToken: String
  /// Whether `initializeAsync` opts out.
  public var optOutTrackingByDefault: Bool
  /// The categories that are recorded; events of others are dropped.
  public var categories: [EventCategory]

  public init(projectToken: String, optOutTrackingByDefault: Bool, categories: [EventCategory]) {
    self.projectToken = projectToken
    self.optOutTrackingByDefault = optOutTrackingByDefault
    self.categories = categories
  }
}

/// What an event is about, so that a user may agree to some and not to others.
public struct EventCategory: RawRepresentable, Hashable, Codable, Sendable {
  public var rawValue: String

  public init(rawValue: String) { self.rawValue = rawValue }

  /// How well connections come about and hold.
  public static let qualityMetrics = EventCategory(rawValue: "qualityMetrics")
}
