import Testing

@testable import KapeBackend

@Suite struct RateLimiterTests {
  private let limit = RateLimiter.Limit(requests: 3, seconds: 60)

  @Test func soManyAtOnceAndThenAsTimePasses() {
    var limiter = RateLimiter()
    for _ in 0..<3 { #expect(limiter.refusal("a", "x", limit, at: 0) == nil) }
    #expect(limiter.refusal("a", "x", limit, at: 0) == 20)
    #expect(limiter.refusal("a", "y", limit, at: 0) == nil, "another has his own")
    #expect(limiter.refusal("b", "x", limit, at: 0) == nil, "and so has another operation")
    #expect(limiter.refusal("a", "x", limit, at: 19_999) == 1)
    #expect(limiter.refusal("a", "x", limit, at: 20_000) == nil)
    #expect(limiter.refusal("a", "x", limit, at: 20_000) == 20)
    for _ in 0..<3 { #expect(limiter.refusal("a", "x", limit, at: 1_000_000) == nil) }
    #expect(limiter.refusal("a", "x", limit, at: 1_000_000) == 20)
  }

  private static let limits = [
    RateLimiter.Limit(requests: 7, seconds: 60), .init(requests: 1, seconds: 3600), .init(requests: 60, seconds: 1),
  ]

  @Test(arguments: limits)
  func whoWaitsAsLongAsHeIsToldIsLetIn(_ limit: RateLimiter.Limit) {
    var limiter = RateLimiter()
    var now: Int64 = 0
    for _ in 0..<200 {
      guard let seconds = limiter.refusal("a", "x", limit, at: now) else { continue }
      now += seconds * 1000
      #expect(limiter.refusal("a", "x", limit, at: now) == nil)
    }
    #expect(now > 0)
  }

  /// Neither does it help, nor is it punished.
  @Test(arguments: limits)
  func whoAsksAllTheTimeGetsExactlyHisShare(_ limit: RateLimiter.Limit) {
    var limiter = RateLimiter()
    let end = limit.seconds * 5000
    let allowed = stride(from: Int64(0), through: end, by: 7).filter { limiter.refusal("a", "x", limit, at: $0) == nil }
    #expect((limit.requests * 6 - 1...limit.requests * 6).contains(Int64(allowed.count)))
  }

  @Test func whatIsGivenBackCounts() {
    var limiter = RateLimiter()
    for _ in 0..<10 {
      #expect(limiter.refusal("a", "x", limit, at: 0) == nil)
      limiter.restore("a", "x")
    }
    limiter.restore("a", "nobody")
  }

  @Test func aClockThatGoesBackAllowsNoMore() {
    var limiter = RateLimiter()
    for _ in 0..<3 { #expect(limiter.refusal("a", "x", limit, at: 100_000) == nil) }
    #expect(limiter.refusal("a", "x", limit, at: 0) == 20)
  }

  @Test func memoryIsBounded() {
    var limiter = RateLimiter()
    for number in 0..<(RateLimiter.mostBuckets + 10) { _ = limiter.refusal("a", "\(number)", limit, at: 0) }
    #expect(limiter.bucketCount <= RateLimiter.mostBuckets)
  }
}
