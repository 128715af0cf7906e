/* Counters that one thread raises and any thread may read at any time. One writer: no locked instruction. */
#ifndef KDP_CORE_COUNTER_H
#define KDP_CORE_COUNTER_H
#include <assert.h>
#include <string.h>

#include "kdp/stats.h"

static inline void kdp_counter_add(uint64_t *counter, uint64_t more) {
  __atomic_store_n(counter, __atomic_load_n(counter, __ATOMIC_RELAXED) + more, __ATOMIC_RELAXED);
}

static inline void kdp_traffic_add(kdp_traffic *traffic, uint64_t packets, uint64_t bytes) {
  kdp_counter_add(&traffic->packets, packets);
  kdp_counter_add(&traffic->bytes, bytes);
}

static_assert(sizeof(kdp_statistics) % sizeof(uint64_t) == 0, "statistics are counters and nothing else");

/* Adds each counter as it is at some moment of the call. */
static inline void kdp_statistics_add(const kdp_statistics *from, kdp_statistics *to) {
  const uint64_t *source = (const uint64_t *)(const void *)from;
  uint64_t *destination = (uint64_t *)(void *)to;
  for (size_t i = 0; i < sizeof *from / sizeof *source; i++)
    destination[i] += __atomic_load_n(&source[i], __ATOMIC_RELAXED);
}
#endif
