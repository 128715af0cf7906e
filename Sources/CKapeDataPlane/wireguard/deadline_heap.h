/* Peers ordered by when they must be looked at next: a binary heap, lazy in one direction. Moving a peer's deadline to
   earlier moves it in the heap; moving it to later does not, so that a busy peer, whose timers move with every batch,
   costs nothing here. A peer's key is therefore a lower bound, set right when it comes up. */
#ifndef KDP_WIREGUARD_DEADLINE_HEAP_H
#define KDP_WIREGUARD_DEADLINE_HEAP_H

#include "kdp/status.h"
#include "kdp/time.h"

typedef struct kdp_wg_peer kdp_wg_peer;

typedef struct kdp_wg_heap_node {
  uint64_t deadline;
  kdp_wg_peer *peer;
} kdp_wg_heap_node;

typedef struct kdp_wg_heap {
  kdp_wg_heap_node *node;
  uint32_t count, capacity;
} kdp_wg_heap;

#define KDP_WG_NOT_IN_HEAP UINT32_MAX

kdp_status kdp_wg_heap_reserve(kdp_wg_heap *heap, uint32_t count, const kdp_host *host) KDP_MUST_USE;
void kdp_wg_heap_destroy(kdp_wg_heap *heap, const kdp_host *host);

static inline uint64_t kdp_wg_heap_first(const kdp_wg_heap *heap) {
  return heap->count ? heap->node[0].deadline : KDP_NEVER;
}
/* Looks at `peer` not later than `deadline`. */
void kdp_wg_heap_not_later(kdp_wg_heap *heap, kdp_wg_peer *peer, uint64_t deadline);
/* Sets its deadline, earlier or later; KDP_NEVER takes it out. */
void kdp_wg_heap_set(kdp_wg_heap *heap, kdp_wg_peer *peer, uint64_t deadline);

#endif
