package import KapeProtocols

/// What a short transfer over HTTP came to.
package struct TransferRates: Hashable, Sendable {
  /// Bits per second; nil: it did not come about.
  package var download: Double?
  package var upload: Double?

  package init(download: Double? = nil, upload: Double? = nil) {
    self.download = download
    self.upload = upload
  }
}

/// Measures how much gets through.
package protocol TransferProbe: Sendable {
  /// - Throws: `CancellationError` alone.
  func rates(_ address: IPAddress) async throws -> TransferRates
}
