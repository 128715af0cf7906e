package import KapeProtocols

extension IPPrefix {
  /// The fewest prefixes that hold every address for which the longest prefix that holds it, among both lists, is an
  /// included one, in the order of their addresses. What both lists have is excluded. nil: they are more than `limit`.
  package static func cover(_ included: [IPPrefix], without excluded: [IPPrefix], limit: Int) -> [IPPrefix]? {
    var found: [IPPrefix] = []
    for prefix in Set(included) {
      guard prefix.subtract(excluded.filter { prefix.contains($0) }, into: &found, limit: limit) else { return nil }
    }
    // What is within another says nothing new.
    let sorted = found.sorted { $0.precedes($1) }
    var kept: [IPPrefix] = []
    for prefix in sorted where !(kept.last?.contains(prefix) ?? false) { kept.append(prefix) }
    return kept
  }

  /// False: too many.
  private func subtract(_ excluded: [IPPrefix], into found: inout [IPPrefix], limit: Int) -> Bool {
    if excluded.isEmpty {
      found.append(self)
      return found.count <= limit
    }
    if excluded.contains(where: { $0.contains(self) }) { return true }
    for half in halves {
      guard half.subtract(excluded.filter { $0.overlaps(half) }, into: &found, limit: limit) else { return false }
    }
    return true
  }

  package func overlaps(_ other: IPPrefix) -> Bool { contains(other) || other.contains(self) }

  /// IPv4 before IPv6, then as numbers, and the wider of two that begin alike.
  private func precedes(_ other: IPPrefix) -> Bool {
    if address.family != other.address.family { return address.family == .ipv4 }
    if address == other.address { return length < other.length }
    return address.withUnsafeBytes { mine in other.address.withUnsafeBytes { mine.lexicographicallyPrecedes($0) } }
  }

  /// Of one that is not a single address.
  private var halves: [IPPrefix] {
    var bytes = address.withUnsafeBytes { Array($0) }
    bytes[length / 8] |= 0x80 >> UInt8(length % 8)
    return [address, IPAddress(bytes: bytes.span.bytes)].compactMap { address in
      address.flatMap { IPPrefix($0, length: length + 1) }
    }
  }
}
