/// Not for use; a place in the table of methods. The type that `KapeTunnelHost.run` is given can be made by `init()` only
/// where that is `required`, which it must not be for `NEPacketTunnelProvider`: subclasses written for the platform say
/// `override init()`, and would not compile then. A call of this class's `init()`, which is required, finds the one of
/// whatever class it is made on, because all classes have it in the place where `NSObject` has it. Open, so that no
/// optimizer knows all of its subclasses and calls the only one directly.
open class ProviderInstance: NSObject {
  public required override init() { super.init() }
}

/// A new instance of the type given, which may be one of a class below `Provider`. Where a class has no `init()` the call
/// ends the program, and says so.
@inline(never) @_optimize(none)
func makeProvider<Provider: NEPacketTunnelProvider>(_ type: Provider.Type) -> Provider {
  unsafeDowncast(unsafeBitCast(type, to: ProviderInstance.Type.self).init(), to: Provider.self)
}
