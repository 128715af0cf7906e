/* Two workers with WireGuard engines that are each other's peer, over the loopback. The TUN of each is a pair of local
   sockets, so that whole super-packets go in and come out without an interface, and without root. */
#ifndef KDP_TEST_WORKER_PAIR_H
#define KDP_TEST_WORKER_PAIR_H
#include "kdp/wireguard.h"
#include "kdp/worker.h"

typedef struct worker_end {
  kdp_engine *engine;
  kdp_worker *worker;
  kdp_tun tun;
  int frames; /* the test's end of the TUN */
} worker_end;

typedef struct worker_pair {
  worker_end a, b;
} worker_pair;

/* `aead_provider` NULL: what the machine has that is fastest. */
void worker_pair_open(worker_pair *pair, kdp_backend backend, const char *aead_provider);
void worker_pair_close(worker_pair *pair);

/* Runs on the worker's thread; returns when it is done. */
void worker_end_call(worker_end *end, void (*run)(worker_end *end, kdp_out *out, kdp_now now, void *context),
                     void *context);

/* Puts `count` copies of a super-packet of `payload` bytes behind 40 of headers in at `a`, at most `in_flight` of them
   ahead of what has come out of `b`. Returns the payload bytes that came out. */
uint64_t worker_pair_pump(worker_pair *pair, const uint8_t *frame, size_t size, uint32_t payload, uint32_t count,
                          uint32_t in_flight);

#endif
