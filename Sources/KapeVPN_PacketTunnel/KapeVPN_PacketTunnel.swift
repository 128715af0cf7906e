// The declarations of the tunnel side that do not depend on a protocol, each by its name: nothing else of ours comes along.

@_exported import protocol KapePlatform.VpnConfiguration
