/* Cycles and instructions of this thread in user mode, where the machine lets us count them (perf_event). */
#ifndef BENCH_COUNTERS_H
#define BENCH_COUNTERS_H

#include <stdbool.h>
#include <stdint.h>

typedef struct counters {
  int fd; /* -1: not available */
} counters;

typedef struct counted {
  uint64_t cycles, instructions;
} counted;

bool counters_open(counters *c);
counted counters_read(const counters *c);
void counters_close(counters *c);

#endif
