// Lightway's declarations, each by its name: nothing else of ours comes along.

@_exported import enum KapePlatform.IpAddress
@_exported import struct KapePlatform.LightwayConfiguration
@_exported import class KapePlatform.LightwayConnectionController
@_exported import enum KapePlatform.LightwayCredentials
@_exported import protocol KapePlatform.LightwayDriver
@_exported import struct KapePlatform.LightwayEndpoint
@_exported import struct KapePlatform.LightwayProxy
@_exported import enum KapePlatform.LightwayTransport
@_exported import protocol KapePlatform.PacketTunnelDriver
@_exported import protocol KapePlatform.PacketTunnelLightwayAuthenticator
