/* What the kernel says about a receive, and cutting joined ones. */
#define _GNU_SOURCE
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>

#include <cmocka.h>

#include "io/linux_compat.h"
#include "io/receive.h"

typedef struct message {
  struct msghdr header;
  kdp_socket_address name;
  _Alignas(struct cmsghdr) uint8_t control[256];
} message;

static void begin(message *m, bool ipv6) {
  memset(m, 0, sizeof *m);
  kdp_address remote = {.family = ipv6 ? KDP_FAMILY_IPV6 : KDP_FAMILY_IPV4, .port = 1234};
  remote.bytes[ipv6 ? 15 : 3] = 9;
  m->header = (struct msghdr){.msg_name = &m->name, .msg_control = m->control};
  m->header.msg_namelen = kdp_socket_address_write(&remote, &m->name);
}

static void add(message *m, int level, int type, const void *value, size_t size) {
  struct cmsghdr *c = (struct cmsghdr *)(m->control + m->header.msg_controllen);
  c->cmsg_level = level;
  c->cmsg_type = type;
  c->cmsg_len = CMSG_LEN(size);
  memcpy(CMSG_DATA(c), value, size);
  m->header.msg_controllen += CMSG_SPACE(size);
}

static void addresses_marks_and_sizes_are_read(void **state) {
  (void)state;
  message m;
  begin(&m, false);
  struct in_pktinfo info = {.ipi_ifindex = 3, .ipi_spec_dst.s_addr = htonl(0x0a000001)};
  uint8_t tos = 0xb8 | 3;
  int gro = 1000;
  add(&m, IPPROTO_IP, IP_PKTINFO, &info, sizeof info);
  add(&m, IPPROTO_IP, IP_TOS, &tos, sizeof tos);
  add(&m, IPPROTO_UDP, UDP_GRO, &gro, sizeof gro);
  kdp_received received = {.size = 2500};
  kdp_received_describe(&received, &m.header, 5);
  assert_int_equal(received.path.link, 5);
  assert_int_equal(received.path.remote.port, 1234);
  assert_int_equal(received.path.remote.bytes[3], 9);
  assert_int_equal(received.path.local.family, KDP_FAMILY_IPV4);
  assert_memory_equal(received.path.local.bytes, ((uint8_t[]){10, 0, 0, 1}), 4);
  assert_int_equal(received.path.ifindex, 3);
  assert_int_equal(received.ecn, 3);
  assert_int_equal(received.segment, 1000);
  assert_int_equal(kdp_received_count(&received), 3);

  begin(&m, true);
  struct in6_pktinfo info6 = {.ipi6_ifindex = 4};
  info6.ipi6_addr.s6_addr[15] = 7;
  int class = 0x02;
  add(&m, IPPROTO_IPV6, IPV6_PKTINFO, &info6, sizeof info6);
  add(&m, IPPROTO_IPV6, IPV6_TCLASS, &class, sizeof class);
  received = (kdp_received){.size = 100};
  kdp_received_describe(&received, &m.header, 0);
  assert_int_equal(received.path.local.bytes[15], 7);
  assert_int_equal(received.path.ifindex, 4);
  assert_int_equal(received.ecn, 2);
  assert_int_equal(received.segment, 100);
  assert_int_equal(kdp_received_count(&received), 1);
}

static void what_the_kernel_has_cut_is_not_used(void **state) {
  (void)state;
  const int flags[] = {MSG_TRUNC, MSG_CTRUNC};
  for (int i = 0; i < 2; i++) {
    message m;
    begin(&m, false);
    m.header.msg_flags = flags[i];
    kdp_received received = {.size = 100};
    kdp_received_describe(&received, &m.header, 0);
    assert_true(received.truncated);
  }
}

static void short_control_messages_are_not_read_past_their_end(void **state) {
  (void)state;
  message m;
  begin(&m, false);
  add(&m, IPPROTO_IP, IP_PKTINFO, "ab", 2);
  add(&m, IPPROTO_UDP, UDP_GRO, "a", 1);
  kdp_received received = {.size = 100};
  kdp_received_describe(&received, &m.header, 0);
  assert_int_equal(received.path.local.family, KDP_FAMILY_NONE);
  assert_int_equal(received.segment, 100);
}

static void a_joined_receive_is_cut_where_it_was_joined(void **state) {
  (void)state;
  kdp_host host = kdp_host_default();
  kdp_pool *pool = NULL;
  assert_int_equal(kdp_pool_create(2, &host, &pool), KDP_OK);
  kdp_packet packet[8];
  kdp_path path[2];
  kdp_batch batch = {.packet = packet, .capacity = 8, .path = path, .path_capacity = 2};
  kdp_received received = {.segment = 1000, .size = 2003, .head = 64, .tail = 500, .ecn = 1};
  uint8_t *slot = kdp_pool_take_slot(pool, &received.slot);
  assert_non_null(slot);
  received.data = slot + 64;
  assert_true(kdp_received_cut(&received, pool, &batch));
  assert_int_equal(batch.count, 3);
  const uint32_t sizes[] = {1000, 1000, 3};
  for (int i = 0; i < 3; i++) {
    assert_ptr_equal(packet[i].data, received.data + i * 1000);
    assert_int_equal(packet[i].size, sizes[i]);
    assert_int_equal(packet[i].head, i == 0 ? 64 : 0); /* before the others there is another's content */
    assert_int_equal(packet[i].tail, i == 2 ? 500 : 0);
    assert_int_equal(packet[i].ecn, 1);
    assert_int_equal((packet[i].flags & KDP_SAME_SIZE) != 0, i == 1);
  }
  batch.capacity = 5;
  assert_false(kdp_received_cut(&received, pool, &batch)); /* no room: nothing is appended */
  assert_int_equal(batch.count, 3);
  kdp_batch_release(&batch, pool);
  assert_int_equal(kdp_pool_free_count(pool), 2);
  kdp_pool_destroy(pool);
}

static void an_empty_datagram_is_a_datagram(void **state) {
  (void)state;
  kdp_received received = {0};
  assert_int_equal(kdp_received_count(&received), 1);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(addresses_marks_and_sizes_are_read),
      cmocka_unit_test(what_the_kernel_has_cut_is_not_used),
      cmocka_unit_test(short_control_messages_are_not_read_past_their_end),
      cmocka_unit_test(a_joined_receive_is_cut_where_it_was_joined),
      cmocka_unit_test(an_empty_datagram_is_a_datagram),
  };
  return cmocka_run_group_tests_name("receive", tests, NULL, NULL);
}
