internal import CLinux

/// Whether the program was started with privileges that its caller has not got: by set-user-ID, set-group-ID or file
/// capabilities (getauxval(3), AT_SECURE). The environment is the caller's then.
package var isSecureExecution: Bool { getauxval(UInt(AT_SECURE)) != 0 }
