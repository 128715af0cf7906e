internal import CKapeDataPlane
import Glibc

/// Which implementations the packet path found on this machine, whether they work, and which it uses.
package struct DataPlaneReport: Sendable, CustomStringConvertible {
  package struct Provider: Equatable, Sendable {
    package var name: String
    /// The library and its version; nil when it cannot be used.
    package var version: String?
    /// What its self test said, or why there is none.
    package var state: String
  }

  package var providers: [Provider]
  /// The name of the provider that is used, or why there is none.
  package var chosenProvider: Result<String, TunnelError>
  /// nil: io_uring can be had; else why not.
  package var uringRefusal: String?
  package var options: TunnelOptions

  package init(_ options: TunnelOptions) {
    self.options = options
    var host = kdp_host_default()
    uringRefusal = kdp_backend_available(KDP_BACKEND_URING) ? nil : SystemError.text(of: errno)
    providers = (0..<KDP_AEAD_PROVIDER_COUNT.rawValue).map { number in
      let provider = kdp_aead_provider(rawValue: number)
      let name = String(cString: kdp_aead_provider_name(provider))
      var worker: OpaquePointer?
      let status = kdp_aead_worker_create(provider, &host, &worker)
      defer { kdp_aead_worker_destroy(worker) }
      guard status == KDP_OK, let worker else {
        let reason =
          status == KDP_UNSUPPORTED
          ? "not in this build or not on this machine" : String(cString: kdp_status_describe(status).pointee.text)
        return Provider(name: name, version: nil, state: reason)
      }
      return Provider(name: name, version: String(cString: kdp_aead_worker_version(worker)), state: "self test passed")
    }
    var worker: OpaquePointer?
    let status = withOptionalCString(options.aeadProvider) { kdp_aead_worker_choose($0, &host, &worker) }
    if status == KDP_OK, let worker {
      chosenProvider = .success(String(cString: kdp_aead_provider_name(kdp_aead_worker_provider(worker))))
      kdp_aead_worker_destroy(worker)
    } else {
      chosenProvider = .failure(TunnelError("KAPE_AEAD=" + (options.aeadProvider ?? ""), status))
    }
  }

  /// epoll is the automatic choice: it is as fast on every kernel measured and takes less memory.
  private var usesUring: Bool {
    options.backend == .uring && uringRefusal == nil
      && !options.fallbacks.contains(.init(rawValue: KDP_FALLBACK_NO_URING.rawValue))
  }

  private var reason: String {
    options.backend == .auto
      ? ", the automatic choice: as fast, and smaller" : " (KAPE_BACKEND=\(options.backend.rawValue))"
  }

  package var description: String {
    var lines: [String] = []
    let chosen = try? chosenProvider.get()
    for provider in providers {
      let mark = provider.name == chosen ? (options.aeadProvider == nil ? ", used" : ", used (KAPE_AEAD)") : ""
      lines.append("cipher   \(provider.name): \(provider.version.map { $0 + ", " } ?? "")\(provider.state)\(mark)")
    }
    if case .failure(let error) = chosenProvider { lines.append("cipher   \(error)") }
    lines.append("io       epoll: " + (usesUring ? "available" : "used" + reason))
    lines.append(
      "io       io_uring: "
        + (uringRefusal.map { "refused by the kernel: " + $0 } ?? (usesUring ? "used" + reason : "available"))
    )
    let fallbacks = options.fallbacks.list
    if !fallbacks.isEmpty { lines.append("io       without offloads: \(fallbacks) (KAPE_FALLBACKS)") }
    return lines.map { $0 + "\n" }.joined()
  }
}
