import Dispatch

/// Runs an actor on a queue of its own, so that what blocks (a disk, a password hash, a socket that answers late) holds
/// up nobody of the cooperative pool.
final class QueueExecutor: SerialExecutor {
  private let queue: DispatchQueue

  init(_ name: String) { queue = DispatchQueue(label: name) }

  func enqueue(_ job: consuming ExecutorJob) {
    let job = UnownedJob(job)
    queue.async { job.runSynchronously(on: self.asUnownedSerialExecutor()) }
  }
}
