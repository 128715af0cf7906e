internal import CKapeDataPlane
import Glibc
package import KapeProtocols

/// Looks up endpoint names off the tunnel: hosts(5) first, then the name servers that the underlay has, over sockets with
/// the tunnel's mark. So it works while a full tunnel is up, and while the tunnel's own name servers are installed but
/// not reachable.
package struct UnderlayResolver: Equatable, Sendable {
  package static let hostsFile = "/etc/hosts"
  /// The servers of a machine whose resolv.conf names only systemd-resolved's stub, which would ask the tunnel's.
  package static let resolvedFile = "/run/systemd/resolve/resolv.conf"

  package var servers: [SocketAddress]
  package var search: [String]

  package init(servers: [SocketAddress], search: [String]) {
    self.servers = servers
    self.search = search
  }

  /// From resolv.conf as it is now; nil when `ours` is what it says: then it tells of the tunnel, not of the underlay.
  package init?(
    file: String = NameServices.file, resolvedFile: String = Self.resolvedFile, unless ours: [UInt8]? = nil
  ) {
    let bytes = (try? Files.read(file)) ?? nil
    if let ours, bytes == ours { return nil }
    var content = ResolverFile.read(String(decoding: bytes ?? [], as: UTF8.self))
    if !content.servers.isEmpty, content.servers.allSatisfy({ Self.stubs.contains($0.address) }),
      let text = try? Files.text(resolvedFile)
    {
      let upstream = ResolverFile.read(text)
      if !upstream.servers.isEmpty { content = upstream }
    }
    servers = content.servers.compactMap { server in
      let scope = server.scope.map { UInt32($0) ?? InterfaceIndex.named($0) } ?? 0
      return scope.map { SocketAddress(server.address, port: 53, scope: $0) }
    }
    // What resolv.conf(5) promises for a file without servers.
    if servers.isEmpty { servers = [SocketAddress(IPAddress(ipv4: 127, 0, 0, 1), port: 53)] }
    search = content.search
  }

  private static let stubs = [IPAddress(ipv4: 127, 0, 0, 53), IPAddress(ipv4: 127, 0, 0, 54)]

  package struct Failure: Error, Equatable, CustomStringConvertible {
    package var name: String
    package var reason: String
    /// A server said that there is no such name; asking again soon is of no use.
    package var isFinal = false
    package var description: String { "\(name): \(reason)" }
  }

  /// Names to ask for, in order, as resolv.conf(5) has it with `ndots:1`.
  package func candidates(_ name: String) -> [String] {
    if name.hasSuffix(".") { return [name] }
    let searched = search.filter { $0 != "." }.map { name + "." + $0 }
    return name.contains(".") ? [name] + searched : searched + [name]
  }

  /// Every address of a name, without repeats. Waits for servers, some seconds each, on a thread of its own.
  package func addresses(of name: String, mark: UInt32) async throws -> [IPAddress] {
    let text = (try? Files.text(Self.hostsFile)) ?? nil
    let local = HostsFile.addresses(of: name, in: text ?? "")
    if !local.isEmpty { return local }
    var failure = Failure(name: name, reason: "there is no name server to ask")
    for candidate in candidates(name) {
      do {
        return try await ask(candidate, mark)
      } catch let error as Failure {
        failure = error
        if !error.isFinal { break }
      }
    }
    failure.name = name
    throw failure
  }

  private func ask(_ name: String, _ mark: UInt32) async throws -> [IPAddress] {
    let servers = servers
    return try await onThread { () throws(Failure) in
      var answer = kdp_resolve_answer()
      let addresses = servers.prefix(8).map { kdp_address($0.address, port: $0.port, scope: $0.scope) }
      let status = addresses.withUnsafeBufferPointer { list in
        guard let start = list.baseAddress else { return KDP_INVALID_ARGUMENT }
        var config = kdp_resolve_config()
        config.server = start
        config.server_count = UInt32(list.count)
        config.fwmark = mark
        return kdp_resolve(name, &config, &answer)
      }
      switch status {
      case KDP_OK: return Self.read(answer)
      case KDP_NOT_FOUND: throw Failure(name: name, reason: "no such name, or it has no address", isFinal: true)
      case KDP_INVALID_ARGUMENT: throw Failure(name: name, reason: "not a name that can be asked for", isFinal: true)
      default:
        let asked = servers.map { "\($0.address)" }.joined(separator: ", ")
        throw Failure(name: name, reason: "\(asked): " + Self.reason(answer))
      }
    }
  }

  private static func reason(_ answer: kdp_resolve_answer) -> String {
    switch answer.response {
    case 2: "server failure"
    case 5: "refused"
    case let code where code > 0: "response code \(code)"
    default: SystemError.text(of: answer.code)
    }
  }

  private static func read(_ answer: kdp_resolve_answer) -> [IPAddress] {
    var found: [IPAddress] = []
    withUnsafeBytes(of: answer.address) { bytes in
      for address in bytes.bindMemory(to: kdp_address.self).prefix(Int(answer.count)) {
        if let address = IPAddress(address), !found.contains(address) { found.append(address) }
      }
    }
    return found
  }

  // MARK: By the system

  /// What the system's own resolver says: every source that it is set up for. Only for when no tunnel is up yet.
  package static func systemAddresses(of name: String) async throws -> [IPAddress] {
    try await onThread { () throws(Failure) in
      var hints = addrinfo()
      hints.ai_socktype = Int32(SOCK_DGRAM.rawValue)
      hints.ai_flags = AI_ADDRCONFIG
      var list: UnsafeMutablePointer<addrinfo>?
      let result = getaddrinfo(name, nil, &hints, &list)
      guard result == 0 else {
        throw Failure(name: name, reason: String(cString: gai_strerror(result)), isFinal: result == EAI_NONAME)
      }
      defer { freeaddrinfo(list) }
      var found: [IPAddress] = []
      var next = list
      while let entry = next {
        if let address = address(entry.pointee), !found.contains(address) { found.append(address) }
        next = entry.pointee.ai_next
      }
      return found
    }
  }

  private static func address(_ entry: addrinfo) -> IPAddress? {
    guard let raw = UnsafeRawPointer(entry.ai_addr) else { return nil }
    switch entry.ai_family {
    case AF_INET:
      return withUnsafeBytes(of: raw.loadUnaligned(as: sockaddr_in.self).sin_addr) { IPAddress(bytes: $0.bytes) }
    case AF_INET6:
      return withUnsafeBytes(of: raw.loadUnaligned(as: sockaddr_in6.self).sin6_addr) { IPAddress(bytes: $0.bytes) }
    default: return nil
    }
  }
}
