import Foundation
import KapeProtocols

/// The default generator: the location that the app has chosen, or the automatic one; its endpoints, found and put in
/// order; then one configuration for each attempt, with what authenticates it where the protocol wants that before. A
/// round of them ends with nil, so that the session waits; the next one is made of a fresh answer of the backend, with
/// what was tried last in each step.
///
/// It throws `TerminalStartError` where trying again cannot help (nobody signed in, no subscription, a protocol that is
/// not linked), and `PacketTunnelError` for what may pass.
package actor KapeConfigurationGenerator: VpnConfigurationGenerator {
  /// A protocol that is linked.
  package struct Linked: Sendable {
    package var support: EndpointOrder.Support
    /// Makes a configuration ready to connect, right before it is handed out; nil: its controller does that.
    package var authorize:
      (@Sendable (any VpnConfiguration, any PacketTunnelLogger) async throws -> any VpnConfiguration)?

    package init(
      _ support: EndpointOrder.Support,
      authorize: (@Sendable (any VpnConfiguration, any PacketTunnelLogger) async throws -> any VpnConfiguration)? = nil
    ) {
      self.support = support
      self.authorize = authorize
    }
  }

  /// No attempt takes longer: who asks later than this has been connected.
  static let attemptLimit = Duration.seconds(60)

  private let environment: GeneratorEnvironment
  private var round: Round?
  private var tried: Set<DiscoveredEndpoint.Identity> = []
  /// Rounds since the choice was another.
  private var rounds = 0
  private var resets = 0

  private struct Round {
    var wishes: TunnelWishes
    var rest: [EndpointCandidate]
    var commons: ConfigurationCommons
    var madeAt: Duration
    var handedOut: Duration?
  }

  package init(_ environment: GeneratorEnvironment) { self.environment = environment }

  /// Begins anew, as for another choice: the location is switched.
  package func reset() {
    round = nil
    tried = []
    rounds = 0
    resets += 1
  }

  package func nextConfiguration() async throws -> (any VpnConfiguration)? {
    do {
      return try await next()
    } catch let error as DiscoveryError {
      throw error.tunnelError
    } catch let error as DedicatedIPError {
      throw error.sessionError
    }
  }

  private func next() async throws -> (any VpnConfiguration)? {
    let wishes = await environment.wishes()
    if let round, round.wishes != wishes { reset() }
    if let round, round.rest.isEmpty || isStale(round) {
      self.round = nil
      if let last = round.handedOut, environment.clock.now - last < Self.attemptLimit {
        environment.logger.debug("[generator] a whole round was tried")
        return nil
      }
    }
    if round == nil {
      let asked = resets
      let made = try await makeRound(wishes)
      // Another call, or a switch, came in between.
      guard asked == resets, round == nil else { return try await next() }
      round = made
      rounds += 1
    }
    return try await handOut()
  }

  /// Too old to be believed, after a connection: a dedicated IP's token soon is.
  private func isStale(_ round: Round) -> Bool {
    let limit = round.commons.dedicatedIPToken == nil ? Duration.seconds(DiscoveryCache.maximumAge) : Self.attemptLimit
    return environment.clock.now - round.madeAt >= limit
  }

  // MARK: A round

  private func makeRound(_ wishes: TunnelWishes) async throws -> Round {
    var order = EndpointOrder(
      preference: wishes.preference, supported: environment.linked.map(\.support), plan: environment.plan,
      usesProxy: wishes.usesProxy)
    var commons = ConfigurationCommons(
      appGroupIdentifier: environment.appGroupIdentifier, dnsServers: wishes.dnsServers.map { IpAddress($0) })
    let endpoints: [DiscoveredEndpoint]
    if wishes.usesDedicatedIP {
      (endpoints, commons.dedicatedIPToken) = try await dedicatedIP(&order)
    } else {
      endpoints = try await endpointsOfLocation(wishes, &order)
    }
    if order.usable(endpoints).allSatisfy({ tried.contains($0.identity) }) { tried = [] }
    order.tried = tried
    let candidates = order.candidates(endpoints)
    environment.logger.debug("[generator] a round of \(candidates.count)")
    guard !candidates.isEmpty else {
      throw PacketTunnelError.configurationFailed("the location has no endpoint for \(order.protocols.list)")
    }
    return Round(wishes: wishes, rest: candidates, commons: commons, madeAt: environment.clock.now)
  }

  private func endpointsOfLocation(
    _ wishes: TunnelWishes, _ order: inout EndpointOrder
  ) async throws -> [DiscoveredEndpoint] {
    guard !order.protocols.isEmpty else { throw TerminalStartError(.protocolNotBundled) }
    let location: String
    switch wishes.mode {
    case .manual(let id): location = id
    case .auto:
      guard let id = await environment.automaticLocation() else {
        throw PacketTunnelError.configurationFailed(
          "no location is chosen, and none is known to choose from: fetch the locations first")
      }
      location = id
    }
    let found = try await environment.repository.endpoints(location, order.protocols, anew: rounds > 0)
    order.latencies = found.latencies
    return found.endpoints
  }

  private func dedicatedIP(_ order: inout EndpointOrder) async throws -> ([DiscoveredEndpoint], String) {
    order.usesProxy = false
    guard order.protocols.contains(.lightway) else { throw DedicatedIPError.unsupportedProtocol }
    order.preference = .lightway
    guard let token = try await environment.dedicatedIPToken() else { throw DedicatedIPError.noToken }
    let dedicatedIP = try await environment.directory.dedicatedIP(token)
    return (dedicatedIP.endpoints, dedicatedIP.accessToken)
  }

  // MARK: One configuration

  private func handOut() async throws -> (any VpnConfiguration)? {
    var failure: (any Error)?
    while let candidate = take() {
      // The network may be another than when the round began.
      guard let reachable = await environment.path().candidate(candidate) else {
        environment.logger.debug("[generator] passed over: this network has no way to its address")
        failure = failure ?? PacketTunnelError.network("this network has no way to the servers' addresses")
        continue
      }
      guard let commons = round?.commons else { return try await next() }
      do {
        let configuration = try await authorized(reachable.configuration(commons), reachable)
        round?.handedOut = environment.clock.now
        return configuration
      } catch is CancellationError {
        throw CancellationError()
      } catch {
        environment.logger.warning("[generator] skipped, not authorized: \(loggable(error))")
        failure = error
      }
    }
    let wasHandedOut = round?.handedOut != nil
    round = nil
    if wasHandedOut { return nil }
    throw failure ?? PacketTunnelError.noConfiguration
  }

  private func take() -> EndpointCandidate? {
    guard var current = round, !current.rest.isEmpty else { return nil }
    let candidate = current.rest.removeFirst()
    round = current
    tried.formUnion(candidate.endpoints.map(\.identity))
    return candidate
  }

  private func authorized(
    _ configuration: any VpnConfiguration, _ candidate: EndpointCandidate
  ) async throws -> any VpnConfiguration {
    // A dedicated IP has a token of its own, and a proxy of the backend's takes the connection token.
    if let lightway = configuration as? LightwayConfiguration,
      lightway.dedicatedIPToken != nil || lightway.proxy?.authentication == .tokenAuth
    {
      return configuration
    }
    let name = candidate.endpoints.first?.discoveryProtocol
    guard let linked = environment.linked.first(where: { $0.support.discoveryProtocol == name }),
      let authorize = linked.authorize
    else { return configuration }
    return try await authorize(configuration, environment.logger)
  }
}
