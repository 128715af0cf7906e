/// The nearest of a few names to a misspelt one, case aside.
package enum NearMatch {
  /// nil when nothing is near: a third of the characters wrong, or more than 3.
  package static func find(_ word: String, among names: [String]) -> String? {
    let word = Array(word.lowercased().utf8)
    guard word.count <= 64 else { return nil }
    let limit = min(3, max(1, word.count / 3))
    var best: (name: String, distance: Int)?
    for name in names {
      let distance = distance(word, Array(name.lowercased().utf8))
      if distance <= limit, distance < best?.distance ?? .max { best = (name, distance) }
    }
    return best?.name
  }

  /// Insertions, deletions, substitutions and swaps of neighbours (optimal string alignment).
  static func distance(_ a: [UInt8], _ b: [UInt8]) -> Int {
    var beforePrevious = [Int](repeating: 0, count: b.count + 1)
    var previous = Array(0...b.count)
    for i in a.indices {
      var current = [i + 1] + [Int](repeating: 0, count: b.count)
      for j in b.indices {
        let cost = a[i] == b[j] ? 0 : 1
        current[j + 1] = min(previous[j + 1] + 1, current[j] + 1, previous[j] + cost)
        if i > 0, j > 0, a[i] == b[j - 1], a[i - 1] == b[j] {
          current[j + 1] = min(current[j + 1], beforePrevious[j - 1] + 1)
        }
      }
      (beforePrevious, previous) = (previous, current)
    }
    return previous[b.count]
  }
}
