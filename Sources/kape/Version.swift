import KapeControl

enum Version {
  static let number = "0.1.0"
  static let line = "kape \(number)"

  /// What is asked for when a machine behaves oddly: which implementations were found and which are used, and why.
  static func report() -> String {
    let options: TunnelOptions
    do throws(TunnelOptions.Invalid) {
      options = try TunnelOptions(environment: variable)
    } catch {
      return line + "\n" + error.description + "\n"
    }
    return line + "\n" + DataPlaneReport(options).description
  }
}
