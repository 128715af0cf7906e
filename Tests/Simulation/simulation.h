/* A simulated network in virtual time, into which client and server engines of any protocol plug in through
   kdp/engine.h.

   One seed decides everything: the same scenario with the same seed does the same again, event for event, and its
   trace hash says so. Nothing here sleeps, reads a clock or uses a socket; ten virtual minutes take milliseconds.

   A scenario makes a world (the runner does), adds hosts with an engine each, joins them by nothing but addresses, adds
   flows of inner packets, runs until a time and checks. While it runs the simulator holds every engine to the contract
   (docs/engine.md): what it returns, whose slots are whose, that memory is taken when it may be, that
   deadlines move, that counters only rise; and every inner packet that arrives is compared byte for byte with the one
   that was sent, must be the first of its number, and must come out at the right host. A breach ends the run with the
   scenario, seed and virtual time in the message.

   To plug in an engine: write a `create` function as in sim_host_config and a scenario; echo_scenarios.c is short. */
#ifndef SIM_SIMULATION_H
#define SIM_SIMULATION_H

#include "kdp/engine.h"
#include "random.h"

typedef struct sim sim;
typedef struct sim_host sim_host;
typedef struct sim_flow sim_flow;

/* Chances are per million. */
enum { SIM_NEVER_HAPPENS = 0, SIM_ALWAYS = 1000000, SIM_PERCENT = 10000 };

/* ---- World ---- */

/* What the runs of many seeds did in all; printed, and checked against what a scenario lists as bound to occur. */
enum { SIM_EVENT_KINDS = KDP_EVENT_TICKET + 1, SIM_ACTION_KINDS = KDP_ACTION_PATH_MTU + 1, SIM_MARKS = 64 };
typedef struct sim_coverage {
  uint64_t seeds, virtual_seconds, inner_sent, inner_delivered, datagrams, rounds;
  uint64_t handshakes, key_changes, roams;
  uint64_t event[SIM_EVENT_KINDS], action[SIM_ACTION_KINDS], status[KDP_STATUS_COUNT];
  uint64_t mark[SIM_MARKS]; /* a protocol's own: its timers, say (sim_mark) */
} sim_coverage;

sim *sim_create(uint64_t seed, bool trace);
void sim_destroy(sim *world);
uint64_t sim_seed(const sim *world);
/* Virtual time, ns since the start. */
uint64_t sim_now(const sim *world);
sim_random *sim_random_of(sim *world);
/* Runs everything that is due up to and including `time`, then sets the time to it. */
void sim_run_until(sim *world, uint64_t time);
static inline void sim_run_for(sim *world, uint64_t duration) {
  sim_run_until(world, sim_now(world) + duration);
}
/* Runs until `until` is true (looked at after every event) or `time` is reached; returns whether it was true. */
bool sim_run_while_not(sim *world, uint64_t time, bool (*until)(void *context), void *context);
/* Calls back at a time. */
void sim_at(sim *world, uint64_t time, void (*call)(sim *world, void *context), void *context);
/* Calls when the run is over, before the sums are made. */
void sim_at_end(sim *world, void (*call)(sim *world, void *context), void *context);
/* Everything traced so far, as one number. */
uint64_t sim_trace_hash(const sim *world);
/* A line of the trace: hashed always, printed with --trace. Numbers only, so that it costs little. */
void sim_note(sim *world, const char *what, uint64_t a, uint64_t b, uint64_t c);
/* Zeroed memory that lives as long as the world. */
void *sim_lend(sim *world, size_t size);
/* Counts something that only a protocol's scenarios know. */
void sim_mark(sim *world, unsigned mark);
/* Adds up what happened here. Call it once, at the end; checks also that all slots came back. */
void sim_collect(sim *world, sim_coverage *coverage);

/* Ends this seed's run. Returns to the runner, or aborts when there is none. */
_Noreturn void sim_fail(sim *world, const char *format, ...) __attribute__((format(printf, 2, 3)));
#define sim_check(world, condition)                                                                                    \
  do {                                                                                                                 \
    if (!(condition)) sim_fail(world, "%s:%d: %s", __FILE__, __LINE__, #condition);                                    \
  } while (0)
/* a (relation) b, with both values in the message. */
#define sim_check_number(world, a, relation, b)                                                                        \
  do {                                                                                                                 \
    unsigned long long left_ = (unsigned long long)(a), right_ = (unsigned long long)(b);                              \
    if (!(left_ relation right_))                                                                                      \
      sim_fail(world, "%s:%d: %s %s %s: %llu, %llu", __FILE__, __LINE__, #a, #relation, #b, left_, right_);            \
  } while (0)
/* Who catches sim_fail: `jump` is a jmp_buf, `message` gets the text. */
void sim_catch(sim *world, void *jump, char *message, size_t size);

/* ---- Network ---- */

/* What becomes of a datagram whose IP packet is larger than conditions.mtu. */
typedef enum sim_oversize {
  SIM_FRAGMENT, /* passes: fragmented and put together again */
  SIM_ANSWER,   /* is dropped, and its sender is told the path MTU */
  SIM_BLACK_HOLE
} sim_oversize;

/* One direction of a host's access to the network. A datagram meets the sender's outgoing and the receiver's incoming
   conditions. */
typedef struct sim_conditions {
  uint64_t delay, jitter; /* ns; the jitter is even between 0 and `jitter` and reorders by itself */
  uint64_t reorder_delay; /* what a reordered datagram waits in addition, at most */
  uint32_t loss, duplicate, reorder, corrupt, truncate; /* chances */
  uint32_t congestion; /* chance that an ECN-capable (or, one time in 8, any) outer packet is marked CE */
  uint16_t mtu;        /* largest IP packet; 0: no limit */
  sim_oversize oversize;
  bool down; /* a partition: nothing passes */
} sim_conditions;

typedef struct sim_datagram {
  kdp_address source, destination; /* as on the wire, after any NAT */
  uint8_t ecn;
  uint32_t size;
  uint8_t bytes[];
} sim_datagram;

/* A scenario's own hand in the network: sees each datagram as it is sent, may change it, and decides. */
typedef enum sim_verdict { SIM_PASS, SIM_DROP } sim_verdict;
typedef sim_verdict (*sim_filter)(void *context, sim *world, sim_host *from, sim_datagram *datagram);
void sim_set_filter(sim *world, sim_filter filter, void *context);

/* Puts a datagram on the wire, from nowhere (no outgoing conditions); it arrives after `delay`. */
void sim_inject(sim *world, const kdp_address *source, const kdp_address *destination, uint8_t ecn, const void *bytes,
                uint32_t size, uint64_t delay);

/* Capture: everything that hosts send, as it left (before loss and damage), for replaying whole sessions. */
typedef struct sim_captured {
  uint64_t time;
  sim_host *from;
  sim_datagram *datagram;
} sim_captured;
void sim_capture(sim *world, bool on);
uint32_t sim_captured_count(const sim *world);
const sim_captured *sim_captured_at(const sim *world, uint32_t index);

kdp_address sim_ipv4(uint8_t a, uint8_t b, uint8_t c, uint8_t d, uint16_t port);
/* 2001:db8:<net>::<host> */
kdp_address sim_ipv6(uint16_t net, uint16_t host, uint16_t port);

/* ---- Hosts ---- */

enum { SIM_HOST_ADDRESSES = 4, SIM_HOST_LINKS = 2 };

typedef struct sim_host_config {
  const char *name;
  /* Makes the engine. NULL: a raw host, which only has `on_datagram`. */
  kdp_status (*create)(void *context, const kdp_host *host, const kdp_limits *limits, kdp_now now, kdp_engine **engine);
  void *context; /* for all callbacks */
  kdp_limits limits;
  /* Addresses (ports ignored): the first of each family is the source that the "kernel" chooses. */
  kdp_address address[SIM_HOST_ADDRESSES];
  uint32_t address_count;
  uint16_t port;         /* of link 0 (datagrams, both families); 0: by chance */
  uint32_t pool_slots;   /* 0: 12 */
  size_t memory_limit;   /* bytes that the engine may hold; 0: no limit */
  uint64_t boot, wall;   /* the clocks at the start; wall 0: 2026-01-01 */
  uint64_t wake_latency; /* most that a wake-up is late; 0: 20 us */
  uint32_t socket_queue; /* datagrams that wait; more are lost. 0: 512 */
  bool roomy;            /* never call the engine with little room in `out` */
  uint32_t starve;       /* chance of a call that finds the pool empty */
  /* Seen, not kept: events, datagrams (raw hosts), packets that came out inside and belong to no flow (true: known and
     fine; default: ICMP errors are checked and counted, anything else fails the run), actions that the host does not
     carry out itself (RESOLVE). */
  void (*on_event)(sim_host *host, const kdp_event *event, void *context);
  void (*on_datagram)(sim_host *host, const sim_datagram *datagram, void *context);
  bool (*on_inside)(sim_host *host, const uint8_t *bytes, uint32_t size, void *context);
  void (*on_action)(sim_host *host, const kdp_action *action, void *context);
  /* Before each call with packets or time, for those who want to see which timers are due. */
  void (*before_call)(sim_host *host, void *context);
} sim_host_config;

sim_host *sim_host_add(sim *world, const sim_host_config *config);
/* Destroys the engine: checks that all its memory and slots came back. The host stays, as a raw one. */
void sim_host_stop(sim_host *host);
/* A restart: a new engine by `create`, with the clocks going on. */
void sim_host_restart(sim_host *host);
sim *sim_host_world(const sim_host *host);
const char *sim_host_name(const sim_host *host);
void *sim_host_context(const sim_host *host);
kdp_engine *sim_host_engine(const sim_host *host);
/* This host's clocks. */
kdp_now sim_host_now(const sim_host *host);
/* Outgoing and incoming; change them at any time. */
sim_conditions *sim_host_out(sim_host *host);
sim_conditions *sim_host_in(sim_host *host);
/* Sets both directions. */
void sim_host_conditions(sim_host *host, const sim_conditions *conditions);
/* New addresses (roaming): packets to the old ones are lost. */
void sim_host_move(sim_host *host, const kdp_address *address, uint32_t count);
/* Tells the engine that the network changed. */
void sim_host_network_changed(sim_host *host);
/* The interface and its link are taken down, or up again. While down nothing goes in, and nothing may come out. */
void sim_host_link(sim_host *host, bool up);
uint16_t sim_host_port(const sim_host *host);
/* Its address as others see it (of the family, with the port). */
kdp_address sim_host_address(const sim_host *host, kdp_family family);

/* Behind a NAT with an address of its own; each local port gets a port of the NAT on its first packet out, through
   which packets come back in. */
void sim_host_nat(sim_host *host, const kdp_address *outside);
/* The NAT forgets its ports: the next packet out gets another, and what comes to the old one is lost. */
void sim_nat_forget(sim_host *host);
/* Everything that goes out from this local port is lost, from now on; 0: nothing. */
void sim_nat_drop_port(sim_host *host, uint16_t port);

/* The boot clock goes on, nothing runs and what arrives is lost. */
void sim_host_suspend(sim_host *host, uint64_t duration);
/* Moves a clock: the wall clock either way, the boot clock (as if suspended) forward; a step back of the boot clock is
   handed to the engine as it is, which must bear it. */
void sim_host_step_wall(sim_host *host, int64_t ns);
void sim_host_step_boot(sim_host *host, int64_t ns);

/* An inner packet from outside all flows. */
void sim_host_inside(sim_host *host, const void *packet, uint32_t size);
/* Longer datagrams are cut to this by the receiver, which says so in the packet's status; 0: never. */
void sim_host_receive_limit(sim_host *host, uint32_t bytes);
/* Events are not taken any more, or again. */
void sim_host_deafen(sim_host *host, bool deaf);

/* Calls that need an `out`: the pointer is good until the next call into the simulator; sim_host_flush carries out
   what it holds and looks at the deadline again. */
kdp_out *sim_host_output(sim_host *host);
void sim_host_flush(sim_host *host);

/* Bytes that the engine holds now and held at most; allocations it made. */
size_t sim_host_memory(const sim_host *host);
size_t sim_host_memory_peak(const sim_host *host);
uint64_t sim_host_allocations(const sim_host *host);
/* Refuses the `nth` allocation from now on (1: the next) and those after it; 0: none. */
void sim_host_fail_allocation(sim_host *host, uint64_t nth);
/* How often packets from inside or outside were given this status; since the engine was made. */
uint64_t sim_host_handed(const sim_host *host, bool outside, kdp_status status);
uint64_t sim_host_handed_total(const sim_host *host, bool outside);
uint64_t sim_host_events(const sim_host *host, kdp_event_kind kind);
uint64_t sim_host_actions(const sim_host *host, kdp_action_kind kind);
/* Datagrams sent and their bytes, this host's. */
uint64_t sim_host_sent(const sim_host *host);
/* Packets that came out inside since the engine was made; of all, those that were ICMP errors. */
uint64_t sim_host_came_out(const sim_host *host);
uint64_t sim_host_icmp_errors(const sim_host *host);
/* Largest MTU told by a checked ICMP too-big, 0: none yet. */
uint32_t sim_host_icmp_mtu(const sim_host *host);

/* ---- Flows of inner packets ---- */

/* UDP in IPv4 or IPv6. Every byte follows from seed, flow and number. */
typedef struct sim_flow_config {
  sim_host *from, *to;
  kdp_address source, destination; /* inner; one family; ports are used */
  uint32_t size_min, size_max;     /* IP packet bytes; at least 48 (IPv4) or 68 (IPv6) */
  uint64_t start, stop;            /* virtual time; stop 0: never */
  uint64_t interval;               /* mean between bursts; 0: only when `sim_flow_send` is called */
  uint32_t burst;                  /* most packets at once; 0: 1 */
  uint32_t limit;                  /* packets in all; 0: no limit */
  sim_flow *answers;               /* not NULL: one packet for each delivered by that flow */
  uint8_t ecn;                     /* inner ECN field */
  bool df;                         /* IPv4 DF */
  bool refused;                    /* none may come out at the far end (wrong source, no route) */
} sim_flow_config;

sim_flow *sim_flow_add(sim *world, const sim_flow_config *config);
void sim_flow_send(sim_flow *flow, uint32_t count);
/* Sizes of the packets from now on. */
void sim_flow_resize(sim_flow *flow, uint32_t size_min, uint32_t size_max);
void sim_flow_stop(sim_flow *flow);
void sim_flow_resume(sim_flow *flow, uint64_t interval);

typedef struct sim_flow_counts {
  uint64_t sent, delivered, late; /* late: overtaken by a younger one */
  uint64_t last_delivered;        /* virtual time; 0: none yet */
  uint64_t longest_gap;           /* between deliveries, ns */
  uint64_t longest_delay;         /* of a delivered packet, ns */
  uint64_t marked;                /* arrived with CE though sent without */
} sim_flow_counts;
sim_flow_counts sim_flow_counts_of(const sim_flow *flow);
/* Was packet `number` (from 0) delivered? */
bool sim_flow_delivered(const sim_flow *flow, uint64_t number);

#endif
