import Foundation

/// Runs what it is given one after the other, in that order, elsewhere.
package protocol SerialQueue: Sendable {
  func enqueue(_ work: @escaping @Sendable () -> Void)
}

/// On a thread that is not one of the cooperative pool: what is enqueued may block.
package struct DispatchSerialQueue: SerialQueue {
  private let queue: DispatchQueue

  package init(label: String) { queue = DispatchQueue(label: label, qos: .utility) }

  package func enqueue(_ work: @escaping @Sendable () -> Void) { queue.async(execute: work) }
}
