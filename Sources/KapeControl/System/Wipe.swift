import Glibc

/// Overwrites what was secret; the compiler does not leave it out.
func wipe(_ bytes: UnsafeMutableRawBufferPointer) {
  if let start = bytes.baseAddress { explicit_bzero(start, bytes.count) }
}
