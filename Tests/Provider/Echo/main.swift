import NetworkExtension

KapeTunnelHost.run(EchoProvider.self)
