/* kdp/packet.h: packets, slots and the pool they live in.

   A pool is one slab of equal slots, each large enough for the largest read (a joined datagram run or a TUN
   super-packet). Packets are views into slots. Many packets may share a slot: all that came from one read, or small
   ones carved one after the other. The pool counts the users of each slot; a slot is free again when its last packet is
   released.

   A pool belongs to one lane and is not thread safe. */
#ifndef KDP_PACKET_H
#define KDP_PACKET_H

#include "base.h"
#include "status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef uint32_t kdp_slot;
#define KDP_NO_SLOT UINT32_MAX /* memory that no pool counts: an embedder's own */

enum kdp_packet_flags {
  KDP_DF = 1 << 0,       /* must not be fragmented on the way (a probe) */
  KDP_CONTROL = 1 << 1,  /* goes before data when room is short */
  KDP_THRICE = 1 << 2,   /* to be sent three times */
  KDP_SAME_SIZE = 1 << 3 /* same size and path as the one before it: may share a segmented send */
};

/* A packet is a view into a slot. Bytes never move except in functions whose name contains `copy`. 32 bytes. */
typedef struct kdp_packet {
  uint8_t *data;
  uint32_t size;       /* bytes of content now */
  uint16_t head, tail; /* free bytes before and after it, saturated at 65,535 */
  uint16_t path;       /* index into kdp_batch.path; unused inside */
  uint8_t ecn;         /* outer ECN field, 0 to 3, in and out (RFC 6040) */
  uint8_t flags;       /* kdp_packet_flags */
  uint16_t status;     /* a kdp_status: what became of it; counted by the engine */
  kdp_slot slot;
} kdp_packet;

typedef struct kdp_pool kdp_pool;

/* What a slot must hold: the largest IP packet or datagram run (65,535 bytes) and room on both sides. */
enum { KDP_SLOT_SIZE = 69632 };

/* Makes a pool of `slot_count` slots of KDP_SLOT_SIZE bytes. The slab is one allocation; a slot costs memory only once
 * it is used. */
kdp_status kdp_pool_create(uint32_t slot_count, const kdp_host *host, kdp_pool **pool) KDP_MUST_USE KDP_NONNULL;
void kdp_pool_destroy(kdp_pool *pool); /* NULL is allowed; wipes what was used */

/* A whole slot for a read into it, with one user: the caller. NULL when none is free. */
uint8_t *kdp_pool_take_slot(kdp_pool *pool, kdp_slot *slot) KDP_MUST_USE KDP_NONNULL;

/* Carves a packet with `size` bytes of content and at least `head` and `tail` bytes of room. Consecutive calls give
   consecutive memory while one slot lasts; `data` - `head` is 16-byte aligned. False when no slot is free or the sum
   exceeds a slot. */
bool kdp_pool_take_packet(kdp_pool *pool, uint32_t head, uint32_t size, uint32_t tail,
                          kdp_packet *packet) KDP_MUST_USE KDP_NONNULL;

/* The same right behind the carving before, if that is in the same slot, and so not aligned: packets whose room is used
   up to the end can leave as one piece. */
bool kdp_pool_take_adjacent(kdp_pool *pool, uint32_t head, uint32_t size, uint32_t tail,
                            kdp_packet *packet) KDP_MUST_USE KDP_NONNULL;

/* Sees to it that the next carvings of `bytes` in all come from one slot. False when no slot is free. */
bool kdp_pool_reserve(kdp_pool *pool, uint32_t bytes) KDP_MUST_USE KDP_NONNULL;

/* One user more, one less. KDP_NO_SLOT is allowed and does nothing. */
void kdp_pool_retain(kdp_pool *pool, kdp_slot slot, uint32_t users) KDP_NONNULL;
void kdp_pool_release(kdp_pool *pool, kdp_slot slot) KDP_NONNULL;
void kdp_pool_release_users(kdp_pool *pool, kdp_slot slot, uint32_t users) KDP_NONNULL;

uint32_t kdp_pool_free_count(const kdp_pool *pool) KDP_NONNULL;
uint32_t kdp_pool_slot_count(const kdp_pool *pool) KDP_NONNULL;
/* Most slots in use at once since creation. */
uint32_t kdp_pool_high_water(const kdp_pool *pool) KDP_NONNULL;
uint8_t *kdp_pool_slot_data(kdp_pool *pool, kdp_slot slot) KDP_NONNULL;

#ifdef __cplusplus
}
#endif
#endif
