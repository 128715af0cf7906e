import Foundation

/// D-Bus by libsystemd (sd-bus(3)), opened when it is needed. Calls block.
///
/// `@unchecked Sendable`: pointers to functions, set once; libsystemd keeps no state between connections.
final class SystemdBus: @unchecked Sendable {
  typealias Handle = OpaquePointer

  struct Failure: Error, CustomStringConvertible {
    let description: String
  }

  private let openUser: @convention(c) (UnsafeMutablePointer<Handle?>) -> Int32
  private let closeBus: @convention(c) (Handle) -> Handle?
  private let newCall:
    @convention(c) (
      Handle, UnsafeMutablePointer<Handle?>, UnsafePointer<CChar>, UnsafePointer<CChar>, UnsafePointer<CChar>,
      UnsafePointer<CChar>
    ) -> Int32
  private let call:
    @convention(c) (Handle, Handle, UInt64, UnsafeMutableRawPointer, UnsafeMutablePointer<Handle?>) -> Int32
  private let errorFree: @convention(c) (UnsafeMutableRawPointer) -> Void
  private let process: @convention(c) (Handle, UnsafeMutablePointer<Handle?>) -> Int32
  private let wait: @convention(c) (Handle, UInt64) -> Int32
  private let isSignal: @convention(c) (Handle, UnsafePointer<CChar>, UnsafePointer<CChar>) -> Int32
  private let path: @convention(c) (Handle) -> UnsafePointer<CChar>?
  fileprivate let unref: @convention(c) (Handle) -> Handle?
  fileprivate let appendBasic: @convention(c) (Handle, CChar, UnsafeRawPointer?) -> Int32
  fileprivate let appendArray: @convention(c) (Handle, CChar, UnsafeRawPointer?, Int) -> Int32
  fileprivate let openContainer: @convention(c) (Handle, CChar, UnsafePointer<CChar>) -> Int32
  fileprivate let closeContainer: @convention(c) (Handle) -> Int32
  fileprivate let enterContainer: @convention(c) (Handle, CChar, UnsafePointer<CChar>) -> Int32
  fileprivate let exitContainer: @convention(c) (Handle) -> Int32
  fileprivate let readBasic: @convention(c) (Handle, CChar, UnsafeMutableRawPointer) -> Int32
  fileprivate let readArray:
    @convention(c) (Handle, CChar, UnsafeMutablePointer<UnsafeRawPointer?>, UnsafeMutablePointer<Int>) -> Int32
  fileprivate let skip: @convention(c) (Handle, UnsafePointer<CChar>) -> Int32

  init() throws(Failure) {
    guard let library = dlopen("libsystemd.so.0", RTLD_NOW | RTLD_LOCAL) else {
      throw Failure(description: "libsystemd is not installed")
    }
    func find<Function>(_ name: String) throws(Failure) -> Function {
      guard let symbol = dlsym(library, name) else { throw Failure(description: "libsystemd has no \(name)") }
      return unsafeBitCast(symbol, to: Function.self)
    }
    openUser = try find("sd_bus_open_user")
    closeBus = try find("sd_bus_flush_close_unref")
    newCall = try find("sd_bus_message_new_method_call")
    call = try find("sd_bus_call")
    errorFree = try find("sd_bus_error_free")
    process = try find("sd_bus_process")
    wait = try find("sd_bus_wait")
    isSignal = try find("sd_bus_message_is_signal")
    path = try find("sd_bus_message_get_path")
    unref = try find("sd_bus_message_unref")
    appendBasic = try find("sd_bus_message_append_basic")
    appendArray = try find("sd_bus_message_append_array")
    openContainer = try find("sd_bus_message_open_container")
    closeContainer = try find("sd_bus_message_close_container")
    enterContainer = try find("sd_bus_message_enter_container")
    exitContainer = try find("sd_bus_message_exit_container")
    readBasic = try find("sd_bus_message_read_basic")
    readArray = try find("sd_bus_message_read_array")
    skip = try find("sd_bus_message_skip")
  }

  /// A connection to the user's bus, as long as `body` runs.
  func withUserBus<Result>(_ body: (Connection) throws -> Result) throws -> Result {
    var handle: Handle?
    let status = openUser(&handle)
    guard status >= 0, let handle else { throw Failure(description: "no session bus: \(systemText(-status))") }
    defer { _ = closeBus(handle) }
    return try body(Connection(bus: self, handle: handle))
  }

  struct Connection {
    fileprivate let bus: SystemdBus
    fileprivate let handle: Handle

    /// Calls a method and reads its answer.
    func call<Result>(
      _ destination: String, _ path: String, _ interface: String, _ method: String,
      _ fill: (BusMessage) throws -> Void = { _ in }, read: (BusMessage) throws -> Result
    ) throws -> Result {
      var message: Handle?
      try bus.check(bus.newCall(handle, &message, destination, path, interface, method), "a message")
      guard let message else { throw Failure(description: "no message") }
      defer { _ = bus.unref(message) }
      try fill(BusMessage(bus: bus, handle: message))
      var error = BusError()
      var reply: Handle?
      let status = withUnsafeMutableBytes(of: &error) { error in
        error.baseAddress.map { bus.call(handle, message, 25_000_000, $0, &reply) } ?? -EINVAL
      }
      defer { withUnsafeMutableBytes(of: &error) { $0.baseAddress.map(bus.errorFree) } }
      guard status >= 0, let reply else {
        let reason = error.message.map { String(cString: $0) } ?? systemText(-status)
        throw Failure(description: "\(method): \(reason)")
      }
      defer { _ = bus.unref(reply) }
      return try read(BusMessage(bus: bus, handle: reply))
    }

    /// Waits for a signal of this object.
    func awaitSignal<Result>(
      _ interface: String, _ name: String, of path: String, within seconds: TimeInterval,
      read: (BusMessage) throws -> Result
    ) throws -> Result {
      let end = Date(timeIntervalSinceNow: seconds)
      while Date() < end {
        var message: Handle?
        let status = bus.process(handle, &message)
        try bus.check(status, "the bus")
        if let message {
          defer { _ = bus.unref(message) }
          if bus.isSignal(message, interface, name) > 0, bus.path(message).map({ String(cString: $0) }) == path {
            return try read(BusMessage(bus: bus, handle: message))
          }
        } else if status == 0 {
          try bus.check(bus.wait(handle, 1_000_000), "the bus")
        }
      }
      throw Failure(description: "no answer to the prompt")
    }
  }

  fileprivate func check(_ status: Int32, _ what: String) throws(Failure) {
    guard status >= 0 else { throw Failure(description: "\(what): \(systemText(-status))") }
  }
}

/// A message that is filled or read from its beginning to its end.
struct BusMessage {
  fileprivate let bus: SystemdBus
  fileprivate let handle: SystemdBus.Handle

  func append(string: String, type: Character = "s") throws {
    try bus.check(string.withCString { bus.appendBasic(handle, code(type), $0) }, "a string")
  }

  func append(bool: Bool) throws {
    var value: Int32 = bool ? 1 : 0
    try bus.check(bus.appendBasic(handle, code("b"), &value), "a flag")
  }

  func append(bytes: UnsafeRawBufferPointer) throws {
    try bus.check(bus.appendArray(handle, code("y"), bytes.baseAddress, bytes.count), "bytes")
  }

  /// An array ("a"), struct ("r"), variant ("v") or dictionary entry ("e") with these contents.
  func container(_ type: Character, _ contents: String, _ fill: () throws -> Void) throws {
    try bus.check(bus.openContainer(handle, code(type), contents), "a container")
    try fill()
    try bus.check(bus.closeContainer(handle), "a container")
  }

  func readString(type: Character = "s") throws -> String {
    var text: UnsafePointer<CChar>?
    try bus.check(bus.readBasic(handle, code(type), &text), "an answer without its string")
    return text.map { String(cString: $0) } ?? ""
  }

  func readBool() throws -> Bool {
    var value: Int32 = 0
    try bus.check(bus.readBasic(handle, code("b"), &value), "an answer without its flag")
    return value != 0
  }

  /// Valid as long as the message.
  func readBytes() throws -> UnsafeRawBufferPointer {
    var start: UnsafeRawPointer?
    var size = 0
    try bus.check(bus.readArray(handle, code("y"), &start, &size), "an answer without its bytes")
    return UnsafeRawBufferPointer(start: start, count: size)
  }

  func readPaths() throws -> [String] {
    var paths: [String] = []
    try enter("a", "o") {
      var text: UnsafePointer<CChar>?
      while bus.readBasic(handle, code("o"), &text) > 0 {
        if let text { paths.append(String(cString: text)) }
      }
    }
    return paths
  }

  func enter(_ type: Character, _ contents: String, _ read: () throws -> Void) throws {
    try bus.check(bus.enterContainer(handle, code(type), contents), "an answer of another form")
    try read()
    try bus.check(bus.exitContainer(handle), "an answer of another form")
  }

  func skip(_ types: String) throws { try bus.check(bus.skip(handle, types), "an answer of another form") }

  private func code(_ type: Character) -> CChar { CChar(bitPattern: type.asciiValue ?? 0) }
}

/// struct sd_bus_error.
private struct BusError {
  var name: UnsafePointer<CChar>?
  var message: UnsafePointer<CChar>?
  var needsFree: Int32 = 0
}
