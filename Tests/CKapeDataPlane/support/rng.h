/* A seeded generator for tests (SplitMix64): the same seed gives the same test on every machine. */
#ifndef KDP_TEST_RNG_H
#define KDP_TEST_RNG_H
#include <stddef.h>
#include <stdint.h>

typedef struct rng {
  uint64_t state;
} rng;

static inline uint64_t rng_next(rng *r) {
  uint64_t z = (r->state += UINT64_C(0x9e3779b97f4a7c15));
  z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
  z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
  return z ^ (z >> 31);
}

/* 0 to bound - 1. */
static inline uint32_t rng_below(rng *r, uint32_t bound) {
  return (uint32_t)(((rng_next(r) >> 32) * bound) >> 32);
}

static inline int rng_one_in(rng *r, uint32_t n) {
  return rng_below(r, n) == 0;
}

static inline void rng_fill(rng *r, void *bytes, size_t size) {
  uint8_t *at = bytes;
  for (size_t i = 0; i < size; i++)
    at[i] = (uint8_t)(rng_next(r) >> 24);
}
#endif
