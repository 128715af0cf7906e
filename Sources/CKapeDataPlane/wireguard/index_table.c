#include "wireguard/index_table.h"

#include <string.h>

enum { MIN_CAPACITY = 16 };

static void insert(kdp_wg_index_table *table, kdp_wg_index_entry entry) {
  uint32_t mask = table->capacity - 1, at = entry.index & mask;
  while (table->entry[at].kind != KDP_WG_INDEX_FREE)
    at = (at + 1) & mask;
  table->entry[at] = entry;
  table->count++;
}

kdp_status kdp_wg_index_reserve(kdp_wg_index_table *table, uint32_t count, const kdp_host *host) {
  uint64_t capacity = table->capacity ? table->capacity : MIN_CAPACITY;
  while (capacity < (uint64_t)count * 2)
    capacity *= 2;
  if (capacity == table->capacity) return KDP_OK;
  if (capacity > UINT32_MAX / 2) return KDP_LIMIT;
  size_t size = capacity * sizeof(kdp_wg_index_entry);
  kdp_wg_index_table grown = {.entry = host->allocate(host->context, size), .capacity = (uint32_t)capacity};
  if (!grown.entry) return KDP_NO_MEMORY;
  memset(grown.entry, 0, size);
  for (uint32_t i = 0; i < table->capacity; i++)
    if (table->entry[i].kind != KDP_WG_INDEX_FREE) insert(&grown, table->entry[i]);
  kdp_wg_index_destroy(table, host);
  *table = grown;
  return KDP_OK;
}

void kdp_wg_index_destroy(kdp_wg_index_table *table, const kdp_host *host) {
  if (table->entry) host->release(host->context, table->entry, table->capacity * sizeof(kdp_wg_index_entry));
  *table = (kdp_wg_index_table){0};
}

uint32_t kdp_wg_index_take(kdp_wg_index_table *table, kdp_wg_index_kind kind, void *value, const kdp_host *host) {
  uint32_t index;
  do
    host->random(host->context, &index, sizeof index);
  while (kdp_wg_index_find(table, index));
  insert(table, (kdp_wg_index_entry){.index = index, .kind = kind, .value = value});
  return index;
}

void kdp_wg_index_change(kdp_wg_index_table *table, uint32_t index, kdp_wg_index_kind kind, void *value) {
  kdp_wg_index_entry *entry = kdp_wg_index_find(table, index);
  entry->kind = kind;
  entry->value = value;
}

void kdp_wg_index_release(kdp_wg_index_table *table, uint32_t index) {
  kdp_wg_index_entry *entry = kdp_wg_index_find(table, index);
  if (!entry) return;
  uint32_t mask = table->capacity - 1, hole = (uint32_t)(entry - table->entry);
  table->count--;
  /* Close the gap: an entry further on moves into the hole unless its own place lies behind it. */
  for (uint32_t at = (hole + 1) & mask; table->entry[at].kind != KDP_WG_INDEX_FREE; at = (at + 1) & mask) {
    uint32_t home = table->entry[at].index & mask;
    if (((at - home) & mask) >= ((at - hole) & mask)) {
      table->entry[hole] = table->entry[at];
      hole = at;
    }
  }
  table->entry[hole] = (kdp_wg_index_entry){0};
}
