/* The embedding example, at both ends of a wire: two programs, each with a UDP socket of its own and a socket pair
   where a TUN would be. */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <cmocka.h>

#include "kdp.h"

kdp_status embed(int inside, int udp, const kdp_wireguard_change *peers);
#include "../Examples/embed.c"

#include "support/wireguard_node.h"

enum { WAIT_SECONDS = 20 };

typedef struct program {
  node *end; /* lends its keys */
  int inside[2], udp;
  kdp_wireguard_prefix_change prefix;
  kdp_wireguard_peer_change peer;
  kdp_wireguard_change change;
  pthread_t thread;
  kdp_status status;
} program;

static int bound_socket(bool ipv6, kdp_address *address) {
  kdp_address loopback = {.family = ipv6 ? KDP_FAMILY_IPV6 : KDP_FAMILY_IPV4, .bytes = {127, 0, 0, 1}};
  if (ipv6) memcpy(loopback.bytes, (uint8_t[16]){[15] = 1}, 16);
  kdp_socket_address name;
  socklen_t size = kdp_socket_address_write(&loopback, &name);
  int fd = socket(name.any.sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (fd < 0 || bind(fd, &name.any, size) != 0) return -1;
  assert_int_equal(getsockname(fd, &name.any, &size), 0);
  kdp_socket_address_read(&name, address);
  return fd;
}

static void make(program *p, uint8_t number, bool ipv6) {
  *p = (program){.end = node_make(number, NULL, NULL)};
  assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, p->inside), 0);
  struct timeval limit = {.tv_sec = WAIT_SECONDS};
  assert_int_equal(setsockopt(p->inside[0], SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit), 0);
  p->udp = bound_socket(ipv6, &p->end->address);
  if (p->udp < 0) skip();
  assert_int_equal(kdp_embed_prepare(p->udp), KDP_OK);
}

static void *run(void *context) {
  program *p = context;
  p->status = embed(p->inside[1], p->udp, &p->change);
  return NULL;
}

static void start(program *p, const program *other, bool knows_endpoint) {
  p->prefix = node_prefix(other->end);
  p->peer = node_peer(other->end, knows_endpoint, &p->prefix, 1);
  p->change = (kdp_wireguard_change){.fields = KDP_WIREGUARD_SET_PRIVATE_KEY, .peer = &p->peer, .peer_count = 1};
  memcpy(p->change.private_key, p->end->private_key, sizeof p->change.private_key);
  assert_int_equal(pthread_create(&p->thread, NULL, run, p), 0);
}

static void expect(const program *from, const program *to, uint32_t payload) {
  uint8_t packet[4096], got[4096];
  uint32_t size = node_packet(packet, from->end, to->end, payload);
  assert_int_equal(write(from->inside[0], packet, size), size);
  assert_int_equal(read(to->inside[0], got, sizeof got), size);
  assert_memory_equal(got, packet, size);
}

static void stop(program *p) {
  close(p->inside[0]);
  assert_int_equal(pthread_join(p->thread, NULL), 0);
  assert_int_equal(p->status, KDP_OK);
  close(p->inside[1]);
  close(p->udp);
  node_free(p->end);
}

static void the_example_carries_packets_both_ways(bool ipv6) {
  program near, far;
  make(&near, 1, ipv6);
  make(&far, 2, ipv6);
  start(&far, &near, false);
  start(&near, &far, true);
  for (uint32_t i = 0; i < 300; i++) {
    expect(&near, &far, i * 4);
    expect(&far, &near, i * 3);
  }
  stop(&near);
  stop(&far);
}

static void the_example_carries_packets_both_ways_over_ipv4(void **state) {
  (void)state;
  the_example_carries_packets_both_ways(false);
}
static void the_example_carries_packets_both_ways_over_ipv6(void **state) {
  (void)state;
  the_example_carries_packets_both_ways(true);
}

/* The other program is not there yet: refused datagrams are no reason to end, and the tunnel comes up once it is. */
static void the_example_outlives_a_peer_that_is_not_there(void **state) {
  (void)state;
  program near, far;
  make(&near, 1, false);
  make(&far, 2, false);
  kdp_socket_address name;
  socklen_t size = kdp_socket_address_write(&far.end->address, &name);
  assert_int_equal(connect(near.udp, &name.any, size), 0); /* so that refusals are told */
  close(far.udp);
  start(&near, &far, true);
  uint8_t packet[200];
  uint32_t length = node_packet(packet, near.end, far.end, 100);
  assert_int_equal(write(near.inside[0], packet, length), length);
  kdp_address again;
  far.udp = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  assert_int_equal(bind(far.udp, &name.any, size), 0);
  size = sizeof name;
  assert_int_equal(getsockname(far.udp, &name.any, &size), 0);
  kdp_socket_address_read(&name, &again);
  assert_true(kdp_address_equal(&again, &far.end->address));
  start(&far, &near, true);
  uint8_t got[256];
  assert_int_equal(read(far.inside[0], got, sizeof got), length); /* it was staged */
  assert_memory_equal(got, packet, length);
  expect(&far, &near, 50);
  stop(&near);
  stop(&far);
}

static void a_change_that_is_refused_ends_it(void **state) {
  (void)state;
  const kdp_wireguard_peer_change peer = {.fields = 0};
  const kdp_wireguard_change change = {.peer = &peer, .peer_count = 1};
  assert_int_equal(embed(-1, -1, &change), KDP_LOW_ORDER_KEY);
}

/* ---- The socket's side ---- */

/* A datagram that leaves from another address than the wildcard's first, with its ECN field: both are seen at the other
   end, by way of a second tunnel's socket. */
static void a_socket_tells_addresses_and_congestion_and_sends_with_them(void **state) {
  (void)state;
  kdp_address to;
  int from = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), at = bound_socket(false, &to);
  assert_true(from >= 0 && at >= 0);
  int on = 1;
  assert_int_equal(setsockopt(at, IPPROTO_IP, IP_RECVTOS, &on, sizeof on), 0);
  kdp_wireguard_change change = {.fields = 0};
  kdp_embed *tunnel = NULL;
  assert_int_equal(kdp_embed_wireguard(NULL, &change, &tunnel), KDP_OK);
  uint8_t bytes[] = {1, 2, 3};
  kdp_embed_output output = {.kind = KDP_EMBED_SEND,
                             .packet = {.data = bytes, .size = sizeof bytes, .ecn = 3, .flags = KDP_THRICE},
                             .path = {.remote = to, .local = {.family = KDP_FAMILY_IPV4, .bytes = {127, 0, 0, 7}}}};
  assert_int_equal(kdp_embed_send(tunnel, from, &output), KDP_OK);
  for (int copy = 0; copy < 3; copy++) {
    uint8_t got[16], control[64];
    kdp_socket_address name;
    struct iovec iov = {got, sizeof got};
    struct msghdr message = {.msg_name = &name,
                             .msg_namelen = sizeof name,
                             .msg_iov = &iov,
                             .msg_iovlen = 1,
                             .msg_control = control,
                             .msg_controllen = sizeof control};
    assert_int_equal(recvmsg(at, &message, MSG_DONTWAIT), sizeof bytes);
    assert_memory_equal(got, bytes, sizeof bytes);
    kdp_address sender;
    kdp_socket_address_read(&name, &sender);
    assert_int_equal(sender.bytes[3], 7);
    struct cmsghdr *tos = CMSG_FIRSTHDR(&message);
    assert_non_null(tos);
    assert_int_equal(*CMSG_DATA(tos) & 3, 3);
  }
  /* An address that this host does not have: without it, then. */
  output.path.local.bytes[0] = 192;
  output.packet.flags = 0;
  assert_int_equal(kdp_embed_send(tunnel, from, &output), KDP_OK);
  assert_int_equal(recv(at, bytes, sizeof bytes, MSG_DONTWAIT), sizeof bytes);
  /* Nowhere to go, and told so. */
  output.path.remote.port = 0;
  assert_int_equal(kdp_embed_send(tunnel, from, &output), KDP_SEND_REFUSED);
  assert_int_not_equal(errno, 0);
  output.kind = KDP_EMBED_DELIVER;
  assert_int_equal(kdp_embed_send(tunnel, -1, &output), KDP_OK);
  kdp_embed_destroy(tunnel);
  close(from);
  close(at);
}

static void a_descriptor_that_is_no_socket_is_told(void **state) {
  (void)state;
  kdp_wireguard_change change = {.fields = 0};
  kdp_embed *tunnel = NULL;
  assert_int_equal(kdp_embed_wireguard(NULL, &change, &tunnel), KDP_OK);
  assert_int_equal(kdp_embed_prepare(-1), KDP_SYSTEM);
  assert_int_equal(kdp_embed_receive(tunnel, -1), KDP_SYSTEM);
  assert_int_equal(errno, EBADF);
  kdp_embed_destroy(tunnel);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_example_carries_packets_both_ways_over_ipv4),
      cmocka_unit_test(the_example_carries_packets_both_ways_over_ipv6),
      cmocka_unit_test(the_example_outlives_a_peer_that_is_not_there),
      cmocka_unit_test(a_change_that_is_refused_ends_it),
      cmocka_unit_test(a_socket_tells_addresses_and_congestion_and_sends_with_them),
      cmocka_unit_test(a_descriptor_that_is_no_socket_is_told),
  };
  return cmocka_run_group_tests_name("embedding example", tests, NULL, NULL);
}
