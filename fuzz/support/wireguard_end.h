/* A WireGuard device for fuzzing: an engine with its pool, a host that counts memory and gives seeded randomness, and
   checks on everything that comes out of a call. */
#ifndef KDP_FUZZ_WIREGUARD_END_H
#define KDP_FUZZ_WIREGUARD_END_H
#include "kdp/wireguard.h"
#include "support/rng.h"
#include "support/script.h"
#include "wireguard/messages.h"

enum { END_SLOTS = 6 };

typedef struct end {
  uint8_t number; /* its addresses are 192.0.2.number, 10.0.number.0/24 and fd77:number::/32 */
  kdp_host host;
  rng random;
  long live;
  kdp_pool *pool;
  kdp_out_storage *storage;
  kdp_out *out;
  kdp_engine *engine;
  kdp_lane *lane;
  uint8_t private_key[32], public_key[32];
  kdp_address address;
  kdp_statistics before;
  void *context;
  /* What a call gave: each packet is the callee's to look at and is released afterwards. */
  void (*sent)(struct end *, const kdp_packet *, const kdp_path *);
  void (*delivered)(struct end *, const kdp_packet *);
} end;

static inline void *end_allocate(void *context, size_t size) {
  ((end *)context)->live += (long)size;
  void *memory = malloc(size);
  if (memory != NULL && size <= 65536) memset(memory, 0xa5, size); /* nobody may count on zeros */
  return memory;
}

static inline void end_release(void *context, void *memory, size_t size) {
  ((end *)context)->live -= (long)size;
  free(memory);
}

static inline void end_random(void *context, void *bytes, size_t size) {
  rng_fill(&((end *)context)->random, bytes, size);
}

static inline void end_check_statistics(end *e) {
  kdp_statistics now;
  kdp_engine_statistics(e->engine, &now);
  const uint64_t *was = (const uint64_t *)(const void *)&e->before, *is = (const uint64_t *)(const void *)&now;
  for (size_t i = 0; i < sizeof now / sizeof *is; i++)
    CHECK(is[i] >= was[i]);
  e->before = now;
}

/* Looks at what a call gave and empties it. */
static inline void end_drain(end *e) {
  kdp_out *out = e->out;
  kdp_event event;
  for (uint32_t i = 0; i < out->wire.count; i++) {
    const kdp_packet *packet = &out->wire.packet[i];
    kdp_wg_message_type type;
    CHECK(kdp_wg_classify(packet->data, packet->size, &type) == KDP_OK);
    CHECK(packet->path < out->wire.path_count);
    const kdp_path *path = &out->wire.path[packet->path];
    CHECK(path->remote.family == KDP_FAMILY_IPV4 || path->remote.family == KDP_FAMILY_IPV6);
    e->sent(e, packet, path);
  }
  for (uint32_t i = 0; i < out->inside.count; i++)
    e->delivered(e, &out->inside.packet[i]);
  for (uint32_t i = 0; i < out->action_count; i++)
    CHECK(out->action[i].kind >= KDP_ACTION_OPEN && out->action[i].kind <= KDP_ACTION_PATH_MTU &&
          out->action[i].wire_count <= out->wire.count);
  out->action_count = 0;
  kdp_batch_release(&out->wire, e->pool);
  kdp_batch_release(&out->inside, e->pool);
  out->wire.path_count = 0;
  while (kdp_engine_next_event(e->engine, &event))
    CHECK(event.kind >= KDP_EVENT_HANDSHAKE_STARTED && event.kind <= KDP_EVENT_TICKET);
  end_check_statistics(e);
}

static inline void end_make(end *e, uint8_t number, const kdp_wireguard_config *config, const kdp_limits *limits,
                            kdp_now now) {
  *e = (end){.number = number,
             .random = {number},
             .address = {.family = KDP_FAMILY_IPV4, .port = 51820, .bytes = {192, 0, 2, number}},
             .context = e->context,
             .sent = e->sent,
             .delivered = e->delivered};
  e->host = (kdp_host){.context = e, .allocate = end_allocate, .release = end_release, .random = end_random};
  CHECK(kdp_pool_create(END_SLOTS, &e->host, &e->pool) == KDP_OK);
  CHECK(kdp_out_create(e->pool, &e->host, &e->storage) == KDP_OK);
  e->out = kdp_out_of(e->storage);
  CHECK(kdp_wireguard_create(config, limits, &e->host, now, &e->engine) == KDP_OK);
  e->lane = kdp_engine_lane(e->engine, 0);
  rng_fill(&e->random, e->private_key, sizeof e->private_key);
  kdp_wireguard_public_key(e->private_key, e->public_key);
}

static inline void end_free(end *e) {
  end_drain(e);
  kdp_engine_destroy(e->engine);
  kdp_out_destroy(e->storage);
  CHECK(kdp_pool_reserve(e->pool, KDP_SLOT_SIZE)); /* the slot that was open is free now, if nobody uses it */
  CHECK(kdp_pool_free_count(e->pool) + 1 == kdp_pool_slot_count(e->pool));
  kdp_pool_destroy(e->pool);
  CHECK(e->live == 0);
}

static inline kdp_status end_apply(end *e, const kdp_wireguard_change *change, kdp_now now) {
  kdp_status status = kdp_wireguard_apply(e->engine, change, e->out, now);
  end_drain(e);
  return status;
}

static inline void end_set_private_key(end *e, const uint8_t key[32], kdp_now now) {
  kdp_wireguard_change change = {.fields = KDP_WIREGUARD_SET_PRIVATE_KEY};
  memcpy(change.private_key, key, 32);
  CHECK(end_apply(e, &change, now) == KDP_OK);
}

/* A packet in the pool with the room that the engine asked for; false: no slot. */
static inline bool end_carve(end *e, const uint8_t *bytes, uint32_t size, kdp_packet *packet) {
  kdp_room room = kdp_engine_room(e->engine, NULL);
  if (!kdp_pool_take_packet(e->pool, room.head, size, room.tail, packet)) return false;
  if (size > 0) memcpy(packet->data, bytes, size);
  return true;
}

/* Gives a batch to the engine until all of it is taken. */
static inline void end_give(end *e, kdp_batch *batch, bool inside, kdp_now now) {
  kdp_batch rest = *batch;
  while (rest.count > 0) {
    uint32_t taken =
        inside ? kdp_engine_inside(e->lane, &rest, e->out, now) : kdp_engine_outside(e->lane, &rest, e->out, now);
    CHECK(taken <= rest.count);
    for (uint32_t i = 0; i < taken; i++)
      CHECK(rest.packet[i].status < KDP_STATUS_COUNT);
    bool produced = e->out->wire.count + e->out->inside.count > 0;
    end_drain(e);
    rest.packet += taken;
    rest.count -= taken;
    if (taken > 0 || produced) continue;
    /* Nothing taken and nothing made: only where there is no room to make anything. */
    CHECK(e->out->wire.capacity == 0 || e->out->inside.capacity == 0 || kdp_pool_free_count(e->pool) == 0);
    for (uint32_t i = 0; i < rest.count; i++)
      kdp_pool_release(e->pool, rest.packet[i].slot);
    return;
  }
}
#endif
