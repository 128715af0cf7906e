// swift-tools-version: 6.2
import PackageDescription

let strictC: [CSetting] = [
  .headerSearchPath("."),
  .enableWarning("all"),
  .enableWarning("extra"),
  .treatAllWarnings(as: .error),
]

let strictSwift: [SwiftSetting] = [
  .swiftLanguageMode(.v6),
  .enableUpcomingFeature("InternalImportsByDefault"),
  .treatAllWarnings(as: .error),
]

// The platform has its own modules of these names elsewhere.
#if os(Linux)
  let substitutes: [Target] = [
    .target(name: "Combine", swiftSettings: strictSwift),
    .target(name: "NetworkExtension", dependencies: ["KapeControl"], swiftSettings: strictSwift),
    .testTarget(name: "CombineTests", dependencies: ["Combine"], swiftSettings: strictSwift),
    // Providers' processes, for the tests that start them by kaped.
    .executableTarget(
      name: "EchoProvider", dependencies: ["NetworkExtension"], path: "Tests/Provider/Echo",
      swiftSettings: strictSwift),
    .executableTarget(
      name: "HostileProvider", dependencies: ["KapeControl"], path: "Tests/Provider/Hostile",
      swiftSettings: strictSwift),
    .testTarget(
      name: "NetworkExtensionTests", dependencies: ["NetworkExtension", "KapeControl", "KapeProtocols"],
      swiftSettings: strictSwift),
    // Client code as it is, in the older language mode.
    .testTarget(
      name: "CombineInSwift5Tests", dependencies: ["Combine"],
      swiftSettings: [.swiftLanguageMode(.v5), .treatAllWarnings(as: .error)]),
  ]
  let onSubstitutes: [Target.Dependency] = ["Combine", "NetworkExtension"]
#else
  let substitutes: [Target] = []
  let onSubstitutes: [Target.Dependency] = []
#endif

let package = Package(
  name: "Kape",
  products: [
    .library(name: "CKapeDataPlane", targets: ["CKapeDataPlane"]),
    .library(name: "KapeProtocols", targets: ["KapeProtocols"]),
    .library(name: "KapeControl", targets: ["KapeControl"]),
    .library(name: "KapeCore", targets: ["KapeCore"]),
    .library(name: "KapeAuth", targets: ["KapeAuth"]),
    .library(name: "KapeVPN-PacketTunnel", targets: ["KapeVPN_PacketTunnel"]),
    .library(name: "KapeVPN-WireGuard", targets: ["KapeVPN_WireGuard"]),
    .library(name: "KapeVPN-OpenVPN", targets: ["KapeVPN_OpenVPN"]),
    .library(name: "KapeVPN-Lightway", targets: ["KapeVPN_Lightway"]),
    .executable(name: "kape", targets: ["kape"]),
    .executable(name: "kape-control", targets: ["kape-control"]),
  ],
  targets: [
    .systemLibrary(
      name: "COpenSSL", path: "Sources/CSystemLibraries/COpenSSL", pkgConfig: "libcrypto",
      providers: [.apt(["libssl-dev"])]),
    .systemLibrary(
      name: "CSodium", path: "Sources/CSystemLibraries/CSodium", pkgConfig: "libsodium",
      providers: [.apt(["libsodium-dev"])]),
    .systemLibrary(
      name: "CUring", path: "Sources/CSystemLibraries/CUring", pkgConfig: "liburing",
      providers: [.apt(["liburing-dev"])]),
    .systemLibrary(
      name: "CLibSSL", path: "Sources/CSystemLibraries/CLibSSL", pkgConfig: "libssl",
      providers: [.apt(["libssl-dev"])]),
    .systemLibrary(name: "CLinux", path: "Sources/CSystemLibraries/CLinux"),
    .systemLibrary(
      name: "CSQLite", path: "Sources/CSystemLibraries/CSQLite", providers: [.apt(["libsqlite3-dev"])]),
    .systemLibrary(
      name: "CMicroHTTPD", path: "Sources/CSystemLibraries/CMicroHTTPD", providers: [.apt(["libmicrohttpd-dev"])]),
    .target(
      name: "CKapeDataPlane", dependencies: ["COpenSSL", "CSodium", "CUring"], cSettings: strictC),
    .target(
      name: "KapeCrypto", dependencies: ["CKapeDataPlane", "COpenSSL", "CSodium"], swiftSettings: strictSwift),
    .target(name: "KapeProtocols", dependencies: ["KapeCrypto", "CKapeDataPlane"], swiftSettings: strictSwift),
    .target(
      name: "KapeControl", dependencies: ["KapeProtocols", "KapeCrypto", "CKapeDataPlane", "CLinux"],
      exclude: ["Backend", "Platform"], swiftSettings: strictSwift),
    // With Foundation, which `kape` itself does without.
    .target(
      name: "KapePlatform",
      dependencies: ["KapeControl", "KapeProtocols", "KapeCrypto", "CLibSSL"] + onSubstitutes,
      path: "Sources/KapeControl/Platform", swiftSettings: strictSwift),
    .target(name: "KapeCore", dependencies: ["KapePlatform"], swiftSettings: strictSwift),
    .target(name: "KapeAuth", dependencies: ["KapePlatform"], swiftSettings: strictSwift),
    .target(
      name: "KapeBackend",
      dependencies: [
        "KapeControl", "KapeProtocols", "KapeCrypto", "COpenSSL", "CSodium", "CSQLite", "CMicroHTTPD",
      ],
      path: "Sources/KapeControl/Backend", swiftSettings: strictSwift),
    .executableTarget(
      name: "kape-control", dependencies: ["KapeBackend", "KapeCommandLine", "KapeControl"], swiftSettings: strictSwift),
    .target(name: "KapeVPN_PacketTunnel", dependencies: ["KapePlatform"], swiftSettings: strictSwift),
    .target(name: "KapeVPN_WireGuard", dependencies: ["KapePlatform"], swiftSettings: strictSwift),
    .target(name: "KapeVPN_OpenVPN", dependencies: ["KapePlatform"], swiftSettings: strictSwift),
    .target(name: "KapeVPN_Lightway", dependencies: ["KapePlatform"], swiftSettings: strictSwift),
    .target(name: "KapeCommandLine", dependencies: ["KapeProtocols"], swiftSettings: strictSwift),
    .executableTarget(
      name: "kape", dependencies: ["KapeCommandLine", "KapeControl", "KapeProtocols", "KapeCrypto"],
      swiftSettings: strictSwift),
    .testTarget(
      name: "Examples", dependencies: ["KapeProtocols"], path: "Tests/Examples", exclude: ["embed.c"],
      swiftSettings: strictSwift),
    .testTarget(
      name: "KapeControlTests", dependencies: ["KapeControl", "KapeProtocols", "KapeCrypto", "CKapeDataPlane"],
      swiftSettings: strictSwift),
    .target(name: "KapeTestSupport", path: "Tests/Support", swiftSettings: strictSwift),
    .testTarget(
      name: "KapeTests", dependencies: ["KapeTestSupport", "kape", "kape-control"], swiftSettings: strictSwift),
    .testTarget(
      name: "KapePlatformTests",
      dependencies: [
        "KapeCore", "KapePlatform", "KapeControl", "KapeProtocols", "KapeTestSupport", "CLibSSL", "SDKProbe",
      ] + onSubstitutes,
      swiftSettings: strictSwift),
    .testTarget(name: "FacadeTests", dependencies: ["KapeVPN_PacketTunnel"], swiftSettings: strictSwift),
    // Processes of their own that use the SDK as an app and a tunnel do.
    .executableTarget(
      name: "SDKProbe", dependencies: ["KapePlatform"], path: "Tests/SDKProbe", swiftSettings: strictSwift),
    .testTarget(
      name: "KapeBackendTests", dependencies: ["KapeBackend", "KapeCrypto"], swiftSettings: strictSwift),
    .testTarget(name: "KapeCryptoTests", dependencies: ["KapeCrypto"], swiftSettings: strictSwift),
    .testTarget(
      name: "KapeProtocolsTests", dependencies: ["KapeProtocols", "KapeCrypto", "KapeTestSupport"],
      swiftSettings: strictSwift),
  ] + substitutes,
  cLanguageStandard: .gnu11
)
