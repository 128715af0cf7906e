/// Tells one subscriber or subscription from another.
public struct CombineIdentifier: Hashable, CustomStringConvertible, @unchecked Sendable {
  // Unchecked: never called, only compared.
  private let object: AnyObject

  /// Like no other.
  public init() {
    object = Token()
  }

  /// That of the object.
  public init(_ object: AnyObject) {
    self.object = object
  }

  public var description: String {
    "0x" + String(UInt(bitPattern: ObjectIdentifier(object)), radix: 16)
  }

  public static func == (one: CombineIdentifier, other: CombineIdentifier) -> Bool {
    one.object === other.object
  }

  public func hash(into hasher: inout Hasher) {
    hasher.combine(ObjectIdentifier(object))
  }

  private final class Token {}
}

/// What has an identifier; objects have that of themselves.
public protocol CustomCombineIdentifierConvertible {
  var combineIdentifier: CombineIdentifier { get }
}

extension CustomCombineIdentifierConvertible where Self: AnyObject {
  public var combineIdentifier: CombineIdentifier { CombineIdentifier(self) }
}
