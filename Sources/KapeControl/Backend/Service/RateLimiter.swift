/// Limits how often someone may do something: so many times at once, and then again as time passes (a token bucket).
/// A restart forgets it.
struct RateLimiter {
  struct Limit: Sendable, Equatable {
    /// At once; at least 1.
    var requests: Int64
    /// At least 1; until that many are allowed again.
    var seconds: Int64
  }

  /// Of those who have not come for long nothing is kept, but this many buckets at most are there in between.
  static let mostBuckets = 100_000

  private struct Key: Hashable {
    let operation: String
    let who: String
  }

  /// A request costs `seconds` thousand units and `requests` of them come back each millisecond, so that nothing is ever
  /// rounded.
  private struct Bucket {
    var spent: Int64
    var at: Int64
    let limit: Limit

    var cost: Int64 { 1000 * limit.seconds }

    /// What is spent still, `now`.
    func spent(at now: Int64) -> Int64 {
      let (returned, overflow) = max(0, now - at).multipliedReportingOverflow(by: limit.requests)
      return overflow ? 0 : max(0, spent - returned)
    }
  }

  private var buckets: [Key: Bucket] = [:]

  init() {}

  var bucketCount: Int { buckets.count }

  /// nil: go on. Otherwise seconds after which one more is allowed, at least 1. Time in milliseconds.
  mutating func refusal(_ operation: String, _ who: String, _ limit: Limit, at now: Int64) -> Int64? {
    let key = Key(operation: operation, who: who)
    var bucket = buckets[key] ?? Bucket(spent: 0, at: now, limit: limit)
    bucket.spent = bucket.spent(at: now)
    bucket.at = now
    let missing = bucket.spent + bucket.cost - limit.requests * bucket.cost
    guard missing <= 0 else {
      buckets[key] = bucket
      let milliseconds = (missing + limit.requests - 1) / limit.requests
      return max(1, (milliseconds + 999) / 1000)
    }
    bucket.spent += bucket.cost
    buckets[key] = bucket
    if buckets.count > Self.mostBuckets { prune(at: now) }
    return nil
  }

  /// Gives one back: what was counted did not turn out to be what is limited.
  mutating func restore(_ operation: String, _ who: String) {
    let key = Key(operation: operation, who: who)
    guard var bucket = buckets[key] else { return }
    bucket.spent = max(0, bucket.spent - bucket.cost)
    buckets[key] = bucket
  }

  /// Forgets who has nothing spent any more; when that does not help, whoever came first.
  private mutating func prune(at now: Int64) {
    buckets = buckets.filter { $0.value.spent(at: now) > 0 }
    guard buckets.count > Self.mostBuckets else { return }
    let old = buckets.sorted { $0.value.at < $1.value.at }.prefix(buckets.count - Self.mostBuckets / 2)
    for (key, _) in old { buckets[key] = nil }
  }
}
