/* kdp/batch.h: packets travel in batches, with the paths they share. */
#ifndef KDP_BATCH_H
#define KDP_BATCH_H

#include "packet.h"

struct iovec;

#ifdef __cplusplus
extern "C" {
#endif

/* Most packets a call is given or gives: two super-packets of 64 segments. */
enum { KDP_BATCH_CAPACITY = 256, KDP_BATCH_PATHS = 64 };

/* The arrays belong to whoever made the batch. `path` is only used outside; consecutive packets of one path share an
 * entry. */
typedef struct kdp_batch {
  kdp_packet *packet;
  uint32_t count, capacity;
  kdp_path *path;
  uint16_t path_count, path_capacity;
} kdp_batch;

/* Actions for the I/O layer, in order with the packets: each applies after the first `wire_count` packets of out->wire.
 */
typedef enum kdp_action_kind {
  KDP_ACTION_OPEN = 1, /* open a link to path.remote */
  KDP_ACTION_CLOSE,    /* close path.link */
  KDP_ACTION_REBIND,   /* bind path.link's socket anew, to another local port */
  KDP_ACTION_RESOLVE,  /* look up the name that `peer`'s endpoint came from again */
  KDP_ACTION_HANDOFF,  /* only lanes other than 0: `packet` is lane 0's to handle */
  KDP_ACTION_PATH_MTU  /* ask what the route of `path` takes and say it with kdp_engine_path_mtu */
} kdp_action_kind;

/* HANDOFF: `packet` is as it was handed in and carries one use of its slot, which passes to the caller: its bytes go
   into a slot of lane 0's pool, and to kdp_engine_inside (from_inside) or kdp_engine_outside (with `path`) of lane 0,
   which counts what becomes of it. No bytes (packet.size 0, packet.slot KDP_NO_SLOT): lane 0 is to look at its
   deadline, which has come. */
typedef struct kdp_action {
  uint8_t kind;     /* kdp_action_kind */
  bool from_inside; /* HANDOFF */
  uint32_t wire_count;
  uint64_t peer;
  kdp_path path;
  kdp_packet packet; /* HANDOFF; else its slot is KDP_NO_SLOT */
} kdp_action;

/* What every call may produce. `pool` gives slots for packets of the engine's own and takes back the slots of packets
   that end in the engine; it is the pool that the input lives in. An empty pool is a status, never a stall. */
typedef struct kdp_out {
  kdp_batch wire, inside;
  kdp_action *action;
  uint32_t action_count, action_capacity;
  kdp_pool *pool;
} kdp_out;

/* Index of `path` in the batch, appended unless it is the last one there already; UINT16_MAX when the array is full. */
uint16_t kdp_batch_path(kdp_batch *batch, const kdp_path *path) KDP_NONNULL;

/* Appends; false when full. */
bool kdp_batch_push(kdp_batch *batch, const kdp_packet *packet) KDP_NONNULL;

static inline uint32_t kdp_batch_room(const kdp_batch *batch) {
  return batch->capacity - batch->count;
}

/* Releases the slots of all packets and empties the batch. */
void kdp_batch_release(kdp_batch *batch, kdp_pool *pool) KDP_NONNULL;

/* A kdp_out with arrays of its own (KDP_BATCH_CAPACITY packets each way), for hosts that do not bring theirs. */
typedef struct kdp_out_storage kdp_out_storage;
kdp_status kdp_out_create(kdp_pool *pool, const kdp_host *host, kdp_out_storage **storage) KDP_MUST_USE KDP_NONNULL;
kdp_out *kdp_out_of(kdp_out_storage *storage) KDP_NONNULL;
void kdp_out_destroy(kdp_out_storage *storage); /* releases what is still in it; NULL is allowed */

/* How much room an engine needs round a packet; an outer transform is included. */
typedef struct kdp_room {
  uint16_t head, tail, growth; /* bytes before, bytes after, most bytes that a packet grows by on the wire */
  uint16_t inside_mtu;
  uint32_t reorder_window; /* packets that the session's peer tolerates out of order */
  uint16_t full_tail;      /* bytes after a packet of exactly inside_mtu bytes (padding may end there); 0: as tail */
} kdp_room;

/* Bytes after a packet of `size` bytes. What is carved with exactly this much room lies, sealed, end to end. */
static inline uint16_t kdp_room_tail(const kdp_room *room, uint32_t size) {
  return room->full_tail && size == room->inside_mtu ? room->full_tail : room->tail;
}

/* For embedders with packets of their own (Apple's packetFlow, a test): the two copies, named.
   Into the batch: each iovec becomes one packet with room; returns how many were taken (short: batch full, pool empty
   or a packet over 65,535 bytes, which is skipped with status TOO_LONG in the batch's place). Out of the batch: packet
   i goes to iov[i], whose length is set; returns how many were written (short: iovecs used up, or one too small).
   Releases nothing. */
uint32_t kdp_batch_copy_in(kdp_batch *batch, kdp_pool *pool, kdp_room room, const struct iovec *iov,
                           uint32_t count) KDP_NONNULL;
uint32_t kdp_batch_copy_out(const kdp_batch *batch, struct iovec *iov, uint32_t count) KDP_NONNULL;

#ifdef __cplusplus
}
#endif
#endif
