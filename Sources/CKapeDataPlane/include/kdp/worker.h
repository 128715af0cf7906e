/* kdp/worker.h: the I/O layer. A worker runs an engine between a TUN and UDP sockets: on one thread, both directions,
   run to completion; or on several, each with a lane of its own. Linux. This is the only part of the data plane that
   makes system calls. */
#ifndef KDP_WORKER_H
#define KDP_WORKER_H

#include "engine.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- TUN ---- */

typedef struct kdp_tun {
  int fd;
  char name[16];
  bool vnet_header; /* reads and writes carry a virtio-net header */
  bool tso, uso;    /* what the kernel accepted */
} kdp_tun;

/* Offloads can be turned off one by one: by a test, by an option, and by themselves when the kernel refuses. */
enum kdp_fallback {
  KDP_FALLBACK_NO_VNET_HEADER = 1 << 0,
  KDP_FALLBACK_NO_TSO = 1 << 1,
  KDP_FALLBACK_NO_USO = 1 << 2,
  KDP_FALLBACK_NO_UDP_SEGMENT = 1 << 3,
  KDP_FALLBACK_NO_UDP_GRO = 1 << 4,
  KDP_FALLBACK_NO_TUN_JOIN = 1 << 5,
  KDP_FALLBACK_NO_URING = 1 << 6
};

/* Makes (or attaches to) the interface `name`; "" or a name with %d lets the kernel number it. On failure errno says
 * why. `mtu` 0 leaves it. */
kdp_status kdp_tun_open(const char *name, uint32_t fallbacks, kdp_tun *tun) KDP_MUST_USE KDP_NONNULL;
/* The same with several queues, each a kdp_tun: the kernel spreads flows over them, and keeps the order within a flow.
   EINVAL when the interface is there and has one queue. */
kdp_status kdp_tun_open_queues(const char *name, uint32_t fallbacks, uint32_t queues,
                               kdp_tun *tun) KDP_MUST_USE KDP_NONNULL;
/* Takes over a descriptor that is a TUN already (WG_TUN_FD, a provider's), or a socket of type SOCK_SEQPACKET on which
   each message is an IP packet, for packets that do not come from an interface: it has no name and no offloads.
   KDP_UNSUPPORTED for a TAP, and for a TUN with packet information; KDP_SYSTEM with errno ENOTTY for anything else. */
kdp_status kdp_tun_adopt(int fd, uint32_t fallbacks, kdp_tun *tun) KDP_MUST_USE KDP_NONNULL;
void kdp_tun_close(kdp_tun *tun) KDP_NONNULL;

/* ---- Worker ---- */

/* How a worker talks to the kernel. Both do the same, packet by packet.
   AUTO is epoll: it costs no more processor time per byte or per packet and less memory on every kernel measured
   (docs/performance.md). URING needs Linux 6.7 and a kernel that lets us; where it is refused (a container's seccomp
   filter, kernel.io_uring_disabled) the worker runs on epoll and says so once, by KDP_EVENT_FALLBACK with
   KDP_FALLBACK_NO_URING. */
typedef enum kdp_backend { KDP_BACKEND_AUTO, KDP_BACKEND_EPOLL, KDP_BACKEND_URING } kdp_backend;

/* Whether this kernel lets us use it; where not, errno says why (ENOSYS: it is too old). */
bool kdp_backend_available(kdp_backend backend);

typedef struct kdp_worker kdp_worker;

/* Threads: each runs one lane of the engine, from 0 on. Two shapes:
   - as many queues as threads: each thread has its queue of the TUN and its own sockets, all on one port. What is to be
     sent is spread by inner flow, what comes in by the peer's address and port.
   - one queue and two threads: the first receives and opens, the second reads the TUN, seals and sends. Helps one peer,
     too, whose packets all come in by one socket.
   To its user a worker with several threads is one: every function below is about all of it. Commands and events are
   those of lane 0. */
typedef struct kdp_worker_config {
  kdp_engine *engine; /* stays the caller's; outlives the worker */
  uint32_t threads;   /* 0: 1 */
  const kdp_tun *tun; /* `queues` of them; stay the caller's, their fds are used until the worker is destroyed */
  uint32_t queues;    /* 0: 1 */
  kdp_backend backend;
  uint32_t fallbacks;   /* kdp_fallback: forced from the start */
  uint32_t pool_slots;  /* of each thread; 0: 48 */
  uint16_t listen_port; /* 0: any; both families on the same port, as the kernel's WireGuard has it */
  uint32_t fwmark;      /* 0: none */
  bool no_ipv4, no_ipv6;
  /* UDP sockets of IPv4 and IPv6 to be used in place of own ones, -1 for a family without; NULL: own ones. For programs
     that may not make them as they have to be (SO_MARK). They stay the caller's, open until the worker is destroyed.
     With them `fwmark` is what they have, the ports are the kernel's choice, one a family, kept over down and up and
     from one worker to the next, and there is one queue. */
  const int *sockets;
} kdp_worker_config;

/* Makes the sockets; nothing runs yet. Fails with SYSTEM (errno; EADDRINUSE for a port that is taken), INVALID_ARGUMENT
 * (threads that the engine has no lanes for, or that do not go with the queues) or NO_MEMORY. */
kdp_status kdp_worker_create(const kdp_worker_config *config, const kdp_host *host,
                             kdp_worker **worker) KDP_MUST_USE KDP_NONNULL;
/* Runs lane 0 on the calling thread, and the others on threads of their own, until kdp_worker_stop. Returns OK, CLOSED
 * when the TUN is gone, or SYSTEM. */
kdp_status kdp_worker_run(kdp_worker *worker) KDP_NONNULL;
/* Runs lane 0, too, on a thread of its own (256 KiB of stack). SYSTEM with errno when a thread of them is not to be
   had: then none runs. */
kdp_status kdp_worker_start(kdp_worker *worker) KDP_MUST_USE KDP_NONNULL;
/* Asks it to end; any thread, also a signal handler. */
void kdp_worker_stop(kdp_worker *worker) KDP_NONNULL;
/* Waits for the thread of kdp_worker_start; returns what kdp_worker_run returned. */
kdp_status kdp_worker_join(kdp_worker *worker) KDP_NONNULL;
void kdp_worker_destroy(kdp_worker *worker); /* after run or join has returned; NULL is allowed */

/* A command runs on the worker's thread between two rounds, where every call on the engine's lane is allowed. The node
   is the caller's and must live until `run` has returned; `run` is called exactly once (with `stopping` set when the
   worker ends before its turn comes). Any thread may submit; commands run in the order of submission, at most 16 a
   round. */
typedef struct kdp_command kdp_command;
struct kdp_command {
  void (*run)(kdp_command *command, kdp_worker *worker, kdp_engine *engine, kdp_out *out, kdp_now now, bool stopping);
  void *context;
  kdp_command *next; /* the queue's */
};
void kdp_worker_submit(kdp_worker *worker, kdp_command *command) KDP_NONNULL;

/* For commands (the worker's thread only): */
/* Binds anew. SYSTEM with errno on failure, and the old sockets stay. UNSUPPORTED when the sockets are the caller's. */
kdp_status kdp_worker_set_port(kdp_worker *worker, uint16_t listen_port) KDP_MUST_USE KDP_NONNULL;
kdp_status kdp_worker_set_fwmark(kdp_worker *worker, uint32_t fwmark) KDP_MUST_USE KDP_NONNULL;
/* Interface down: sockets closed, TUN not read; up: bound again. The engine keeps its peers. */
kdp_status kdp_worker_set_up(kdp_worker *worker, bool up) KDP_MUST_USE KDP_NONNULL;

/* The interface's MTU has changed: told to the engine, and the kernel's super-packets are limited to what, sealed, is
 * one segmented send. */
void kdp_worker_set_inside_mtu(kdp_worker *worker, uint16_t bytes) KDP_NONNULL;

/* Any thread: */
uint16_t kdp_worker_port(const kdp_worker *worker) KDP_NONNULL;
uint32_t kdp_worker_fwmark(const kdp_worker *worker) KDP_NONNULL;
kdp_backend kdp_worker_backend(const kdp_worker *worker) KDP_NONNULL; /* never AUTO */
uint32_t kdp_worker_active_fallbacks(const kdp_worker *worker) KDP_NONNULL;
kdp_now kdp_now_read(void); /* both clocks */

/* Events of the engine and of the worker, in one queue: a descriptor that is readable while it is not empty (one
 * consumer thread). */
int kdp_worker_event_fd(const kdp_worker *worker) KDP_NONNULL;
bool kdp_worker_next_event(kdp_worker *worker, kdp_event *event) KDP_NONNULL;

/* Counters of the I/O layer. */
typedef struct kdp_io_statistics {
  uint64_t tun_reads, tun_writes, udp_reads, udp_sends; /* operations */
  uint64_t rounds, waits;
  uint64_t segmented_sends, joined_reads, joined_writes;
  uint64_t status[KDP_STATUS_COUNT]; /* packets that ended in the I/O layer, by reason: SEND_REFUSED, SEND_TOO_BIG,
                                        INSIDE_REFUSED, TRUNCATED, what a super-packet was refused for, ... */
} kdp_io_statistics;
void kdp_worker_statistics(const kdp_worker *worker, kdp_io_statistics *statistics) KDP_NONNULL;

#ifdef __cplusplus
}
#endif
#endif
