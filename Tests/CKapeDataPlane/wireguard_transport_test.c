/* The data path: what goes in, what comes out, and what does neither. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "net/ip.h"
#include "support/wireguard_pair.h"

#define SECONDS(n) ((n)*KDP_SECOND)

/* ---- Padding ---- */

static void packets_are_padded_to_16_bytes_but_never_beyond_the_mtu(void **state) {
  (void)state;
  node *a, *b;
  kdp_now now = connected(&a, &b);
  static const struct {
    uint32_t size, sealed;
  } rows[] = {{28, 32},     {32, 32},     {33, 48},     {1405, 1408}, {1408, 1408}, {1409, 1420},
              {1419, 1420}, {1420, 1420}, {1421, 1421}, {1500, 1500}, {9000, 9000}};
  static uint8_t packet[9000];
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    assert_int_equal(node_send(a, packet, packet4(packet, a, b, rows[i].size, false), now), KDP_OK);
    uint32_t last = a->sent_count - 1;
    assert_int_equal(a->sent[last].size, rows[i].sealed + 32);
    assert_int_equal(node_pass(a, last, b, now), KDP_OK);
    assert_int_equal(b->delivered[b->delivered_count - 1].size, rows[i].size);
    assert_memory_equal(b->delivered[b->delivered_count - 1].bytes, packet, rows[i].size);
  }
  kdp_engine_set_inside_mtu(a->engine, 1280);
  assert_int_equal(node_send(a, packet, packet4(packet, a, b, 1273, false), now), KDP_OK);
  assert_int_equal(a->sent[a->sent_count - 1].size, 1280 + 32);
  assert_int_equal(kdp_engine_room(a->engine, NULL).inside_mtu, 1280);
  free_both(a, b);
}

/* Padding is zero on the wire: seen by opening it with another implementation of the AEAD. */
static void padding_is_zero(void **state) {
  (void)state;
  node *a, *b;
  kdp_now now = connected(&a, &b);
  uint8_t packet[64];
  /* Dirt where the padding will be. */
  kdp_packet carved;
  assert_true(kdp_pool_take_packet(a->pool, 16, 29, 31, &carved));
  memset(carved.data - 16, 0xee, 16 + 29 + 31);
  memcpy(carved.data, packet, packet4(packet, a, b, 29, false));
  kdp_batch batch = {.packet = &carved, .count = 1, .capacity = 1};
  assert_int_equal(kdp_engine_inside(a->lane, &batch, a->out, now), 1);
  assert_int_equal(a->out->wire.count, 1);
  const kdp_packet *sealed = &a->out->wire.packet[0];
  kdp_aead_job job = {.key = node_peer_of(a, b)->current->keys.send,
                      .source = sealed->data + 16,
                      .destination = sealed->data + 16,
                      .tag = sealed->data + sealed->size - 16,
                      .size = sealed->size - 32};
  memcpy(job.nonce + 4, sealed->data + 8, 8);
  assert_int_equal(a->device->aead->open(a->device->lane[0].worker, &job, 1), 1);
  assert_memory_equal(sealed->data + 16, packet, 29);
  assert_memory_equal(sealed->data + 16 + 29, "\0\0\0", 3);
  node_tick(a, now);
  free_both(a, b);
}

static void bytes_behind_the_packets_own_end_do_not_travel(void **state) {
  (void)state;
  node *a, *b;
  kdp_now now = connected(&a, &b);
  uint8_t packet[100];
  (void)packet4(packet, a, b, 40, false);
  memset(packet + 40, 0xee, 60);
  assert_int_equal(node_send(a, packet, 100, now), KDP_OK);
  assert_int_equal(a->sent[0].size, 48 + 32);
  assert_int_equal(node_pass(a, 0, b, now), KDP_OK);
  assert_int_equal(b->delivered[0].size, 40);
  free_both(a, b);
}

/* ---- Many packets ---- */

/* Random sizes, several peers, one batch: each comes out once, in order, byte for byte. */
static void what_comes_out_is_what_went_in_packet_by_packet(void **state) {
  (void)state;
  enum { PEERS = 5, BATCH = 150 };
  node *hub = node_make(200, NULL, NULL), *peer[PEERS];
  kdp_now now = node_time(1000);
  rng r = {41};
  for (int i = 0; i < PEERS; i++) {
    peer[i] = node_make((uint8_t)(i + 1), NULL, NULL);
    node_connect(hub, peer[i], now);
  }
  static uint8_t bytes[BATCH][2000];
  for (int round = 0; round < 20; round++) {
    kdp_packet packets[BATCH];
    int to[BATCH];
    for (int i = 0; i < BATCH; i++) {
      to[i] = i > 0 && !rng_one_in(&r, 3) ? to[i - 1] : (int)rng_below(&r, PEERS);
      uint32_t size = 28 + rng_below(&r, rng_one_in(&r, 2) ? 1400 : 64);
      (void)packet4(bytes[i], hub, peer[to[i]], size, false);
      rng_fill(&r, bytes[i] + 28, size - 28);
      assert_true(kdp_pool_take_packet(hub->pool, 16, size, 31, &packets[i]));
      memcpy(packets[i].data, bytes[i], size);
    }
    for (uint32_t taken = 0; taken < BATCH;) {
      kdp_batch rest = {.packet = packets + taken, .count = BATCH - taken, .capacity = BATCH};
      uint32_t some = kdp_engine_inside(hub->lane, &rest, hub->out, now);
      assert_true(some > 0);
      taken += some;
      node_tick(hub, now);
    }
    assert_int_equal(hub->sent_count, BATCH);
    uint32_t next[PEERS] = {0};
    for (int i = 0; i < BATCH; i++) {
      node *at = peer[to[i]];
      assert_true(kdp_address_equal(&hub->sent[i].path.remote, &at->address));
      assert_int_equal(node_pass(hub, (uint32_t)i, at, now), KDP_OK);
      kept_datagram *got = &at->delivered[next[to[i]]++];
      assert_int_equal(got->size, kdp_load_be16(bytes[i] + 2));
      assert_memory_equal(got->bytes, bytes[i], got->size);
    }
    node_forget(hub);
    for (int i = 0; i < PEERS; i++) {
      assert_int_equal(peer[i]->delivered_count, next[i]);
      node_forget(peer[i]);
    }
  }
  for (int i = 0; i < PEERS; i++)
    node_free(peer[i]);
  node_free(hub);
}

/* One batch in from several sessions, with everything that can be wrong in between. */
static void a_mixed_batch_from_the_wire_is_sorted_out(void **state) {
  (void)state;
  node *a, *b, *c = node_make(3, NULL, NULL), *d = node_make(4, NULL, NULL);
  kdp_now now = connected(&a, &b);
  node_connect(c, b, now);
  assert_int_equal(node_add_peer(d, b, true, now), KDP_OK);
  assert_int_equal(node_add_peer(b, d, false, now), KDP_OK);
  assert_int_equal(node_send_to(d, b, 1, now), KDP_OK); /* an initiation */
  for (int i = 0; i < 40; i++) {
    assert_int_equal(node_send_to(a, b, (uint32_t)i, now), KDP_OK);
    assert_int_equal(node_send_to(c, b, 100 + (uint32_t)i, now), KDP_OK);
  }
  kdp_packet packets[84];
  kdp_path paths[3] = {node_path(b, a), node_path(b, c), node_path(b, d)};
  for (uint32_t i = 0; i < 84; i++) {
    node *from = i == 33 ? d : i % 2 ? a : c;
    kept_datagram *sent = i == 33 ? &d->sent[0] : &from->sent[(i / 2) % 40];
    assert_true(kdp_pool_take_packet(b->pool, 0, sent->size, 0, &packets[i]));
    memcpy(packets[i].data, sent->bytes, sent->size);
    packets[i].path = from == a ? 0 : from == c ? 1 : 2;
    if (i == 10) packets[i].data[30] ^= 1;   /* forged */
    if (i == 11) packets[i].data[4] ^= 0xff; /* nobody's index */
    if (i == 12) packets[i].data[0] = 9;     /* no type of ours */
    if (i == 13) packets[i].size = 20;
  }
  kdp_batch batch = {.packet = packets, .count = 84, .capacity = 84, .path = paths, .path_count = 3};
  assert_int_equal(kdp_engine_outside(b->lane, &batch, b->out, now), 84);
  for (uint32_t i = 0; i < 84; i++) {
    kdp_status expected = KDP_OK;
    if (i >= 80) expected = KDP_REPLAYED; /* the first ones again */
    if (i == 10) expected = KDP_AUTHENTICATION_FAILED;
    if (i == 11) expected = KDP_UNKNOWN_SESSION;
    if (i == 12) expected = KDP_UNKNOWN_TYPE;
    if (i == 13) expected = KDP_TOO_SHORT;
    assert_int_equal(packets[i].status, expected);
  }
  assert_int_equal(b->out->inside.count, 80 - 4 - 1);
  assert_int_equal(b->out->wire.count, 1);
  node_tick(b, now);
  node_free(c);
  node_free(d);
  free_both(a, b);
}

static void packets_of_equal_size_and_path_are_marked_for_a_segmented_send(void **state) {
  (void)state;
  node *a, *b;
  kdp_now now = connected(&a, &b);
  static const uint32_t sizes[] = {100, 100, 100, 101, 300, 300, 300};
  static const bool same[] = {false, true, true, true, false, true, false};
  kdp_packet packets[7];
  uint8_t bytes[400];
  for (int i = 0; i < 7; i++) {
    (void)packet4(bytes, a, b, sizes[i], false);
    if (i == 6) bytes[1] = 3; /* congestion experienced: cannot share a send */
    assert_true(kdp_pool_take_packet(a->pool, 16, sizes[i], 31, &packets[i]));
    memcpy(packets[i].data, bytes, sizes[i]);
  }
  kdp_batch batch = {.packet = packets, .count = 7, .capacity = 7};
  assert_int_equal(kdp_engine_inside(a->lane, &batch, a->out, now), 7);
  node_tick(a, now);
  assert_int_equal(a->sent_count, 7);
  for (int i = 0; i < 7; i++)
    assert_int_equal((a->sent[i].flags & KDP_SAME_SIZE) != 0, same[i]);
  assert_int_equal(a->sent[6].ecn, 3);
  free_both(a, b);
}

/* ---- Full outputs, empty pools ---- */

static void a_full_output_stops_the_batch_and_loses_nothing(void **state) {
  (void)state;
  node *a, *b;
  kdp_now now = connected(&a, &b);
  kdp_packet packets[20];
  uint8_t bytes[64];
  uint32_t size = packet4(bytes, a, b, 60, false);
  for (int i = 0; i < 20; i++) {
    assert_true(kdp_pool_take_packet(a->pool, 16, size, 31, &packets[i]));
    memcpy(packets[i].data, bytes, size);
  }
  kdp_batch batch = {.packet = packets, .count = 20, .capacity = 20};
  a->out->wire.capacity = 7;
  assert_int_equal(kdp_engine_inside(a->lane, &batch, a->out, now), 7);
  assert_int_equal(a->out->wire.count, 7);
  a->out->wire.capacity = KDP_BATCH_CAPACITY;
  batch = (kdp_batch){.packet = packets + 7, .count = 13, .capacity = 13};
  assert_int_equal(kdp_engine_inside(a->lane, &batch, a->out, now), 13);
  node_tick(a, now);
  for (uint32_t i = 0; i < 20; i++)
    assert_int_equal(kdp_load_le64(a->sent[i].bytes + 8), i + 1);
  /* From the wire: the inside is what may be full. */
  kdp_packet sealed[20];
  kdp_path path = node_path(b, a);
  for (int i = 0; i < 20; i++) {
    assert_true(kdp_pool_take_packet(b->pool, 0, a->sent[i].size, 0, &sealed[i]));
    memcpy(sealed[i].data, a->sent[i].bytes, a->sent[i].size);
  }
  batch = (kdp_batch){.packet = sealed, .count = 20, .capacity = 20, .path = &path, .path_count = 1};
  b->out->inside.capacity = 3;
  assert_int_equal(kdp_engine_outside(b->lane, &batch, b->out, now), 3);
  b->out->inside.capacity = KDP_BATCH_CAPACITY;
  batch.packet += 3;
  batch.count -= 3;
  assert_int_equal(kdp_engine_outside(b->lane, &batch, b->out, now), 17);
  node_tick(b, now);
  assert_int_equal(b->delivered_count, 20);
  free_both(a, b);
}

static void handshake_messages_wait_for_room_to_be_answered(void **state) {
  (void)state;
  node *a = node_make(1, NULL, NULL), *b = node_make(2, NULL, NULL);
  kdp_now now = node_time(1000);
  assert_int_equal(node_add_peer(a, b, true, now), KDP_OK);
  assert_int_equal(node_add_peer(b, a, false, now), KDP_OK);
  assert_int_equal(node_send_to(a, b, 1, now), KDP_OK);
  kdp_packet packet;
  kdp_path path = node_path(b, a);
  assert_true(kdp_pool_take_packet(b->pool, 0, 148, 0, &packet));
  memcpy(packet.data, a->sent[0].bytes, 148);
  kdp_batch batch = {.packet = &packet, .count = 1, .capacity = 1, .path = &path, .path_count = 1};
  b->out->wire.capacity = 0;
  assert_int_equal(kdp_engine_outside(b->lane, &batch, b->out, now), 0);
  b->out->wire.capacity = KDP_BATCH_CAPACITY;
  b->out->wire.path_capacity = 0;
  assert_int_equal(kdp_engine_outside(b->lane, &batch, b->out, now), 0);
  b->out->wire.path_capacity = KDP_BATCH_PATHS;
  assert_int_equal(kdp_engine_outside(b->lane, &batch, b->out, now), 1);
  assert_int_equal(b->out->wire.count, 1);
  node_tick(b, now);
  free_both(a, b);
}

static void an_empty_pool_delays_own_messages_and_no_longer(void **state) {
  (void)state;
  kdp_now now = node_time(1000);
  node *a = node_make(1, NULL, NULL), *b = node_make(2, NULL, NULL);
  kdp_slot slots[64];
  uint32_t taken = 0;
  while (taken < 64 && kdp_pool_take_slot(a->pool, &slots[taken]))
    taken++;
  assert_int_equal(node_add_peer(a, b, true, now), KDP_OK);
  assert_int_equal(node_set_keepalive(a, b, 25, now), KDP_OK);
  assert_int_equal(a->sent_count, 0);
  assert_in_range(kdp_engine_deadline(a->lane), now.boot + 1, now.boot + 10 * KDP_MILLISECOND);
  while (taken > 0)
    kdp_pool_release(a->pool, slots[--taken]);
  now = node_later(now, 10 * KDP_MILLISECOND);
  node_tick(a, now);
  assert_int_equal(a->sent_count, 1);
  free_both(a, b);
}

/* Takes all that a pool has; gives it back. */
static uint32_t take_everything(kdp_pool *pool, kdp_slot *slots) {
  static const uint32_t sizes[] = {KDP_SLOT_SIZE, 4000, 16};
  uint32_t count = 0;
  kdp_packet packet;
  for (int i = 0; i < 3; i++)
    while (kdp_pool_take_packet(pool, 0, sizes[i], 0, &packet))
      slots[count++] = packet.slot;
  return count;
}
static void give_everything_back(kdp_pool *pool, const kdp_slot *slots, uint32_t count) {
  for (uint32_t i = 0; i < count; i++)
    kdp_pool_release(pool, slots[i]);
}

static void a_session_that_comes_while_the_pool_is_empty_sends_in_order_once_it_is_not(void **state) {
  (void)state;
  kdp_now now = node_time(1000);
  node *a = node_make(1, NULL, NULL), *b = node_make(2, NULL, NULL);
  static kdp_slot slots[8192];
  uint8_t bytes[200];
  assert_int_equal(node_add_peer(a, b, true, now), KDP_OK);
  assert_int_equal(node_add_peer(b, a, false, now), KDP_OK);
  for (uint32_t i = 0; i < 3; i++)
    assert_int_equal(node_send_to(a, b, i, now), KDP_OK);
  assert_int_equal(node_pass(a, 0, b, now), KDP_OK);
  kdp_packet response, newer[2];
  assert_true(kdp_pool_take_packet(a->pool, 0, 92, 0, &response));
  memcpy(response.data, b->sent[0].bytes, 92);
  for (uint32_t i = 0; i < 2; i++) {
    uint32_t size = packet4(bytes, a, b, 100 + i, false);
    assert_true(kdp_pool_take_packet(a->pool, 16, size, 31, &newer[i]));
    memcpy(newer[i].data, bytes, size);
  }
  uint32_t taken = take_everything(a->pool, slots);
  kdp_slot held = newer[0].slot;
  kdp_pool_retain(a->pool, held, 1); /* else its own packets would free it */
  kdp_path path = node_path(a, b);
  kdp_batch in = {.packet = &response, .count = 1, .capacity = 1, .path = &path, .path_count = 1};
  assert_int_equal(kdp_engine_outside(a->lane, &in, a->out, now), 1);
  assert_int_equal(response.status, KDP_OK);
  assert_int_equal(a->out->wire.count, 0);
  assert_int_equal(kdp_engine_deadline(a->lane), now.boot + KDP_MILLISECOND);
  in = (kdp_batch){.packet = newer, .count = 2, .capacity = 2};
  assert_int_equal(kdp_engine_inside(a->lane, &in, a->out, now), 2);
  assert_int_equal(newer[0].status, KDP_OK);
  assert_int_equal(newer[1].status, KDP_OK);
  assert_int_equal(a->out->wire.count, 0);
  give_everything_back(a->pool, slots, taken);
  kdp_pool_release(a->pool, held);
  now = node_later(now, KDP_MILLISECOND);
  node_tick(a, now);
  static const uint32_t expected[] = {28, 29, 30, 100, 101};
  assert_int_equal(a->sent_count, 6);
  for (uint32_t i = 0; i < 5; i++) {
    assert_int_equal(node_pass(a, 1 + i, b, now), KDP_OK);
    assert_int_equal(b->delivered[i].size, expected[i]);
  }
  assert_int_equal(node_counted(a, KDP_STAGED_DROPPED), 0);
  free_both(a, b);
}

/* ---- Staged packets ---- */

static void staged_packets_leave_in_order_before_newer_ones(void **state) {
  (void)state;
  kdp_now now = node_time(1000);
  node *a = node_make(1, NULL, NULL), *b = node_make(2, NULL, NULL);
  assert_int_equal(node_add_peer(a, b, true, now), KDP_OK);
  assert_int_equal(node_add_peer(b, a, false, now), KDP_OK);
  for (uint32_t i = 0; i < 130; i++)
    assert_int_equal(node_send_to(a, b, i, now), KDP_OK);
  assert_int_equal(a->sent_count, 1);
  assert_int_equal(node_counted(a, KDP_STAGED_DROPPED), 2);
  assert_int_equal(node_pass(a, 0, b, now), KDP_OK);
  /* The response comes while the output has room for little. */
  a->out->wire.capacity = 10;
  assert_int_equal(node_pass(b, 0, a, now), KDP_OK);
  assert_int_equal(a->sent_count, 11);
  assert_int_equal(kdp_engine_deadline(a->lane), now.boot);
  a->out->wire.capacity = 100;
  kdp_packet newer;
  uint8_t bytes[600];
  uint32_t size = packet4(bytes, a, b, 528, false);
  assert_true(kdp_pool_take_packet(a->pool, 16, size, 31, &newer));
  memcpy(newer.data, bytes, size);
  kdp_batch batch = {.packet = &newer, .count = 1, .capacity = 1};
  assert_int_equal(kdp_engine_inside(a->lane, &batch, a->out, now), 0); /* 100 older ones fill the output */
  assert_int_equal(a->out->wire.count, 100);
  a->out->wire.capacity = KDP_BATCH_CAPACITY;
  node_tick(a, now);
  assert_int_equal(kdp_engine_inside(a->lane, &batch, a->out, now), 1);
  node_tick(a, now);
  for (uint32_t i = 1; i < a->sent_count; i++)
    assert_int_equal(node_pass(a, i, b, now), KDP_OK);
  assert_int_equal(b->delivered_count, 129);
  for (uint32_t i = 0; i < 128; i++)
    assert_int_equal(b->delivered[i].size, 28 + 2 + i);
  assert_int_equal(b->delivered[128].size, 528);
  free_both(a, b);
}

static void staged_packets_of_every_size_survive_the_wait(void **state) {
  (void)state;
  kdp_now now = node_time(1000);
  node *a = node_make(1, NULL, NULL), *b = node_make(2, NULL, NULL);
  static uint8_t bytes[65535];
  static const uint32_t sizes[] = {28, 1420, 2036, 2037, 9000, 65000};
  assert_int_equal(node_add_peer(a, b, true, now), KDP_OK);
  assert_int_equal(node_add_peer(b, a, false, now), KDP_OK);
  for (size_t i = 0; i < 6; i++) {
    (void)packet4(bytes, a, b, sizes[i], false);
    bytes[1] = 1;
    assert_int_equal(node_send(a, bytes, sizes[i], now), KDP_OK);
  }
  assert_int_equal(node_pass(a, 0, b, now), KDP_OK);
  assert_int_equal(node_pass(b, 0, a, now), KDP_OK);
  for (uint32_t i = 1; i < a->sent_count; i++) {
    assert_int_equal(a->sent[i].ecn, 1); /* as it is inside */
    assert_int_equal(node_pass(a, i, b, now), KDP_OK);
  }
  assert_int_equal(b->delivered_count, 6);
  for (size_t i = 0; i < 6; i++) {
    assert_int_equal(b->delivered[i].bytes[1], 1);
    (void)packet4(bytes, a, b, sizes[i], false);
    bytes[1] = 1;
    assert_int_equal(b->delivered[i].size, sizes[i]);
    assert_memory_equal(b->delivered[i].bytes, bytes, sizes[i]);
  }
  free_both(a, b);
}

/* ---- ECN, RFC 6040 ---- */

static void ecn_goes_out_as_it_is_inside(void **state) {
  (void)state;
  node *a, *b;
  kdp_now now = connected(&a, &b);
  route_everything(a, b, now);
  uint8_t bytes[100];
  for (uint8_t ecn = 0; ecn < 4; ecn++) {
    (void)packet4(bytes, a, b, 100, false);
    bytes[1] = (uint8_t)(0xb8 | ecn);
    assert_int_equal(node_send(a, bytes, 100, now), KDP_OK);
    assert_int_equal(a->sent[a->sent_count - 1].ecn, ecn);
    (void)packet6(bytes, 100);
    bytes[1] = (uint8_t)(ecn << 4);
    assert_int_equal(node_send(a, bytes, 100, now), KDP_OK);
    assert_int_equal(a->sent[a->sent_count - 1].ecn, ecn);
  }
  free_both(a, b);
}

static kdp_status receive_with_ecn(node *n, const kept_datagram *sent, const node *from, uint8_t ecn, kdp_now now) {
  kdp_packet packet;
  kdp_path path = node_path(n, from);
  assert_true(kdp_pool_take_packet(n->pool, 0, sent->size, 0, &packet));
  memcpy(packet.data, sent->bytes, sent->size);
  packet.ecn = ecn;
  kdp_batch batch = {.packet = &packet, .count = 1, .capacity = 1, .path = &path, .path_count = 1};
  assert_int_equal(kdp_engine_outside(n->lane, &batch, n->out, now), 1);
  node_tick(n, now);
  return packet.status;
}

static void ecn_comes_in_by_the_table_of_rfc_6040(void **state) {
  (void)state;
  /* Section 4.2, figure 4; rows: inner Not-ECT, ECT(1), ECT(0), CE by value; columns: the outer by value. -1: drop. */
  static const int table[4][4] = {{0, 0, 0, -1}, {1, 1, 1, 3}, {2, 1, 2, 3}, {3, 3, 3, 3}};
  node *a, *b;
  kdp_now now = connected(&a, &b);
  route_everything(a, b, now);
  uint8_t bytes[100];
  for (int six = 0; six < 2; six++)
    for (uint8_t inner = 0; inner < 4; inner++)
      for (uint8_t outer = 0; outer < 4; outer++) {
        if (six) {
          (void)packet6(bytes, 100);
          bytes[1] = (uint8_t)(inner << 4);
        } else {
          (void)packet4(bytes, a, b, 100, false);
          bytes[1] = inner;
        }
        node_forget(a);
        node_forget(b);
        assert_int_equal(node_send(a, bytes, 100, now), KDP_OK);
        kdp_status status = receive_with_ecn(b, &a->sent[0], a, outer, now);
        if (table[inner][outer] < 0) {
          assert_int_equal(status, KDP_ECN_DROPPED);
          assert_int_equal(b->delivered_count, 0);
        } else {
          assert_int_equal(status, KDP_OK);
          assert_int_equal(kdp_ip_ecn(b->delivered[0].bytes), table[inner][outer]);
        }
      }
  free_both(a, b);
}

/* ---- Where packets may come from and go to ---- */

static void an_inner_source_that_is_not_the_peers_is_refused(void **state) {
  (void)state;
  node *a, *b, *c = node_make(3, NULL, NULL);
  kdp_now now = connected(&a, &b);
  node_connect(c, b, now);
  uint8_t bytes[60];
  (void)packet4(bytes, c, b, 60, false); /* c's address, sent by a */
  assert_int_equal(node_send(a, bytes, 60, now), KDP_OK);
  assert_int_equal(node_pass(a, 0, b, now), KDP_WRONG_SOURCE);
  (void)packet4(bytes, a, b, 60, false);
  bytes[12] = 99; /* nobody's */
  assert_int_equal(node_send(a, bytes, 60, now), KDP_OK);
  assert_int_equal(node_pass(a, 1, b, now), KDP_WRONG_SOURCE);
  assert_int_equal(b->delivered_count, 0);
  /* It was authentic all the same: it counts as a sign of life. */
  assert_int_not_equal(node_peer_of(b, a)->timer[KDP_WG_TIMER_KEEPALIVE], KDP_NEVER);
  node_free(c);
  free_both(a, b);
}

static void what_is_no_ip_packet_goes_nowhere(void **state) {
  (void)state;
  node *a, *b;
  kdp_now now = connected(&a, &b);
  uint8_t bytes[60] = {0};
  assert_int_equal(node_send(a, bytes, 60, now), KDP_NOT_IP);
  bytes[0] = 0x45;
  assert_int_equal(node_send(a, bytes, 10, now), KDP_TOO_SHORT);
  (void)packet4(bytes, a, b, 60, false);
  kdp_store_be16(bytes + 2, 61);
  assert_int_not_equal(node_send(a, bytes, 60, now), KDP_OK);
  /* From a peer: sealed by hand. */
  kdp_packet carved;
  uint8_t junk[48] = {0x45, 0, 0, 200};
  assert_true(kdp_pool_take_packet(a->pool, 16, 48, 31, &carved));
  memcpy(carved.data, junk, 48);
  kdp_wg_key_pair *pair = node_peer_of(a, b)->current;
  kdp_wg_transport_write(carved.data - 16, pair->remote_index, pair->send_counter);
  kdp_aead_job job = {
      .key = pair->keys.send, .source = carved.data, .destination = carved.data, .tag = carved.data + 48, .size = 48};
  kdp_store_le64(job.nonce + 4, pair->send_counter++);
  a->device->aead->seal(a->device->lane[0].worker, &job, 1);
  kdp_path path = node_path(b, a);
  assert_int_equal(node_receive(b, carved.data - 16, 80, &path, now), KDP_NOT_IP);
  kdp_pool_release(a->pool, carved.slot);
  free_both(a, b);
}

static void too_little_room_round_a_packet_is_the_callers_fault(void **state) {
  (void)state;
  node *a, *b;
  kdp_now now = connected(&a, &b);
  uint8_t bytes[60];
  for (int i = 0; i < 2; i++) {
    kdp_packet packet;
    assert_true(kdp_pool_take_packet(a->pool, i ? 16 : 15, 60, i ? 30 : 31, &packet));
    memcpy(packet.data, bytes, packet4(bytes, a, b, 60, false));
    kdp_batch batch = {.packet = &packet, .count = 1, .capacity = 1};
    assert_int_equal(kdp_engine_inside(a->lane, &batch, a->out, now), 1);
    assert_int_equal(packet.status, KDP_INVALID_ARGUMENT);
  }
  free_both(a, b);
}

/* Padding ends at the MTU: a full packet needs room for the tag and no more, and what is carved so is one piece. */
static void full_packets_that_were_carved_end_to_end_are_sealed_end_to_end(void **state) {
  (void)state;
  node *a, *b;
  kdp_now now = connected(&a, &b);
  kdp_room room = kdp_engine_room(a->engine, NULL);
  uint32_t full = room.inside_mtu;
  assert_int_equal(full % 16, 12); /* else nothing would be padded anyway */
  assert_int_equal(kdp_room_tail(&room, full), 16);
  assert_int_equal(kdp_room_tail(&room, full - 1), 31);
  kdp_packet packets[3];
  uint8_t bytes[1500];
  for (int i = 0; i < 3; i++) {
    assert_true(kdp_pool_take_adjacent(a->pool, 16, full, 16, &packets[i]));
    memcpy(packets[i].data, bytes, packet4(bytes, a, b, full, false));
  }
  kdp_batch batch = {.packet = packets, .count = 3, .capacity = 3};
  assert_int_equal(kdp_engine_inside(a->lane, &batch, a->out, now), 3);
  assert_int_equal(a->out->wire.count, 3);
  for (int i = 0; i < 3; i++) {
    assert_int_equal(a->out->wire.packet[i].size, full + 32);
    if (i) assert_ptr_equal(a->out->wire.packet[i].data, a->out->wire.packet[i - 1].data + full + 32);
  }
  node_tick(a, now);
  for (int i = 0; i < 3; i++) {
    kdp_path path = node_path(b, a);
    assert_int_equal(node_receive(b, a->sent[i].bytes, a->sent[i].size, &path, now), KDP_OK);
    assert_memory_equal(b->delivered[i].bytes, bytes, full);
  }
  /* With a larger MTU they would be padded, and there is no room for that. */
  kdp_engine_set_inside_mtu(a->engine, (uint16_t)(full + 4));
  kdp_packet packet;
  assert_true(kdp_pool_take_packet(a->pool, 16, full, 16, &packet));
  memcpy(packet.data, bytes, full);
  batch = (kdp_batch){.packet = &packet, .count = 1, .capacity = 1};
  assert_int_equal(kdp_engine_inside(a->lane, &batch, a->out, now), 1);
  assert_int_equal(packet.status, KDP_INVALID_ARGUMENT);
  free_both(a, b);
}

static void without_a_peer_or_an_endpoint_the_sender_gets_host_unreachable(void **state) {
  (void)state;
  node *a, *b;
  kdp_now now = connected(&a, &b);
  node *c = node_make(3, NULL, NULL);
  uint8_t bytes[100];
  (void)packet4(bytes, a, c, 100, false);
  assert_int_equal(node_send(a, bytes, 100, now), KDP_NO_ROUTE);
  assert_int_equal(a->delivered_count, 1);
  const uint8_t *icmp = a->delivered[0].bytes;
  assert_int_equal(icmp[9], 1);
  assert_int_equal(icmp[20], 3);
  assert_int_equal(icmp[21], 1);
  assert_memory_equal(icmp + 12, bytes + 16, 4); /* from the packet's own destination */
  assert_memory_equal(icmp + 16, bytes + 12, 4);
  assert_memory_equal(icmp + 28, bytes, 28);
  (void)packet6(bytes, 100);
  assert_int_equal(node_send(a, bytes, 100, now), KDP_NO_ROUTE);
  assert_int_equal(a->delivered_count, 2);
  assert_int_equal(a->delivered[1].bytes[40], 1);
  assert_int_equal(a->delivered[1].bytes[41], 3);
  assert_memory_equal(a->delivered[1].bytes + 8, bytes + 24, 16);
  /* A peer whose endpoint is not known. */
  assert_int_equal(node_add_peer(a, c, false, now), KDP_OK);
  (void)packet4(bytes, a, c, 100, false);
  assert_int_equal(node_send(a, bytes, 100, now), KDP_NO_ENDPOINT);
  assert_int_equal(a->delivered_count, 3);
  assert_int_equal(a->delivered[2].bytes[20], 3);
  assert_int_equal(node_counted(a, KDP_NO_ROUTE), 2);
  assert_int_equal(node_counted(a, KDP_NO_ENDPOINT), 1);
  node_free(c);
  free_both(a, b);
}

static void icmp_answers_have_a_rate(void **state) {
  (void)state;
  node *a, *b;
  kdp_now now = connected(&a, &b);
  node *c = node_make(3, NULL, NULL);
  uint8_t bytes[100];
  (void)packet4(bytes, a, c, 100, false);
  for (int i = 0; i < 200; i++)
    assert_int_equal(node_send(a, bytes, 100, now), KDP_NO_ROUTE);
  assert_int_equal(a->delivered_count, 64);
  now = node_later(now, SECONDS(1) / 2);
  for (int i = 0; i < 200; i++)
    assert_int_equal(node_send(a, bytes, 100, now), KDP_NO_ROUTE);
  assert_int_equal(a->delivered_count, 64 + 50);
  assert_int_equal(node_counted(a, KDP_NO_ROUTE), 400);
  node_free(c);
  free_both(a, b);
}

/* ---- Every packet has a fate ---- */

static void every_packet_is_counted_once(void **state) {
  (void)state;
  node *a, *b;
  kdp_now now = connected(&a, &b);
  kdp_statistics before, after;
  rng r = {51};
  uint8_t bytes[200];
  kdp_engine_statistics(a->engine, &before);
  for (int i = 0; i < 500; i++) {
    uint32_t size = 1 + rng_below(&r, 199);
    if (rng_one_in(&r, 2))
      size = packet4(bytes, a, b, 28 + rng_below(&r, 100), false);
    else
      rng_fill(&r, bytes, size);
    (void)node_send(a, bytes, size, now);
    node_forget(a);
  }
  kdp_engine_statistics(a->engine, &after);
  uint64_t counted = 0;
  for (int i = 0; i < KDP_STATUS_COUNT; i++)
    counted += after.status[i] - before.status[i];
  assert_int_equal(counted, 500);
  assert_int_equal(after.inside_in.packets - before.inside_in.packets, 500);
  assert_true(after.status[KDP_OK] - before.status[KDP_OK] > 100);
  free_both(a, b);
}

typedef struct statistics_reader {
  node *watched;
  bool stop;
  uint64_t packets;
} statistics_reader;

static void *read_statistics(void *context) {
  statistics_reader *reader = context;
  while (!__atomic_load_n(&reader->stop, __ATOMIC_RELAXED)) {
    kdp_statistics statistics;
    kdp_engine_statistics(reader->watched->engine, &statistics);
    if (statistics.wire_out.packets < reader->packets) return reader; /* they only rise */
    reader->packets = statistics.wire_out.packets;
    (void)kdp_engine_room(reader->watched->engine, NULL);
  }
  return NULL;
}

/* What TSan is to see. */
static void statistics_may_be_read_by_another_thread_while_packets_pass(void **state) {
  (void)state;
  node *a, *b;
  kdp_now now = connected(&a, &b);
  statistics_reader reader = {.watched = a};
  pthread_t thread;
  assert_int_equal(pthread_create(&thread, NULL, read_statistics, &reader), 0);
  for (int i = 0; i < 300; i++) {
    assert_int_equal(node_send_to(a, b, 100, now), KDP_OK);
    node_exchange(a, b, now);
    kdp_engine_set_inside_mtu(a->engine, (uint16_t)(1300 + i));
    node_forget(b);
  }
  void *went_back = &reader;
  __atomic_store_n(&reader.stop, true, __ATOMIC_RELAXED);
  assert_int_equal(pthread_join(thread, &went_back), 0);
  assert_null(went_back);
  free_both(a, b);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(packets_are_padded_to_16_bytes_but_never_beyond_the_mtu),
      cmocka_unit_test(padding_is_zero),
      cmocka_unit_test(bytes_behind_the_packets_own_end_do_not_travel),
      cmocka_unit_test(what_comes_out_is_what_went_in_packet_by_packet),
      cmocka_unit_test(a_mixed_batch_from_the_wire_is_sorted_out),
      cmocka_unit_test(packets_of_equal_size_and_path_are_marked_for_a_segmented_send),
      cmocka_unit_test(a_full_output_stops_the_batch_and_loses_nothing),
      cmocka_unit_test(handshake_messages_wait_for_room_to_be_answered),
      cmocka_unit_test(an_empty_pool_delays_own_messages_and_no_longer),
      cmocka_unit_test(a_session_that_comes_while_the_pool_is_empty_sends_in_order_once_it_is_not),
      cmocka_unit_test(staged_packets_leave_in_order_before_newer_ones),
      cmocka_unit_test(staged_packets_of_every_size_survive_the_wait),
      cmocka_unit_test(ecn_goes_out_as_it_is_inside),
      cmocka_unit_test(ecn_comes_in_by_the_table_of_rfc_6040),
      cmocka_unit_test(an_inner_source_that_is_not_the_peers_is_refused),
      cmocka_unit_test(what_is_no_ip_packet_goes_nowhere),
      cmocka_unit_test(too_little_room_round_a_packet_is_the_callers_fault),
      cmocka_unit_test(full_packets_that_were_carved_end_to_end_are_sealed_end_to_end),
      cmocka_unit_test(without_a_peer_or_an_endpoint_the_sender_gets_host_unreachable),
      cmocka_unit_test(icmp_answers_have_a_rate),
      cmocka_unit_test(every_packet_is_counted_once),
      cmocka_unit_test(statistics_may_be_read_by_another_thread_while_packets_pass),
  };
  return cmocka_run_group_tests_name("wireguard transport", tests, NULL, NULL);
}
