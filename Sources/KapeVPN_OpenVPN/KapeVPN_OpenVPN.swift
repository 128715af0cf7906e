// OpenVPN's declarations, each by its name: nothing else of ours comes along.

@_exported import struct KapePlatform.OpenVPNConfiguration
@_exported import class KapePlatform.OpenVPNConnectionController
@_exported import struct KapePlatform.OpenVPNCredentials
@_exported import protocol KapePlatform.OpenVPNDriver
@_exported import enum KapePlatform.OpenVPNTransport
@_exported import protocol KapePlatform.PacketTunnelDriver
@_exported import protocol KapePlatform.PacketTunnelOpenVPNAuthenticator
