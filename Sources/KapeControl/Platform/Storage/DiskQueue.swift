import Foundation

/// Runs what waits for the disk, one after the other, on a queue of its own: no thread of the cooperative pool waits.
package final class DiskQueue: Sendable {
  private let queue: DispatchQueue

  package init(_ label: String) { queue = DispatchQueue(label: label) }

  package func run<Value: Sendable>(_ body: @escaping @Sendable () throws -> Value) async throws -> Value {
    try await withCheckedThrowingContinuation { continuation in
      queue.async { continuation.resume(with: Result(catching: body)) }
    }
  }
}
