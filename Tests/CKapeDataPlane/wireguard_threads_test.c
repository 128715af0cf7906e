/* WireGuard on several threads at each end, both directions at full speed, while lane 0 is configured: nothing is lost
   and nothing is sealed twice. With VARIANT=tsan also that no thread reads what another writes. */
#define _GNU_SOURCE
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "support/rig.h"
#include "support/worker_pair.h"

enum { SEGMENT = 1380, PAYLOAD = 20 * SEGMENT, IN_FLIGHT = 6, FRAMES = 1500, CHANGES = 100 };

typedef struct shape {
  uint32_t threads, queues;
} shape;
static const shape SHAPES[] = {{2, 1}, {2, 2}, {4, 4}};
enum { SHAPE_COUNT = sizeof SHAPES / sizeof SHAPES[0] };

typedef struct pump {
  worker_end *from, *to;
  uint8_t frame[RIG_FRAME];
  size_t size;
  uint64_t came;
} pump;

static void *run_pump(void *context) {
  pump *p = context;
  p->came = worker_pair_pump(p->from, p->to, p->frame, p->size, PAYLOAD, FRAMES, IN_FLIGHT);
  return NULL;
}

static void prepare(pump *p, worker_end *from, worker_end *to) {
  rig r = {.random = {1}};
  p->from = from, p->to = to;
  p->size = rig_tcp_frame(&r, false, PAYLOAD, SEGMENT, p->frame);
}

/* Another peer comes, or goes: what all lanes look things up in changes. */
static void change_peers(worker_end *end, kdp_out *out, kdp_now now, void *context) {
  const uint32_t *number = context;
  kdp_wireguard_prefix_change prefix = {.prefix = {.family = KDP_FAMILY_IPV4, .length = 24, .bytes = {192, 0, 2, 0}}};
  kdp_wireguard_peer_change peer = {.prefix = &prefix, .prefix_count = 1};
  memset(peer.public_key, 99, sizeof peer.public_key);
  if (*number % 2 == 1) peer.fields = KDP_WIREGUARD_PEER_REMOVE;
  kdp_wireguard_change change = {.peer = &peer, .peer_count = 1};
  assert_int_equal(kdp_wireguard_apply(end->engine, &change, out, now), KDP_OK);
}

static void nothing_is_lost(worker_pair *pair) {
  static pump there, back;
  prepare(&there, &pair->a, &pair->b);
  prepare(&back, &pair->b, &pair->a);
  assert_int_equal(worker_pair_pump(&pair->a, &pair->b, there.frame, there.size, PAYLOAD, 1, 1), PAYLOAD);
  pthread_t thread[2];
  assert_int_equal(pthread_create(&thread[0], NULL, run_pump, &there), 0);
  assert_int_equal(pthread_create(&thread[1], NULL, run_pump, &back), 0);
  for (uint32_t i = 0; i < CHANGES; i++) {
    kdp_statistics statistics;
    worker_end_call(&pair->a, change_peers, &i);
    worker_end_call(&pair->b, change_peers, &i);
    kdp_engine_statistics(pair->a.engine, &statistics);
  }
  pthread_join(thread[0], NULL);
  pthread_join(thread[1], NULL);
  assert_int_equal(there.came, (uint64_t)FRAMES * PAYLOAD);
  assert_int_equal(back.came, (uint64_t)FRAMES * PAYLOAD);
}

static void packets_pass_on_all_threads_while_peers_come_and_go(void **state) {
  for (int i = 0; i < SHAPE_COUNT; i++) {
    worker_pair pair;
    worker_pair_open_threads(&pair, rig_backend(state), SHAPES[i].threads, SHAPES[i].queues);
    nothing_is_lost(&pair);
    kdp_statistics a, b;
    kdp_engine_statistics(pair.a.engine, &a);
    kdp_engine_statistics(pair.b.engine, &b);
    assert_int_equal(a.status[KDP_REPLAYED] + b.status[KDP_REPLAYED], 0);
    assert_int_equal(a.status[KDP_AUTHENTICATION_FAILED] + b.status[KDP_AUTHENTICATION_FAILED], 0);
    assert_int_equal(a.handshakes, 1);
    if (SHAPES[i].queues == 1) assert_true(a.status[KDP_HANDED_OVER] > 0); /* the first, without a session */
    worker_pair_close(&pair);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(packets_pass_on_all_threads_while_peers_come_and_go),
  };
  return rig_run_with_each_backend("WireGuard on threads", tests, sizeof tests / sizeof tests[0]);
}
