import Glibc
internal import KapeCrypto
internal import KapeProtocols

extension TunnelSession {
  /// Everything but `down`.
  func answer(_ request: ControlRequest, _ client: ControlClient) async {
    var code: Int32 = 0
    switch request {
    case .statusText, .statusJSON:
      let report = await InterfaceReport.measured { await self.report() }
      client.out(
        request == .statusJSON ? StatusJSON.text(report) : StatusText.text([report], now: Timestamp.now()))
    case .save:
      do {
        try await save()
        client.error("\(self.request.file.path) was written")
      } catch {
        client.error("\(error)")
        code = 1
      }
    case .down: break
    }
    client.finish(code)
  }

  // MARK: Status

  private func report() async -> InterfaceReport {
    let program = "kape up"
    var report = await service?.device.report(name, program: program) ?? InterfaceReport(name: name, program: program)
    report.process = getpid()
    report.configurationFile = request.file.path
    report.upSince = upSince
    report.settings = settings
    report.warnings = warnings
    report.events = events
    for index in report.peers.indices {
      report.peers[index].endpointName = names.name(of: report.peers[index].publicKey)
    }
    if service != nil, let link = try? Netlink().link(at: index) { report.settings?.mtu = link.mtu }
    return report
  }

  // MARK: Saving

  /// Writes the configuration as it is now over the file that it came from.
  func save() async throws {
    guard let service else { throw Failure.failed("there is no interface") }
    let present = try await service.device.interface()
    var saved = configuration
    saved.interface.privateKey = present.privateKey
    saved.interface.listenPort = present.listenPort
    // The mark of a full tunnel is chosen anew each time.
    saved.interface.firewallMark =
      configuration.interface.firewallMark == 0 && present.firewallMark == settings.table ? 0 : present.firewallMark
    let addresses = try Netlink().addresses(of: index)
    saved.interface.addresses = addresses.filter { address in
      !address.address.isLinkLocal || configuration.interface.addresses.contains(address)
    }
    if configuration.interface.mtu != nil, let link = try Netlink().link(at: index) {
      saved.interface.mtu = UInt16(clamping: link.mtu)
    }
    let named = Dictionary(
      configuration.peers.map { ($0.publicKey, $0.endpoint) }, uniquingKeysWith: { first, _ in first })
    saved.peers = await service.device.allPeers().map { peer in
      var result = WireGuardConfiguration.Peer(publicKey: peer.publicKey)
      result.presharedKey = peer.presharedKey
      result.allowedIPs = peer.allowedIPs
      result.persistentKeepalive = peer.persistentKeepalive
      // A name outlives the address that it has now.
      if let endpoint = named[peer.publicKey] ?? nil, case .name = endpoint.host {
        result.endpoint = endpoint
      } else {
        result.endpoint = peer.endpoint.flatMap(WireGuardEndpoint.init)
      }
      return result
    }
    var text = SecretBuffer(capacity: 4096)
    saved.write(to: &text)
    try Self.replace(request.file.path, text)
  }

  /// By rename, so that there is always one whole file; readable for its owner only. Of a symbolic link it is the file
  /// behind it that is replaced.
  static func replace(_ name: String, _ text: borrowing SecretBuffer) throws(SystemError) {
    let path = resolvedPath(name)
    let scratch = path + ".kape-new"
    try Files.remove(scratch)
    let raw = open(scratch, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
    guard raw >= 0 else { throw SystemError(scratch) }
    let file = Descriptor(owning: raw)
    let written = text.withBytes { bytes in
      bytes.withUnsafeBytes { bytes in
        var rest = bytes[...]
        while !rest.isEmpty {
          let part = UnsafeRawBufferPointer(rebasing: rest)
          guard let size = retrying({ write(raw, part.baseAddress, part.count) }) else { return false }
          rest = rest.dropFirst(size)
        }
        return true
      }
    }
    guard written, fsync(file.raw) == 0, rename(scratch, path) == 0 else {
      let error = SystemError(path)
      unlink(scratch)
      throw error
    }
  }
}

extension WireGuardEndpoint {
  fileprivate init?(_ address: SocketAddress) {
    guard let scoped = ScopedAddress(address.address, scope: address.scope == 0 ? nil : "\(address.scope)") else {
      return nil
    }
    self.init(host: .address(scoped), port: address.port)
  }
}
