/* kdp/engine.h: the one contract. Every protocol, both roles, datagrams and streams; nothing here makes a system call
   but to wait for another lane.

   An engine is sans-IO: bytes in, bytes out, time and randomness handed in; no clock, socket or thread of its own. The
   same object runs under io_uring, under epoll, in an embedder's packet flow, in a fuzzer and in a simulated network.
   How it is meant to be used, with the life of a packet in both directions, is in docs/engine.md;
   Tests/Simulation/echo_engine.c is a small protocol that implements it.

   Lanes: one per worker thread, made with the engine. Calls on different lanes may run at the same time; calls on one
   lane may not. Calls that take a kdp_engine and are not marked otherwise count as calls on lane 0. Lane 0 does all
   that is slow or rare; what another lane meets of that it gives back as a HANDOFF action. Sockets of several workers
   that share one port are one link: packets of one path have the same kdp_path on every lane.

   Ownership: each packet handed in carries one use of its slot, which passes to the engine as far as the batch is
   consumed; each packet in `out` carries one use, which passes to the caller. */
#ifndef KDP_ENGINE_H
#define KDP_ENGINE_H

#include "batch.h"
#include "event.h"
#include "stats.h"
#include "time.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct kdp_engine kdp_engine;
typedef struct kdp_lane kdp_lane;

/* What an engine may use. 0: the protocol's default. */
typedef struct kdp_limits {
  uint32_t peers;               /* most peers or sessions */
  uint32_t links;               /* most links at once */
  uint32_t lanes;               /* worker threads */
  uint32_t staged_packets;      /* slots for packets that wait for a handshake */
  uint32_t handshakes;          /* handshakes in progress at once */
  uint32_t handshakes_per_call; /* asymmetric operations (one handshake message each) in one call */
  uint32_t stream_frame_bytes;  /* largest frame on a stream */
} kdp_limits;

void kdp_engine_destroy(kdp_engine *engine); /* wipes; NULL is allowed; no lane may be in a call */
const char *kdp_engine_name(const kdp_engine *engine) KDP_NONNULL;

/* Room that packets for `path` need (NULL: for any path). Any lane. */
kdp_room kdp_engine_room(const kdp_engine *engine, const kdp_path *path) __attribute__((nonnull(1)));

/* NULL when `index` is not below limits->lanes. */
kdp_lane *kdp_engine_lane(kdp_engine *engine, uint32_t index) KDP_NONNULL;

/* Data. Each consumes a prefix of `in` and returns its length; short: `out` is full; drain it and call again with the
   rest. 0 consumed with nothing produced happens only for an empty `in`. An empty pool is no reason to stop: what needs
   a slot of its own then waits inside the engine or ends with POOL_EMPTY. The status of each consumed packet says what
   became of it. Any lane. out->wire is in counter order per path; the I/O layer may cut it into sends but not reorder
   it within a path. */
uint32_t kdp_engine_inside(kdp_lane *lane, kdp_batch *in, kdp_out *out,
                           kdp_now now) KDP_MUST_USE KDP_NONNULL; /* IP packets,
                                          super-packets already split */
uint32_t kdp_engine_outside(kdp_lane *lane, kdp_batch *in, kdp_out *out,
                            kdp_now now) KDP_MUST_USE KDP_NONNULL; /* datagrams
                                          with their path */
/* Returns the bytes consumed: whole frames, opened in place; the caller keeps the rest (at most stream_frame_bytes) and
   shows it again, contiguous, with more behind it. */
size_t kdp_engine_stream(kdp_lane *lane, kdp_link link, kdp_packet *in, kdp_out *out,
                         kdp_now now) KDP_MUST_USE KDP_NONNULL;

/* Links. For a stream an engine seals only what `room` allows: no counter is spent on bytes that might be dropped. Lane
   0. `error` of link_down is an errno; 0: closed on purpose, an interface taken down. */
void kdp_engine_link_up(kdp_lane *lane, kdp_link link, kdp_link_kind kind, const kdp_path *path, kdp_out *out,
                        kdp_now now) KDP_NONNULL;
void kdp_engine_link_room(kdp_lane *lane, kdp_link link, size_t bytes, kdp_out *out, kdp_now now) KDP_NONNULL;
void kdp_engine_link_down(kdp_lane *lane, kdp_link link, int error, kdp_out *out, kdp_now now) KDP_NONNULL;
/* The largest UDP payload plus 8 that `path` takes, with its IP header: what the route or EMSGSIZE says. 0: not known
   any more. Called whenever it is learnt, changed or not, and when the engine asks with a PATH_MTU action, as it does
   with the first data on a path that it knows nothing of; a host that cannot tell need not answer. */
void kdp_engine_path_mtu(kdp_lane *lane, const kdp_path *path, uint16_t bytes, kdp_now now) KDP_NONNULL;
/* New network, or wake from sleep: probe now. */
void kdp_engine_network_changed(kdp_lane *lane, kdp_out *out, kdp_now now) KDP_NONNULL;
void kdp_engine_set_inside_mtu(kdp_engine *engine, uint16_t bytes) KDP_NONNULL;

/* Time. One absolute deadline, ns of the boot clock; KDP_NEVER: none. Work in one call is bounded by
   handshakes_per_call; what is left over makes the deadline `now`. A clock that jumps leads to one pass. */
uint64_t kdp_engine_deadline(const kdp_lane *lane) KDP_NONNULL;
void kdp_engine_tick(kdp_lane *lane, kdp_out *out, kdp_now now) KDP_NONNULL;
/* Once a round of the caller's loop: no pointer from an earlier call is held any more. */
void kdp_lane_quiescent(kdp_lane *lane, kdp_now now) KDP_NONNULL;

/* Events. Lane 0. */
bool kdp_engine_next_event(kdp_engine *engine, kdp_event *event) KDP_NONNULL;
/* Copies what is behind a ticket; *size is the room on entry and the size on return. */
kdp_status kdp_engine_read(kdp_engine *engine, kdp_ticket ticket, void *bytes, size_t *size) KDP_MUST_USE KDP_NONNULL;
typedef enum kdp_answer { KDP_ANSWER_ACCEPT, KDP_ANSWER_REFUSE, KDP_ANSWER_TEXT } kdp_answer;
kdp_status kdp_engine_answer(kdp_engine *engine, kdp_ticket ticket, kdp_answer answer, const void *bytes, size_t size,
                             kdp_out *out, kdp_now now) KDP_MUST_USE;
void kdp_engine_statistics(const kdp_engine *engine, kdp_statistics *statistics) KDP_NONNULL; /* any lane */

/* ---- For those who write an engine ----

   Put a kdp_engine first in your own struct, fill `ops`, and a kdp_lane first in your lane struct. Entries that a
   protocol has no use for may be NULL: stream, link_up, link_room, link_down, path_mtu, network_changed,
   set_inside_mtu, quiescent, read, answer. The functions above check arguments, keep `now.boot` from going back and
   call these. */
typedef struct kdp_engine_ops {
  const char *name;
  void (*destroy)(kdp_engine *);
  kdp_room (*room)(const kdp_engine *, const kdp_path *);
  kdp_lane *(*lane)(kdp_engine *, uint32_t index);
  uint32_t (*inside)(kdp_lane *, kdp_batch *in, kdp_out *, kdp_now);
  uint32_t (*outside)(kdp_lane *, kdp_batch *in, kdp_out *, kdp_now);
  size_t (*stream)(kdp_lane *, kdp_link, kdp_packet *in, kdp_out *, kdp_now);
  void (*link_up)(kdp_lane *, kdp_link, kdp_link_kind, const kdp_path *, kdp_out *, kdp_now);
  void (*link_room)(kdp_lane *, kdp_link, size_t, kdp_out *, kdp_now);
  void (*link_down)(kdp_lane *, kdp_link, int error, kdp_out *, kdp_now);
  void (*path_mtu)(kdp_lane *, const kdp_path *, uint16_t, kdp_now);
  void (*network_changed)(kdp_lane *, kdp_out *, kdp_now);
  void (*set_inside_mtu)(kdp_engine *, uint16_t);
  uint64_t (*deadline)(const kdp_lane *);
  void (*tick)(kdp_lane *, kdp_out *, kdp_now);
  void (*quiescent)(kdp_lane *, kdp_now);
  bool (*next_event)(kdp_engine *, kdp_event *);
  kdp_status (*read)(kdp_engine *, kdp_ticket, void *, size_t *);
  kdp_status (*answer)(kdp_engine *, kdp_ticket, kdp_answer, const void *, size_t, kdp_out *, kdp_now);
  void (*statistics)(const kdp_engine *, kdp_statistics *);
} kdp_engine_ops;

struct kdp_engine {
  const kdp_engine_ops *ops;
};

struct kdp_lane {
  kdp_engine *engine;
  uint32_t index;
  uint64_t newest_boot; /* kept by the functions above */
};

#ifdef __cplusplus
}
#endif
#endif
