package import Foundation

/// What the service works with. Tests put their own in its place.
package struct LocationEnvironment: Sendable {
  package var container: SharedContainer
  package var directory: any LocationDirectory
  package var latency: any LatencyProbe
  package var transfers: any TransferProbe
  package var options: LatencyMeter.Options
  package var network: @Sendable () -> LocalNetwork
  package var now: @Sendable () -> Date
  package var logger: KapeLogger

  package init(
    container: SharedContainer, directory: any LocationDirectory, latency: any LatencyProbe,
    transfers: any TransferProbe, options: LatencyMeter.Options = LatencyMeter.Options(),
    network: @escaping @Sendable () -> LocalNetwork = { LocalNetwork.present() },
    now: @escaping @Sendable () -> Date = { Date() },
    logger: KapeLogger = KapeLogger(subsystem: "KapeVPN", category: "locations")
  ) {
    self.container = container
    self.directory = directory
    self.latency = latency
    self.transfers = transfers
    self.options = options
    self.network = network
    self.now = now
    self.logger = logger
  }
}
