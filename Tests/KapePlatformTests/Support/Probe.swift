import Foundation

/// The program `SDKProbe`, which is built beside the tests.
let probe = URL(fileURLWithPath: "/proc/self/exe").resolvingSymlinksInPath().deletingLastPathComponent()
  .appendingPathComponent("SDKProbe").path
