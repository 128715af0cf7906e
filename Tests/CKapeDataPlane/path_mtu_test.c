/* The path's MTU from the kernel's route to the application inside, and what else the application is told: with the
   real kernel on both sides of the worker and the WireGuard engine between. A probe is a datagram with DF that the
   sender's kernel does not hold back for what it has learnt itself, so that each of them asks the tunnel. */
#define _GNU_SOURCE
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <linux/errqueue.h> /* wants struct timespec */

#include <cmocka.h>

#include "support/rig.h"
#include "support/wireguard_hosts.h"

/* What an application learns from its socket's error queue. */
typedef struct told {
  uint8_t type, code; /* of the ICMP message; 0: none came */
  uint32_t mtu;
} told;

enum { PORT = 4000, PROBE = 1400 /* bytes of the IP packet */, ROUTE_MTU = 1380 };

static void demand(int fd, int level, int name, int value) {
  assert_int_equal(setsockopt(fd, level, name, &value, sizeof value), 0);
}

static int probing_socket(wireguard_hosts *t, int host, bool ipv6, uint8_t target) {
  int fd = wireguard_hosts_udp(t, host, ipv6, 0);
  demand(fd, ipv6 ? IPPROTO_IPV6 : IPPROTO_IP, ipv6 ? IPV6_RECVERR : IP_RECVERR, 1);
  demand(fd, ipv6 ? IPPROTO_IPV6 : IPPROTO_IP, ipv6 ? IPV6_MTU_DISCOVER : IP_MTU_DISCOVER, IP_PMTUDISC_PROBE);
  kdp_socket_address address;
  socklen_t size = wireguard_hosts_socket_address(true, ipv6, target, PORT, &address);
  assert_int_equal(connect(fd, &address.any, size), 0);
  return fd;
}

static told read_error(int fd) {
  told answer = {0};
  uint8_t control[512], bytes[PROBE];
  struct iovec iov = {bytes, sizeof bytes};
  struct msghdr message = {.msg_iov = &iov, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
  if (recvmsg(fd, &message, MSG_ERRQUEUE | MSG_DONTWAIT) < 0) return answer;
  for (struct cmsghdr *c = CMSG_FIRSTHDR(&message); c; c = CMSG_NXTHDR(&message, c)) {
    struct sock_extended_err error;
    memcpy(&error, CMSG_DATA(c), sizeof error);
    if (error.ee_origin == SO_EE_ORIGIN_ICMP || error.ee_origin == SO_EE_ORIGIN_ICMP6)
      answer = (told){error.ee_type, error.ee_code, error.ee_info};
  }
  return answer;
}

/* Sends one packet of `size` bytes to inside address `target` every 50 ms until something is said about it, `times` at
   most. */
static told probe(wireguard_hosts *t, int host, bool ipv6, uint8_t target, size_t size, int times) {
  static const uint8_t zeros[PROBE];
  told answer = {0};
  int fd = probing_socket(t, host, ipv6, target);
  for (int i = 0; i < times && answer.type == 0; i++) {
    (void)!send(fd, zeros, size - (ipv6 ? 48 : 28), 0); /* an error of the packet before may be said here instead */
    struct pollfd one = {.fd = fd};
    if (poll(&one, 1, 50) == 1) answer = read_error(fd);
  }
  close(fd);
  return answer;
}

enum { PATIENCE = 100 };

static void expect_too_big(wireguard_hosts *t, bool ipv6) {
  uint32_t fits = ROUTE_MTU - (t->underlay_ipv6 ? 40 : 20) - 8 - 32;
  told answer = probe(t, HOST_A, ipv6, 2, PROBE, PATIENCE);
  assert_int_equal(answer.type, ipv6 ? 2 : 3);
  assert_int_equal(answer.code, ipv6 ? 0 : 4);
  assert_int_equal(answer.mtu, fits);
  /* And what is said to fit does. */
  answer = probe(t, HOST_A, ipv6, 2, fits, 2);
  assert_int_equal(answer.type, 0);
}

static void set_route(wireguard_hosts *t, int mtu) {
  on_host_run(&t->hosts, HOST_A, "ip route replace %s dev wire mtu %d",
              t->underlay_ipv6 ? "fd99::2/128" : "10.99.0.2/32", mtu);
}

typedef struct tunnel {
  wireguard_hosts t;
  int receiver[2]; /* so that nothing is said about ports */
} tunnel;

static void open_tunnel(tunnel *u, void **state, bool underlay_ipv6, uint32_t fallbacks) {
  wireguard_hosts_open(&u->t, rig_backend(state), underlay_ipv6, fallbacks);
  for (int ipv6 = 0; ipv6 < 2; ipv6++) {
    u->receiver[ipv6] = wireguard_hosts_udp(&u->t, HOST_B, ipv6, PORT);
    wireguard_hosts_pass(&u->t, HOST_A, ipv6);
  }
}

static void close_tunnel(tunnel *u) {
  close(u->receiver[0]);
  close(u->receiver[1]);
  wireguard_hosts_close(&u->t);
}

static void change_network(wireguard_hosts *t, int host, kdp_out *out, kdp_now now) {
  kdp_engine_network_changed(kdp_engine_lane(t->host[host].engine, 0), out, now);
}

/* The route is small from the beginning, or becomes so and the engine is told that something has changed. */
static void a_small_route_is_told_to_applications(void **state, uint32_t fallbacks) {
  for (int underlay = 0; underlay < 2; underlay++) {
    tunnel u;
    open_tunnel(&u, state, underlay, fallbacks);
    assert_int_equal(probe(&u.t, HOST_A, false, 2, PROBE, 3).type, 0);
    set_route(&u.t, ROUTE_MTU);
    wireguard_hosts_call(&u.t, HOST_A, change_network);
    for (int ipv6 = 0; ipv6 < 2; ipv6++)
      expect_too_big(&u.t, ipv6);
    close_tunnel(&u);
  }
}

static void a_small_route_is_told_to_applications_of_both_families(void **state) {
  a_small_route_is_told_to_applications(state, 0);
}
static void a_small_route_is_learnt_without_segmented_sends(void **state) {
  a_small_route_is_told_to_applications(state, KDP_FALLBACK_NO_UDP_SEGMENT);
}

static void it_is_learnt_again_when_the_network_has_changed(void **state) {
  tunnel u;
  open_tunnel(&u, state, false, 0);
  set_route(&u.t, ROUTE_MTU);
  for (int i = 0; i < 3; i++) {
    wireguard_hosts_call(&u.t, HOST_A, change_network);
    expect_too_big(&u.t, false);
  }
  /* A network that takes more is believed as well, from the second packet on. */
  set_route(&u.t, 1500);
  wireguard_hosts_call(&u.t, HOST_A, change_network);
  assert_int_equal(probe(&u.t, HOST_A, false, 2, PROBE, 1).mtu, ROUTE_MTU - 60);
  assert_int_equal(probe(&u.t, HOST_A, false, 2, PROBE, 3).type, 0);
  close_tunnel(&u);
}

static void it_is_learnt_again_when_an_endpoint_comes_back(void **state) {
  tunnel u;
  open_tunnel(&u, state, false, 0);
  set_route(&u.t, ROUTE_MTU);
  for (int i = 0; i < 3; i++) {
    wireguard_hosts_move_peer(&u.t, HOST_A, 99);
    wireguard_hosts_move_peer(&u.t, HOST_A, 2);
    expect_too_big(&u.t, i % 2 == 1);
  }
  close_tunnel(&u);
}

static void what_nobody_has_is_unreachable(void **state) {
  tunnel u;
  open_tunnel(&u, state, false, 0);
  for (int ipv6 = 0; ipv6 < 2; ipv6++) {
    told answer = probe(&u.t, HOST_A, ipv6, 9, 100, PATIENCE);
    assert_int_equal(answer.type, ipv6 ? 1 : 3);
    assert_int_equal(answer.code, ipv6 ? 3 : 1);
  }
  close_tunnel(&u);
}

int main(void) {
  const char *missing = two_hosts_missing();
  if (missing) {
    printf("path MTU: skipped: %s\n", missing);
    return 0;
  }
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_small_route_is_told_to_applications_of_both_families),
      cmocka_unit_test(a_small_route_is_learnt_without_segmented_sends),
      cmocka_unit_test(it_is_learnt_again_when_the_network_has_changed),
      cmocka_unit_test(it_is_learnt_again_when_an_endpoint_comes_back),
      cmocka_unit_test(what_nobody_has_is_unreachable),
  };
  return rig_run_with_each_backend("path MTU", tests, sizeof tests / sizeof tests[0]);
}
