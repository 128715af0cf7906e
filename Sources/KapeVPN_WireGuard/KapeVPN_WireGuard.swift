// WireGuard's declarations, each by its name: nothing else of ours comes along.

@_exported import enum KapePlatform.IpAddress
@_exported import struct KapePlatform.KapeWireGuardConfig
@_exported import class KapePlatform.KapeWireGuardController
@_exported import protocol KapePlatform.PacketTunnelWireguardAuthenticator
@_exported import struct KapePlatform.WireguardEndpointConfiguration
@_exported import enum KapePlatform.WireguardObfuscation
