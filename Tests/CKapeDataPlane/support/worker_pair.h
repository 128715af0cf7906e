/* Two workers with WireGuard engines that are each other's peer, over the loopback. The TUN of each is a pair of local
   sockets, so that whole super-packets go in and come out without an interface, and without root. */
#ifndef KDP_TEST_WORKER_PAIR_H
#define KDP_TEST_WORKER_PAIR_H
#include "kdp/wireguard.h"
#include "kdp/worker.h"

enum { WORKER_PAIR_QUEUES = 4 };

typedef struct worker_end {
  kdp_engine *engine;
  kdp_worker *worker;
  kdp_tun tun[WORKER_PAIR_QUEUES];
  int frames[WORKER_PAIR_QUEUES]; /* the test's ends of the TUN */
  uint32_t queues;
} worker_end;

typedef struct worker_pair {
  worker_end a, b;
} worker_pair;

/* `aead_provider` NULL: what the machine has that is fastest. */
void worker_pair_open(worker_pair *pair, kdp_backend backend, const char *aead_provider);
/* With several threads at each end, as kdp_worker_config has them. */
void worker_pair_open_threads(worker_pair *pair, kdp_backend backend, uint32_t threads, uint32_t queues);
void worker_pair_close(worker_pair *pair);

/* Runs on the worker's thread; returns when it is done. */
void worker_end_call(worker_end *end, void (*run)(worker_end *end, kdp_out *out, kdp_now now, void *context),
                     void *context);

/* Puts `count` copies of a super-packet of `payload` bytes behind 40 of headers in at `from`, at its queues in turns,
   at most `in_flight` of them ahead of what has come out of `to`. Returns the payload bytes that came out. */
uint64_t worker_pair_pump(worker_end *from, worker_end *to, const uint8_t *frame, size_t size, uint32_t payload,
                          uint32_t count, uint32_t in_flight);

#endif
