/// JSON, JSON Web Tokens and key sets of any bytes. The first byte says what the rest is.

import KapeCrypto

@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzJWT(_ start: UnsafePointer<UInt8>?, _ size: Int) -> CInt {
  let input = UnsafeBufferPointer(start: start, count: size)
  guard let kind = input.first else { return 0 }
  let bytes = Array(input.dropFirst())
  switch kind % 4 {
  case 0: json(bytes)
  case 1: keySet(bytes)
  case 2: token(String(decoding: bytes, as: UTF8.self))
  default: signed(bytes)
  }
  return 0
}

/// What is read can be written, and reads the same then.
private func json(_ bytes: [UInt8]) {
  guard let value = try? JSONReader.read(bytes) else { return }
  precondition((try? JSONReader.read(Array(text(value).utf8))) == value, "it reads otherwise")
  var longer = bytes
  longer.append(UInt8(ascii: "0"))
  if case .number = value { return }
  precondition((try? JSONReader.read(longer)) == nil, "text behind the value was passed over")
}

private func keySet(_ bytes: [UInt8]) {
  guard let set = try? JSONWebKeySet(parsing: bytes) else { return }
  precondition(set.keys.count <= JSONWebKeySet.keyLimit)
  for key in set.keys { precondition(SignatureKey(key.key.parameters) != nil) }
  let all = Set(SignatureAlgorithm.allCases)
  // A set of somebody's keys takes nothing that we have signed, unless our key is in it.
  guard !set.keys.contains(where: { $0.key.parameters == ours.publicKey.parameters }) else { return }
  precondition((try? JSONWebSignature(compact: ourToken).verify(set, allowing: all)) == nil, "taken by a foreign set")
}

/// Nothing that we have not signed is taken, whatever it says of itself.
private func token(_ text: String) {
  guard let signature = try? JSONWebSignature(compact: text) else { return }
  let isTaken = (try? signature.verify(ourKeys, allowing: Set(SignatureAlgorithm.allCases))) != nil
  precondition(!isTaken || text == ourToken, "a forged token: \(text)")
  guard let token = try? JSONWebToken(unverified: text) else { return }
  if let expiresAt = token.expiresAt { precondition(expiresAt.isFinite) }
}

/// Any claims, signed: a policy lets through what keeps to it, and nothing else.
private func signed(_ claims: [UInt8]) {
  let text = sign(claims)
  let now = 1_800_000_000.0
  let policy = JSONWebTokenPolicy(issuer: "i", audience: "a", algorithms: [.eddsa])
  guard let token = try? JSONWebToken(text, keys: ourKeys, policy: policy, now: now) else { return }
  guard let members = try? JSONReader.read(claims) else { preconditionFailure("claims that are no JSON were taken") }
  precondition(members["iss"] == .string("i"))
  precondition(members["aud"] == .string("a") || members["aud"]?.strings?.contains("a") == true)
  guard let expiresAt = members["exp"]?.number else { preconditionFailure("taken without an end") }
  precondition(now < expiresAt + 60 && token.expiresAt == expiresAt)
  if let time = members["nbf"] { precondition((time.number ?? .infinity) <= now + 60) }
  if let time = members["iat"] { precondition((time.number ?? .infinity) <= now + 60) }
}

private let ours: SigningKey = {
  // PKCS #8 of an Ed25519 key: always the same one, so that a finding can be seen again.
  let prefix: [UInt8] = [0x30, 0x2E, 2, 1, 0, 0x30, 5, 6, 3, 0x2B, 0x65, 0x70, 4, 0x22, 4, 0x20]
  let bytes = prefix + Array(repeating: 7, count: 32)
  guard let key = try? SigningKey(privateBytes: bytes.span.bytes, .eddsa) else { preconditionFailure("no key") }
  return key
}()
private let ourKeys = JSONWebKeySet([.init(identifier: "k", key: ours.publicKey)])
private let ourToken = sign(Array(#"{"iss":"i","aud":"a","exp":1800000000}"#.utf8))

private func sign(_ claims: [UInt8]) -> String {
  let signed = Base64URL.encode(Array(#"{"alg":"EdDSA","kid":"k"}"#.utf8)) + "." + Base64URL.encode(claims)
  guard let signature = try? ours.signature(of: Array(signed.utf8)) else { preconditionFailure("not signed") }
  return signed + "." + Base64URL.encode(signature)
}

private func text(_ value: JSONNode) -> String {
  switch value {
  case .null: "null"
  case .bool(let flag): flag ? "true" : "false"
  case .number(let number): "\(number)"
  case .string(let string): text(string)
  case .array(let values): "[" + values.map(text).joined(separator: ",") + "]"
  case .object(let members): "{" + members.map { text($0) + ":" + text($1) }.joined(separator: ",") + "}"
  }
}

private func text(_ string: String) -> String {
  "\""
    + string.utf16.map { unit in
      let digits = String(unit, radix: 16)
      return "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
    }.joined() + "\""
}
