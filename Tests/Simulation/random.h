/* The simulator's pseudo-random generator: splitmix64. Everything that happens by chance in a simulation comes from one
   seed through these, so that a seed replays exactly. Not for secrets. */
#ifndef SIM_RANDOM_H
#define SIM_RANDOM_H
#include "kdp/base.h"

typedef struct sim_random {
  uint64_t state;
} sim_random;

/* The finaliser of splitmix64: a bijection that scatters neighbouring inputs. */
static inline uint64_t sim_scatter(uint64_t x) {
  x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
  x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
  return x ^ (x >> 31);
}
static inline uint64_t sim_random_next(sim_random *random) {
  return sim_scatter(random->state += UINT64_C(0x9e3779b97f4a7c15));
}
/* 0 to bound - 1; 0 for a bound of 0. The bias of one in 2^32 for small bounds does not matter here. */
static inline uint64_t sim_random_below(sim_random *random, uint64_t bound) {
  uint64_t next = sim_random_next(random);
  if (bound == 0) return 0;
  return bound <= UINT32_MAX ? ((next >> 32) * bound) >> 32 : next % bound;
}
/* low to high, both included. */
static inline uint64_t sim_random_between(sim_random *random, uint64_t low, uint64_t high) {
  return low >= high ? low : low + sim_random_below(random, high - low + 1);
}
/* True `per_million` times in a million. */
static inline bool sim_random_chance(sim_random *random, uint32_t per_million) {
  return per_million > 0 && sim_random_below(random, 1000000) < per_million;
}
void sim_random_fill(sim_random *random, void *bytes, size_t size);
#endif
