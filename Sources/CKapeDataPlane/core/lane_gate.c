#include "core/lane_gate.h"

#include <sched.h>

/* About a microsecond of pauses: longer than a change or a held lock mostly takes, shorter than a switch of threads. */
enum { TURNS_BEFORE_YIELD = 32 };

void kdp_lane_pause(uint32_t *turns) {
  if ((*turns)++ < TURNS_BEFORE_YIELD) {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("isb" ::: "memory");
#endif
    return;
  }
  sched_yield();
}

/* The lane has said that it is busy, and lane 0 that it changes something: lane 0 goes first. */
void kdp_lane_gate_wait(kdp_lane_gate *gate, kdp_lane_door *door) {
  do {
    atomic_store(&door->busy, 0);
    for (uint32_t turns = 0; atomic_load(&gate->changing);)
      kdp_lane_pause(&turns);
    atomic_store(&door->busy, 1);
  } while (atomic_load(&gate->changing));
}

void kdp_lane_gate_close(kdp_lane_gate *gate) {
  atomic_store(&gate->changing, 1);
  for (uint32_t i = 1; i < gate->lanes; i++)
    for (uint32_t turns = 0; atomic_load(&gate->door[i].busy);)
      kdp_lane_pause(&turns);
}
