import Foundation
import KapePlatform

/// `handle PLIST`: a handle by each of the initialisers, as an app makes them.
enum Handle {
  static func run(_ words: [String]) async throws {
    guard let path = words.first else { exit(2) }
    let settings = try KapeSDKSettings(contentsOf: URL(fileURLWithPath: path))
    let manager = try await synchronous(settings).awaitSdkManager()
    print("synchronous")
    let handle = try await KapeSdkHandle(settings: settings, deviceModel: "tablet")
    let (one, other) = (try await handle.awaitSdkManager().tracking(), try await handle.awaitSdkManager().tracking())
    print("asynchronous")
    if (one as AnyObject) === (other as AnyObject), (one as AnyObject) !== (try manager.tracking() as AnyObject) {
      print("same tracking")
    }
  }

  private static func synchronous(_ settings: KapeSDKSettings) throws -> KapeSdkHandle {
    try KapeSdkHandle(settings: settings)
  }
}
