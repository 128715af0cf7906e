/// The tables. Times are seconds since 1970; tokens are there as their SHA-256 only.
enum Schema {
  static let version: Int64 = 1

  /// Makes them in a new database; one of a later program is refused.
  static func prepare(_ database: Database) throws {
    let found = try database.row("PRAGMA user_version") { $0.integer(0) } ?? 0
    guard found <= version else {
      throw DatabaseError(
        code: 0, reason: "its layout is \(found) and this program knows \(version): a later one made it; start that")
    }
    guard found == 0 else { return }
    try database.transaction { try database.script(tables) }
  }

  private static let tables: StaticString = """
    CREATE TABLE secrets (name TEXT PRIMARY KEY, value BLOB NOT NULL) STRICT;
    CREATE TABLE users (
      id TEXT PRIMARY KEY, email TEXT NOT NULL UNIQUE COLLATE NOCASE, name TEXT NOT NULL, password_hash TEXT NOT NULL,
      created INTEGER NOT NULL
    ) STRICT;
    CREATE TABLE subscriptions (
      id TEXT PRIMARY KEY, user TEXT NOT NULL REFERENCES users(id), position INTEGER NOT NULL, status TEXT NOT NULL,
      source TEXT NOT NULL, tier TEXT NOT NULL, current_term_end INTEGER, next_billing_at INTEGER, cancelled_at INTEGER,
      billing_unit TEXT, billing_count INTEGER, last_payment_failed INTEGER NOT NULL, is_business INTEGER NOT NULL,
      entitlements TEXT NOT NULL
    ) STRICT;
    CREATE INDEX subscriptions_of_user ON subscriptions(user, position);
    CREATE TABLE families (
      id TEXT PRIMARY KEY, user TEXT NOT NULL REFERENCES users(id), client TEXT NOT NULL, auth_time INTEGER NOT NULL,
      scope TEXT NOT NULL, expires INTEGER NOT NULL, revoked INTEGER NOT NULL DEFAULT 0
    ) STRICT;
    CREATE TABLE refresh_tokens (
      hash BLOB PRIMARY KEY, family TEXT NOT NULL REFERENCES families(id) ON DELETE CASCADE, parent BLOB,
      expires INTEGER NOT NULL, used INTEGER, replaced INTEGER NOT NULL DEFAULT 0
    ) STRICT;
    CREATE INDEX refresh_tokens_of_family ON refresh_tokens(family);
    CREATE TABLE codes (
      hash BLOB PRIMARY KEY, user TEXT NOT NULL REFERENCES users(id), client TEXT NOT NULL, redirect_uri TEXT NOT NULL,
      scope TEXT NOT NULL, nonce TEXT, challenge TEXT NOT NULL, auth_time INTEGER NOT NULL, expires INTEGER NOT NULL,
      family TEXT
    ) STRICT;
    CREATE TABLE signing_keys (
      kid TEXT PRIMARY KEY, algorithm TEXT NOT NULL, private_key BLOB NOT NULL, active_from INTEGER NOT NULL
    ) STRICT;
    CREATE TABLE holder_keys (period INTEGER PRIMARY KEY, key BLOB NOT NULL) STRICT;
    CREATE TABLE peers (
      server TEXT NOT NULL, public_key BLOB NOT NULL, address INTEGER NOT NULL, preshared_key BLOB NOT NULL,
      holder TEXT NOT NULL, earlier_holder TEXT NOT NULL, added INTEGER NOT NULL, expires INTEGER NOT NULL,
      leaving INTEGER NOT NULL DEFAULT 0, PRIMARY KEY (server, public_key), UNIQUE (server, address)
    ) STRICT;
    CREATE INDEX peers_of_holder ON peers(holder);
    CREATE INDEX peers_of_earlier_holder ON peers(earlier_holder);
    CREATE TABLE dedicated_ips (
      hash BLOB PRIMARY KEY, ip TEXT NOT NULL UNIQUE, expires INTEGER NOT NULL
    ) STRICT;
    CREATE TABLE events (
      id TEXT PRIMARY KEY, project TEXT NOT NULL, distinct_id TEXT NOT NULL, event TEXT NOT NULL,
      category TEXT NOT NULL, time TEXT NOT NULL, properties TEXT NOT NULL, received INTEGER NOT NULL
    ) STRICT;
    CREATE INDEX events_by_age ON events(received);
    PRAGMA user_version = 1;
    """
}
