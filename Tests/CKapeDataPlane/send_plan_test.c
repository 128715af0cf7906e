/* Grouping of packets into sends: what shares a segmented send and what does not, with order kept within a path. */
#define _GNU_SOURCE
#include <errno.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "io/linux_compat.h"
#include "io/send.h"
#include "support/rng.h"

typedef struct fixture {
  kdp_packet packet[KDP_BATCH_CAPACITY];
  kdp_path path[KDP_BATCH_PATHS];
  kdp_batch batch;
  kdp_route_table routes;
  kdp_send_rules rules;
  kdp_send_plan plan;
  uint8_t bytes[KDP_BATCH_CAPACITY][1500];
} fixture;

static fixture f;

static int reset(void **state) {
  (void)state;
  memset(&f, 0, sizeof f);
  f.batch =
      (kdp_batch){.packet = f.packet, .capacity = KDP_BATCH_CAPACITY, .path = f.path, .path_capacity = KDP_BATCH_PATHS};
  f.rules = (kdp_send_rules){
      .usable = {true, true}, .segment = {true, true}, .segments_most = KDP_SEND_SEGMENTS, .routes = &f.routes};
  return 0;
}

static kdp_path path_to(bool ipv6, uint8_t last) {
  kdp_path path = {.remote = {.family = ipv6 ? KDP_FAMILY_IPV6 : KDP_FAMILY_IPV4, .port = 51820}};
  path.remote.bytes[ipv6 ? 15 : 3] = last;
  return path;
}

static kdp_packet *add(const kdp_path *path, uint32_t size) {
  uint16_t index = kdp_batch_path(&f.batch, path);
  kdp_packet packet = {.data = f.bytes[f.batch.count], .size = size, .path = index, .slot = KDP_NO_SLOT};
  assert_true(kdp_batch_push(&f.batch, &packet));
  return &f.packet[f.batch.count - 1];
}

static void plan(void) {
  kdp_send_plan_make(&f.plan, &f.batch, f.batch.count, &f.rules);
}

static uint32_t bytes_of(uint32_t item) {
  uint32_t bytes = 0;
  for (size_t i = 0; i < f.plan.message[item].msg_hdr.msg_iovlen; i++)
    bytes += (uint32_t)f.plan.message[item].msg_hdr.msg_iov[i].iov_len;
  return bytes;
}

static const struct cmsghdr *control_of(uint32_t item, int level, int type) {
  struct msghdr *message = &f.plan.message[item].msg_hdr;
  for (struct cmsghdr *c = CMSG_FIRSTHDR(message); c; c = CMSG_NXTHDR(message, c))
    if (c->cmsg_level == level && c->cmsg_type == type) return c;
  return NULL;
}

static void equal_packets_and_a_shorter_last_one_are_one_send(void **state) {
  (void)state;
  kdp_path path = path_to(false, 1);
  for (int i = 0; i < 44; i++)
    add(&path, 1452);
  add(&path, 300);
  add(&path, 300); /* behind a shorter one nothing more may follow */
  plan();
  assert_int_equal(f.plan.item_count, 2);
  assert_int_equal(f.plan.item[0].count, 45);
  assert_int_equal(f.plan.item[0].segment, 1452);
  assert_int_equal(f.plan.item[1].count, 1);
  assert_int_equal(f.plan.item[1].segment, 0);
  assert_non_null(control_of(0, IPPROTO_UDP, UDP_SEGMENT));
  assert_null(f.plan.message[1].msg_hdr.msg_control);
}

static void a_longer_packet_begins_another_send(void **state) {
  (void)state;
  kdp_path path = path_to(false, 1);
  add(&path, 100);
  add(&path, 101);
  add(&path, 101);
  plan();
  assert_int_equal(f.plan.item_count, 2);
  assert_int_equal(f.plan.item[1].count, 2);
}

static void paths_that_alternate_are_grouped_apart(void **state) {
  (void)state;
  kdp_path one = path_to(false, 1), two = path_to(true, 2);
  for (int i = 0; i < 20; i++)
    add(i % 2 ? &two : &one, 500);
  plan();
  assert_int_equal(f.batch.path_count, 20); /* the engine only compares with the last one */
  assert_int_equal(f.plan.item_count, 2);
  assert_int_equal(f.plan.item[0].count, 10);
  assert_int_equal(f.plan.item[1].count, 10);
  assert_int_equal(f.plan.item[0].socket, KDP_UDP_IPV4);
  assert_int_equal(f.plan.item[1].socket, KDP_UDP_IPV6);
}

static void limits_of_bytes_and_segments_are_kept(void **state) {
  (void)state;
  kdp_path path = path_to(false, 1);
  for (int i = 0; i < 50; i++)
    add(&path, 1452);
  plan();
  assert_int_equal(f.plan.item_count, 2);
  assert_int_equal(f.plan.item[0].count, 45); /* 46 would be more than 65,507 bytes */
  reset(NULL);
  for (int i = 0; i < 200; i++)
    add(&path, 100);
  plan();
  assert_int_equal(f.plan.item_count, 2);
  assert_int_equal(f.plan.item[0].count, 128);
  f.rules.segments_most = 64;
  plan();
  assert_int_equal(f.plan.item_count, 4);
}

static void marks_are_kept_apart_and_written(void **state) {
  (void)state;
  kdp_path path = path_to(false, 1);
  for (int i = 0; i < 6; i++)
    add(&path, 100)->ecn = i < 3 ? 2 : 0;
  plan();
  assert_int_equal(f.plan.item_count, 2);
  const struct cmsghdr *mark = control_of(0, IPPROTO_IP, IP_TOS);
  assert_non_null(mark);
  int value;
  memcpy(&value, CMSG_DATA(mark), sizeof value);
  assert_int_equal(value, 2);
  assert_null(control_of(1, IPPROTO_IP, IP_TOS));
}

static void the_source_is_written_for_its_family_only(void **state) {
  (void)state;
  kdp_path four = path_to(false, 1), six = path_to(true, 1);
  four.local = (kdp_address){.family = KDP_FAMILY_IPV4, .bytes = {10, 0, 0, 9}};
  four.ifindex = 7;
  six.local = (kdp_address){.family = KDP_FAMILY_IPV6, .bytes = {0xfd, [15] = 9}};
  six.ifindex = 8;
  add(&four, 100);
  add(&six, 100);
  plan();
  struct in_pktinfo info;
  memcpy(&info, CMSG_DATA(control_of(0, IPPROTO_IP, IP_PKTINFO)), sizeof info);
  assert_int_equal(info.ipi_ifindex, 7);
  assert_memory_equal(&info.ipi_spec_dst, four.local.bytes, 4);
  struct in6_pktinfo info6;
  memcpy(&info6, CMSG_DATA(control_of(1, IPPROTO_IPV6, IPV6_PKTINFO)), sizeof info6);
  assert_int_equal(info6.ipi6_ifindex, 8);
  assert_memory_equal(&info6.ipi6_addr, six.local.bytes, 16);
}

static void probes_go_alone_and_triples_three_times(void **state) {
  (void)state;
  kdp_path path = path_to(false, 1);
  add(&path, 100);
  add(&path, 100)->flags = KDP_DF;
  add(&path, 100);
  add(&path, 100)->flags = KDP_THRICE;
  add(&path, 100);
  plan();
  assert_int_equal(f.plan.item_count, 7);
  assert_false(f.plan.item[0].df);
  assert_true(f.plan.item[1].df);
  for (int i = 3; i < 6; i++) {
    assert_int_equal(f.plan.item[i].count, 1);
    assert_int_equal(f.plan.order[f.plan.item[i].first], 3);
    assert_ptr_equal(f.plan.message[i].msg_hdr.msg_iov->iov_base, f.packet[3].data);
  }
  assert_int_equal(f.plan.order[f.plan.item[6].first], 4);
}

static void a_refused_route_goes_unsegmented_above_what_it_takes(void **state) {
  (void)state;
  kdp_path path = path_to(false, 1), other = path_to(false, 2);
  kdp_route_refuse(&f.routes, &path, 1452, 1280, 0);
  for (int i = 0; i < 4; i++)
    add(&path, 1452);
  for (int i = 0; i < 4; i++)
    add(&other, 1452);
  for (int i = 0; i < 4; i++)
    add(&path, 1252); /* with 28 bytes of headers: just what the route takes */
  plan();
  assert_int_equal(f.plan.item_count, 4 + 1 + 1);
  assert_int_equal(f.plan.item[5].segment, 1252);
  assert_int_equal(f.plan.item[5].count, 4);
}

static void what_cannot_be_sent_says_so_at_once(void **state) {
  (void)state;
  kdp_path nowhere = {0}, six = path_to(true, 1), no_port = path_to(false, 1);
  /* A peer may send from port 0. The kernel refuses it with EINVAL, which must not be blamed on segmentation. */
  no_port.remote.port = 0;
  f.rules.usable[KDP_UDP_IPV6] = false;
  add(&nowhere, 100);
  add(&six, 100);
  add(&no_port, 100);
  plan();
  assert_int_equal(f.plan.item[0].error, EDESTADDRREQ);
  assert_int_equal(f.plan.item[1].error, EAFNOSUPPORT);
  assert_int_equal(f.plan.item[2].error, EDESTADDRREQ);
}

/* Whatever the mixture: every packet in exactly one send, in order within its path, sizes as segmentation wants them.
 */
static void random_batches_keep_every_rule(void **state) {
  (void)state;
  rng random = {1};
  for (int round = 0; round < 500; round++) {
    reset(NULL);
    uint32_t paths = 1 + rng_below(&random, 5), size = 200;
    for (uint32_t i = 0; i < 200; i++) {
      kdp_path path = path_to(rng_one_in(&random, 3), (uint8_t)rng_below(&random, paths));
      if (rng_one_in(&random, 6)) size = rng_below(&random, 1400);
      if (f.batch.path_count == f.batch.path_capacity && !kdp_path_equal(&path, &f.path[f.batch.path_count - 1])) break;
      add(&path, size)->ecn = rng_one_in(&random, 20) ? 1 : 0;
    }
    plan();
    assert_int_equal(f.plan.packet_count, f.batch.count);
    bool seen[KDP_BATCH_CAPACITY] = {false};
    int newest[KDP_BATCH_PATHS];
    memset(newest, -1, sizeof newest);
    for (uint32_t i = 0; i < f.plan.item_count; i++) {
      const kdp_send_item *item = &f.plan.item[i];
      uint32_t bytes = 0;
      for (uint32_t j = 0; j < item->count; j++) {
        uint16_t index = f.plan.order[item->first + j];
        assert_false(seen[index]);
        seen[index] = true;
        assert_true(newest[item->path] < index);
        newest[item->path] = index;
        const kdp_packet *packet = &f.packet[index];
        assert_true(kdp_path_equal(&f.path[packet->path], &f.path[item->path]));
        assert_int_equal(packet->ecn, item->ecn);
        bool last = j + 1 == item->count;
        if (item->segment) assert_true(last ? packet->size <= item->segment : packet->size == item->segment);
        bytes += packet->size;
      }
      assert_int_equal(bytes, bytes_of(i));
      assert_true(bytes <= KDP_SEND_BYTES && item->count <= KDP_SEND_SEGMENTS);
    }
    for (uint32_t i = 0; i < f.batch.count; i++)
      assert_true(seen[i]);
  }
}

static void routes_forget_the_oldest_and_are_asked_again(void **state) {
  (void)state;
  kdp_route_table table = {0};
  for (uint32_t i = 0; i <= KDP_ROUTES; i++) {
    kdp_path path = path_to(false, (uint8_t)i);
    kdp_route_refuse(&table, &path, 1400, 0, i);
  }
  assert_int_equal(table.count, KDP_ROUTES);
  kdp_path first = path_to(false, 0), second = path_to(false, 1);
  assert_int_equal(kdp_route_largest(&table, &first.remote), UINT16_MAX);
  assert_int_equal(kdp_route_largest(&table, &second.remote), 1399);
  assert_int_equal(kdp_route_deadline(&table), 1 + KDP_ROUTE_RECHECK);
  kdp_route_refuse(&table, &second, 1399, 1300, 100); /* refused again, and the route says what it takes */
  assert_int_equal(kdp_route_largest(&table, &second.remote), 1300 - 28);
}

static void what_a_route_says_later_takes_a_refusal_back(void **state) {
  (void)state;
  kdp_route_table table = {0};
  kdp_path path = path_to(false, 1);
  kdp_route_learn(&table, &path.remote, 1300, 0);
  assert_int_equal(table.count, 0); /* nothing was refused */
  kdp_route_refuse(&table, &path, 1452, 1300, 0);
  kdp_route_learn(&table, &path.remote, 1300, 5);
  kdp_route_learn(&table, &path.remote, 0, 6); /* no route at the moment */
  assert_int_equal(kdp_route_largest(&table, &path.remote), 1300 - 28);
  assert_int_equal(kdp_route_deadline(&table), 5 + KDP_ROUTE_RECHECK);
  kdp_route_learn(&table, &path.remote, 1400, 7);
  assert_int_equal(table.count, 0);
  kdp_route_refuse(&table, &path, 1452, 0, 10);
  kdp_route_learn(&table, &path.remote, 0, 9 + KDP_ROUTE_RECHECK);
  assert_int_equal(table.count, 1);
  kdp_route_learn(&table, &path.remote, 0, 10 + KDP_ROUTE_RECHECK); /* tried again rather than given up for good */
  assert_int_equal(table.count, 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup(equal_packets_and_a_shorter_last_one_are_one_send, reset),
      cmocka_unit_test_setup(a_longer_packet_begins_another_send, reset),
      cmocka_unit_test_setup(paths_that_alternate_are_grouped_apart, reset),
      cmocka_unit_test_setup(limits_of_bytes_and_segments_are_kept, reset),
      cmocka_unit_test_setup(marks_are_kept_apart_and_written, reset),
      cmocka_unit_test_setup(the_source_is_written_for_its_family_only, reset),
      cmocka_unit_test_setup(probes_go_alone_and_triples_three_times, reset),
      cmocka_unit_test_setup(a_refused_route_goes_unsegmented_above_what_it_takes, reset),
      cmocka_unit_test_setup(what_cannot_be_sent_says_so_at_once, reset),
      cmocka_unit_test_setup(random_batches_keep_every_rule, reset),
      cmocka_unit_test(routes_forget_the_oldest_and_are_asked_again),
      cmocka_unit_test(what_a_route_says_later_takes_a_refusal_back),
  };
  return cmocka_run_group_tests_name("send plan", tests, NULL, NULL);
}
