internal import CKapeDataPlane
import Glibc

/// How the packet path is to run. Everything here has a good default; the environment overrides it for tests and for
/// machines where something misbehaves.
package struct TunnelOptions: Equatable, Sendable {
  package enum Backend: String, Sendable, CaseIterable {
    case auto
    case epoll
    case uring = "io_uring"
  }

  /// Offloads that are not to be used although the kernel has them.
  package struct Fallbacks: OptionSet, Sendable {
    package var rawValue: UInt32
    package init(rawValue: UInt32) { self.rawValue = rawValue }

    /// What KAPE_FALLBACKS and the log call them.
    package static let names: [(name: String, value: Fallbacks)] = [
      ("no-vnet-header", of(KDP_FALLBACK_NO_VNET_HEADER)),
      ("no-tso", of(KDP_FALLBACK_NO_TSO)),
      ("no-uso", of(KDP_FALLBACK_NO_USO)),
      ("no-udp-segment", of(KDP_FALLBACK_NO_UDP_SEGMENT)),
      ("no-udp-gro", of(KDP_FALLBACK_NO_UDP_GRO)),
      ("no-tun-join", of(KDP_FALLBACK_NO_TUN_JOIN)),
      ("no-io-uring", of(KDP_FALLBACK_NO_URING)),
    ]

    private static func of(_ value: kdp_fallback) -> Fallbacks { Fallbacks(rawValue: value.rawValue) }

    package var list: String {
      Self.names.filter { contains($0.value) }.map(\.name).joined(separator: ",")
    }
  }

  static let aeadProviders = ["openssl", "ipsec-mb", "avx512"]

  /// One of `aeadProviders`; nil: the best that passes its self test.
  package var aeadProvider: String?
  package var backend = Backend.auto
  package var fallbacks: Fallbacks = []
  /// Threads that packets pass on, one lane of the engine each.
  package private(set) var threads = 1
  /// Most peers of a device.
  package var peerLimit: UInt32 = 1 << 20

  package init() {}

  package struct Invalid: Error, Equatable, CustomStringConvertible {
    package var description: String

    package init(description: String) { self.description = description }
  }

  /// Most threads: a session is spread over all of them, and its peer has to put up with that.
  package static let threadLimit = Int(KDP_WIREGUARD_MAX_LANES)

  /// `source` is where the text comes from: "--threads".
  package mutating func setThreads(_ text: String, from source: String) throws(Invalid) {
    guard let number = Int(text), (1...Self.threadLimit).contains(number) else {
      throw Invalid(description: "\(source) \(text): not a number from 1 to \(Self.threadLimit)")
    }
    threads = number
  }

  /// Reads KAPE_AEAD, KAPE_BACKEND, KAPE_FALLBACKS and KAPE_THREADS.
  package init(environment: (String) -> String?) throws(Invalid) {
    if let name = environment("KAPE_AEAD"), !name.isEmpty {
      guard Self.aeadProviders.contains(name) else {
        throw Invalid(description: "KAPE_AEAD=\(name): known are " + Self.aeadProviders.joined(separator: ", "))
      }
      aeadProvider = name
    }
    if let name = environment("KAPE_BACKEND"), !name.isEmpty {
      guard let backend = Backend(rawValue: name) else {
        throw Invalid(
          description: "KAPE_BACKEND=\(name): known are " + Backend.allCases.map(\.rawValue).joined(separator: ", "))
      }
      self.backend = backend
    }
    for name in (environment("KAPE_FALLBACKS") ?? "").split(separator: ",") {
      guard let fallback = Fallbacks.names.first(where: { $0.name == name }) else {
        throw Invalid(
          description: "KAPE_FALLBACKS: '\(name)' is not one of " + Fallbacks.names.map(\.name).joined(separator: ", "))
      }
      fallbacks.insert(fallback.value)
    }
    if let text = environment("KAPE_THREADS"), !text.isEmpty { try setThreads(text, from: "KAPE_THREADS") }
  }
}

/// An environment variable.
package func variable(_ name: String) -> String? {
  getenv(name).map { String(cString: $0) }
}
