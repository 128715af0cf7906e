/// An object that tells before one of its published properties changes.
public protocol ObservableObject: AnyObject {
  associatedtype ObjectWillChangePublisher: Publisher = ObservableObjectPublisher
  where ObjectWillChangePublisher.Failure == Never

  /// Tells that the object will change. The default tells before each change of a property that is `@Published`.
  var objectWillChange: ObjectWillChangePublisher { get }
}

extension ObservableObject where ObjectWillChangePublisher == ObservableObjectPublisher {
  /// The same for as long as the object lives. One without published properties has a new one each time, and keeps its own
  /// if it wants to send.
  public var objectWillChange: ObservableObjectPublisher {
    var properties: [any AnnouncesChanges] = []
    var mirror: Mirror? = Mirror(reflecting: self)
    while let level = mirror {
      for child in level.children {
        guard let property = child.value as? any AnnouncesChanges else { continue }
        // They have it all, or none has.
        if let announcement = property.announcement { return announcement }
        properties.append(property)
      }
      mirror = level.superclassMirror
    }
    let announcement = ObservableObjectPublisher()
    for property in properties { property.announcement = announcement }
    return announcement
  }
}

/// Tells that an object will change.
public final class ObservableObjectPublisher: Publisher, Sendable {
  public typealias Output = Void
  public typealias Failure = Never

  private let broadcast = Broadcast<Void, Never>()

  public init() {}

  public func receive<S: Subscriber>(subscriber: S) where S.Input == Void, S.Failure == Never {
    broadcast.attach(subscriber)
  }

  /// Tells those who are subscribed.
  public func send() {
    broadcast.send(())
  }
}

/// A property that tells its object's publisher first.
protocol AnnouncesChanges {
  var announcement: ObservableObjectPublisher? { get nonmutating set }
}
