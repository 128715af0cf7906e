/// What a reader of configurations has to say about one place of a file. It never holds key material: values of keys
/// that carry secrets are not quoted, nor is anything that looks like one.
public struct Diagnostic: Hashable, Sendable {
  public enum Severity: String, Hashable, Sendable {
    /// The configuration is refused.
    case error
    /// It is accepted; what it says may not be what was meant.
    case warning
  }

  public let severity: Severity
  /// As it was given to the reader.
  public let file: String
  /// From 1; nil: the file as a whole.
  public let line: Int?
  public let key: String?
  /// What is wrong.
  public let reason: String
  /// What to do about it.
  public let remedy: String

  public init(_ severity: Severity, file: String, line: Int?, key: String?, reason: String, remedy: String) {
    self.severity = severity
    self.file = file
    self.line = line
    self.key = key
    self.reason = reason
    self.remedy = remedy
  }
}

extension Diagnostic: CustomStringConvertible {
  /// FILE:LINE: error: KEY: REASON; REMEDY
  public var description: String {
    var text = file
    if let line { text += ":\(line)" }
    text += text.isEmpty ? "" : ": "
    text += "\(severity.rawValue): "
    if let key { text += "\(key): " }
    return text + reason + (remedy.isEmpty ? "" : "; " + remedy)
  }
}

/// A configuration that was refused, with every reason found.
public struct ConfigurationError: Error, CustomStringConvertible {
  public let diagnostics: [Diagnostic]

  public var description: String {
    diagnostics.map(\.description).joined(separator: "\n")
  }
}

/// What is read of a file, however much that is.
public struct ParsedConfiguration<Configuration: Sendable>: Sendable {
  /// nil when there is an error among the diagnostics.
  public let configuration: Configuration?
  /// In the order of lines.
  public let diagnostics: [Diagnostic]
  /// The line of each key that counts once and is not one of many sections', as the key is spelt in manuals: for what
  /// turns out only when the configuration is used.
  public let lines: [String: Int]

  /// The configuration, or everything that is wrong with it.
  public func get() throws(ConfigurationError) -> Configuration {
    guard let configuration else { throw ConfigurationError(diagnostics: diagnostics) }
    return configuration
  }
}
