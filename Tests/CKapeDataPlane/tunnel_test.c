/* Two workers between real TUNs on two hosts: TCP, UDP and ICMP of both families over both underlays, with each offload
   and without, and what the kernel does to a worker. The engine only wraps packets. */
#define _GNU_SOURCE
#include <errno.h>
#include <netinet/icmp6.h>
#include <netinet/in.h>
#include <netinet/ip_icmp.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "kdp/socket_address.h"
#include "kdp/worker.h"
#include "net/checksum.h"
#include "support/passthrough_engine.h"
#include "support/rig.h"
#include "support/rng.h"
#include "support/two_hosts.h"

static kdp_backend backend = KDP_BACKEND_EPOLL;

typedef struct end {
  kdp_tun tun;
  passthrough engine;
  kdp_worker *worker;
} end;

typedef struct tunnel {
  two_hosts hosts;
  end end[HOSTS];
} tunnel;

static kdp_address address_of(bool ipv6, uint8_t net, int host, uint16_t port) {
  kdp_address address = {.family = ipv6 ? KDP_FAMILY_IPV6 : KDP_FAMILY_IPV4, .port = port};
  if (ipv6) {
    address.bytes[0] = 0xfd;
    address.bytes[1] = net;
    address.bytes[15] = (uint8_t)(host + 1);
  } else {
    memcpy(address.bytes, (uint8_t[]){10, net == 0x99 ? 99 : 77, 0, (uint8_t)(host + 1)}, 4);
  }
  return address;
}

/* What a test wants of an engine before its worker runs. */
typedef void prepare_end(passthrough *engine, int host);

static void open_end(tunnel *t, int host, bool underlay_ipv6, uint32_t fallbacks, prepare_end *prepare) {
  end *e = &t->end[host];
  on_host(&t->hosts, host);
  if (kdp_tun_open("kt0", fallbacks, &e->tun) != KDP_OK) fail_msg("TUN: %s", strerror(errno));
  on_host_run(
      &t->hosts, host,
      "ip link set kt0 mtu 1420 up && ip addr add 10.77.0.%d/24 dev kt0 && ip addr add fd77::%d/64 dev kt0 nodad",
      host + 1, host + 1);
  passthrough_init(&e->engine);
  e->engine.path.remote = address_of(underlay_ipv6, 0x99, 1 - host, 4500);
  if (prepare) prepare(&e->engine, host);
  kdp_host memory = kdp_host_default();
  kdp_worker_config config = {
      .engine = &e->engine.engine, .tun = &e->tun, .backend = backend, .fallbacks = fallbacks, .listen_port = 4500};
  kdp_status status = kdp_worker_create(&config, &memory, &e->worker);
  if (status != KDP_OK) fail_msg("worker: %s, %s", kdp_status_describe(status)->name, strerror(errno));
  assert_int_equal(kdp_worker_start(e->worker), KDP_OK);
}

static void open_tunnel(tunnel *t, bool underlay_ipv6, uint32_t fallbacks) {
  memset(t, 0, sizeof *t);
  two_hosts_open(&t->hosts);
  open_end(t, HOST_A, underlay_ipv6, fallbacks, NULL);
  open_end(t, HOST_B, underlay_ipv6, fallbacks, NULL);
}

static kdp_status close_end(end *e) {
  kdp_worker_stop(e->worker);
  kdp_status status = kdp_worker_join(e->worker);
  kdp_worker_destroy(e->worker);
  kdp_tun_close(&e->tun);
  return status;
}

static void close_tunnel(tunnel *t) {
  for (int i = 0; i < HOSTS; i++)
    assert_int_equal(close_end(&t->end[i]), KDP_OK);
  two_hosts_close(&t->hosts);
  for (int i = 0; i < HOSTS; i++)
    assert_int_equal(t->end[i].engine.damaged, 0);
}

static int socket_on(tunnel *t, int host, int family, int type, int protocol) {
  on_host(&t->hosts, host);
  int fd = socket(family, type | SOCK_CLOEXEC, protocol);
  assert_true(fd >= 0);
  struct timeval limit = {.tv_sec = 5};
  assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit), 0);
  assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit), 0);
  return fd;
}

/* ---- TCP ---- */

typedef struct sender {
  int fd;
  size_t size;
  uint64_t seed;
} sender;

/* The byte that is followed by `left` - 1 others: no period that a size of ours could hide in. */
static uint8_t stream_byte(size_t left) {
  return (uint8_t)((left * UINT64_C(0x9e3779b97f4a7c15)) >> 56);
}

static void *send_stream(void *context) {
  const sender *s = context;
  rng random = {s->seed};
  static _Thread_local uint8_t piece[1 << 16];
  for (size_t left = s->size; left > 0;) {
    size_t size = 1 + rng_below(&random, sizeof piece);
    if (size > left) size = left;
    for (size_t i = 0; i < size; i++)
      piece[i] = stream_byte(left - i);
    for (size_t at = 0; at < size;) {
      ssize_t sent = send(s->fd, piece + at, size - at, MSG_NOSIGNAL);
      if (sent <= 0) return (void *)1;
      at += (size_t)sent;
    }
    left -= size;
  }
  shutdown(s->fd, SHUT_WR);
  return NULL;
}

static void stream(tunnel *t, bool ipv6, int from, size_t size) {
  int family = ipv6 ? AF_INET6 : AF_INET;
  int listener = socket_on(t, 1 - from, family, SOCK_STREAM, 0);
  kdp_address address = address_of(ipv6, 0x77, 1 - from, 0);
  kdp_socket_address at;
  socklen_t length = kdp_socket_address_write(&address, &at);
  assert_int_equal(bind(listener, &at.any, length), 0);
  assert_int_equal(listen(listener, 1), 0);
  assert_int_equal(getsockname(listener, &at.any, &length), 0);
  int client = socket_on(t, from, family, SOCK_STREAM, 0);
  if (connect(client, &at.any, length) != 0) fail_msg("connect: %s", strerror(errno));
  int server = accept(listener, NULL, NULL);
  assert_true(server >= 0);
  struct timeval limit = {.tv_sec = 5};
  assert_int_equal(setsockopt(server, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit), 0);
  sender s = {client, size, 7};
  pthread_t thread;
  assert_int_equal(pthread_create(&thread, NULL, send_stream, &s), 0);
  static uint8_t piece[1 << 16];
  size_t left = size;
  for (;;) {
    ssize_t got = recv(server, piece, sizeof piece, 0);
    if (got < 0) fail_msg("%zu bytes did not come: %s", left, strerror(errno));
    if (got == 0) break;
    for (ssize_t i = 0; i < got; i++)
      if (piece[i] != stream_byte(left - (size_t)i)) fail_msg("byte %zu differs", size - left + (size_t)i);
    left -= (size_t)got;
  }
  assert_int_equal(left, 0);
  void *result;
  pthread_join(thread, &result);
  assert_null(result);
  close(client);
  close(server);
  close(listener);
}

/* ---- UDP ---- */

enum { DATAGRAMS = 400, BURST = 50 };

static void datagrams(tunnel *t, bool ipv6, int from) {
  int family = ipv6 ? AF_INET6 : AF_INET;
  int receiver = socket_on(t, 1 - from, family, SOCK_DGRAM, 0);
  int buffer = 4 << 20;
  setsockopt(receiver, SOL_SOCKET, SO_RCVBUFFORCE, &buffer, sizeof buffer);
  kdp_address address = address_of(ipv6, 0x77, 1 - from, 0);
  kdp_socket_address at;
  socklen_t length = kdp_socket_address_write(&address, &at);
  assert_int_equal(bind(receiver, &at.any, length), 0);
  assert_int_equal(getsockname(receiver, &at.any, &length), 0);
  int client = socket_on(t, from, family, SOCK_DGRAM, 0);
  assert_int_equal(connect(client, &at.any, length), 0);
  rng random = {99}, sizes = {5};
  size_t size = 100;
  for (uint32_t i = 0; i < DATAGRAMS; i += BURST) {
    static uint8_t sent[BURST][3000], got[3000];
    size_t sent_size[BURST];
    for (uint32_t j = 0; j < BURST; j++) {
      /* Runs of equal sizes, now and then another, a few larger than the MTU: fragments inside. */
      if (rng_one_in(&sizes, 5)) size = rng_below(&sizes, rng_one_in(&sizes, 10) ? 3000 : 1300);
      sent_size[j] = size;
      rng_fill(&random, sent[j], size);
      assert_int_equal(send(client, sent[j], size, 0), size);
    }
    for (uint32_t j = 0; j < BURST; j++) {
      ssize_t received = recv(receiver, got, sizeof got, 0);
      if (received < 0) fail_msg("datagram %u did not come", i + j);
      assert_int_equal(received, sent_size[j]);
      assert_memory_equal(got, sent[j], sent_size[j]);
    }
  }
  close(client);
  close(receiver);
}

/* ---- ICMP ---- */

static void echoes(tunnel *t, bool ipv6, int from) {
  int fd = ipv6 ? socket_on(t, from, AF_INET6, SOCK_RAW, IPPROTO_ICMPV6)
                : socket_on(t, from, AF_INET, SOCK_RAW, IPPROTO_ICMP);
  kdp_address address = address_of(ipv6, 0x77, 1 - from, 0);
  kdp_socket_address at;
  socklen_t length = kdp_socket_address_write(&address, &at);
  if (ipv6) {
    struct icmp6_filter filter;
    ICMP6_FILTER_SETBLOCKALL(&filter);
    ICMP6_FILTER_SETPASS(ICMP6_ECHO_REPLY, &filter);
    assert_int_equal(setsockopt(fd, IPPROTO_ICMPV6, ICMP6_FILTER, &filter, sizeof filter), 0);
  }
  rng random = {3};
  for (uint16_t i = 0; i < 20; i++) {
    uint8_t message[1380], reply[2000];
    size_t size = 8 + rng_below(&random, sizeof message - 8 + 1);
    rng_fill(&random, message, size);
    memset(message, 0, 8);
    message[0] = ipv6 ? ICMP6_ECHO_REQUEST : ICMP_ECHO;
    message[5] = 77;
    message[7] = (uint8_t)i;
    uint16_t sum = (uint16_t)~kdp_checksum_fold(kdp_checksum_add(0, message, size));
    if (!ipv6) memcpy(message + 2, &sum, 2);
    assert_int_equal(sendto(fd, message, size, 0, &at.any, length), size);
    for (;;) {
      ssize_t got = recv(fd, reply, sizeof reply, 0);
      if (got < 0) fail_msg("echo %u did not come", i);
      const uint8_t *icmp = reply + (ipv6 ? 0 : 20);
      size_t icmp_size = (size_t)got - (ipv6 ? 0 : 20);
      if (icmp[0] != (ipv6 ? ICMP6_ECHO_REPLY : ICMP_ECHOREPLY) || icmp[5] != 77) continue;
      assert_int_equal(icmp_size, size);
      assert_memory_equal(icmp + 4, message + 4, size - 4);
      break;
    }
  }
  close(fd);
}

static void everything(uint32_t fallbacks, bool underlay_ipv6, size_t stream_size) {
  tunnel t;
  open_tunnel(&t, underlay_ipv6, fallbacks);
  for (int ipv6 = 0; ipv6 < 2; ipv6++)
    for (int from = 0; from < HOSTS; from++) {
      stream(&t, ipv6, from, stream_size);
      datagrams(&t, ipv6, from);
      echoes(&t, ipv6, from);
    }
  for (int i = 0; i < HOSTS; i++) {
    kdp_io_statistics statistics;
    kdp_worker_statistics(t.end[i].worker, &statistics);
    for (int status = 1; status < KDP_STATUS_COUNT; status++)
      if (statistics.status[status])
        fail_msg("%s: %lu", kdp_status_describe((kdp_status)status)->name, (unsigned long)statistics.status[status]);
    bool all = fallbacks == 0;
    if (all) {
      assert_true(statistics.segmented_sends > 0);
      assert_true(statistics.joined_reads > 0);
      assert_true(statistics.joined_writes > 0);
    }
    if (fallbacks & KDP_FALLBACK_NO_UDP_SEGMENT) assert_int_equal(statistics.segmented_sends, 0);
    if (fallbacks & KDP_FALLBACK_NO_UDP_GRO) assert_int_equal(statistics.joined_reads, 0);
    if (fallbacks & KDP_FALLBACK_NO_TUN_JOIN) assert_int_equal(statistics.joined_writes, 0);
    assert_int_equal(kdp_worker_active_fallbacks(t.end[i].worker), fallbacks);
  }
  close_tunnel(&t);
}

enum { MEGABYTE = 1 << 20 };

static void all_kinds_of_traffic_pass_over_ipv4(void **state) {
  (void)state;
  everything(0, false, 16 * MEGABYTE);
}
static void all_kinds_of_traffic_pass_over_ipv6(void **state) {
  (void)state;
  everything(0, true, 16 * MEGABYTE);
}
static void all_kinds_of_traffic_pass_under_each_fallback(void **state) {
  (void)state;
  for (uint32_t fallback = 1; fallback <= KDP_FALLBACK_NO_TUN_JOIN; fallback <<= 1)
    everything(fallback, false, MEGABYTE);
}
static void all_kinds_of_traffic_pass_without_any_offload(void **state) {
  (void)state;
  everything(2 * KDP_FALLBACK_NO_TUN_JOIN - 1, true, MEGABYTE);
}

/* ---- What the kernel does to a worker ---- */

static bool event_of(kdp_worker *worker, kdp_event_kind kind, kdp_event *event) {
  for (;;) {
    while (kdp_worker_next_event(worker, event))
      if (event->kind == kind) return true;
    struct pollfd one = {.fd = kdp_worker_event_fd(worker), .events = POLLIN};
    if (poll(&one, 1, 2000) != 1) return false;
  }
}

static void a_deleted_interface_ends_the_run(void **state) {
  (void)state;
  tunnel t;
  open_tunnel(&t, false, 0);
  on_host_run(&t.hosts, HOST_A, "ip link del kt0");
  kdp_event event;
  assert_true(event_of(t.end[HOST_A].worker, KDP_EVENT_INSIDE_GONE, &event));
  assert_int_equal(kdp_worker_join(t.end[HOST_A].worker), KDP_CLOSED);
  kdp_worker_destroy(t.end[HOST_A].worker);
  kdp_tun_close(&t.end[HOST_A].tun);
  assert_int_equal(close_end(&t.end[HOST_B]), KDP_OK);
  two_hosts_close(&t.hosts);
}

static void an_interface_goes_down_and_comes_up_again(void **state) {
  (void)state;
  tunnel t;
  open_tunnel(&t, false, 0);
  echoes(&t, false, HOST_A);
  on_host_run(&t.hosts, HOST_B, "ip link set kt0 down");
  /* What comes in meanwhile has nowhere to go; the worker neither ends nor spins. */
  int fd = socket_on(&t, HOST_A, AF_INET, SOCK_DGRAM, 0);
  kdp_address address = address_of(false, 0x77, HOST_B, 9);
  kdp_socket_address at;
  socklen_t length = kdp_socket_address_write(&address, &at);
  kdp_io_statistics before, after;
  kdp_worker_statistics(t.end[HOST_B].worker, &before);
  for (int i = 0; i < 20; i++)
    assert_int_equal(sendto(fd, "x", 1, 0, &at.any, length), 1);
  usleep(100000);
  kdp_worker_statistics(t.end[HOST_B].worker, &after);
  assert_int_equal(after.status[KDP_INSIDE_REFUSED] - before.status[KDP_INSIDE_REFUSED], 20);
  assert_true(after.waits - before.waits < 100);
  close(fd);
  on_host_run(&t.hosts, HOST_B, "ip link set kt0 up");
  echoes(&t, false, HOST_A);
  close_tunnel(&t);
}

static void a_route_with_a_smaller_mtu_is_learnt_and_nothing_is_lost(void **state) {
  (void)state;
  tunnel t;
  open_tunnel(&t, false, 0);
  on_host_run(&t.hosts, HOST_A, "ip route add 10.99.0.2/32 dev wire mtu 1280");
  stream(&t, false, HOST_A, MEGABYTE);
  kdp_event event;
  assert_true(event_of(t.end[HOST_A].worker, KDP_EVENT_FALLBACK, &event));
  assert_int_equal(event.value, KDP_FALLBACK_NO_UDP_SEGMENT);
  assert_true(kdp_address_equal(&event.address, &t.end[HOST_A].engine.path.remote));
  kdp_io_statistics statistics;
  kdp_worker_statistics(t.end[HOST_A].worker, &statistics);
  assert_int_equal(statistics.status[KDP_SEND_TOO_BIG], 0);
  close_tunnel(&t);
  assert_int_equal(t.end[HOST_A].engine.path_mtu, 1280);
}

/* A speaks to B's second address; B answers to whom it hears from. */
static void meet_at_the_second_address(passthrough *engine, int host) {
  if (host == HOST_A) {
    engine->path.remote.bytes[3] = 77;
  } else {
    engine->path = (kdp_path){0};
  }
  engine->learn = true;
}

static void the_source_address_sticks(void **state) {
  (void)state;
  tunnel t;
  memset(&t, 0, sizeof t);
  two_hosts_open(&t.hosts);
  on_host_run(&t.hosts, HOST_B, "ip addr add 10.99.0.77/24 dev wire");
  open_end(&t, HOST_B, false, 0, meet_at_the_second_address);
  open_end(&t, HOST_A, false, 0, meet_at_the_second_address);
  stream(&t, false, HOST_A, MEGABYTE);
  for (int i = 0; i < HOSTS; i++)
    assert_int_equal(close_end(&t.end[i]), KDP_OK);
  two_hosts_close(&t.hosts);
  assert_int_equal(t.end[HOST_A].engine.path.remote.bytes[3], 77);
  assert_int_equal(t.end[HOST_B].engine.path.local.bytes[3], 77);
}

static void mark_by_host(passthrough *engine, int host) {
  engine->ecn = host == HOST_A ? 2 : 3;
}

static void congestion_marks_cross_the_wire(void **state) {
  (void)state;
  for (int ipv6 = 0; ipv6 < 2; ipv6++) {
    tunnel t;
    memset(&t, 0, sizeof t);
    two_hosts_open(&t.hosts);
    open_end(&t, HOST_A, ipv6, 0, mark_by_host);
    open_end(&t, HOST_B, ipv6, 0, mark_by_host);
    stream(&t, false, HOST_A, MEGABYTE);
    close_tunnel(&t);
    assert_int_equal(t.end[HOST_B].engine.last_ecn, 2);
    assert_int_equal(t.end[HOST_A].engine.last_ecn, 3);
  }
}

int main(void) {
  const char *missing = two_hosts_missing();
  if (missing) {
    printf("tunnel: skipped: %s\n", missing);
    return 0;
  }
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(all_kinds_of_traffic_pass_over_ipv4),
      cmocka_unit_test(all_kinds_of_traffic_pass_over_ipv6),
      cmocka_unit_test(all_kinds_of_traffic_pass_under_each_fallback),
      cmocka_unit_test(all_kinds_of_traffic_pass_without_any_offload),
      cmocka_unit_test(a_deleted_interface_ends_the_run),
      cmocka_unit_test(an_interface_goes_down_and_comes_up_again),
      cmocka_unit_test(a_route_with_a_smaller_mtu_is_learnt_and_nothing_is_lost),
      cmocka_unit_test(the_source_address_sticks),
      cmocka_unit_test(congestion_marks_cross_the_wire),
  };
  int failed = cmocka_run_group_tests_name("tunnel over epoll", tests, NULL, NULL);
  if (!rig_has_uring()) {
    printf("tunnel: skipped over io_uring: this kernel does not give it to us\n");
    return failed;
  }
  backend = KDP_BACKEND_URING;
  return failed + cmocka_run_group_tests_name("tunnel over io_uring", tests, NULL, NULL);
}
