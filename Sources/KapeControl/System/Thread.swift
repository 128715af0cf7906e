import Glibc

private final class ThreadBody {
  let run: @Sendable () -> Void
  init(_ run: @escaping @Sendable () -> Void) { self.run = run }
}

/// Starts a detached thread with a small stack. For the few things that must block or need a thread of their own.
package func startThread(stackSize: Int, _ run: @escaping @Sendable () -> Void) throws(SystemError) {
  _ = try makeThread(stackSize: stackSize, detached: true, run)
}

/// Runs `work` on a thread of its own and waits for it: for calls that change the thread itself, such as setns(2).
func onOwnThread(_ work: @escaping @Sendable () -> Void) throws(SystemError) {
  let thread = try makeThread(stackSize: 256 * 1024, detached: false, work)
  pthread_join(thread, nil)
}

private func makeThread(
  stackSize: Int, detached: Bool, _ run: @escaping @Sendable () -> Void
) throws(SystemError) -> pthread_t {
  var attributes = pthread_attr_t()
  pthread_attr_init(&attributes)
  defer { pthread_attr_destroy(&attributes) }
  pthread_attr_setstacksize(&attributes, stackSize)
  pthread_attr_setdetachstate(&attributes, Int32(detached ? PTHREAD_CREATE_DETACHED : PTHREAD_CREATE_JOINABLE))
  let body = Unmanaged.passRetained(ThreadBody(run))
  var thread = pthread_t()
  let result = pthread_create(
    &thread, &attributes,
    { context in
      guard let context else { return nil }
      Unmanaged<ThreadBody>.fromOpaque(context).takeRetainedValue().run()
      return nil
    }, body.toOpaque())
  guard result == 0 else {
    body.release()
    throw SystemError("pthread_create", code: result)
  }
  return thread
}
