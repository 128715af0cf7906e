/* Packets that wait for a handshake: one pool of the engine for all peers. A packet is copied in, because a slot of a
   lane's pool is far too large to be held for seconds; one of ordinary size takes one staging slot, a larger one a
   chain.

   At most STAGED_PER_PEER packets a peer: its oldest goes first. When the pool is empty the peer with most packets
   loses its oldest. Peers with packets are kept in lists by how many they have, so neither costs more with more peers.
 */
#ifndef KDP_WIREGUARD_STAGING_H
#define KDP_WIREGUARD_STAGING_H

#include "kdp/status.h"
#include "wireguard/tuning.h"

/* The packets of one peer, oldest first. Embed it in the peer, zeroed. */
typedef struct kdp_wg_staged {
  uint32_t first, last;                 /* staging slots of the oldest and the newest packet; valid when count > 0 */
  uint32_t count;                       /* packets; other lanes look at it */
  struct kdp_wg_staged *before, *after; /* others with as many */
} kdp_wg_staged;

typedef struct kdp_wg_staging {
  uint8_t *memory; /* slot_count slots; only those used before `fresh` were ever touched */
  size_t memory_size;
  uint32_t slot_count, free_count, fresh;
  uint32_t free; /* first of the chain of slots given back */
  kdp_wg_staged *with[KDP_WG_STAGED_PER_PEER + 1];
  uint32_t most; /* no peer has more packets than this */
} kdp_wg_staging;

kdp_status kdp_wg_staging_create(kdp_wg_staging *staging, uint32_t slot_count, const kdp_host *host) KDP_MUST_USE;
void kdp_wg_staging_destroy(kdp_wg_staging *staging, const kdp_host *host); /* wipes what was used */

/* Copies a packet to the end of a peer's. Returns how many packets had to go for it, this one included when it is
   larger than the whole pool. */
uint32_t kdp_wg_staging_copy_in(kdp_wg_staging *staging, kdp_wg_staged *staged, const uint8_t *bytes, uint32_t size);
/* Size of the oldest packet; staged->count is not 0. */
uint32_t kdp_wg_staging_oldest_size(const kdp_wg_staging *staging, const kdp_wg_staged *staged);
/* Copies the oldest packet out and drops it here. */
void kdp_wg_staging_copy_out(kdp_wg_staging *staging, kdp_wg_staged *staged, uint8_t *bytes);
/* Drops all of a peer's; returns how many. */
uint32_t kdp_wg_staging_drop_all(kdp_wg_staging *staging, kdp_wg_staged *staged);

#endif
