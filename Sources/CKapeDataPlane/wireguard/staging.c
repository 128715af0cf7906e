#include "wireguard/staging.h"

#include <assert.h>
#include <string.h>

#include "core/wipe.h"

#define NO_SLOT UINT32_MAX

/* What a slot begins with. `size` and `next_packet` count in the first slot of a packet only. */
typedef struct slot_header {
  uint32_t next_in_packet; /* or, of a free slot, the next free one */
  uint32_t next_packet;
  uint32_t size;
} slot_header;

enum { SLOT_ROOM = KDP_WG_STAGING_SLOT_SIZE - sizeof(slot_header) };
static_assert(SLOT_ROOM >= 1500, "a packet of an ordinary MTU fits one slot");

static slot_header *header_of(const kdp_wg_staging *staging, uint32_t slot) {
  return (slot_header *)(void *)(staging->memory + (size_t)slot * KDP_WG_STAGING_SLOT_SIZE);
}

static uint8_t *room_of(const kdp_wg_staging *staging, uint32_t slot) {
  return (uint8_t *)(header_of(staging, slot) + 1);
}

static uint32_t slots_for(uint32_t size) {
  return size == 0 ? 1 : (size + SLOT_ROOM - 1) / SLOT_ROOM;
}

kdp_status kdp_wg_staging_create(kdp_wg_staging *staging, uint32_t slot_count, const kdp_host *host) {
  memset(staging, 0, sizeof *staging);
  if (slot_count == 0 || slot_count > UINT32_MAX / KDP_WG_STAGING_SLOT_SIZE) return KDP_INVALID_ARGUMENT;
  staging->memory_size = (size_t)slot_count * KDP_WG_STAGING_SLOT_SIZE;
  staging->memory = host->allocate(host->context, staging->memory_size);
  if (!staging->memory) return KDP_NO_MEMORY;
  staging->slot_count = staging->free_count = slot_count;
  staging->free = NO_SLOT;
  return KDP_OK;
}

void kdp_wg_staging_destroy(kdp_wg_staging *staging, const kdp_host *host) {
  if (!staging->memory) return;
  kdp_wipe(staging->memory, (size_t)staging->fresh * KDP_WG_STAGING_SLOT_SIZE);
  host->release(host->context, staging->memory, staging->memory_size);
  memset(staging, 0, sizeof *staging);
}

static uint32_t take_slot(kdp_wg_staging *staging) {
  uint32_t slot = staging->free;
  if (slot != NO_SLOT)
    staging->free = header_of(staging, slot)->next_in_packet;
  else
    slot = staging->fresh++;
  staging->free_count--;
  return slot;
}

/* Moves a peer to the list of those with `count` packets. */
static void set_count(kdp_wg_staging *staging, kdp_wg_staged *staged, uint32_t count) {
  if (staged->count > 0) {
    if (staged->after) staged->after->before = staged->before;
    if (staged->before)
      staged->before->after = staged->after;
    else
      staging->with[staged->count] = staged->after;
  }
  __atomic_store_n(&staged->count, count, __ATOMIC_RELAXED);
  if (count > 0) {
    staged->before = NULL;
    staged->after = staging->with[count];
    if (staged->after) staged->after->before = staged;
    staging->with[count] = staged;
    if (count > staging->most) staging->most = count;
  }
  while (staging->most > 0 && !staging->with[staging->most])
    staging->most--;
}

static void drop_oldest(kdp_wg_staging *staging, kdp_wg_staged *staged) {
  uint32_t slot = staged->first;
  staged->first = header_of(staging, slot)->next_packet;
  while (slot != NO_SLOT) {
    slot_header *header = header_of(staging, slot);
    uint32_t next = header->next_in_packet;
    header->next_in_packet = staging->free;
    staging->free = slot;
    staging->free_count++;
    slot = next;
  }
  set_count(staging, staged, staged->count - 1);
}

uint32_t kdp_wg_staging_copy_in(kdp_wg_staging *staging, kdp_wg_staged *staged, const uint8_t *bytes, uint32_t size) {
  uint32_t wanted = slots_for(size), dropped = 0;
  if (wanted > staging->slot_count) return 1;
  if (staged->count == KDP_WG_STAGED_PER_PEER) {
    drop_oldest(staging, staged);
    dropped++;
  }
  while (staging->free_count < wanted) {
    drop_oldest(staging, staging->with[staging->most]);
    dropped++;
  }
  uint32_t first = NO_SLOT, last = NO_SLOT;
  for (uint32_t left = size, i = 0; i < wanted; i++) {
    uint32_t slot = take_slot(staging), part = left < SLOT_ROOM ? left : SLOT_ROOM;
    *header_of(staging, slot) = (slot_header){.next_in_packet = NO_SLOT, .next_packet = NO_SLOT, .size = size};
    if (part) memcpy(room_of(staging, slot), bytes + (size - left), part);
    left -= part;
    if (first == NO_SLOT)
      first = slot;
    else
      header_of(staging, last)->next_in_packet = slot;
    last = slot;
  }
  if (staged->count == 0)
    staged->first = first;
  else
    header_of(staging, staged->last)->next_packet = first;
  staged->last = first;
  set_count(staging, staged, staged->count + 1);
  return dropped;
}

uint32_t kdp_wg_staging_oldest_size(const kdp_wg_staging *staging, const kdp_wg_staged *staged) {
  return header_of(staging, staged->first)->size;
}

void kdp_wg_staging_copy_out(kdp_wg_staging *staging, kdp_wg_staged *staged, uint8_t *bytes) {
  uint32_t left = header_of(staging, staged->first)->size;
  for (uint32_t slot = staged->first; left > 0; slot = header_of(staging, slot)->next_in_packet) {
    uint32_t part = left < SLOT_ROOM ? left : SLOT_ROOM;
    memcpy(bytes, room_of(staging, slot), part);
    bytes += part;
    left -= part;
  }
  drop_oldest(staging, staged);
}

uint32_t kdp_wg_staging_drop_all(kdp_wg_staging *staging, kdp_wg_staged *staged) {
  uint32_t dropped = staged->count;
  while (staged->count > 0)
    drop_oldest(staging, staged);
  return dropped;
}
