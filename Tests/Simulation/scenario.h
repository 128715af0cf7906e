/* A scenario: what to do with a fresh world. One function a scenario; the runner calls it once a seed. */
#ifndef SIM_SCENARIO_H
#define SIM_SCENARIO_H
#include "simulation.h"

typedef struct sim_scenario {
  const char *name, *about;
  void (*run)(sim *world);
  uint32_t seeds; /* in the set that CI runs, before scaling */
  /* What each seed must have had at the least, so that no scenario passes by doing nothing. */
  uint32_t virtual_seconds, inner_packets, key_changes;
} sim_scenario;

/* What the seeds of one protocol must have met at least once in all: each list ends with UINT16_MAX. */
typedef struct sim_expectation {
  const uint16_t *event, *status, *action;
  const char *const *mark; /* names of the protocol's own marks, ends with NULL; all must occur */
} sim_expectation;

typedef struct sim_suite {
  const char *name; /* the protocol */
  const sim_scenario *scenario;
  uint32_t count;
  sim_expectation expect;
} sim_suite;

extern const sim_suite sim_echo_suite;
extern const sim_suite sim_wireguard_suite;
#endif
