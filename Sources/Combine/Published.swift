/// A property of a class whose changes can be subscribed to by `$name`.
///
/// A subscriber gets the value that the property has, then each new value before the property has it: whoever reads the
/// property from within a subscriber finds the old one. An assignment made from within a subscriber is the later one, and
/// stays. A subscriber that comes while others are being told gets both.
@propertyWrapper public struct Published<Value> {
  private let place: Place

  public init(wrappedValue: Value) {
    place = Place(PublishedValue(wrappedValue))
  }

  public init(initialValue: Value) {
    self.init(wrappedValue: initialValue)
  }

  @available(*, unavailable, message: "@Published is for properties of classes")
  public var wrappedValue: Value {
    get { fatalError("unavailable") }
    // swift-format-ignore: the compiler asks for both
    set { fatalError("unavailable") }
  }

  /// What `$name` is. Assigning one lets both properties have one value from then on.
  public var projectedValue: Publisher {
    get { Publisher(value: place.value) }
    nonmutating set { place.value = newValue.value }
  }

  // The property is only read, never held for writing, while subscribers run: they may read it, and assign to it.
  public static subscript<Owner: AnyObject>(
    _enclosingInstance owner: Owner,
    wrapped wrappedKeyPath: ReferenceWritableKeyPath<Owner, Value>,
    storage storageKeyPath: ReferenceWritableKeyPath<Owner, Published<Value>>
  ) -> Value {
    get { owner[keyPath: storageKeyPath].place.value.held }
    set {
      let value = owner[keyPath: storageKeyPath].place.value
      value.willChange(of: owner)
      value.broadcast.announce(newValue)
    }
  }

  /// Gives the values of a property.
  public struct Publisher: Combine.Publisher {
    public typealias Output = Value
    public typealias Failure = Never

    let value: PublishedValue<Value>

    public func receive<S: Subscriber>(subscriber: S) where S.Input == Value, S.Failure == Never {
      value.broadcast.attach(subscriber)
    }
  }

  /// Where the value is; the same for copies of the wrapper.
  private final class Place: @unchecked Sendable {
    // Unchecked: behind a lock.
    private let current: Locked<PublishedValue<Value>>

    init(_ value: PublishedValue<Value>) {
      current = Locked(value)
    }

    var value: PublishedValue<Value> {
      get { current.with { $0 } }
      set {
        let old = current.with { current in
          defer { current = newValue }
          return current
        }
        withExtendedLifetime(old) {}
      }
    }
  }
}

// Unchecked: what changes is behind locks.
extension Published: @unchecked Sendable where Value: Sendable {}
extension Published.Publisher: @unchecked Sendable where Value: Sendable {}

extension Published: AnnouncesChanges {
  var announcement: ObservableObjectPublisher? {
    get { place.value.announcement }
    nonmutating set { place.value.announcement = newValue }
  }
}
