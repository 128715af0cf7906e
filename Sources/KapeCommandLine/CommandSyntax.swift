import KapeProtocols

/// What a command line may hold, to say what is wrong with one.
package struct CommandSyntax: Sendable {
  package var options: [String] = []
  /// Each is followed by its value.
  package var optionsWithValue: [String] = []
  /// How many other arguments there may be.
  package var operands: ClosedRange<Int> = 0...0
  /// "-" is one of those: standard input.
  package var takesStandardInput = false

  package init(
    options: [String] = [], optionsWithValue: [String] = [], operands: ClosedRange<Int> = 0...0,
    takesStandardInput: Bool = false
  ) {
    self.options = options
    self.optionsWithValue = optionsWithValue
    self.operands = operands
    self.takesStandardInput = takesStandardInput
  }

  /// nil: every word is in its place. The first word that is not is named.
  package func fault(in arguments: [String]) -> String? {
    var operandCount = 0
    var rest = arguments[...]
    while let argument = rest.popFirst() {
      if optionsWithValue.contains(argument) {
        guard let value = rest.popFirst(), !value.isEmpty else { return "option '\(argument)' needs a value" }
      } else if argument.hasPrefix("-"), argument != "-" || !takesStandardInput {
        guard options.contains(argument) else { return Self.unknownOption(argument, options, optionsWithValue) }
      } else {
        operandCount += 1
        if operandCount > operands.upperBound { return "unexpected argument '\(argument)'" }
        if argument.isEmpty { return "an argument is empty" }
      }
    }
    return operandCount < operands.lowerBound ? "an argument is missing" : nil
  }

  private static func unknownOption(_ word: String, _ options: [String], _ optionsWithValue: [String]) -> String {
    let parts = word.split(separator: "=", maxSplits: 1)
    if let name = parts.first.map(String.init), parts.count == 2, optionsWithValue.contains(name) {
      return "unknown option '\(word)'; did you mean '\(name) \(parts[1])'?"
    }
    // One letter is near to every other.
    let long = (options + optionsWithValue + ["--help"]).filter { $0.hasPrefix("--") }
    let near = word.count > 2 ? NearMatch.find(word, among: long) : nil
    return "unknown option '\(word)'" + (near.map { "; did you mean '\($0)'?" } ?? "")
  }
}
