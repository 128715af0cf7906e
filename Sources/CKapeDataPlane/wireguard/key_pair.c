#include "wireguard/key_pair.h"

#include "core/wipe.h"
#include "wireguard/tuning.h"

struct kdp_wg_key_chunk {
  kdp_wg_key_chunk *before, *after;
  kdp_wg_key_pair *free; /* given back, newest first */
  uint32_t count;
  uint32_t used;
  uint32_t fresh; /* pairs from here on were never used: their memory is untouched */
  kdp_wg_key_pair pair[];
};

enum { MIN_CHUNK = 4 };

static size_t size_of(uint32_t count) {
  return sizeof(kdp_wg_key_chunk) + (size_t)count * sizeof(kdp_wg_key_pair);
}

static void link_chunk(kdp_wg_key_chunk **list, kdp_wg_key_chunk *chunk) {
  chunk->before = NULL;
  chunk->after = *list;
  if (chunk->after) chunk->after->before = chunk;
  *list = chunk;
}

static void unlink_chunk(kdp_wg_key_chunk **list, kdp_wg_key_chunk *chunk) {
  if (chunk->after) chunk->after->before = chunk->before;
  if (chunk->before)
    chunk->before->after = chunk->after;
  else
    *list = chunk->after;
}

static void release_chunk(kdp_wg_key_store *store, kdp_wg_key_chunk *chunk, const kdp_host *host) {
  unlink_chunk(&store->with_room, chunk);
  store->capacity -= chunk->count;
  host->release(host->context, chunk, size_of(chunk->count));
}

kdp_status kdp_wg_key_store_reserve(kdp_wg_key_store *store, uint32_t count, const kdp_host *host) {
  uint32_t before = store->capacity;
  while (store->capacity < count) {
    /* A few peers get few, many get large chunks: an eighth more than there are, so that little is idle. */
    uint32_t wanted = store->capacity / 8;
    if (wanted < MIN_CHUNK) wanted = MIN_CHUNK;
    if (wanted < count - store->capacity) wanted = count - store->capacity;
    if (wanted > KDP_WG_KEY_PAIR_CHUNK) wanted = KDP_WG_KEY_PAIR_CHUNK;
    kdp_wg_key_chunk *chunk = host->allocate(host->context, size_of(wanted));
    if (!chunk) {
      kdp_wg_key_store_trim(store, before, host);
      return KDP_NO_MEMORY;
    }
    *chunk = (kdp_wg_key_chunk){.count = wanted};
    link_chunk(&store->with_room, chunk);
    store->capacity += wanted;
  }
  return KDP_OK;
}

void kdp_wg_key_store_trim(kdp_wg_key_store *store, uint32_t count, const kdp_host *host) {
  for (kdp_wg_key_chunk *chunk = store->with_room, *after; chunk; chunk = after) {
    after = chunk->after;
    if (chunk->used == 0 && store->capacity - chunk->count >= count) release_chunk(store, chunk, host);
  }
}

void kdp_wg_key_store_destroy(kdp_wg_key_store *store, const kdp_host *host) {
  while (store->with_room)
    release_chunk(store, store->with_room, host);
}

kdp_wg_key_pair *kdp_wg_key_pair_take(kdp_wg_key_store *store) {
  kdp_wg_key_chunk *chunk = store->with_room;
  if (!chunk) return NULL;
  kdp_wg_key_pair *pair = chunk->free;
  if (pair)
    chunk->free = pair->next;
  else
    pair = &chunk->pair[chunk->fresh++];
  chunk->used++;
  store->used++;
  if (chunk->used == chunk->count) {
    unlink_chunk(&store->with_room, chunk);
    link_chunk(&store->full, chunk);
  }
  memset(pair, 0, offsetof(kdp_wg_key_pair, word));
  pair->chunk = chunk;
  kdp_replay_window_start(&pair->window, pair->word, KDP_WG_WINDOW_WORDS);
  return pair;
}

void kdp_wg_key_pair_give_back(kdp_wg_key_store *store, kdp_wg_key_pair *pair) {
  kdp_wg_key_chunk *chunk = pair->chunk;
  if (chunk->used == chunk->count) {
    unlink_chunk(&store->full, chunk);
    link_chunk(&store->with_room, chunk);
  }
  kdp_wipe(pair, sizeof *pair);
  pair->next = chunk->free;
  chunk->free = pair;
  chunk->used--;
  store->used--;
}
