extension Backend {
  /// What is to be done from time to time: keys that are due, what has expired, and the peers.
  package func sweep() async {
    do {
      try await rotateKeys()
      try forget()
    } catch {
      log.error("sweep_failed", ["reason": "\(error)"])
    }
    await sweepPeers()
  }

  private func forget() throws {
    let now = clock.seconds
    try database.transaction {
      // For an hour after its end a code that is used again still tells of a theft.
      try database.run("DELETE FROM codes WHERE expires < ?", .integer(now - 3600))
      try database.run("DELETE FROM refresh_tokens WHERE expires < ?", .integer(now))
      // As long as an identity token of it may be around.
      try database.run("DELETE FROM families WHERE expires < ?", .integer(now - settings.lifetimes.identityToken))
      try database.run("DELETE FROM events WHERE received < ?", .integer(now - settings.tracking.kept))
      if hasNewEvents {
        try database.run(
          """
          DELETE FROM events WHERE rowid IN (
            SELECT rowid FROM events ORDER BY received LIMIT max(0, (SELECT count(*) FROM events) - ?))
          """, .integer(settings.tracking.most))
      }
      try database.run(
        "DELETE FROM holder_keys WHERE period < ?", .integer(now / settings.lifetimes.holder - 1))
    }
    hasNewEvents = false
  }
}
