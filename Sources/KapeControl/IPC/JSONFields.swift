/// An object's members taken out one by one, by kind and within limits; what is left at the end was not expected.
package struct JSONFields {
  package struct Fault: Error, Equatable, CustomStringConvertible {
    package var description: String
  }

  private let place: String
  private var members: [String: JSONValue] = [:]

  /// `place` names the object in faults.
  package init(_ value: JSONValue, _ place: String) throws(Fault) {
    self.place = place
    guard case .object(let members) = value else { throw Fault(description: "\(place): an object is expected") }
    for member in members { self.members[member.name] = member.value }
  }

  /// nil when it is missing or null.
  private mutating func take(_ name: String) -> JSONValue? {
    let value = members.removeValue(forKey: name)
    return value == .null ? nil : value
  }

  private func fault(_ name: String, _ reason: String) -> Fault {
    Fault(description: "\(place).\(name): \(reason)")
  }

  /// `limit`: bytes of UTF-8.
  package mutating func optionalString(_ name: String, limit: Int) throws(Fault) -> String? {
    guard let value = take(name) else { return nil }
    guard case .string(let text) = value else { throw fault(name, "a string is expected") }
    guard text.utf8.count <= limit else { throw fault(name, "longer than \(limit) bytes") }
    return text
  }

  package mutating func string(_ name: String, limit: Int) throws(Fault) -> String {
    guard let text = try optionalString(name, limit: limit) else { throw fault(name, "it is missing") }
    return text
  }

  package mutating func optionalUnsigned(_ name: String, limit: UInt64 = .max) throws(Fault) -> UInt64? {
    guard let value = take(name) else { return nil }
    guard case .unsigned(let number) = value, number <= limit else {
      throw fault(name, "a whole number up to \(limit) is expected")
    }
    return number
  }

  package mutating func unsigned(_ name: String, limit: UInt64 = .max) throws(Fault) -> UInt64 {
    guard let number = try optionalUnsigned(name, limit: limit) else { throw fault(name, "it is missing") }
    return number
  }

  /// A number that may be below zero.
  package mutating func signed(_ name: String) throws(Fault) -> Int64 {
    switch take(name) {
    case .unsigned(let number):
      if let number = Int64(exactly: number) { return number }
    case .negative(let number): return number
    default: break
    }
    throw fault(name, "a whole number is expected")
  }

  /// False when it is missing.
  package mutating func bool(_ name: String) throws(Fault) -> Bool {
    guard let value = take(name) else { return false }
    guard case .bool(let flag) = value else { throw fault(name, "true or false is expected") }
    return flag
  }

  package mutating func data(_ name: String, limit: Int) throws(Fault) -> [UInt8]? {
    guard let text = try optionalString(name, limit: (limit + 2) / 3 * 4) else { return nil }
    guard let bytes = Base64.decode(text) else { throw fault(name, "base64 is expected") }
    return bytes
  }

  package mutating func object(_ name: String) throws(Fault) -> JSONFields? {
    guard let value = take(name) else { return nil }
    return try JSONFields(value, "\(place).\(name)")
  }

  /// As it is, whatever it is; nil when it is missing or null.
  package mutating func value(_ name: String) -> JSONValue? { take(name) }

  package mutating func array(_ name: String, limit: Int) throws(Fault) -> [JSONValue] {
    guard let value = take(name) else { return [] }
    guard case .array(let elements) = value else { throw fault(name, "an array is expected") }
    guard elements.count <= limit else { throw fault(name, "more than \(limit) elements") }
    return elements
  }

  /// Texts that `parse` understands; the first that it does not is named.
  package mutating func texts<Element>(
    _ name: String, limit: Int, length: Int = 255, _ kind: String, _ parse: (String) -> Element?
  ) throws(Fault) -> [Element] {
    var found: [Element] = []
    for (index, element) in try array(name, limit: limit).enumerated() {
      guard case .string(let text) = element, text.utf8.count <= length, let parsed = parse(text) else {
        throw fault("\(name)[\(index)]", "\(kind) is expected")
      }
      found.append(parsed)
    }
    return found
  }

  /// Throws when a member was never asked for.
  package func end() throws(Fault) {
    guard let name = members.keys.min() else { return }
    throw fault(name, "there is no such member")
  }
}
