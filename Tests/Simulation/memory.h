/* What an engine is lent: memory that is counted, limited, never zero and checked when it comes back; randomness from
   the seed; no key log unless asked. */
#ifndef SIM_MEMORY_H
#define SIM_MEMORY_H
#include "world.h"

typedef struct sim_memory {
  sim *world;
  const char *owner; /* for messages */
  size_t limit, held, peak;
  uint64_t blocks, allocations, fail_from; /* fail_from: number of the first allocation that is refused, 0: none */
  bool sealed;                             /* no allocation now: the engine is in a data call */
  sim_random random;
} sim_memory;

kdp_host sim_memory_host(sim_memory *memory);
#endif
