import Foundation

/// When a server that refuses for now may be asked again (RFC 9110, section 10.2.3).
enum RetryAfter {
  /// For an answer that does not say.
  static let usual: TimeInterval = 60
  /// Nobody is believed who asks for more than a day.
  static let most: TimeInterval = 86_400

  static func date(_ field: String?, now: Date) -> Date {
    let field = field?.trimmingCharacters(in: .whitespaces) ?? ""
    var seconds = usual
    if !field.isEmpty, field.utf8.allSatisfy({ (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }) {
      seconds = Double(field) ?? most
    } else if let date = date(imf: field) {
      seconds = date.timeIntervalSince(now)
    }
    return now + min(max(seconds, 1), most)
  }

  /// `Sun, 06 Nov 1994 08:49:37 GMT`, the one form that is sent today (RFC 9110, section 5.6.7).
  private static func date(imf text: String) -> Date? {
    let months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]
    let words = text.split(separator: " ")
    guard words.count == 6, words[5] == "GMT", let month = months.firstIndex(of: String(words[2])),
      let day = Int32(words[1]), let year = Int32(words[3]), (1970...9999).contains(year)
    else { return nil }
    let time = words[4].split(separator: ":").compactMap { Int32($0) }
    guard time.count == 3 else { return nil }
    var parts = tm()
    (parts.tm_year, parts.tm_mon, parts.tm_mday) = (year - 1900, Int32(month), day)
    (parts.tm_hour, parts.tm_min, parts.tm_sec) = (time[0], time[1], time[2])
    return Date(timeIntervalSince1970: Double(timegm(&parts)))
  }
}
