/* WireGuard at its real UDP port: what strangers send to it, and its counters read while it works. */
#define _GNU_SOURCE
#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "io/linux_compat.h"
#include "support/rig.h"
#include "support/wireguard_hosts.h"

/* ---- Datagrams of strangers ---- */

typedef struct stranger {
  wireguard_hosts t;
  int fd[2]; /* on host B, one for each family */
  rng random;
  uint64_t sent;
} stranger;

enum { LARGEST_IPV4 = 65507, LARGEST_IPV6 = 65527 };

/* Datagrams that became of host A's from the wire: each packet has one status, and those from the inside (the kernel
   says things by itself) are known. */
static uint64_t accounted(const wireguard_host *host) {
  kdp_statistics engine;
  kdp_io_statistics io;
  kdp_engine_statistics(host->engine, &engine);
  kdp_worker_statistics(host->worker, &io);
  uint64_t count = io.status[KDP_TRUNCATED] + io.status[KDP_TOO_LONG];
  for (int status = 0; status < KDP_STATUS_COUNT; status++)
    count += engine.status[status];
  return count - engine.inside_in.packets;
}

static void all_are_accounted_for(stranger *s) {
  uint64_t count = 0;
  for (int i = 0; i < 5000 && (count = accounted(&s->t.host[HOST_A])) != s->sent; i++)
    usleep(1000);
  assert_int_equal(count, s->sent);
}

static void throw_bytes(stranger *s, bool ipv6, const uint8_t *bytes, size_t size, size_t datagrams) {
  kdp_socket_address address;
  socklen_t length = wireguard_hosts_socket_address(false, ipv6, 1, WIREGUARD_HOSTS_PORT, &address);
  assert_int_equal(sendto(s->fd[ipv6], bytes, size, 0, &address.any, length), size);
  s->sent += datagrams;
}

static void open_stranger(stranger *s, void **state) {
  memset(s, 0, sizeof *s);
  s->random.state = 39;
  wireguard_hosts_open(&s->t, rig_backend(state), false, 0);
  for (int host = 0; host < HOSTS; host++)
    on_host_run(&s->t.hosts, host, "ip link set wire mtu 9000");
  for (int ipv6 = 0; ipv6 < 2; ipv6++)
    s->fd[ipv6] = wireguard_hosts_udp(&s->t, HOST_B, ipv6, 0);
}

/* After all that, who has the key gets in. */
static void close_stranger(stranger *s) {
  for (int from = 0; from < HOSTS; from++)
    wireguard_hosts_pass(&s->t, 1 - from, from);
  close(s->fd[0]);
  close(s->fd[1]);
  wireguard_hosts_close(&s->t);
}

enum { DATAGRAMS = 300, AT_ONCE = 4 };

static void random_datagrams_of_every_size_are_counted_and_harm_nobody(void **state) {
  static uint8_t bytes[LARGEST_IPV6];
  static const size_t edges[] = {0, 1, 3, 4, 31, 32, 33, 63, 64, 65, 91, 92, 93, 147, 148, 149, 1452, 10000};
  enum { EDGES = sizeof edges / sizeof edges[0] };
  stranger s;
  open_stranger(&s, state);
  for (uint32_t i = 0; i < DATAGRAMS; i++) {
    bool ipv6 = i % 2;
    size_t largest = ipv6 ? LARGEST_IPV6 : LARGEST_IPV4;
    size_t size = i / 2 < EDGES              ? edges[i / 2]
                  : i / 2 == EDGES           ? largest
                  : rng_one_in(&s.random, 2) ? rng_below(&s.random, 300)
                                             : rng_below(&s.random, (uint32_t)largest + 1);
    rng_fill(&s.random, bytes, size);
    /* Every type that there is, and two that there are not. */
    if (size >= 4 && !rng_one_in(&s.random, 4))
      memcpy(bytes, (uint8_t[]){(uint8_t)rng_below(&s.random, 6), 0, 0, 0}, 4);
    throw_bytes(&s, ipv6, bytes, size, 1);
    if (i % AT_ONCE == AT_ONCE - 1) all_are_accounted_for(&s);
  }
  all_are_accounted_for(&s);
  kdp_statistics statistics;
  kdp_engine_statistics(s.t.host[HOST_A].engine, &statistics);
  assert_true(statistics.status[KDP_TOO_SHORT] > 0);
  assert_true(statistics.status[KDP_UNKNOWN_TYPE] > 0);
  assert_true(statistics.status[KDP_UNKNOWN_SESSION] > 0);
  assert_true(statistics.status[KDP_BAD_MAC1] > 0);
  assert_int_equal(statistics.wire_in.packets, 0);
  assert_int_equal(statistics.wire_out.packets, 0); /* nobody gets an answer */
  close_stranger(&s);
}

static void what_is_joined_to_a_datagram_of_another_size_is_taken_apart(void **state) {
  enum { COUNT = 38, SIZE = 1700, REST = 3 };
  static const uint8_t zeros[LARGEST_IPV4];
  stranger s;
  open_stranger(&s, state);
  for (int ipv6 = 0; ipv6 < 2; ipv6++) {
    kdp_statistics before, after;
    kdp_io_statistics io_before, io_after;
    kdp_engine_statistics(s.t.host[HOST_A].engine, &before);
    kdp_worker_statistics(s.t.host[HOST_A].worker, &io_before);
    throw_bytes(&s, ipv6, zeros, 10000, 1);
    throw_bytes(&s, ipv6, zeros, LARGEST_IPV4, 1);
    throw_bytes(&s, ipv6, zeros, 0, 1);
    throw_bytes(&s, ipv6, zeros, 1, 1);
    int segment = SIZE, none = 0;
    assert_int_equal(setsockopt(s.fd[ipv6], IPPROTO_UDP, UDP_SEGMENT, &segment, sizeof segment), 0);
    throw_bytes(&s, ipv6, zeros, COUNT * SIZE + REST, COUNT + 1);
    assert_int_equal(setsockopt(s.fd[ipv6], IPPROTO_UDP, UDP_SEGMENT, &none, sizeof none), 0);
    all_are_accounted_for(&s);
    kdp_engine_statistics(s.t.host[HOST_A].engine, &after);
    kdp_worker_statistics(s.t.host[HOST_A].worker, &io_after);
    assert_true(io_after.joined_reads > io_before.joined_reads);
    assert_int_equal(after.status[KDP_UNKNOWN_TYPE] - before.status[KDP_UNKNOWN_TYPE], COUNT + 2);
    assert_int_equal(after.status[KDP_TOO_SHORT] - before.status[KDP_TOO_SHORT], 3);
  }
  close_stranger(&s);
}

/* ---- Counters ---- */

typedef struct talker {
  int fd;
  _Atomic(bool) stop;
} talker;

static void *talk(void *context) {
  static const uint8_t bytes[1300];
  talker *t = context;
  while (!atomic_load(&t->stop)) {
    (void)!send(t->fd, bytes, sizeof bytes, 0);
    usleep(200);
  }
  return NULL;
}

static void never_less(const void *before, const void *after, size_t size) {
  const uint64_t *former = before, *latter = after;
  for (size_t i = 0; i < size / sizeof *former; i++)
    assert_true(latter[i] >= former[i]);
}

static void counters_can_be_read_while_traffic_runs(void **state) {
  wireguard_hosts t;
  wireguard_hosts_open(&t, rig_backend(state), false, 0);
  int receiver = wireguard_hosts_udp(&t, HOST_B, false, 4000);
  talker one = {.fd = wireguard_hosts_udp(&t, HOST_A, false, 0)};
  kdp_socket_address address;
  socklen_t size = wireguard_hosts_socket_address(true, false, 2, 4000, &address);
  assert_int_equal(connect(one.fd, &address.any, size), 0);
  pthread_t thread;
  assert_int_equal(pthread_create(&thread, NULL, talk, &one), 0);
  for (int host = 0; host < HOSTS; host++) {
    kdp_statistics engine, engine_before = {0};
    kdp_io_statistics io, io_before = {0};
    uint64_t changes = 0;
    for (int i = 0; i < 20000 && changes < 50; i++) {
      kdp_engine_statistics(t.host[host].engine, &engine);
      kdp_worker_statistics(t.host[host].worker, &io);
      never_less(&engine_before, &engine, sizeof engine);
      never_less(&io_before, &io, sizeof io);
      changes += engine.wire_in.packets + engine.wire_out.packets >
                 engine_before.wire_in.packets + engine_before.wire_out.packets;
      engine_before = engine;
      io_before = io;
      assert_int_equal(kdp_engine_room(t.host[host].engine, NULL).inside_mtu, 1420);
      usleep(1000);
    }
    assert_int_equal(changes, 50);
    assert_int_equal(engine.handshakes, 1);
  }
  atomic_store(&one.stop, true);
  pthread_join(thread, NULL);
  close(one.fd);
  close(receiver);
  wireguard_hosts_close(&t);
}

int main(void) {
  const char *missing = two_hosts_missing();
  if (missing) {
    printf("WireGuard worker: skipped: %s\n", missing);
    return 0;
  }
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(random_datagrams_of_every_size_are_counted_and_harm_nobody),
      cmocka_unit_test(what_is_joined_to_a_datagram_of_another_size_is_taken_apart),
      cmocka_unit_test(counters_can_be_read_while_traffic_runs),
  };
  return rig_run_with_each_backend("WireGuard worker", tests, sizeof tests / sizeof tests[0]);
}
