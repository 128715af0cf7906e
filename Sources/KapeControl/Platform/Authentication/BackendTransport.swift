package import Foundation

/// One request over HTTP, as the SDK's own calls need it.
package struct BackendRequest: Sendable {
  package enum Method: String, Sendable {
    case get = "GET"
    case post = "POST"
  }

  /// Whom the other end has to be.
  package enum Trust: Equatable, Sendable {
    /// The host of the URL, by the settings' certificates, or the system's where there are none.
    case host
    /// One with this common name, by these certificates (DER) alone, whatever the host is called.
    case commonName(String, anchors: [Data])
  }

  package var method: Method
  package var url: URL
  package var fields: [String: String]
  package var body: Data?
  package var trust: Trust
  /// For all of it.
  package var deadline: Duration

  package init(
    _ method: Method, _ url: URL, fields: [String: String] = [:], body: Data? = nil, trust: Trust = .host,
    deadline: Duration = .seconds(30)
  ) {
    self.method = method
    self.url = url
    self.fields = fields
    self.body = body
    self.trust = trust
    self.deadline = deadline
  }

  /// A form (application/x-www-form-urlencoded).
  package static func form(_ url: URL, _ values: KeyValuePairs<String, String>) -> BackendRequest {
    let text = values.map { FormEncoding.encode($0) + "=" + FormEncoding.encode($1) }.joined(separator: "&")
    return BackendRequest(
      .post, url, fields: ["content-type": "application/x-www-form-urlencoded", "accept": "application/json"],
      body: Data(text.utf8))
  }
}

package struct BackendResponse: Sendable {
  package var status: Int
  /// Names in lower case.
  package var fields: [String: String]
  package var body: Data

  package init(status: Int, fields: [String: String] = [:], body: Data = Data()) {
    self.status = status
    self.fields = fields
    self.body = body
  }
}

/// Carries requests out. An answer of any status is an answer; what is thrown means that there was none.
package protocol BackendTransport: Sendable {
  /// - Throws: when nothing whole came in time; `CancellationError`.
  func send(_ request: BackendRequest) async throws -> BackendResponse
}

package enum FormEncoding {
  /// All but the unreserved characters of RFC 3986 as %XX.
  package static func encode(_ text: String) -> String {
    var result = ""
    for byte in text.utf8 {
      switch byte {
      case UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "a")...UInt8(ascii: "z"),
        UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_"),
        UInt8(ascii: "~"):
        result.append(Character(Unicode.Scalar(byte)))
      default:
        let digits = String(byte, radix: 16, uppercase: true)
        result += digits.utf8.count == 1 ? "%0" + digits : "%" + digits
      }
    }
    return result
  }
}
