/// Passwords and tokens that were made at random for what the settings name, so that whoever started the backend can
/// hand them out. The database has no more than their hashes.
struct Credentials {
  static let file = "credentials.json"

  /// By e-mail address.
  private(set) var passwords: [String: String] = [:]
  /// By address.
  private(set) var dedicatedIPs: [String: String] = [:]
  private let state: StateDirectory

  struct Unreadable: Error, CustomStringConvertible {
    let path: String
    var description: String { "\(path) is damaged: put a copy back, or remove it to lose the passwords in it" }
  }

  init(in state: StateDirectory) throws {
    self.state = state
    guard let bytes = try state.read(Self.file) else { return }
    guard let json = try? JSON(parsing: bytes), let passwords = Self.texts(json["passwords"]),
      let tokens = Self.texts(json["dedicated_ips"])
    else { throw Unreadable(path: state.file(Self.file)) }
    self.passwords = passwords
    dedicatedIPs = tokens
  }

  private static func texts(_ json: JSON?) -> [String: String]? {
    guard case .object(let members) = json else { return nil }
    let texts = members.compactMapValues(\.string)
    return texts.count == members.count ? texts : nil
  }

  /// One that an earlier start wrote and was killed before it used it is taken again.
  mutating func password(of email: String) -> String {
    let password = passwords[email] ?? RandomText.password()
    passwords[email] = password
    return password
  }

  mutating func token(ofDedicatedIP address: String) -> String {
    let token = dedicatedIPs[address] ?? "DIP-" + RandomText.secret()
    dedicatedIPs[address] = token
    return token
  }

  func save() throws {
    let json: JSON = [
      "passwords": .object(passwords.mapValues { .string($0) }),
      "dedicated_ips": .object(dedicatedIPs.mapValues { .string($0) }),
    ]
    try state.write(Array(json.indentedText.utf8), to: Self.file)
  }
}
