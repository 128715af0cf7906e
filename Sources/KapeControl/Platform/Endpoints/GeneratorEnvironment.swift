/// What the generator works with. Tests put their own in its place.
package struct GeneratorEnvironment: Sendable {
  package var appGroupIdentifier: String
  /// In no order: the backend's, or the plan's, counts.
  package var linked: [KapeConfigurationGenerator.Linked]
  package var plan: EndpointPlan
  package var repository: KapeEndpointRepository
  package var directory: any EndpointDirectory
  package var clock: any SessionClock
  package var logger: any PacketTunnelLogger
  package var wishes: @Sendable () async -> TunnelWishes
  package var automaticLocation: @Sendable () async -> String?
  package var dedicatedIPToken: @Sendable () async throws -> String?
  package var path: @Sendable () async -> UnderlayPath

  package init(
    appGroupIdentifier: String, linked: [KapeConfigurationGenerator.Linked], plan: EndpointPlan = .backend,
    repository: KapeEndpointRepository, directory: any EndpointDirectory, clock: any SessionClock,
    logger: any PacketTunnelLogger, wishes: @escaping @Sendable () async -> TunnelWishes,
    automaticLocation: @escaping @Sendable () async -> String?,
    dedicatedIPToken: @escaping @Sendable () async throws -> String?,
    path: @escaping @Sendable () async -> UnderlayPath
  ) {
    self.appGroupIdentifier = appGroupIdentifier
    self.linked = linked
    self.plan = plan
    self.repository = repository
    self.directory = directory
    self.clock = clock
    self.logger = logger
    self.wishes = wishes
    self.automaticLocation = automaticLocation
    self.dedicatedIPToken = dedicatedIPToken
    self.path = path
  }
}
