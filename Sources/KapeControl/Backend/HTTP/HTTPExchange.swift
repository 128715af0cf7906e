import Synchronization

/// One request on its way in and its answer on the way out, while libmicrohttpd holds on to it.
final class HTTPExchange: Sendable {
  struct State {
    var request: HTTPRequest
    var hasBegun = false
    /// Bytes of the body, kept or not.
    var received = 0
    var response: HTTPResponse?
  }

  let state: Mutex<State>

  init(target: String) {
    state = Mutex(State(request: HTTPRequest(method: "", target: target, client: "")))
  }

  /// False: so much more than `limit` that it is not worth reading to its end.
  func take(_ bytes: UnsafeRawBufferPointer, limit: Int) -> Bool {
    state.withLock { state in
      state.received += bytes.count
      if state.received <= limit {
        state.request.body.append(contentsOf: bytes)
      } else {
        state.request.isBodyTooLarge = true
        state.request.body = []
      }
      return state.received <= limit * HTTPListener.patience
    }
  }
}
