#ifndef KAPE_CSQLITE_SHIM_H
#define KAPE_CSQLITE_SHIM_H

#include <sqlite3.h>

/* SQLITE_TRANSIENT, the order to copy, is a cast, which Swift does not import. */
static inline int csqlite_bind_text(sqlite3_stmt *statement, int index, const char *text, int size) {
  return sqlite3_bind_text(statement, index, text, size, SQLITE_TRANSIENT);
}
static inline int csqlite_bind_blob(sqlite3_stmt *statement, int index, const void *bytes, int size) {
  return size == 0 ? sqlite3_bind_zeroblob(statement, index, 0)
                   : sqlite3_bind_blob(statement, index, bytes, size, SQLITE_TRANSIENT);
}

#endif
