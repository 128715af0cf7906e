import Foundation
package import KapeCrypto
import Synchronization

/// A key that the desktop's Secret Service keeps (freedesktop.org Secret Service API, draft 0.2), made when the first
/// session is stored.
package final class SecretServiceKey: SealingKeySource {
  private let service: String
  private let kept = Mutex<SealingKey?>(nil)

  /// - Parameter service: the name of the session's place; each has a key of its own.
  package init(service: String) { self.service = service }

  package var name: String { "the key 'kape session \(service)' of the Secret Service" }

  package func sealingKey(isRequired: Bool) throws -> SealingKey? {
    if let key = kept.withLock({ $0 }) { return key }
    do {
      let key = try SystemdBus().withUserBus { connection in
        let client = try SecretServiceClient(connection)
        let attributes = ["application": "kape", "service": service]
        if let found = try client.secret(attributes) { return found.withUnsafeBytes { SealingKey(bytes: $0.bytes) } }
        guard !isRequired else { return nil }
        let key = SealingKey()
        try key.withUnsafeBytes { try client.keep($0, label: "kape session \(service)", attributes) }
        return key
      }
      guard let key else {
        if isRequired { return nil }
        throw SessionStorageError.invalidKey(name)
      }
      kept.withLock { $0 = key }
      return key
    } catch let error as SystemdBus.Failure {
      throw SessionStorageError.secretService(error.description)
    }
  }
}

/// The few calls of the Secret Service that one key takes. They block, for as long as somebody types a password.
struct SecretServiceClient {
  private static let destination = "org.freedesktop.secrets"
  private static let root = "/org/freedesktop/secrets"
  private static let none = "/"
  /// For whoever unlocks the keyring.
  private static let patience: TimeInterval = 120

  private let bus: SystemdBus.Connection
  private let session: String

  init(_ bus: SystemdBus.Connection) throws {
    self.bus = bus
    // What signs and encrypts on the way is the bus's own: the socket is the user's.
    session = try bus.call(
      Self.destination, Self.root, "org.freedesktop.Secret.Service", "OpenSession",
      { message in
        try message.append(string: "plain")
        try message.container("v", "s") { try message.append(string: "") }
      },
      read: { reply in
        try reply.skip("v")
        return try reply.readString(type: "o")
      })
  }

  /// The secret with these attributes; nil: there is none.
  func secret(_ attributes: [String: String]) throws -> [UInt8]? {
    let (open, locked) = try bus.call(
      Self.destination, Self.root, "org.freedesktop.Secret.Service", "SearchItems",
      { try Self.append(attributes, to: $0) }, read: { (try $0.readPaths(), try $0.readPaths()) })
    guard let item = open.first ?? locked.first else { return nil }
    if open.isEmpty { try unlock(item) }
    return try bus.call(
      Self.destination, item, "org.freedesktop.Secret.Item", "GetSecret",
      { try $0.append(string: session, type: "o") },
      read: { reply in
        var secret: [UInt8] = []
        try reply.enter("r", "oayays") {
          try reply.skip("oay")
          secret = Array(try reply.readBytes())
          try reply.skip("s")
        }
        return secret
      })
  }

  /// Keeps a secret in the default collection.
  func keep(_ secret: UnsafeRawBufferPointer, label: String, _ attributes: [String: String]) throws {
    let collection = try bus.call(
      Self.destination, Self.root, "org.freedesktop.Secret.Service", "ReadAlias",
      { try $0.append(string: "default") }, read: { try $0.readString(type: "o") })
    guard collection != Self.none else {
      throw SystemdBus.Failure(
        description: "there is no default keyring; make one, with the desktop's password program")
    }
    try unlock(collection)
    let prompt = try bus.call(
      Self.destination, collection, "org.freedesktop.Secret.Collection", "CreateItem",
      { message in
        try message.container("a", "{sv}") {
          try Self.property("org.freedesktop.Secret.Item.Label", "s", message) { try message.append(string: label) }
          try Self.property("org.freedesktop.Secret.Item.Attributes", "a{ss}", message) {
            try Self.append(attributes, to: message)
          }
        }
        try message.container("r", "oayays") {
          try message.append(string: session, type: "o")
          try message.append(bytes: UnsafeRawBufferPointer(start: nil, count: 0))
          try message.append(bytes: secret)
          try message.append(string: "application/octet-stream")
        }
        try message.append(bool: true)
      },
      read: { reply in
        try reply.skip("o")
        return try reply.readString(type: "o")
      })
    try answer(prompt)
  }

  private func unlock(_ object: String) throws {
    let prompt = try bus.call(
      Self.destination, Self.root, "org.freedesktop.Secret.Service", "Unlock",
      { message in try message.container("a", "o") { try message.append(string: object, type: "o") } },
      read: { reply in
        _ = try reply.readPaths()
        return try reply.readString(type: "o")
      })
    try answer(prompt)
  }

  /// Lets the user answer what the service has to ask.
  private func answer(_ prompt: String) throws {
    guard prompt != Self.none else { return }
    try bus.call(
      "org.freedesktop.DBus", "/org/freedesktop/DBus", "org.freedesktop.DBus", "AddMatch",
      { try $0.append(string: "type='signal',interface='org.freedesktop.Secret.Prompt',path='\(prompt)'") },
      read: { _ in })
    try bus.call(
      Self.destination, prompt, "org.freedesktop.Secret.Prompt", "Prompt", { try $0.append(string: "") }, read: { _ in }
    )
    let isDismissed = try bus.awaitSignal(
      "org.freedesktop.Secret.Prompt", "Completed", of: prompt, within: Self.patience, read: { try $0.readBool() })
    if isDismissed { throw SystemdBus.Failure(description: "the keyring was not unlocked") }
  }

  private static func append(_ attributes: [String: String], to message: BusMessage) throws {
    try message.container("a", "{ss}") {
      for (name, value) in attributes.sorted(by: { $0.key < $1.key }) {
        try message.container("e", "ss") {
          try message.append(string: name)
          try message.append(string: value)
        }
      }
    }
  }

  private static func property(
    _ name: String, _ type: String, _ message: BusMessage, _ fill: () throws -> Void
  ) throws {
    try message.container("e", "sv") {
      try message.append(string: name)
      try message.container("v", type, fill)
    }
  }
}
