import Foundation
import Synchronization

/// One question to a generator, on its way through the defaults that stand for one another. It notices when they go round
/// in a circle, and carries what the throwing form threw through the form that cannot throw.
package final class GeneratorCall: Sendable {
  @TaskLocal package static var current: GeneratorCall?
  /// Types whose default form is being asked, on the way here.
  @TaskLocal private static var asked: Set<ObjectIdentifier> = []

  private struct State {
    var error: (any Error)?
    var withoutMethod: String?
    var isOneByOne = false
  }
  private let state = Mutex(State())
  private let report: @Sendable (String) -> Void

  /// `report` gets the one line about a type that implements neither form.
  package init(report: @escaping @Sendable (String) -> Void = GeneratorCall.toStandardError) {
    self.report = report
  }

  /// What was thrown, or nil.
  package var error: (any Error)? { state.withLock { $0.error } }
  /// The type that implements neither form, or nil.
  package var typeWithoutMethod: String? { state.withLock { $0.withoutMethod } }

  /// Whether it was asked for one at a time: then what it gives is no round, and it knows itself when one is over.
  package var isOneByOne: Bool { state.withLock { $0.isOneByOne } }

  /// Asks in the batch form, with all that was thrown.
  package func configurations(from generator: any VpnConfigurationGenerator) async throws -> [any VpnConfiguration] {
    let batch = await Self.$current.withValue(self) { await generator.generateConfigurations() }
    if batch.isEmpty, let error { throw error }
    return batch
  }

  func askedForOne() { state.withLock { $0.isOneByOne = true } }
  func fail(_ error: any Error) { state.withLock { $0.error = error } }

  /// Runs `body`, the other form, unless one default of this type is being asked already: then the type implements
  /// neither, and the answer is nil.
  func within<Result>(
    _ type: any VpnConfigurationGenerator.Type, _ body: () async -> Result
  ) async -> Result? {
    let key = ObjectIdentifier(type)
    guard !Self.asked.contains(key) else {
      let name = String(describing: type)
      state.withLock { $0.withoutMethod = name }
      report(
        "\(name) implements neither nextConfiguration() nor generateConfigurations(): it never gives a configuration")
      return nil
    }
    return await Self.$asked.withValue(Self.asked.union([key])) {
      await Self.$current.withValue(self) { await body() }
    }
  }

  package static func message(about type: String) -> String {
    "\(type) implements neither nextConfiguration() nor generateConfigurations(): it never gives a configuration"
  }

  package static let toStandardError: @Sendable (String) -> Void = { line in
    FileHandle.standardError.write(Data("error: \(line)\n".utf8))
  }
}
