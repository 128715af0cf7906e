/* What one thread of a worker is made of, for the files of io/ that share it. All of it belongs to that thread but for
   what is atomic, the command queue's stack and the event channel. */
#ifndef KDP_IO_WORKER_STATE_H
#define KDP_IO_WORKER_STATE_H
#include <pthread.h>
#include <stdatomic.h>

#include "io/command_queue.h"
#include "io/event_channel.h"
#include "io/give_way.h"
#include "io/group.h"
#include "io/receive.h"
#include "io/route_table.h"
#include "io/send.h"
#include "io/tun.h"
#include "io/udp.h"
#include "io/write.h"
#include "kdp/worker.h"

/* What may be done without waiting, as far as the backend knows. */
enum kdp_ready {
  KDP_READY_INSIDE = 1 << 0, /* the TUN can be read */
  KDP_READY_IPV4 = 1 << 1,   /* the sockets can be read */
  KDP_READY_IPV6 = 1 << 2,
  KDP_READY_INSIDE_ROOM = 1 << 3, /* asked for while writes are blocked */
  KDP_READY_WIRE_ROOM = 1 << 4    /* asked for while sends are blocked */
};

/* How a batch of output ended. */
typedef enum kdp_flow { KDP_FLOW_OPEN, KDP_FLOW_BLOCKED } kdp_flow;

enum { KDP_BAD_SOURCES = 4, KDP_RECEIVES = 8, KDP_COMMANDS_PER_ROUND = 16, KDP_FRAME_SIZE = KDP_VIRTIO_SIZE + 65536 };

/* The kernel refused these as source of a send; without a source for a while. */
typedef struct kdp_bad_source {
  kdp_address local;
  uint32_t ifindex;
  uint64_t until;
} kdp_bad_source;

typedef struct kdp_backend_ops {
  kdp_backend kind;
  /* Makes what it needs; SYSTEM with errno, UNSUPPORTED. Sockets may be closed (-1) then and at any time. */
  kdp_status (*open)(kdp_worker *);
  void (*close)(kdp_worker *);
  /* The sockets are about to be replaced or closed; there are others. */
  void (*detach)(kdp_worker *);
  void (*attach)(kdp_worker *);
  /* Waits until something can be done or `deadline` (boot clock) is reached; at once when `more`. Sets worker->ready.
   */
  void (*wait)(kdp_worker *, bool more, uint64_t deadline);
  /* One frame from the TUN: its size, with `frame` valid until the next call; 0: none now; -1: errno. */
  ssize_t (*read)(kdp_worker *, uint8_t **frame);
  /* Receives from one socket; returns how many of `received` were filled (the caller owns their slots). */
  uint32_t (*receive)(kdp_worker *, uint32_t socket, kdp_received *received, uint32_t capacity);
  /* Performs the plans worker->send and worker->write (those asked for), item by item and sets their errors. Items
     whose error is set already are left out; of each plan nothing is tried after the first that fails. */
  void (*output)(kdp_worker *, bool send, bool write);
  /* On the worker's thread, when the run ends: lets go of every descriptor. May be NULL. */
  void (*finish)(kdp_worker *);
} kdp_backend_ops;

extern const kdp_backend_ops kdp_backend_epoll, kdp_backend_uring;

typedef struct kdp_epoll {
  int epoll, timer;
  uint64_t armed; /* what the timer is set to, KDP_NEVER: not set */
  bool fired;
  bool wants_inside_room, inside_watched, wire_unwatched; /* what epoll was told */
  bool wants_wire_room[KDP_UDP_SOCKETS];
  bool more;                            /* a socket was not emptied */
  uint32_t inside_expected, inside_got; /* frames a round: how many before asking again whether there are more */
  bool inside_capped;                   /* stopped because of that */
  struct mmsghdr message[KDP_RECEIVES];
  struct iovec iov[KDP_RECEIVES];
  kdp_socket_address name[KDP_RECEIVES];
  _Alignas(struct cmsghdr) uint8_t control[KDP_RECEIVES][KDP_UDP_CONTROL];
} kdp_epoll;

typedef struct kdp_uring kdp_uring;

struct kdp_worker {
  kdp_host host;
  kdp_engine *engine;
  kdp_lane *lane;
  kdp_link link;
  kdp_tun tun;
  const kdp_backend_ops *backend;
  kdp_epoll epoll;
  kdp_uring *uring;

  kdp_pool *pool;
  kdp_out_storage *out_storage;
  kdp_out *out;
  kdp_batch inside, outside; /* input not yet taken by the engine */
  kdp_received received[KDP_RECEIVES];
  uint32_t received_first, received_count; /* receives not yet cut */
  uint8_t *frame; /* a super-packet that did not fit into `inside` yet, behind its virtio header */
  uint32_t frame_size;
  uint8_t *frame_buffer; /* KDP_FRAME_SIZE bytes, for a backend that reads one at a time */
  kdp_send_plan *send;
  kdp_write_plan *write;

  kdp_group group;           /* the first's */
  kdp_membership membership; /* the others' */
  bool reads_inside;         /* the TUN; the first of two threads at one queue leaves it to the second */
  bool receives;             /* from the sockets; the second of those leaves it to the first */

  kdp_udp udp, next_udp;  /* next_udp: made by the first thread, to take the place of udp */
  uint16_t sockets_taken; /* how often, as the first counts it */
  kdp_udp_options udp_options;
  int given_sockets[KDP_UDP_SOCKETS];
  uint64_t rebind_after; /* boot clock: not before */
  bool up;
  bool gone; /* the TUN */
  uint32_t ready;
  kdp_now now;
  uint32_t fallbacks, forced_fallbacks;
  uint16_t segments_most;
  kdp_route_table routes;
  uint32_t segment_refusals[KDP_UDP_SOCKETS]; /* destinations in a row that took no segmented send */
  kdp_bad_source bad_source[KDP_BAD_SOURCES];
  uint32_t bad_source_next;
  kdp_flow wire_flow, inside_flow;
  uint64_t wire_retry, inside_retry; /* boot clock; KDP_NEVER: when there is room */
  bool socket_full[KDP_UDP_SOCKETS]; /* what is for this one waits in out->wire; the other's goes on */
  bool outside_waits;                /* the engine takes no more from the wire before something has left on it */

  uint32_t frames_read; /* in this round */
  kdp_give_way give_way;

  int wake; /* eventfd: commands, stop */
  kdp_command_queue commands;
  kdp_event_channel events;
  bool events_pushed;
  bool thread_made;
  pthread_t thread;
  kdp_status result;

  _Atomic(bool) stop;
  _Atomic(uint32_t) shown_port, shown_fwmark, shown_fallbacks;
  struct {
    _Atomic(uint64_t) tun_reads, tun_writes, udp_reads, udp_sends, rounds, waits, segmented_sends, joined_reads,
        joined_writes;
    _Atomic(uint64_t) status[KDP_STATUS_COUNT];
  } count;

  kdp_packet inside_packet[KDP_BATCH_CAPACITY], outside_packet[KDP_BATCH_CAPACITY];
  kdp_path outside_path[KDP_BATCH_PATHS];
};

/* One writer: no locked instruction. */
static inline void kdp_count(_Atomic(uint64_t) *counter, uint64_t more) {
  atomic_store_explicit(counter, atomic_load_explicit(counter, memory_order_relaxed) + more, memory_order_relaxed);
}

/* Whether the worker waits for room in this socket. */
static inline bool kdp_worker_wants_room(const kdp_worker *worker, int socket) {
  return worker->socket_full[socket];
}

/* Whether output for the wire can be taken: nothing is blocked, or only one socket, and what waits for it leaves half
   of the room, and a quarter of the slots, to what is for the other. */
static inline bool kdp_worker_has_wire_room(const kdp_worker *worker) {
  if (worker->wire_flow == KDP_FLOW_BLOCKED) return false;
  if (!worker->socket_full[KDP_UDP_IPV4] && !worker->socket_full[KDP_UDP_IPV6]) return true;
  const kdp_batch *wire = &worker->out->wire;
  return wire->count < wire->capacity / 2 && wire->path_count < wire->path_capacity / 2 &&
         kdp_pool_free_count(worker->pool) > kdp_pool_slot_count(worker->pool) / 4;
}

/* Whether it is the one that others know, on lane 0. */
static inline bool kdp_worker_is_first(const kdp_worker *worker) {
  return !worker->membership.first;
}

/* loop.c */
kdp_status kdp_loop_run(kdp_worker *worker);
/* Whether input from either side is to be shown to the engine. */
static inline bool kdp_worker_may_take_inside(const kdp_worker *worker) {
  return worker->up && !worker->gone && kdp_worker_has_wire_room(worker);
}
static inline bool kdp_worker_may_take_outside(const kdp_worker *worker) {
  if (!worker->up || worker->inside_flow != KDP_FLOW_OPEN) return false;
  /* Input may need an answer: while none can leave there may be no room for it, or no slot to read into. */
  return kdp_worker_has_wire_room(worker) || (!worker->outside_waits && kdp_pool_free_count(worker->pool) > 0);
}
/* Whether it is to be read. What is not may not wake the worker either. */
static inline bool kdp_worker_may_read(const kdp_worker *worker) {
  return worker->reads_inside && kdp_worker_may_take_inside(worker);
}
static inline bool kdp_worker_may_receive(const kdp_worker *worker) {
  return worker->receives && kdp_worker_may_take_outside(worker);
}

/* output.c */
/* Sends and writes what is in worker->out and applies its actions, in order. What is blocked stays in it. */
void kdp_output_flush(kdp_worker *worker);
/* Asks the kernel for the MTU of the way to path->remote, tells the engine whatever the answer is, and lets segmented
   sends be tried again when it is another than before. */
uint16_t kdp_worker_learn_mtu(kdp_worker *worker, const kdp_path *path);

/* sockets.c: the first thread's, for all of them. */
/* Sockets of the worker: bound anew, or closed. The old ones stay when new ones cannot be had. */
kdp_status kdp_worker_bind(kdp_worker *worker, const kdp_udp_options *options) KDP_MUST_USE;
void kdp_worker_unbind(kdp_worker *worker);
/* New sockets in place of broken ones, with an event; once a second at most: false. Another thread than the first asks
   that one for them: false, too. */
bool kdp_worker_bind_anew(kdp_worker *worker, int error);
/* The old sockets are gone and new ones could not be had. */
static inline bool kdp_worker_has_lost_sockets(const kdp_worker *worker) {
  return kdp_worker_is_first(worker) && worker->up && !kdp_udp_is_open(&worker->udp);
}

/* direct_output.c: kdp_backend_ops.output by system calls. */
void kdp_send_directly(kdp_worker *worker);
void kdp_write_directly(kdp_worker *worker);

/* worker.c */
void kdp_worker_wake(kdp_worker *worker);
/* Takes back the readiness of worker->wake. */
void kdp_worker_read_wake(kdp_worker *worker);
void kdp_worker_event(kdp_worker *worker, kdp_event_kind kind, kdp_status status, uint64_t value,
                      const kdp_address *address);
/* Turns an offload off, with one event. */
void kdp_worker_fall_back(kdp_worker *worker, uint32_t fallback, const kdp_address *scope);
/* It may be tried again. */
void kdp_worker_regain(kdp_worker *worker, uint32_t fallback);

#endif
