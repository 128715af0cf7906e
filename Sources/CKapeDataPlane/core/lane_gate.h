/* What the lanes of an engine share is changed by lane 0 only, while no other lane is in a call; the others read it
   during their calls. Reading costs a lane one atomic store and one load a call, and a change waits for the calls that
   are running, each of which ends after a batch. So changes are to be short and rare: what takes long is done before.

   Lane 0 reads without the gate, for nobody else changes anything. With one lane nothing here costs anything. */
#ifndef KDP_CORE_LANE_GATE_H
#define KDP_CORE_LANE_GATE_H
#include <stdatomic.h>

#include "kdp/base.h"

enum { KDP_CACHE_LINE = 64 };

/* One for each lane, each on a cache line that only its lane writes. */
typedef struct kdp_lane_door {
  _Alignas(KDP_CACHE_LINE) atomic_uint busy;
} kdp_lane_door;

typedef struct kdp_lane_gate {
  atomic_uint changing;
  uint32_t depth; /* changes within changes; lane 0's */
  uint32_t lanes;
  kdp_lane_door *door; /* `lanes` of them; that of lane 0 is not used */
} kdp_lane_gate;

/* A moment's pause of a loop that waits for another thread; `*turns` counts them and begins at 0. After some the
   processor is given up, for the other thread may need it. */
void kdp_lane_pause(uint32_t *turns);

void kdp_lane_gate_wait(kdp_lane_gate *gate, kdp_lane_door *door);
void kdp_lane_gate_close(kdp_lane_gate *gate);

/* Lanes other than 0, at the begin and the end of a call. */
static inline void kdp_lane_enter(kdp_lane_gate *gate, kdp_lane_door *door) {
  atomic_store(&door->busy, 1);
  if (atomic_load(&gate->changing)) kdp_lane_gate_wait(gate, door);
}
static inline void kdp_lane_leave(kdp_lane_door *door) {
  atomic_store_explicit(&door->busy, 0, memory_order_release);
}

/* Lane 0: until the end no other lane is in a call. Changes may lie within one another. */
static inline void kdp_lane_change_begin(kdp_lane_gate *gate) {
  if (gate->lanes > 1 && gate->depth++ == 0) kdp_lane_gate_close(gate);
}
static inline void kdp_lane_change_end(kdp_lane_gate *gate) {
  if (gate->lanes > 1 && --gate->depth == 0) atomic_store(&gate->changing, 0);
}

/* A lock for a few instructions, hardly ever contended. */
typedef struct kdp_lane_lock {
  atomic_uint taken;
} kdp_lane_lock;

static inline void kdp_lane_lock_take(kdp_lane_lock *lock) {
  for (uint32_t turns = 0; atomic_exchange_explicit(&lock->taken, 1, memory_order_acquire);)
    kdp_lane_pause(&turns);
}
static inline void kdp_lane_lock_give(kdp_lane_lock *lock) {
  atomic_store_explicit(&lock->taken, 0, memory_order_release);
}

#endif
