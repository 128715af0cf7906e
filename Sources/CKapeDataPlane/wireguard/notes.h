/* What lanes other than 0 write down about a peer for its timers, which are lane 0's.

   Times of the boot clock, 0: none. A lane writes each at most once a batch. Lane 0 looks at them when a peer becomes
   active, then every NOTES_INTERVAL as long as it stays so, and before any of the peer's timers acts: so that a stream
   on another lane does not wake lane 0 with every batch, and no timer acts on what is no longer true.

   A peer that becomes active goes on a list of the device, and lane 0 is woken, once. */
#ifndef KDP_WIREGUARD_NOTES_H
#define KDP_WIREGUARD_NOTES_H
#include <stdatomic.h>

#include "kdp/time.h"

typedef struct kdp_wg_peer kdp_wg_peer;

typedef struct kdp_wg_notes {
  /* Lanes other than 0. */
  _Atomic(uint64_t) sent, received; /* newest packet either way */
  /* All lanes, lane 0 as well when there are more: what the timers of the same purpose start from. */
  _Atomic(uint64_t) awaiting; /* first data sent since anything was received */
  _Atomic(uint64_t) owing;    /* first data received since anything was sent */
  atomic_uint watched;        /* lane 0 looks at this peer by itself, or will: it is on the list */
  /* Lane 0: what it has seen. */
  bool active; /* something was new since the timer last ran */
  uint64_t seen_sent, seen_received, seen_awaiting, seen_owing;
  kdp_wg_peer *next; /* on the list */
} kdp_wg_notes;

typedef struct kdp_wg_notes_list {
  _Atomic(kdp_wg_peer *) first;
  atomic_uint attention; /* there is something on the list, and lane 0 knows or is being told */
} kdp_wg_notes_list;

#endif
