import KapeProtocols

/// What is wrong with a file of settings: every place, with what it may be instead.
package struct SettingsError: Error, CustomStringConvertible {
  package let problems: [String]
  package var description: String { problems.joined(separator: "\n") }
}

/// One object of the file as it is being read. Whatever is wrong is noted and read on, so that all of it is told at once.
final class SettingsObject {
  final class Notes {
    var problems: [String] = []
  }

  let notes: Notes
  private let place: String
  private let members: [String: JSON]
  private var known: Set<String> = []

  init(_ json: JSON, at place: String, _ notes: Notes) {
    self.place = place
    self.notes = notes
    if case .object(let members) = json {
      self.members = members
    } else {
      members = [:]
      note("an object is wanted")
    }
  }

  private func note(_ text: String) { notes.problems.append("\(place.isEmpty ? "settings" : place): \(text)") }

  func problem(_ name: String, _ text: String) { notes.problems.append("\(path(name)): \(text)") }

  private func path(_ name: String) -> String { place.isEmpty ? name : "\(place).\(name)" }

  private func value(_ name: String) -> JSON? {
    known.insert(name)
    let value = members[name]
    return value == .null ? nil : value
  }

  func has(_ name: String) -> Bool { value(name) != nil }

  /// A value that `convert` takes. `fallback` stands for one that is not there; without it, that is a problem.
  private func read<Value>(
    _ name: String, _ wanted: String, _ fallback: Value?, ifWrong: Value, _ convert: (JSON) -> Value?
  ) -> Value {
    guard let json = value(name) else {
      if fallback == nil { problem(name, "is missing; \(wanted) is wanted") }
      return fallback ?? ifWrong
    }
    guard let converted = convert(json) else {
      problem(name, "\(wanted) is wanted, not \(json.text.prefix(80))")
      return fallback ?? ifWrong
    }
    return converted
  }

  func string(_ name: String, or fallback: String? = nil) -> String {
    read(name, "a text that is not empty", fallback, ifWrong: "") { $0.string.flatMap { $0.isEmpty ? nil : $0 } }
  }

  func optionalString(_ name: String) -> String? { has(name) ? string(name) : nil }

  func bool(_ name: String, or fallback: Bool) -> Bool {
    read(name, "true or false", fallback, ifWrong: fallback) { if case .bool(let value) = $0 { value } else { nil } }
  }

  func integer(_ name: String, _ range: ClosedRange<Int64>, or fallback: Int64? = nil) -> Int64 {
    read(name, "a whole number, \(range.lowerBound) to \(range.upperBound),", fallback, ifWrong: range.lowerBound) {
      $0.integer.flatMap { range.contains($0) ? $0 : nil }
    }
  }

  func optionalInteger(_ name: String, _ range: ClosedRange<Int64>) -> Int64? {
    has(name) ? integer(name, range) : nil
  }

  /// Seconds, or a number with s, min, h or d: "30 d".
  func seconds(_ name: String, _ range: ClosedRange<Int64>, or fallback: Int64? = nil) -> Int64 {
    read(
      name, "a time, \(Self.duration(range.lowerBound)) to \(Self.duration(range.upperBound)), such as \"15 min\",",
      fallback, ifWrong: range.lowerBound
    ) { json in
      (json.integer ?? json.string.flatMap(Self.seconds)).flatMap { range.contains($0) ? $0 : nil }
    }
  }

  func optionalSeconds(_ name: String, _ range: ClosedRange<Int64>) -> Int64? { has(name) ? seconds(name, range) : nil }

  func number(_ name: String, _ range: ClosedRange<Double>) -> Double {
    read(name, "a number, \(range.lowerBound) to \(range.upperBound),", nil, ifWrong: range.lowerBound) { json in
      switch json {
      case .integer(let value): range.contains(Double(value)) ? Double(value) : nil
      case .number(let value): range.contains(value) ? value : nil
      default: nil
      }
    }
  }

  func strings(_ name: String, or fallback: [String]? = nil) -> [String] {
    read(name, "an array of texts", fallback, ifWrong: []) { $0.strings }
  }

  func choice<Value: RawRepresentable & CaseIterable>(_ name: String, or fallback: Value) -> Value
  where Value.RawValue == String {
    read(name, Value.allCases.map(\.rawValue).joined(separator: " or "), fallback, ifWrong: fallback) {
      $0.string.flatMap(Value.init(rawValue:))
    }
  }

  func address(_ name: String, or fallback: IPAddress? = nil) -> IPAddress {
    read(name, "an IP address", fallback, ifWrong: .anyIPv4) { $0.string.flatMap { IPAddress($0) } }
  }

  func socketAddress(_ name: String, or fallback: SocketAddress? = nil) -> SocketAddress {
    read(
      name, "ADDRESS:PORT, such as \"127.0.0.1:8480\" or \"[::1]:8480\",", fallback, ifWrong: .init(.anyIPv4, port: 0)
    ) {
      $0.string.flatMap { SocketAddress(text: Array($0.utf8).span.bytes) }
    }
  }

  func optionalSocketAddress(_ name: String) -> SocketAddress? { has(name) ? socketAddress(name) : nil }

  /// An object within; one without members where there is none.
  func object(_ name: String) -> SettingsObject {
    SettingsObject(value(name) ?? [:], at: path(name), notes)
  }

  func objects<Value>(_ name: String, _ read: (SettingsObject) -> Value) -> [Value] {
    guard let json = value(name) else { return [] }
    guard let array = json.array else {
      problem(name, "an array is wanted")
      return []
    }
    return array.enumerated().map { index, element in
      let object = SettingsObject(element, at: "\(path(name))[\(index)]", notes)
      defer { object.finish() }
      return read(object)
    }
  }

  /// Names of members, for an object whose names are not fixed.
  var names: [String] { members.keys.sorted() }

  /// Call when all is read: what is there and was not asked for is a misspelling.
  func finish() {
    for name in names where !known.contains(name) {
      let near = NearMatch.find(name, among: known.sorted())
      problem(
        name,
        "unknown; " + (near.map { "did you mean \($0)?" } ?? "there may be \(known.sorted().joined(separator: ", "))"))
    }
  }

  private static let units: [(name: String, seconds: Int64)] = [("d", 86_400), ("h", 3600), ("min", 60), ("s", 1)]

  static func seconds(_ text: String) -> Int64? {
    for unit in units where text.hasSuffix(unit.name) {
      guard let count = Int64(text.dropLast(unit.name.count).trimmingBlanks) else { continue }
      let (seconds, overflow) = count.multipliedReportingOverflow(by: unit.seconds)
      return overflow ? nil : seconds
    }
    return nil
  }

  private static func duration(_ seconds: Int64) -> String {
    guard let unit = units.first(where: { seconds % $0.seconds == 0 && abs(seconds) >= $0.seconds }) else {
      return "\(seconds) s"
    }
    return "\(seconds / unit.seconds) \(unit.name)"
  }
}
