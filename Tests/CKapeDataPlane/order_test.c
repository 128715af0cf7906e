/* Packets of several flows put so that equal sizes lie together, with order kept within each flow. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "core/bytes.h"
#include "offload/order.h"
#include "support/packets.h"
#include "support/rng.h"

enum { FLOWS = 24 };

typedef struct fixture {
  kdp_packet packet[KDP_BATCH_CAPACITY];
  kdp_batch batch;
  uint8_t bytes[KDP_BATCH_CAPACITY][1200];
  uint32_t flow_of[KDP_BATCH_CAPACITY]; /* by the number that stands in kdp_packet.path */
  packet_form form[FLOWS];
} fixture;

static fixture f;

static void reset(void) {
  f.batch = (kdp_batch){.packet = f.packet, .capacity = KDP_BATCH_CAPACITY};
}

static void make_flows(rng *r) {
  for (int i = 0; i < FLOWS; i++)
    f.form[i] = (packet_form){.version = i & 1 ? 4 : 6,
                              .protocol = i & 2 ? 6 : 17,
                              .ttl = 64,
                              .source = (uint8_t)(1 + i / 8),
                              .destination = (uint8_t)(100 + i % 3),
                              .source_port = (uint16_t)(1000 + i / 4),
                              .destination_port = (uint16_t)(53 + rng_below(r, 2)),
                              .extension_size = i % 5 == 0 && !(i & 1) ? 8 : 0,
                              .flags = 0x10};
}

static void add(uint32_t flow, uint32_t payload) {
  uint32_t number = f.batch.count;
  f.form[flow].payload = payload;
  size_t size = packet_write(&f.form[flow], f.bytes[number]);
  f.flow_of[number] = flow;
  kdp_packet packet = {.data = f.bytes[number], .size = (uint32_t)size, .path = (uint16_t)number, .slot = KDP_NO_SLOT};
  assert_true(kdp_batch_push(&f.batch, &packet));
}

/* A size larger than the one before it begins a send, whatever else does. */
static uint32_t beginnings(void) {
  uint32_t count = 0;
  for (uint32_t i = 1; i < f.batch.count; i++)
    count += f.packet[i].size > f.packet[i - 1].size;
  return count;
}

static void expect_untouched(void) {
  for (uint32_t i = 0; i < f.batch.count; i++)
    assert_int_equal(f.packet[i].path, i);
}

static void flows_by_turns_lie_one_behind_the_other(void **state) {
  (void)state;
  rng r = {1};
  make_flows(&r);
  reset();
  static const uint32_t sizes[] = {64, 512, 200, 512};
  for (int i = 0; i < FLOWS; i++)
    f.form[i].source = f.form[i].destination = 9; /* only ports tell them apart */
  for (uint32_t i = 0; i < 64; i++)
    add(i % 4 * 4 + 1, sizes[i % 4]); /* UDP over IPv4, all four */
  kdp_order_flows(&f.batch);
  assert_int_equal(f.batch.count, 64);
  static const uint32_t flows[] = {5, 13, 9, 1}; /* by size, and what is equal as it came */
  for (uint32_t i = 0; i < 64; i++) {
    assert_int_equal(f.flow_of[f.packet[i].path], flows[i / 16]);
    if (i % 16) assert_true(f.packet[i].path > f.packet[i - 1].path);
  }
  assert_int_equal(beginnings(), 0);
}

/* Whatever comes, each flow keeps its order and nothing is lost or told twice. */
static void order_within_a_flow_never_changes(void **state) {
  (void)state;
  rng r = {20};
  for (int round = 0; round < 2000; round++) {
    make_flows(&r);
    reset();
    uint32_t count = rng_below(&r, KDP_BATCH_CAPACITY + 1), flows = 1 + rng_below(&r, FLOWS);
    bool steady = rng_one_in(&r, 2);
    for (uint32_t i = 0; i < count; i++) {
      uint32_t flow = rng_below(&r, flows);
      add(flow, steady ? 40 * flow : rng_below(&r, 1000));
    }
    uint32_t before = beginnings();
    kdp_order_flows(&f.batch);
    assert_int_equal(f.batch.count, count);
    bool seen[KDP_BATCH_CAPACITY] = {false};
    int last[FLOWS];
    memset(last, -1, sizeof last);
    for (uint32_t i = 0; i < count; i++) {
      uint16_t number = f.packet[i].path;
      assert_true(number < count && !seen[number]);
      seen[number] = true;
      assert_ptr_equal(f.packet[i].data, f.bytes[number]);
      assert_true((int)number > last[f.flow_of[number]]);
      last[f.flow_of[number]] = number;
    }
    if (steady && before >= KDP_ORDER_BEGINNINGS) assert_int_equal(beginnings(), 0);
  }
}

static void what_is_in_order_already_stays_as_it_is(void **state) {
  (void)state;
  rng r = {3};
  make_flows(&r);
  reset();
  kdp_order_flows(&f.batch); /* nothing at all */
  /* Super-packets with a shorter end, acknowledgements between them. */
  for (uint32_t i = 0; i < 3 * 45; i++)
    add(i % 45 == 44 ? 3 : 7, i % 45 == 44 ? 0 : i % 45 == 43 ? 300 : 1000);
  kdp_order_flows(&f.batch);
  expect_untouched();
  /* One flow alone. */
  reset();
  for (uint32_t i = 0; i < 64; i++)
    add(1, i % 2 ? 64 : 512);
  kdp_order_flows(&f.batch);
  expect_untouched();
}

static void beside_a_fragment_nothing_is_moved(void **state) {
  (void)state;
  rng r = {4};
  make_flows(&r);
  for (uint32_t fragment = 0; fragment < 64; fragment += 9) {
    reset();
    for (uint32_t i = 0; i < 64; i++)
      add(i % 2 * 4 + 1, i % 2 ? 64 : 512);
    kdp_store_be16(f.bytes[fragment] + 6, fragment % 2 ? 185 : 0x2000); /* no ports in it; the first one, with them */
    kdp_order_flows(&f.batch);
    expect_untouched();
  }
}

static void what_is_no_ip_packet_is_survived(void **state) {
  (void)state;
  rng r = {5};
  for (int round = 0; round < 3000; round++) {
    make_flows(&r);
    reset();
    for (uint32_t i = 0; i < 16; i++)
      add(rng_below(&r, FLOWS), rng_below(&r, 100));
    for (int i = 0; i < 3; i++) {
      kdp_packet *packet = &f.packet[rng_below(&r, 16)];
      packet->size = rng_below(&r, packet->size + 1);
      if (packet->size) packet->data[rng_below(&r, packet->size)] = (uint8_t)rng_next(&r);
    }
    kdp_order_flows(&f.batch);
    uint32_t sum = 0;
    for (uint32_t i = 0; i < 16; i++)
      sum += f.packet[i].path;
    assert_int_equal(sum, 15 * 16 / 2);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(flows_by_turns_lie_one_behind_the_other), cmocka_unit_test(order_within_a_flow_never_changes),
      cmocka_unit_test(what_is_in_order_already_stays_as_it_is), cmocka_unit_test(beside_a_fragment_nothing_is_moved),
      cmocka_unit_test(what_is_no_ip_packet_is_survived),
  };
  return cmocka_run_group_tests_name("order", tests, NULL, NULL);
}
