#include "kdp/embed.h"

#include <string.h>
#include <sys/uio.h>

/* Slots that are left to the engine for packets of its own, and the room for a burst of the largest packets besides. */
enum { POOL_SLOTS = 32, POOL_RESERVE = 8 };

struct kdp_embed {
  kdp_host host;
  kdp_engine *engine;
  kdp_lane *lane;
  kdp_pool *pool;
  kdp_out_storage *storage;
  kdp_out *out;
  uint32_t wire_taken, inside_taken, action_taken; /* of `out`: given to the caller already */
  kdp_slot lent;                                   /* of the packet that the caller has just now, or KDP_NO_SLOT */
  bool ticked;                                     /* in this round */
  kdp_batch inside, outside;                       /* handed in and not consumed yet */
  kdp_packet inside_packet[KDP_BATCH_CAPACITY], outside_packet[KDP_BATCH_CAPACITY];
  kdp_path path[KDP_BATCH_PATHS];
};

kdp_status kdp_embed_create(kdp_engine *engine, const kdp_host *host, kdp_embed **result) {
  kdp_embed *tunnel = host->allocate(host->context, sizeof *tunnel);
  if (!tunnel) return KDP_NO_MEMORY;
  memset(tunnel, 0, sizeof *tunnel);
  tunnel->host = *host;
  tunnel->lent = KDP_NO_SLOT;
  tunnel->inside = (kdp_batch){.packet = tunnel->inside_packet, .capacity = KDP_BATCH_CAPACITY};
  tunnel->outside = (kdp_batch){.packet = tunnel->outside_packet,
                                .capacity = KDP_BATCH_CAPACITY,
                                .path = tunnel->path,
                                .path_capacity = KDP_BATCH_PATHS};
  kdp_status status = kdp_pool_create(POOL_SLOTS, host, &tunnel->pool);
  if (status == KDP_OK) status = kdp_out_create(tunnel->pool, host, &tunnel->storage);
  if (status != KDP_OK) {
    kdp_embed_destroy(tunnel);
    return status;
  }
  tunnel->out = kdp_out_of(tunnel->storage);
  tunnel->engine = engine;
  tunnel->lane = kdp_engine_lane(engine, 0);
  *result = tunnel;
  return KDP_OK;
}

void kdp_embed_destroy(kdp_embed *tunnel) {
  if (!tunnel) return;
  kdp_engine_destroy(tunnel->engine);
  kdp_out_destroy(tunnel->storage);
  kdp_pool_destroy(tunnel->pool);
  kdp_host host = tunnel->host;
  host.release(host.context, tunnel, sizeof *tunnel);
}

kdp_engine *kdp_embed_engine(kdp_embed *tunnel) {
  return tunnel->engine;
}
kdp_lane *kdp_embed_lane(kdp_embed *tunnel) {
  return tunnel->lane;
}
kdp_out *kdp_embed_out(kdp_embed *tunnel) {
  return tunnel->out;
}

/* ---- In ---- */

bool kdp_embed_is_full(const kdp_embed *tunnel) {
  return kdp_batch_room(&tunnel->inside) == 0 || kdp_batch_room(&tunnel->outside) == 0 ||
         tunnel->outside.path_count == tunnel->outside.path_capacity ||
         kdp_pool_free_count(tunnel->pool) <= POOL_RESERVE;
}

static kdp_status append(kdp_embed *tunnel, kdp_batch *batch, const void *bytes, size_t size, kdp_room room) {
  if (size > UINT16_MAX) return KDP_TOO_LONG;
  if (kdp_embed_is_full(tunnel)) return KDP_OUT_FULL;
  struct iovec iov = {(void *)(uintptr_t)bytes, size};
  return kdp_batch_copy_in(batch, tunnel->pool, room, &iov, 1) == 1 ? KDP_OK : KDP_OUT_FULL;
}

kdp_status kdp_embed_inside(kdp_embed *tunnel, const void *packet, size_t size) {
  return append(tunnel, &tunnel->inside, packet, size, kdp_engine_room(tunnel->engine, NULL));
}

kdp_status kdp_embed_outside(kdp_embed *tunnel, const void *datagram, size_t size, const kdp_path *path, uint8_t ecn) {
  kdp_status status = append(tunnel, &tunnel->outside, datagram, size, (kdp_room){0});
  if (status != KDP_OK) return status;
  kdp_packet *packet = &tunnel->outside.packet[tunnel->outside.count - 1];
  packet->path = kdp_batch_path(&tunnel->outside, path);
  packet->ecn = ecn & 3;
  return KDP_OK;
}

/* ---- Out ---- */

static void lend(kdp_embed *tunnel, kdp_packet *packet, kdp_embed_kind kind, kdp_embed_output *output) {
  output->kind = kind;
  output->packet = *packet;
  tunnel->lent = packet->slot;
  packet->slot = KDP_NO_SLOT; /* it is no longer the batch's */
}

/* What is in `out` and has not been given yet. Each action stands behind the datagrams that it applies after. */
static bool take(kdp_embed *tunnel, kdp_embed_output *output) {
  kdp_out *out = tunnel->out;
  if (tunnel->action_taken < out->action_count && out->action[tunnel->action_taken].wire_count <= tunnel->wire_taken) {
    output->kind = KDP_EMBED_ACTION;
    output->action = out->action[tunnel->action_taken++];
    return true;
  }
  if (tunnel->wire_taken < out->wire.count) {
    kdp_packet *packet = &out->wire.packet[tunnel->wire_taken++];
    output->path = out->wire.path[packet->path];
    lend(tunnel, packet, KDP_EMBED_SEND, output);
    return true;
  }
  if (tunnel->inside_taken < out->inside.count) {
    lend(tunnel, &out->inside.packet[tunnel->inside_taken++], KDP_EMBED_DELIVER, output);
    return true;
  }
  kdp_batch_release(&out->wire, tunnel->pool);
  kdp_batch_release(&out->inside, tunnel->pool);
  out->action_count = 0;
  tunnel->wire_taken = tunnel->inside_taken = tunnel->action_taken = 0;
  return false;
}

static void remove_consumed(kdp_batch *batch, uint32_t count) {
  batch->count -= count;
  memmove(batch->packet, batch->packet + count, batch->count * sizeof *batch->packet);
  if (batch->count == 0) batch->path_count = 0;
}

/* One call of the engine, if there is a reason for one. */
static bool advance(kdp_embed *tunnel, kdp_now now) {
  if (tunnel->outside.count > 0) {
    remove_consumed(&tunnel->outside, kdp_engine_outside(tunnel->lane, &tunnel->outside, tunnel->out, now));
    return true;
  }
  if (tunnel->inside.count > 0) {
    remove_consumed(&tunnel->inside, kdp_engine_inside(tunnel->lane, &tunnel->inside, tunnel->out, now));
    return true;
  }
  if (tunnel->ticked || kdp_engine_deadline(tunnel->lane) > now.boot) return false;
  tunnel->ticked = true;
  kdp_engine_tick(tunnel->lane, tunnel->out, now);
  return true;
}

bool kdp_embed_next(kdp_embed *tunnel, kdp_now now, kdp_embed_output *output) {
  kdp_pool_release(tunnel->pool, tunnel->lent);
  tunnel->lent = KDP_NO_SLOT;
  do {
    if (take(tunnel, output)) return true;
  } while (advance(tunnel, now));
  if (kdp_engine_next_event(tunnel->engine, &output->event)) {
    output->kind = KDP_EMBED_EVENT;
    return true;
  }
  tunnel->ticked = false;
  kdp_lane_quiescent(tunnel->lane, now);
  return false;
}

uint64_t kdp_embed_deadline(const kdp_embed *tunnel) {
  const kdp_out *out = tunnel->out;
  bool waits =
      tunnel->inside.count || tunnel->outside.count || out->wire.count || out->inside.count || out->action_count;
  return waits ? 0 : kdp_engine_deadline(tunnel->lane);
}

int kdp_embed_timeout(const kdp_embed *tunnel, kdp_now now) {
  uint64_t deadline = kdp_embed_deadline(tunnel);
  if (deadline == KDP_NEVER) return -1;
  if (deadline <= now.boot) return 0;
  uint64_t wait = (deadline - now.boot - 1) / KDP_MILLISECOND + 1;
  return wait < INT32_MAX ? (int)wait : INT32_MAX;
}
