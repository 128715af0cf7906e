import Foundation
import KapeControl

/// The kind of device, as the app has said it, so that the tunnel reports the same.
package enum DeviceModel {
  /// What the backend takes for `x-client-device-model`.
  private static let kinds: Set = ["desktop", "mobile", "tablet", "firetv", "appletv"]

  /// What the app has recorded in the group's folder; nil before, and where the folder cannot be read.
  package static func recorded(for settings: KapeSDKSettings) -> String? {
    guard let container = try? SharedContainer(group: settings.appGroupIdentifier) else { return nil }
    return SharedConfiguration.load(container).deviceModel
  }

  /// Keeps it, unless it is there already: a tunnel that passes on what it has read writes nothing.
  static func record(_ model: String, in container: SharedContainer) async throws {
    guard SharedConfiguration.load(container).deviceModel != model else { return }
    try await SharedConfiguration.update(container) { $0.deviceModel = model }
  }

  /// The header's value for a model: itself when it is one of the kinds, else `desktop`.
  package static func header(_ model: String?) -> String {
    model.flatMap { kinds.contains($0) ? $0 : nil } ?? "desktop"
  }
}
