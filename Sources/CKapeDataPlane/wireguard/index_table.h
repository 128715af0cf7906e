/* The 32-bit indices that we give out (section 5.4 of the paper: sender, receiver), each for a handshake in progress or
   a key pair. Indices are random, so they spread over the table by themselves and tell nothing about the number of
   sessions. Open addressing; the owner reserves room beforehand, so that taking an index cannot fail. */
#ifndef KDP_WIREGUARD_INDEX_TABLE_H
#define KDP_WIREGUARD_INDEX_TABLE_H

#include "kdp/base.h"
#include "kdp/status.h"

typedef enum kdp_wg_index_kind {
  KDP_WG_INDEX_FREE = 0,
  KDP_WG_INDEX_HANDSHAKE, /* value: a kdp_wg_peer */
  KDP_WG_INDEX_KEY_PAIR   /* value: a kdp_wg_key_pair */
} kdp_wg_index_kind;

typedef struct kdp_wg_index_entry {
  uint32_t index;
  uint32_t kind; /* kdp_wg_index_kind */
  void *value;
} kdp_wg_index_entry;

typedef struct kdp_wg_index_table {
  kdp_wg_index_entry *entry;
  uint32_t capacity; /* a power of two, or 0 */
  uint32_t count;
} kdp_wg_index_table;

/* Room for `count` indices in all, at most half full. NO_MEMORY leaves the table as it was. */
kdp_status kdp_wg_index_reserve(kdp_wg_index_table *table, uint32_t count, const kdp_host *host) KDP_MUST_USE;
void kdp_wg_index_destroy(kdp_wg_index_table *table, const kdp_host *host);

/* A new random index for `value`. */
uint32_t kdp_wg_index_take(kdp_wg_index_table *table, kdp_wg_index_kind kind, void *value, const kdp_host *host);
/* The index keeps its number and means something else from now on. */
void kdp_wg_index_change(kdp_wg_index_table *table, uint32_t index, kdp_wg_index_kind kind, void *value);
void kdp_wg_index_release(kdp_wg_index_table *table, uint32_t index);

static inline kdp_wg_index_entry *kdp_wg_index_find(const kdp_wg_index_table *table, uint32_t index) {
  uint32_t mask = table->capacity - 1;
  if (table->capacity == 0) return NULL;
  for (uint32_t at = index & mask; table->entry[at].kind != KDP_WG_INDEX_FREE; at = (at + 1) & mask)
    if (table->entry[at].index == index) return &table->entry[at];
  return NULL;
}

#endif
