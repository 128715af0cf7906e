import Synchronization

/// What the browser shows after it has come back.
enum LoopbackPage: Equatable, Sendable {
  case done
  case failed(String)
  case notFound

  /// A whole HTTP response. The page runs nothing and loads nothing, and its address, which has a code in it, is told to
  /// nobody.
  var response: String {
    let body =
      "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\"><title>\(title)</title></head>"
      + "<body><h1>\(title)</h1><p>\(text)</p></body></html>\n"
    return "HTTP/1.1 \(status)\r\nContent-Type: text/html; charset=utf-8\r\nContent-Length: \(body.utf8.count)\r\n"
      + "Cache-Control: no-store\r\nContent-Security-Policy: default-src 'none'\r\nReferrer-Policy: no-referrer\r\n"
      + "X-Content-Type-Options: nosniff\r\nConnection: close\r\n\r\n" + body
  }

  private var status: String {
    switch self {
    case .done: "200 OK"
    case .failed: "400 Bad Request"
    case .notFound: "404 Not Found"
    }
  }

  private var title: String {
    switch self {
    case .done: "Back to the app"
    case .failed: "Not signed in"
    case .notFound: "Nothing here"
    }
  }

  private var text: String {
    switch self {
    case .done: "You can close this window and go on in the app."
    case .failed(let reason): Self.escaped(reason) + " Go back to the app and try again."
    case .notFound: "This address is for a browser that comes back from signing in."
    }
  }

  private static func escaped(_ text: String) -> String {
    var result = ""
    for character in text {
      switch character {
      case "&": result += "&amp;"
      case "<": result += "&lt;"
      case ">": result += "&gt;"
      case "\"": result += "&quot;"
      default: result.append(character)
      }
    }
    return result
  }
}

/// How many of something there are.
final class Counter: Sendable {
  private let count = Mutex(0)

  /// False: there are as many as there may be.
  func increment(upTo limit: Int) -> Bool {
    count.withLock { count in
      guard count < limit else { return false }
      count += 1
      return true
    }
  }

  func decrement() { count.withLock { $0 -= 1 } }
}
