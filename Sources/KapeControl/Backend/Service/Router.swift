/// Which operation a method and a path mean.
struct Router: Sendable {
  private struct Route: Sendable {
    let operation: Operation
    /// A part in braces stands for any one.
    let parts: [String]
  }

  enum Match: Sendable, Equatable {
    /// With what stands for the parts in braces, decoded.
    case operation(Operation, [String: String])
    /// The path is one of ours; these methods go with it.
    case otherMethods([String])
    case none
  }

  private let routes: [Route]

  /// `paths` of the operations that this listener serves.
  init(_ paths: [Operation: String]) {
    routes = Operation.allCases.compactMap { operation in
      paths[operation].map { Route(operation: operation, parts: Self.parts($0)) }
    }
  }

  func match(method: String, path: String) -> Match {
    let parts = Self.parts(path)
    var methods: [String] = []
    for route in routes {
      guard let values = Self.values(route.parts, parts) else { continue }
      if route.operation.method == method { return .operation(route.operation, values) }
      methods.append(route.operation.method)
    }
    return methods.isEmpty ? .none : .otherMethods(methods)
  }

  private static func parts(_ path: String) -> [String] {
    path.split(separator: "/", omittingEmptySubsequences: false).map(String.init)
  }

  private static func values(_ pattern: [String], _ parts: [String]) -> [String: String]? {
    guard pattern.count == parts.count else { return nil }
    var values: [String: String] = [:]
    for (wanted, part) in zip(pattern, parts) {
      guard let part = FormData.decoded(part.utf8, plusIsBlank: false) else { return nil }
      if wanted.hasPrefix("{"), wanted.hasSuffix("}") {
        guard !part.isEmpty else { return nil }
        values[String(wanted.dropFirst().dropLast())] = part
      } else if wanted != part {
        return nil
      }
    }
    return values
  }
}
