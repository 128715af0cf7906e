import Foundation
import KapePlatform

/// `defaults PLIST STEP...`, one after the other: `set=VALUE` in the group's suite, `get` (printed), `settings` made of
/// the property list, `wait` for a line on standard input.
enum Defaults {
  static func run(_ words: [String]) throws {
    guard let path = words.first else { exit(2) }
    let group = "group.example.defaults"
    let key = "sdkPlistName"
    let suite = UserDefaults(suiteName: group)
    for step in words.dropFirst() {
      if step.hasPrefix("set=") { suite?.set(String(step.dropFirst(4)), forKey: key) }
      if step == "get" { print(suite?.string(forKey: key) ?? "nothing") }
      if step == "settings" { _ = try KapeSDKSettings(contentsOf: URL(fileURLWithPath: path)) }
      if step == "wait" {
        print("waiting")
        fflush(nil)
        _ = readLine()
      }
    }
  }
}
