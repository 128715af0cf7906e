/// Decides what a session connects to: discovery, order, credentials, and fetching anew when the list is exhausted are
/// all its business. A type implements one of the two methods, whichever suits it; the other then works too.
public protocol VpnConfigurationGenerator: Sendable {
  /// The next thing to try, ready to connect; asked once for each connection attempt. Nil: nothing right now, ask again
  /// later. What is thrown is a real failure: the app is told, and the session tries again later.
  func nextConfiguration() async throws -> (any VpnConfiguration)?

  /// Several to try in this order before it is asked again. Empty: nothing right now, ask again later.
  func generateConfigurations() async -> [any VpnConfiguration]
}

extension VpnConfigurationGenerator {
  public func nextConfiguration() async throws -> (any VpnConfiguration)? {
    let call = GeneratorCall.current ?? GeneratorCall()
    guard let answer = await call.within(Self.self, { await generateConfigurations() }) else { return nil }
    return answer.first
  }

  public func generateConfigurations() async -> [any VpnConfiguration] {
    let call = GeneratorCall.current ?? GeneratorCall()
    let answer = await call.within(Self.self) { () -> [any VpnConfiguration] in
      call.askedForOne()
      do {
        return try await nextConfiguration().map { [$0] } ?? []
      } catch {
        call.fail(error)
        return []
      }
    }
    return answer ?? []
  }
}
