#include <string.h>

#include "core/wipe.h"
#include "kdp/packet.h"

/* Free slots are kept as a stack, so that the one used last, still in the caches, is used next and the others stay
 * untouched. */
struct kdp_pool {
  kdp_host host;
  size_t bytes; /* of the whole allocation */
  uint8_t *slab;
  uint32_t slot_count, free_count, high_water;
  uint32_t open;      /* slot that packets are carved from, holding one use of its own, or KDP_NO_SLOT */
  uint32_t open_used; /* bytes of it that are taken */
  uint32_t *free;     /* stack of free slots */
  uint32_t *users;    /* per slot */
  bool *touched;      /* per slot, for the wipe */
};

/* A page, so that slots do not share one and an unused slot stays unmapped. */
enum { SLAB_ALIGNMENT = 4096, CARVE_ALIGNMENT = 16 };

kdp_status kdp_pool_create(uint32_t slot_count, const kdp_host *host, kdp_pool **out) {
  if (slot_count == 0 || slot_count > UINT32_MAX / 2) return KDP_INVALID_ARGUMENT;
  size_t tables = sizeof(kdp_pool) + (size_t)slot_count * (2 * sizeof(uint32_t) + sizeof(bool));
  size_t bytes = tables + SLAB_ALIGNMENT + (size_t)slot_count * KDP_SLOT_SIZE;
  kdp_pool *pool = host->allocate(host->context, bytes);
  if (!pool) return KDP_NO_MEMORY;
  memset(pool, 0, tables);
  pool->host = *host;
  pool->bytes = bytes;
  pool->slot_count = pool->free_count = slot_count;
  pool->open = KDP_NO_SLOT;
  pool->free = (uint32_t *)(pool + 1);
  pool->users = pool->free + slot_count;
  pool->touched = (bool *)(pool->users + slot_count);
  uintptr_t after = (uintptr_t)pool + tables;
  pool->slab = (uint8_t *)pool + tables + (SLAB_ALIGNMENT - after % SLAB_ALIGNMENT) % SLAB_ALIGNMENT;
  for (uint32_t i = 0; i < slot_count; i++)
    pool->free[i] = slot_count - 1 - i;
  *out = pool;
  return KDP_OK;
}

void kdp_pool_destroy(kdp_pool *pool) {
  if (!pool) return;
  for (uint32_t i = 0; i < pool->slot_count; i++)
    if (pool->touched[i]) kdp_wipe(pool->slab + (size_t)i * KDP_SLOT_SIZE, KDP_SLOT_SIZE);
  kdp_host host = pool->host;
  host.release(host.context, pool, pool->bytes);
}

uint8_t *kdp_pool_slot_data(kdp_pool *pool, kdp_slot slot) {
  return pool->slab + (size_t)slot * KDP_SLOT_SIZE;
}

uint8_t *kdp_pool_take_slot(kdp_pool *pool, kdp_slot *slot) {
  if (pool->free_count == 0) return NULL;
  uint32_t taken = pool->free[--pool->free_count];
  pool->users[taken] = 1;
  pool->touched[taken] = true;
  uint32_t used = pool->slot_count - pool->free_count;
  if (used > pool->high_water) pool->high_water = used;
  *slot = taken;
  return kdp_pool_slot_data(pool, taken);
}

void kdp_pool_retain(kdp_pool *pool, kdp_slot slot, uint32_t users) {
  if (slot != KDP_NO_SLOT) pool->users[slot] += users;
}

void kdp_pool_release_users(kdp_pool *pool, kdp_slot slot, uint32_t users) {
  if (slot == KDP_NO_SLOT || users == 0) return;
  pool->users[slot] -= users;
  if (pool->users[slot] == 0) {
    pool->free[pool->free_count++] = slot;
  } else if (slot == pool->open && pool->users[slot] == 1) {
    pool->open_used = 0; /* all that was carved has come back: start over, in warm memory */
  }
}

void kdp_pool_release(kdp_pool *pool, kdp_slot slot) {
  kdp_pool_release_users(pool, slot, 1);
}

static uint32_t aligned(uint32_t used) {
  return (used + CARVE_ALIGNMENT - 1) / CARVE_ALIGNMENT * CARVE_ALIGNMENT;
}
_Static_assert(KDP_SLOT_SIZE % CARVE_ALIGNMENT == 0, "what is used of a slot can be rounded up");

bool kdp_pool_reserve(kdp_pool *pool, uint32_t bytes) {
  if (bytes > KDP_SLOT_SIZE) return false;
  if (pool->open != KDP_NO_SLOT && KDP_SLOT_SIZE - aligned(pool->open_used) >= bytes) return true;
  kdp_slot fresh;
  if (!kdp_pool_take_slot(pool, &fresh)) return false;
  kdp_slot before = pool->open;
  pool->open = fresh;
  pool->open_used = 0;
  kdp_pool_release(pool, before);
  return true;
}

/* The open slot has the room. */
static void carve(kdp_pool *pool, uint32_t head, uint32_t size, uint32_t tail, kdp_packet *packet) {
  *packet = (kdp_packet){
      .data = kdp_pool_slot_data(pool, pool->open) + pool->open_used + head,
      .size = size,
      .head = (uint16_t)(head > UINT16_MAX ? UINT16_MAX : head),
      .tail = (uint16_t)(tail > UINT16_MAX ? UINT16_MAX : tail),
      .slot = pool->open,
  };
  pool->users[pool->open]++;
  pool->open_used += head + size + tail;
}

bool kdp_pool_take_packet(kdp_pool *pool, uint32_t head, uint32_t size, uint32_t tail, kdp_packet *packet) {
  uint64_t wanted = (uint64_t)head + size + tail;
  if (wanted > KDP_SLOT_SIZE || !kdp_pool_reserve(pool, (uint32_t)wanted)) return false;
  pool->open_used = aligned(pool->open_used);
  carve(pool, head, size, tail, packet);
  return true;
}

bool kdp_pool_take_adjacent(kdp_pool *pool, uint32_t head, uint32_t size, uint32_t tail, kdp_packet *packet) {
  uint64_t wanted = (uint64_t)head + size + tail;
  if (pool->open == KDP_NO_SLOT || wanted > KDP_SLOT_SIZE - pool->open_used)
    return kdp_pool_take_packet(pool, head, size, tail, packet);
  carve(pool, head, size, tail, packet);
  return true;
}

uint32_t kdp_pool_free_count(const kdp_pool *pool) {
  return pool->free_count;
}
uint32_t kdp_pool_slot_count(const kdp_pool *pool) {
  return pool->slot_count;
}
uint32_t kdp_pool_high_water(const kdp_pool *pool) {
  return pool->high_water;
}
