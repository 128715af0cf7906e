public import KapeCrypto

extension WireGuardConfiguration {
  /// Appends what `wg-quick strip` prints: the file's own lines, comments included, without the keys that only wg-quick
  /// knows. Also without what this reader accepts and wg does not: a byte order mark, keys without a value. For
  /// files that `parse` accepts.
  public static func strip(_ bytes: RawSpan, to buffer: inout SecretBuffer) {
    var start = WireGuardConfigurationLexer.start(of: bytes)
    var isInterface = false
    while start < bytes.byteCount {
      let end = bytes.firstIndex(of: UInt8(ascii: "\n"), from: start) ?? bytes.byteCount
      let line = bytes.extracting(start..<end)
      if isForWg(line, &isInterface) {
        appendWithoutBlanksAtEnds(line, to: &buffer)
        buffer.append("\n")
      }
      start = end + 1
    }
    buffer.append("\n")
  }

  private static func isForWg(_ line: RawSpan, _ isInterface: inout Bool) -> Bool {
    var keeps = true
    WireGuardConfigurationLexer.readLine(line, 0) { item, text in
      switch item {
      case .section: isInterface = text.name.lowercased() == "[interface]"
      case .assignment:
        if let key = WireGuardConfigurationKey(text.name) {
          keeps = key.reader == .wg ? !text.value.isEmpty : !isInterface
        }
      case .other, .lineTooLong, .zeroByte: break
      }
    }
    return keeps
  }

  /// As the shell's `read` does: a carriage return stays.
  private static func appendWithoutBlanksAtEnds(_ line: RawSpan, to buffer: inout SecretBuffer) {
    func isBlank(_ byte: UInt8) -> Bool { byte == UInt8(ascii: " ") || byte == UInt8(ascii: "\t") }
    var start = 0
    var end = line.byteCount
    while start < end, isBlank(line[start]) { start += 1 }
    while end > start, isBlank(line[end - 1]) { end -= 1 }
    buffer.append(line.extracting(start..<end))
  }
}
