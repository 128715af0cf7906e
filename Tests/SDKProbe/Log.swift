import KapePlatform

/// `log TEXT`: a line of each level.
enum Log {
  static func run(_ words: [String]) {
    let logger = KapeLogger(subsystem: "probe", category: "log")
    let text = words.joined(separator: " ")
    logger.trace(text)
    logger.debug(text)
    logger.info(text)
    logger.warning(text)
    logger.error(text)
  }
}
