// The declarations of the tunnel side, each by its name: nothing else of ours comes along.

@_exported import protocol KapePlatform.AttemptReporter
@_exported import protocol KapePlatform.ConnectionController
@_exported import enum KapePlatform.IpAddress
@_exported import enum KapePlatform.KapeSessionEndCause
@_exported import enum KapePlatform.KapeVPNConnectionStatus
@_exported import struct KapePlatform.KapeWireGuardConfig
@_exported import struct KapePlatform.NoopVpnConnectionAnalytics
@_exported import enum KapePlatform.PacketTunnelAttemptResult
@_exported import enum KapePlatform.PacketTunnelConnectReason
@_exported import enum KapePlatform.PacketTunnelConnectSource
@_exported import struct KapePlatform.PacketTunnelConnectedEndpoint
@_exported import enum KapePlatform.PacketTunnelConnectionDisconnectReason
@_exported import struct KapePlatform.PacketTunnelDataUsage
@_exported import enum KapePlatform.PacketTunnelError
@_exported import struct KapePlatform.PacketTunnelInterface
@_exported import struct KapePlatform.PacketTunnelInterfaceSettings
@_exported import protocol KapePlatform.PacketTunnelLogger
@_exported import enum KapePlatform.PacketTunnelSessionDisconnectReason
@_exported import struct KapePlatform.PacketTunnelSocket
@_exported import enum KapePlatform.PacketTunnelSocketKind
@_exported import protocol KapePlatform.PacketTunnelWireguardAuthenticator
@_exported import protocol KapePlatform.ReassertingController
@_exported import protocol KapePlatform.SystemTunnel
@_exported import struct KapePlatform.VpnAnalyticsAttemptBeginEvent
@_exported import struct KapePlatform.VpnAnalyticsAttemptEndEvent
@_exported import struct KapePlatform.VpnAnalyticsConnectionBeginEvent
@_exported import struct KapePlatform.VpnAnalyticsConnectionEndEvent
@_exported import struct KapePlatform.VpnAnalyticsSessionBeginEvent
@_exported import struct KapePlatform.VpnAnalyticsSessionEndEvent
@_exported import protocol KapePlatform.VpnConfiguration
@_exported import protocol KapePlatform.VpnConfigurationGenerator
@_exported import protocol KapePlatform.VpnConnectionAnalytics
@_exported import struct KapePlatform.WireguardEndpointConfiguration
// WireGuard's types are here too: a provider with WireGuard alone takes one import.
@_exported import enum KapePlatform.WireguardObfuscation
