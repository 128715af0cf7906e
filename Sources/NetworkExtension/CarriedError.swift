package import KapeControl

extension ProviderError {
  /// As much of an error as goes to another process.
  package init(_ error: any Error) {
    let text = (error as? any LocalizedError)?.errorDescription
    // Any error can be asked for a localized description, and most of them have nothing to say there.
    let message = text ?? (type(of: error) is NSError.Type ? error.localizedDescription : "\(error)")
    var cut = message
    while cut.utf8.count > 4000 { cut.removeLast(max(1, (cut.utf8.count - 4000) / 4)) }
    self.init(domain: String(error._domain.prefix(60)), code: Int64(error._code), message: cut)
  }

  /// For whoever reads it on this side: kaped's own as the platform's.
  package var carried: any Error {
    if domain == Self.daemonDomain { return NEVPNError(.connectionFailed, message) }
    return NSError(domain: domain, code: Int(code), userInfo: [NSLocalizedDescriptionKey: message])
  }
}
