/// Runs `work` for every item, `width` at a time, and tells each result as it comes.
///
/// - Throws: the first thing that is thrown; the rest is cancelled then.
@concurrent
func inParallel<Item: Sendable, Result: Sendable>(
  _ items: [Item], width: Int, _ work: @escaping @Sendable (Item) async throws -> Result,
  each: (Item, Result) async -> Void
) async throws {
  try await withThrowingTaskGroup(of: (Item, Result).self) { group in
    var rest = items[...]
    func addNext() {
      guard let item = rest.popFirst() else { return }
      group.addTask { (item, try await work(item)) }
    }
    for _ in 0..<max(1, width) { addNext() }
    while let (item, result) = try await group.next() {
      await each(item, result)
      addNext()
    }
  }
}
