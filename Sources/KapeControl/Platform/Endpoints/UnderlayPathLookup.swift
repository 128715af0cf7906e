import KapeControl
import KapeProtocols

/// Finds out which addresses the network reaches, past the tunnel. Where there is no IPv4, its resolvers are asked for the
/// NAT64 prefix, once a path.
package actor UnderlayPathLookup {
  /// For the resolvers.
  package static let limit = Duration.seconds(3)
  /// What most networks have (RFC 6052 section 2.1): better than nothing where nobody can be asked.
  private static let wellKnown = IPPrefix("64:ff9b::/96").flatMap { NAT64Prefix($0) }

  private let present: @Sendable () throws -> NetworkPath
  private let lookUp: @Sendable () async throws -> [IPAddress]
  private let clock: any SessionClock
  private let logger: any PacketTunnelLogger
  private var known: (path: NetworkPath, prefix: NAT64Prefix?)?

  /// `mark`: that of sockets which go past the tunnel; routes by the interface `tunnel` are no path.
  package init(mark: UInt32, tunnel: String?, clock: any SessionClock, logger: any PacketTunnelLogger) {
    let monitor = UnderlayPathMonitor(mark: mark, tunnel: tunnel, logger: logger)
    self.init(
      clock: clock, logger: logger, present: { try monitor.present() },
      lookUp: {
        guard let resolver = UnderlayResolver() else { return [] }
        return try await resolver.addresses(of: NAT64Prefix.name, mark: mark)
      })
  }

  init(
    clock: any SessionClock, logger: any PacketTunnelLogger, present: @escaping @Sendable () throws -> NetworkPath,
    lookUp: @escaping @Sendable () async throws -> [IPAddress]
  ) {
    self.present = present
    self.lookUp = lookUp
    self.clock = clock
    self.logger = logger
  }

  package func path() async -> UnderlayPath {
    let path: NetworkPath
    do {
      path = try present()
    } catch {
      logger.warning("[endpoints] the network cannot be looked at: \(error)")
      return .unknown
    }
    // Whether it is offline is for the session to see.
    guard path.isOnline else { return .unknown }
    guard path.ipv4 == nil else { return UnderlayPath(hasIPv4: true, hasIPv6: path.ipv6 != nil) }
    if let known, known.path == path { return UnderlayPath(hasIPv4: false, hasIPv6: true, nat64: known.prefix) }
    let (prefix, isCertain) = await findPrefix()
    if isCertain { known = (path, prefix) }
    return UnderlayPath(hasIPv4: false, hasIPv6: true, nat64: prefix)
  }

  private func findPrefix() async -> (NAT64Prefix?, isCertain: Bool) {
    do {
      let lookUp = lookUp
      guard let answers = try await TaskEnvironment(clock: clock).bounded(Self.limit, { try await lookUp() }) else {
        logger.info("[endpoints] no answer about NAT64 in time: the well-known prefix is tried")
        return (Self.wellKnown, false)
      }
      let prefix = NAT64Prefix(answers: answers)
      logger.info("[endpoints] a network without IPv4, \(prefix == nil ? "and without NAT64" : "with NAT64")")
      return (prefix, true)
    } catch let failure as UnderlayResolver.Failure where failure.isFinal {
      return (nil, true)
    } catch {
      logger.info("[endpoints] nobody can be asked about NAT64: the well-known prefix is tried")
      return (Self.wellKnown, false)
    }
  }
}
