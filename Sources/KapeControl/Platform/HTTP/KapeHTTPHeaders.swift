/// The headers of an answer. Names are compared without regard to case.
public struct KapeHTTPHeaders: Sendable {
  private let fields: [HTTPResponseParser.Field]

  init(_ fields: [HTTPResponseParser.Field]) { self.fields = fields }

  /// The value; those of several headers of the name are joined by commas (RFC 9110, section 5.3).
  public subscript(name: String) -> String? {
    let values = values(name)
    return values.isEmpty ? nil : values.joined(separator: ", ")
  }

  /// The value of each header of the name, in their order.
  public func values(_ name: String) -> [String] {
    fields.values(of: name.lowercased())
  }
}
