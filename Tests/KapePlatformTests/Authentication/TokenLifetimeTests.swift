import Foundation
import KapeCrypto
import Testing

@testable import KapePlatform

@Suite("§3.5: until when a token is good") struct TokenLifetimeTests {
  private let now = Date(timeIntervalSince1970: 1_800_000_000)

  private func token(_ claims: String) -> String {
    "eyJhbGciOiJFUzI1NiJ9." + Base64URL.encode(Array(claims.utf8)) + ".AA"
  }

  private func seconds(_ claims: String, expiresIn: TimeInterval? = nil) -> TimeInterval? {
    TokenLifetime.expiry(of: token(claims), receivedAt: now, expiresIn: expiresIn)?.timeIntervalSince(now)
  }

  @Test("exp, where iat fits the clock here within five minutes") func rightClock() {
    #expect(seconds(#"{"exp":1800000900}"#) == 900)
    #expect(seconds(#"{"iat":1800000000,"exp":1800000900}"#) == 900)
    #expect(seconds(#"{"iat":1799999700,"exp":1800000900}"#) == 900)
    #expect(seconds(#"{"iat":1800000300,"exp":1800000900}"#) == 900)
  }

  @Test("with a clock that is wrong: the distance from iat to exp") func wrongClock() {
    #expect(seconds(#"{"iat":1799990000,"exp":1799990900}"#) == 900)
    #expect(seconds(#"{"iat":1900000000,"exp":1900000900}"#) == 900)
    #expect(seconds(#"{"iat":1900000000,"exp":1800000000}"#) == 0)
  }

  @Test("expires_in when it is less, or all there is") func expiresIn() {
    #expect(seconds(#"{"exp":1800000900}"#, expiresIn: 60) == 60)
    #expect(seconds(#"{"exp":1800000900}"#, expiresIn: 6000) == 900)
    #expect(seconds("{}", expiresIn: 60) == 60)
    #expect(seconds("{}") == nil)
    #expect(TokenLifetime.expiry(of: "opaque", receivedAt: now, expiresIn: 60) == now + 60)
    #expect(TokenLifetime.expiry(of: "opaque", receivedAt: now, expiresIn: -5) == now)
    #expect(TokenLifetime.expiry(of: "opaque", receivedAt: now) == nil)
    #expect(!TokenLifetime.isGood(nil, at: now))
  }
}

@Suite("§3.5: Retry-After") struct RetryAfterTests {
  private let now = Date(timeIntervalSince1970: 784_111_777)

  @Test(
    "seconds, or a date (RFC 9110 10.2.3); at least a second, at most a day; a minute for anything else",
    arguments: [
      ("120", 120.0), (" 7 ", 7), ("0", 1), ("999999999999999999999999", 86_400), ("90000", 86_400),
      ("Sun, 06 Nov 1994 08:50:37 GMT", 60), ("Sun, 06 Nov 1994 08:49:00 GMT", 1),
      ("Mon, 07 Nov 1994 07:00:00 GMT", 79_823),
      ("", 60), ("-5", 60), ("soon", 60), ("1.5", 60), ("Sun, 99 Foo 1994 08:49:37 GMT", 60),
    ])
  func dates(_ field: String, _ seconds: TimeInterval) {
    #expect(RetryAfter.date(field, now: now).timeIntervalSince(now) == seconds)
  }

  @Test("no field: a minute") func none() { #expect(RetryAfter.date(nil, now: now) == now + 60) }
}
