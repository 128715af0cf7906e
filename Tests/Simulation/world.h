/* What the simulator's own files share. Scenarios use simulation.h alone. */
#ifndef SIM_WORLD_H
#define SIM_WORLD_H
#include <setjmp.h>

#include "simulation.h"

typedef enum sim_due_kind {
  SIM_DUE_ARRIVAL,  /* a datagram reaches the far end of the network */
  SIM_DUE_DELIVERY, /* and its receiver's socket */
  SIM_DUE_ROUND,
  SIM_DUE_CALL,
  SIM_DUE_FLOW
} sim_due_kind;

typedef struct sim_due {
  uint64_t time, order; /* order: of scheduling, so that equal times are told apart */
  sim_due_kind kind;
  union {
    struct {
      sim_datagram *datagram;
      sim_host *to;
      uint16_t port;
    };
    sim_host *host;
    sim_flow *flow;
    struct {
      void (*call)(sim *world, void *context);
      void *context;
      bool owned; /* the context is freed when the world ends before its time */
    };
  };
} sim_due;

struct sim {
  uint64_t seed, now, order, hash;
  sim_random random;
  bool trace;
  sim_due *due; /* a binary heap */
  uint32_t due_count, due_capacity;
  sim_host **host;
  uint32_t host_count, host_capacity;
  sim_flow **flow;
  uint32_t flow_count, flow_capacity;
  sim_filter filter;
  void *filter_context;
  bool capture;
  sim_captured *captured;
  uint32_t captured_count, captured_capacity;
  jmp_buf *jump;
  char *message;
  size_t message_size;
  uint64_t datagrams, rounds;
  uint64_t mark[SIM_MARKS];
  void (*at_end)(sim *world, void *context);
  void *at_end_context;
  void **lent;
  uint32_t lent_count, lent_capacity;
  sim_coverage stopped; /* of engines that are gone */
};

void sim_schedule(sim *world, sim_due due);
/* Room for one more element in a growing array. */
void *sim_grow(void *array, uint32_t count, uint32_t *capacity, size_t element);
void *sim_allocate(size_t size); /* never NULL, zeroed */
void sim_note_bytes(sim *world, const char *what, const void *bytes, size_t size);

/* network.c */
sim_datagram *sim_datagram_make(const kdp_address *source, const kdp_address *destination, uint8_t ecn,
                                const void *bytes, uint32_t size);
void sim_transmit(sim *world, sim_host *from, uint16_t local_port, const kdp_path *path, const kdp_packet *packet);
void sim_arrive(sim *world, sim_datagram *datagram);
void sim_deliver(sim *world, sim_host *host, sim_datagram *datagram, uint16_t port);

/* host.c */
void sim_host_round(sim_host *host);
void sim_host_receive(sim_host *host, sim_datagram *datagram, uint16_t port);
void sim_host_collect(sim_host *host, sim_coverage *coverage);
void sim_host_free(sim_host *host);
void sim_host_path_mtu(sim_host *host, const kdp_path *path, uint16_t mtu);
/* Is `address` one of the host's? */
bool sim_host_owns(const sim_host *host, const kdp_address *address);
const kdp_address *sim_host_default_source(const sim_host *host, kdp_family family);
bool sim_host_is_awake(const sim_host *host);
struct sim_nat *sim_host_nat_of(sim_host *host);

typedef struct sim_nat {
  bool on;
  kdp_address outside[2];
  uint32_t outside_count;
  uint16_t dropped_port, next_port;
  struct {
    uint16_t local, outer;
  } map[16];
  uint32_t map_count;
} sim_nat;

/* traffic.c */
void sim_flow_due(sim_flow *flow);
/* A packet that came out inside: true when it belongs to a flow (and is right: else the run has failed). */
bool sim_flow_arrived(sim *world, sim_host *host, const uint8_t *bytes, uint32_t size);
/* Does an ICMP error's quotation start like a packet of one of this host's flows? */
bool sim_flow_quoted(sim *world, const sim_host *host, const uint8_t *bytes, uint32_t size);
void sim_flow_free(sim_flow *flow);
void sim_flow_collect(const sim_flow *flow, sim_coverage *coverage);
uint16_t sim_checksum(uint32_t sum, const uint8_t *bytes, size_t size);
#endif
