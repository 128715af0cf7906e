#include "wireguard/peer_table.h"

#include <sodium.h>

void kdp_wg_peer_table_start(kdp_wg_peer_table *table, const kdp_host *host) {
  memset(table, 0, sizeof *table);
  host->random(host->context, table->hash_key, sizeof table->hash_key);
}

static kdp_wg_peer **bucket_of(const kdp_wg_peer_table *table, const uint8_t public_key[KDP_KEY_SIZE]) {
  uint8_t hash[crypto_shorthash_BYTES];
  crypto_shorthash(hash, public_key, KDP_KEY_SIZE, table->hash_key);
  return &table->bucket[kdp_load_le32(hash) & (table->bucket_count - 1)];
}

static kdp_status reserve_ordered(kdp_wg_peer_table *table, uint32_t count, const kdp_host *host) {
  if (count <= table->ordered_capacity) return KDP_OK;
  uint32_t capacity = table->ordered_capacity ? table->ordered_capacity : 8;
  while (capacity < count)
    capacity *= 2;
  kdp_wg_peer **ordered = host->allocate(host->context, capacity * sizeof *ordered);
  if (!ordered) return KDP_NO_MEMORY;
  if (table->ordered) {
    memcpy(ordered, table->ordered, table->count * sizeof *ordered);
    host->release(host->context, table->ordered, table->ordered_capacity * sizeof *ordered);
  }
  table->ordered = ordered;
  table->ordered_capacity = capacity;
  return KDP_OK;
}

static kdp_status reserve_buckets(kdp_wg_peer_table *table, uint32_t count, const kdp_host *host) {
  uint32_t wanted = table->bucket_count ? table->bucket_count : 8;
  while (wanted < count)
    wanted *= 2;
  if (wanted == table->bucket_count) return KDP_OK;
  kdp_wg_peer **bucket = host->allocate(host->context, wanted * sizeof *bucket);
  if (!bucket) return KDP_NO_MEMORY;
  memset(bucket, 0, wanted * sizeof *bucket);
  kdp_wg_peer_table grown = *table;
  grown.bucket = bucket;
  grown.bucket_count = wanted;
  for (uint32_t i = 0; i < table->bucket_count; i++)
    for (kdp_wg_peer *peer = table->bucket[i], *after; peer; peer = after) {
      after = peer->chain;
      kdp_wg_peer_table_insert(&grown, peer);
    }
  if (table->bucket) host->release(host->context, table->bucket, table->bucket_count * sizeof *bucket);
  *table = grown;
  return KDP_OK;
}

kdp_status kdp_wg_peer_table_reserve(kdp_wg_peer_table *table, uint32_t count, const kdp_host *host) {
  kdp_status status = reserve_ordered(table, count, host);
  return status == KDP_OK ? reserve_buckets(table, count, host) : status;
}

void kdp_wg_peer_table_destroy(kdp_wg_peer_table *table, const kdp_host *host) {
  if (table->bucket) host->release(host->context, table->bucket, table->bucket_count * sizeof *table->bucket);
  if (table->ordered) host->release(host->context, table->ordered, table->ordered_capacity * sizeof *table->ordered);
  memset(table, 0, sizeof *table);
}

kdp_wg_peer *kdp_wg_peer_table_find(const kdp_wg_peer_table *table, const uint8_t public_key[KDP_KEY_SIZE]) {
  if (table->bucket_count == 0) return NULL;
  kdp_wg_peer *peer = *bucket_of(table, public_key);
  while (peer && memcmp(peer->public_key, public_key, KDP_KEY_SIZE) != 0)
    peer = peer->chain;
  return peer;
}

void kdp_wg_peer_table_insert(kdp_wg_peer_table *table, kdp_wg_peer *peer) {
  kdp_wg_peer **bucket = bucket_of(table, peer->public_key);
  peer->chain = *bucket;
  *bucket = peer;
}

void kdp_wg_peer_table_remove(kdp_wg_peer_table *table, kdp_wg_peer *peer) {
  kdp_wg_peer **at = bucket_of(table, peer->public_key);
  while (*at != peer)
    at = &(*at)->chain;
  *at = peer->chain;
}

void kdp_wg_peer_table_append(kdp_wg_peer_table *table, kdp_wg_peer *peer) {
  table->ordered[table->count++] = peer;
}

void kdp_wg_peer_table_drop(kdp_wg_peer_table *table, kdp_wg_peer *peer) {
  uint32_t at = kdp_wg_peer_table_after(table, peer->number - 1);
  table->count--;
  memmove(table->ordered + at, table->ordered + at + 1, (table->count - at) * sizeof *table->ordered);
}

uint32_t kdp_wg_peer_table_after(const kdp_wg_peer_table *table, uint64_t number) {
  uint32_t low = 0, high = table->count;
  while (low < high) {
    uint32_t middle = low + (high - low) / 2;
    if (table->ordered[middle]->number > number)
      high = middle;
    else
      low = middle + 1;
  }
  return low;
}

kdp_wg_peer *kdp_wg_peer_table_numbered(const kdp_wg_peer_table *table, uint64_t number) {
  if (number == 0) return NULL;
  uint32_t at = kdp_wg_peer_table_after(table, number - 1);
  return at < table->count && table->ordered[at]->number == number ? table->ordered[at] : NULL;
}
