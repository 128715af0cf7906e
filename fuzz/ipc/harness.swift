/// Messages from other programs on any bytes.

import KapeControl

@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzIPC(_ start: UnsafePointer<UInt8>?, _ size: Int) -> CInt {
  let bytes = Array(UnsafeBufferPointer(start: start, count: size))
  _ = IPCFrame.size(Array(bytes.prefix(4)))
  readValue(bytes)
  readMessage(bytes)
  readRequests(bytes)
  return 0
}

/// What is accepted reads back the same, and says nothing but what it can say.
private func readRequests(_ bytes: [UInt8]) {
  guard let value = try? JSONReader.read(bytes) else { return }
  if let settings = try? TunnelSettings(value) {
    precondition((try? TunnelSettings(settings.json)) == settings)
    for domain in settings.searchDomains + (settings.matchDomains ?? []) {
      precondition(domain.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F } && !domain.hasPrefix("-"))
    }
  }
  if let profile = try? ProviderProfile(value) {
    precondition((try? ProviderProfile(profile.json)) == profile)
    precondition(!profile.id.contains("/") && !profile.id.hasPrefix(".") && !profile.appGroup.contains("/"))
  }
  if let snapshot = try? ProviderSnapshot(value) { precondition((try? ProviderSnapshot(snapshot.json)) == snapshot) }
}

private func readValue(_ bytes: [UInt8]) {
  guard let value = try? JSONReader.read(bytes) else { return }
  precondition(depth(value) <= JSONReader.Limits().depth)
  for text in [value.compactText, value.text] {
    guard let again = try? JSONReader.read(Array(text.utf8)) else { preconditionFailure("cannot be read: \(text)") }
    precondition(again == value)
  }
  if case .string(let text) = value, let decoded = Base64.decode(text) {
    precondition(Base64.encode(decoded) == text, "two texts for the same bytes")
  }
}

private func depth(_ value: JSONValue) -> Int {
  switch value {
  case .array(let elements): 1 + (elements.map(depth).max() ?? 0)
  case .object(let members): 1 + (members.map { depth($0.value) }.max() ?? 0)
  default: 0
  }
}

private func readMessage(_ bytes: [UInt8]) {
  let message: IPCMessage
  do throws(IPCMessage.Invalid) {
    message = try IPCMessage(bytes)
  } catch {
    if case .version(let version, _) = error { precondition(version != IPCMessage.version) }
    return
  }
  guard let frame = IPCFrame.encode(message) else { preconditionFailure("read, but cannot be sent") }
  precondition(IPCFrame.size(Array(frame.prefix(4))) == frame.count - 4)
  // A code that this version does not know is not kept.
  if case .reply(_, .failure(let failure)) = message, failure.code == .other { return }
  guard let again = try? IPCMessage(Array(frame.dropFirst(4))) else { preconditionFailure("cannot be read again") }
  precondition(again == message)
}
