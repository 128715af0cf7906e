import Foundation

/// Whom to ask for what.
struct HTTPTarget: Equatable, Sendable {
  var isTLS: Bool
  /// A name in ASCII, or an IP address without brackets.
  var host: String
  var port: UInt16
  /// Path and query as they are sent.
  var path: String

  /// The URL with the query's pairs behind what query it has, in the order of their names.
  init(_ url: String, query: [String: String], allowsPlainHTTP: Bool) throws(KapeHTTPError) {
    guard let parts = URLComponents(string: url, encodingInvalidCharacters: false) else {
      throw KapeHTTPError(host: "?", cause: .badURL("not a URL (RFC 3986)"))
    }
    guard var host = parts.host, !host.isEmpty else { throw KapeHTTPError(host: "?", cause: .badURL("no host")) }
    if host.hasPrefix("["), host.hasSuffix("]") { host = String(host.dropFirst().dropLast()) }
    let name = parts.port.map { Self.bracketed(host) + ":\($0)" } ?? Self.bracketed(host)
    func refuse(_ cause: KapeHTTPError.Cause) -> KapeHTTPError { KapeHTTPError(host: name, cause: cause) }

    switch parts.scheme?.lowercased() {
    case "https": isTLS = true
    case "http" where allowsPlainHTTP: isTLS = false
    case "http": throw refuse(.plainHTTPRefused)
    default: throw refuse(.badURL("neither https nor http"))
    }
    guard parts.user == nil, parts.password == nil else { throw refuse(.badURL("a user name in it; use a header")) }
    guard let port = UInt16(exactly: parts.port ?? (isTLS ? 443 : 80)), port != 0 else {
      throw refuse(.badURL("no such port"))
    }
    guard host.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F && $0 != UInt8(ascii: "%") }) else {
      throw refuse(.badURL("a host name that is not plain ASCII"))
    }
    self.host = host
    self.port = port
    let pairs = query.sorted { $0.key < $1.key }.map { Self.encoded($0.key) + "=" + Self.encoded($0.value) }
    let whole = ([parts.percentEncodedQuery].compactMap { $0 } + pairs).joined(separator: "&")
    path = parts.percentEncodedPath.isEmpty ? "/" : parts.percentEncodedPath
    if !whole.isEmpty { path += "?" + whole }
    guard path.hasPrefix("/"), path.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F }) else {
      throw refuse(.badURL("a path that is not percent-encoded"))
    }
  }

  /// With the port, as errors and logs name it.
  var name: String { Self.bracketed(host) + ":\(port)" }

  /// As the `Host` header has it: without the port that goes without saying.
  var authority: String { port == (isTLS ? 443 : 80) ? Self.bracketed(host) : name }

  private static func bracketed(_ host: String) -> String { host.contains(":") ? "[\(host)]" : host }

  /// Everything but the unreserved characters of RFC 3986, section 2.3, is encoded.
  static func encoded(_ text: String) -> String {
    var result = ""
    for byte in text.utf8 {
      switch byte {
      case 0x30...0x39, 0x41...0x5A, 0x61...0x7A, UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_"),
        UInt8(ascii: "~"):
        result.unicodeScalars.append(Unicode.Scalar(byte))
      default:
        result += byte < 16 ? "%0" : "%"
        result += String(byte, radix: 16, uppercase: true)
      }
    }
    return result
  }
}
