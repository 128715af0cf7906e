/// Values of property lists as the objects that the platform's signatures ask for; Foundation on Linux does not bridge
/// them.
enum PropertyListObjects {
  static func object(_ value: Any) -> NSObject? {
    switch value {
    case let text as String: NSString(string: text)
    case let data as Data: NSData(data: data)
    case let date as Date: NSDate(timeIntervalSinceReferenceDate: date.timeIntervalSinceReferenceDate)
    case let object as NSNumber: object
    case let flag as Bool: NSNumber(value: flag)
    case let number as Int: NSNumber(value: number)
    case let number as UInt64: NSNumber(value: number)
    case let number as Double: NSNumber(value: number)
    case let values as [Any]: NSArray(array: values.compactMap(object))
    case let members as [String: Any]: dictionary(members)
    case let object as NSObject: object
    default: nil
    }
  }

  private static func dictionary(_ members: [String: Any]) -> NSDictionary {
    let made = NSMutableDictionary()
    for (name, value) in members {
      if let object = object(value) { made.setObject(object, forKey: NSString(string: name)) }
    }
    return made
  }

  /// The way back, for what writes property lists.
  static func value(_ object: Any) -> Any {
    switch object {
    case let text as NSString: String(text.description)
    case let data as NSData: Data(referencing: data)
    case let date as NSDate: Date(timeIntervalSinceReferenceDate: date.timeIntervalSinceReferenceDate)
    case let values as NSArray: (0..<values.count).map { value(values.object(at: $0)) }
    case let members as NSDictionary:
      members.reduce(into: [String: Any]()) { found, member in
        let name = (member.key as? String) ?? (member.key as? NSString)?.description
        if let name { found[name] = value(member.value) }
      }
    case let values as [Any]: values.map(value)
    case let members as [String: Any]: members.mapValues(value)
    default: object
    }
  }

  /// nil for nil; throws when a value is none of a property list.
  static func encode(_ members: [String: Any]?) throws -> Data? {
    guard let members else { return nil }
    return try PropertyListSerialization.data(fromPropertyList: value(members), format: .binary, options: 0)
  }

  static func decode(_ data: Data) -> [String: Any]? {
    (try? PropertyListSerialization.propertyList(from: data, options: [], format: nil)) as? [String: Any]
  }
}
