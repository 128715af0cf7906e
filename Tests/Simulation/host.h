/* A host of the simulation from the inside: shared by host.c (what it is) and round.c (what it does). */
#ifndef SIM_HOST_H
#define SIM_HOST_H
#include "memory.h"
#include "world.h"

enum { SIM_LANES = 4, SIM_ROUND_PACKETS = 64, SIM_OUT_ACTIONS = 64 };

/* A packet that waits for the engine. */
typedef struct sim_waiting {
  sim_datagram *datagram; /* inside: only size and bytes count */
  uint16_t port;
} sim_waiting;

typedef struct sim_line {
  sim_waiting *waiting; /* a ring */
  uint32_t first, count, capacity;
} sim_line;

/* A lane with the pool it lives from and what it gives out. */
typedef struct sim_lane {
  kdp_lane *lane;
  kdp_pool *pool;
  kdp_out out;
  kdp_packet wire[KDP_BATCH_CAPACITY], inside[KDP_BATCH_CAPACITY];
  kdp_path path[KDP_BATCH_PATHS];
  kdp_action action[SIM_OUT_ACTIONS];
  sim_line to_inside, to_outside;
} sim_lane;

struct sim_host {
  sim *world;
  sim_host_config config;
  uint32_t index, lanes;
  sim_memory memory;
  sim_random random; /* of scheduling */
  kdp_host services;
  kdp_engine *engine;
  sim_lane *lane[SIM_LANES];
  uint16_t port;
  sim_conditions out, in;
  sim_nat nat;
  int64_t boot_step, wall_step;
  uint64_t asleep_until, round_at;
  bool deaf, down;
  uint32_t receive_limit;
  kdp_statistics before; /* at the last look */
  uint64_t handed[2][KDP_STATUS_COUNT], handed_total[2];
  uint64_t events[SIM_EVENT_KINDS], actions[SIM_ACTION_KINDS];
  uint64_t sent, came_out, queue_drops, icmp_errors, rounds;
  uint32_t icmp_mtu;
};

void sim_host_wake(sim_host *host, uint64_t time);
void sim_line_push(sim_line *line, sim_waiting waiting);
sim_waiting sim_line_take(sim_line *line);
/* round.c: carries out what is in the lane's `out` and empties it. */
void sim_drain(sim_host *host, sim_lane *lane);
/* Looks at events, counters and the deadline, and arranges the next round. */
void sim_settle(sim_host *host);
void sim_check_counters(sim_host *host);
/* All slots are back, but for the one that packets are carved from. */
void sim_check_slots(sim_host *host);
#endif
