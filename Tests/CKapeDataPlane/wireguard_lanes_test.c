/* WireGuard on more than one lane, one call after the other: what another lane than 0 does itself. What it hands over:
   wireguard_handover_test.c; what its notes bring about: wireguard_lane_notes_test.c; with threads:
   wireguard_lane_threads_test.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "support/wireguard_lane.h"

static const kdp_limits three_lanes = {.lanes = 3};

/* ---- Lanes ---- */

static void an_engine_has_the_lanes_it_was_made_with_and_no_more_than_its_window_allows(void **state) {
  (void)state;
  node *a = node_make(1, NULL, &three_lanes);
  for (uint32_t i = 0; i < 3; i++) {
    kdp_lane *lane = kdp_engine_lane(a->engine, i);
    assert_non_null(lane);
    assert_int_equal(lane->index, i);
    assert_ptr_equal(lane->engine, a->engine);
  }
  assert_null(kdp_engine_lane(a->engine, 3));
  uint32_t window = kdp_engine_room(a->engine, NULL).reorder_window;
  assert_true(window >= 4 * KDP_WIREGUARD_MAX_LANES * KDP_AEAD_MAX_BATCH);
  assert_true(window < 4 * (KDP_WIREGUARD_MAX_LANES + 1) * KDP_AEAD_MAX_BATCH);
  node_free(a);

  kdp_host host = kdp_host_default();
  kdp_wireguard_config config = {0};
  kdp_limits limits = {.lanes = KDP_WIREGUARD_MAX_LANES + 1};
  kdp_engine *engine = NULL;
  assert_int_equal(kdp_wireguard_create(&config, &limits, &host, node_time(0), &engine), KDP_INVALID_ARGUMENT);
  assert_null(engine);
}

static void creation_that_fails_leaves_nothing(void **state) {
  (void)state;
  node *a = node_make(1, NULL, &three_lanes);
  kdp_wireguard_config config = {0};
  kdp_engine *engine;
  size_t before = a->allocated, needed = a->allocations;
  assert_int_equal(kdp_wireguard_create(&config, &three_lanes, &a->host, node_time(0), &engine), KDP_OK);
  needed = a->allocations - needed;
  kdp_engine_destroy(engine);
  for (size_t i = 0; i < needed; i++) {
    a->fail_after = i;
    assert_int_equal(kdp_wireguard_create(&config, &three_lanes, &a->host, node_time(0), &engine), KDP_NO_MEMORY);
    assert_int_equal(a->allocated, before);
  }
  a->fail_after = SIZE_MAX;
  node_free(a);
}

/* ---- What a lane does itself ---- */

static void another_lane_seals_and_opens_with_a_session_that_is_up(void **state) {
  (void)state;
  node *a = node_make(1, NULL, &three_lanes), *b = node_make(2, NULL, &three_lanes);
  kdp_now now = node_time(1000);
  node_connect(a, b, now);
  side_lane *seals = side_lane_make(a, 1), *opens = side_lane_make(b, 2);
  kdp_statistics sealed_before, opened_before, sealed, opened;
  kdp_engine_statistics(a->engine, &sealed_before);
  kdp_engine_statistics(b->engine, &opened_before);
  uint64_t sent_before = node_peer_of(a, b)->sent_bytes, received_before = node_peer_of(b, a)->received_bytes;

  assert_int_equal(side_lane_send_to(seals, b, 100, now), KDP_OK);
  assert_int_equal(seals->out->wire.count, 1);
  kdp_packet *packet = &seals->out->wire.packet[0];
  kdp_path path = node_path(b, a);
  assert_true(kdp_address_equal(&seals->out->wire.path[packet->path].remote, &b->address));
  assert_int_equal(side_lane_receive(opens, packet->data, packet->size, &path, now), KDP_OK);
  assert_int_equal(opens->out->inside.count, 1);
  uint8_t expected[NODE_DATAGRAM];
  uint32_t size = node_packet(expected, a, b, 100);
  assert_int_equal(opens->out->inside.packet[0].size, size);
  assert_memory_equal(opens->out->inside.packet[0].data, expected, size);
  /* Once, on whichever lane. */
  assert_int_equal(side_lane_receive(opens, packet->data, packet->size, &path, now), KDP_REPLAYED);
  assert_int_equal(node_receive(b, packet->data, packet->size, &path, now), KDP_REPLAYED);

  kdp_engine_statistics(a->engine, &sealed);
  kdp_engine_statistics(b->engine, &opened);
  assert_int_equal(sealed.inside_in.packets - sealed_before.inside_in.packets, 1);
  assert_int_equal(sealed.wire_out.bytes - sealed_before.wire_out.bytes, packet->size);
  assert_int_equal(opened.wire_in.bytes - opened_before.wire_in.bytes, packet->size);
  assert_int_equal(opened.inside_out.bytes - opened_before.inside_out.bytes, size);
  assert_int_equal(opened.status[KDP_REPLAYED] - opened_before.status[KDP_REPLAYED], 2);
  kdp_wireguard_peer_info info;
  assert_int_equal(kdp_wireguard_find_peer(a->engine, b->public_key, &info), KDP_OK);
  assert_int_equal(info.sent_bytes - sent_before, packet->size);
  assert_int_equal(kdp_wireguard_find_peer(b->engine, a->public_key, &info), KDP_OK);
  assert_int_equal(info.received_bytes - received_before, packet->size);
  side_lane_free(seals);
  side_lane_free(opens);
  node_free(a);
  node_free(b);
}

static void what_is_refused_without_a_change_is_refused_by_the_lane_itself(void **state) {
  (void)state;
  lane_pair p = lane_pair_make();
  kdp_path path = node_path(p.a, p.b);
  uint8_t bytes[64] = {KDP_WG_TRANSPORT};
  assert_int_equal(side_lane_receive(p.l, bytes, sizeof bytes, &path, p.now), KDP_UNKNOWN_SESSION);
  assert_int_equal(side_lane_receive(p.l, bytes, 3, &path, p.now), KDP_TOO_SHORT);
  bytes[0] = 9;
  assert_int_equal(side_lane_receive(p.l, bytes, sizeof bytes, &path, p.now), KDP_UNKNOWN_TYPE);
  assert_int_equal(node_send_to(p.b, p.a, 1, p.now), KDP_OK);
  p.b->sent[0].bytes[40] ^= 1;
  assert_int_equal(side_lane_receive(p.l, p.b->sent[0].bytes, p.b->sent[0].size, &path, p.now),
                   KDP_AUTHENTICATION_FAILED);
  p.b->sent[0].bytes[40] ^= 1;
  assert_int_equal(side_lane_receive(p.l, p.b->sent[0].bytes, p.b->sent[0].size, &path, p.now), KDP_OK);
  assert_int_equal(side_lane_send(p.l, bytes, sizeof bytes, p.now), KDP_NOT_IP);
  assert_int_equal(node_counted(p.a, KDP_UNKNOWN_SESSION), 1);
  assert_int_equal(node_counted(p.a, KDP_AUTHENTICATION_FAILED), 1);
  assert_int_equal(node_counted(p.a, KDP_NOT_IP), 1);
  assert_int_equal(node_counted(p.a, KDP_HANDED_OVER), 0);
  lane_pair_free(&p);
}

/* Packets of several peers in turns each go along the path of theirs, however many there are. */
static void each_peer_of_a_mixed_batch_has_its_path(void **state) {
  (void)state;
  enum { PEERS = 5, PACKETS = 40 };
  node *a = node_make(1, NULL, &three_lanes), *peer[PEERS];
  kdp_now now = node_time(1000);
  for (int i = 0; i < PEERS; i++) {
    peer[i] = node_make((uint8_t)(2 + i), NULL, NULL);
    node_connect(a, peer[i], now);
  }
  side_lane *l = side_lane_make(a, 1);
  kdp_packet packet[PACKETS];
  uint8_t bytes[100];
  for (int i = 0; i < PACKETS; i++) {
    uint32_t size = node_packet(bytes, a, peer[i * 3 % PEERS], 50);
    assert_true(kdp_pool_take_packet(l->pool, KDP_WIREGUARD_HEAD, size, KDP_WIREGUARD_TAIL, &packet[i]));
    memcpy(packet[i].data, bytes, size);
  }
  kdp_batch batch = {.packet = packet, .count = PACKETS, .capacity = PACKETS};
  assert_int_equal(kdp_engine_inside(l->lane, &batch, l->out, now), PACKETS);
  assert_int_equal(l->out->wire.count, PACKETS);
  assert_int_equal(l->out->wire.path_count, PEERS);
  for (int i = 0; i < PACKETS; i++)
    assert_true(
        kdp_address_equal(&l->out->wire.path[l->out->wire.packet[i].path].remote, &peer[i * 3 % PEERS]->address));
  side_lane_free(l);
  for (int i = 0; i < PEERS; i++)
    node_free(peer[i]);
  node_free(a);
}

/* Two peers that share the place where the index of their path is kept. */
static void peers_of_one_place_keep_their_paths_apart(void **state) {
  (void)state;
  enum { PACKETS = 20 };
  node *a = node_make(1, NULL, &three_lanes), *peer[2] = {node_make(2, NULL, NULL), node_make(3, NULL, NULL)};
  kdp_now now = node_time(1000);
  node_connect(a, peer[0], now);
  kdp_wireguard_peer_change nobody[KDP_BATCH_PATHS - 1] = {0};
  for (uint32_t i = 0; i < KDP_BATCH_PATHS - 1; i++)
    kdp_store_le32(nobody[i].public_key, i + 100);
  assert_int_equal(node_apply(a, &(kdp_wireguard_change){.peer = nobody, .peer_count = KDP_BATCH_PATHS - 1}, now),
                   KDP_OK);
  node_connect(a, peer[1], now);
  assert_int_equal(node_peer_of(a, peer[1])->number, node_peer_of(a, peer[0])->number + KDP_BATCH_PATHS);
  side_lane *l = side_lane_make(a, 1);
  kdp_packet packet[PACKETS];
  uint8_t bytes[100];
  for (int i = 0; i < PACKETS; i++) {
    uint32_t size = node_packet(bytes, a, peer[i % 2], 50);
    assert_true(kdp_pool_take_packet(l->pool, KDP_WIREGUARD_HEAD, size, KDP_WIREGUARD_TAIL, &packet[i]));
    memcpy(packet[i].data, bytes, size);
  }
  kdp_batch batch = {.packet = packet, .count = PACKETS, .capacity = PACKETS};
  assert_int_equal(kdp_engine_inside(l->lane, &batch, l->out, now), PACKETS);
  assert_int_equal(l->out->wire.count, PACKETS);
  for (int i = 0; i < PACKETS; i++)
    assert_true(kdp_address_equal(&l->out->wire.path[l->out->wire.packet[i].path].remote, &peer[i % 2]->address));
  side_lane_free(l);
  node_free(a);
  node_free(peer[0]);
  node_free(peer[1]);
}

/* ---- Counters ---- */

static void lanes_that_use_a_session_up_send_nothing_beyond_its_last_counter(void **state) {
  (void)state;
  enum { LEFT = 100, EACH = 64 };
  node *a = node_make(1, NULL, &three_lanes), *b = node_make(2, NULL, NULL);
  kdp_now now = node_time(1000);
  node_connect(a, b, now);
  side_lane *l[2] = {side_lane_make(a, 1), side_lane_make(a, 2)};
  node_peer_of(a, b)->current->send_counter = KDP_WG_REJECT_AFTER_MESSAGES - LEFT;
  bool seen[LEFT] = {false};
  uint32_t sent = 0, handed_over = 0;
  for (int round = 0; round < 4; round++) {
    side_lane *lane = l[round % 2];
    kdp_packet packet[EACH];
    uint8_t bytes[64];
    uint32_t size = node_packet(bytes, a, b, 1);
    for (int i = 0; i < EACH; i++) {
      assert_true(kdp_pool_take_packet(lane->pool, KDP_WIREGUARD_HEAD, size, KDP_WIREGUARD_TAIL, &packet[i]));
      memcpy(packet[i].data, bytes, size);
    }
    kdp_batch batch = {.packet = packet, .count = EACH, .capacity = EACH};
    assert_int_equal(kdp_engine_inside(lane->lane, &batch, lane->out, now), EACH);
    for (uint32_t i = 0; i < lane->out->wire.count; i++) {
      uint64_t counter = kdp_load_le64(lane->out->wire.packet[i].data + 8);
      assert_true(counter < KDP_WG_REJECT_AFTER_MESSAGES && counter >= KDP_WG_REJECT_AFTER_MESSAGES - LEFT);
      uint64_t at = counter - (KDP_WG_REJECT_AFTER_MESSAGES - LEFT);
      assert_false(seen[at]);
      seen[at] = true;
      sent++;
    }
    for (int i = 0; i < EACH; i++)
      handed_over += packet[i].status == KDP_HANDED_OVER;
    side_lane_drain(lane);
  }
  assert_int_equal(sent, LEFT);
  assert_int_equal(handed_over, 4 * EACH - LEFT);
  side_lane_free(l[0]);
  side_lane_free(l[1]);
  node_free(a);
  node_free(b);
}

/* Packets that were looked at while there were counters for them, and another lane was faster: what is too many is
   dropped, and counted. Two threads meet so only now and then; here the packets of a batch before are put into the
   group once more. */
static void a_counter_beyond_the_last_is_dropped(void **state) {
  (void)state;
  enum { BEFORE = 5, LEFT = 4 };
  lane_pair p = lane_pair_make();
  kdp_packet packet[BEFORE];
  uint8_t bytes[64];
  uint32_t size = node_packet(bytes, p.a, p.b, 1);
  for (int i = 0; i < BEFORE; i++) {
    assert_true(kdp_pool_take_packet(p.l->pool, KDP_WIREGUARD_HEAD, size, KDP_WIREGUARD_TAIL, &packet[i]));
    memcpy(packet[i].data, bytes, size);
  }
  kdp_batch batch = {.packet = packet, .count = BEFORE, .capacity = BEFORE};
  assert_int_equal(kdp_engine_inside(p.l->lane, &batch, p.l->out, p.now), BEFORE);
  kdp_pool_retain(p.l->pool, packet[0].slot, BEFORE);
  side_lane_drain(p.l);
  kdp_wg_lane_of(p.l->lane)->group.count = BEFORE;
  node_peer_of(p.a, p.b)->current->send_counter = KDP_WG_REJECT_AFTER_MESSAGES - LEFT;
  assert_int_equal(side_lane_send(p.l, bytes, size, p.now), KDP_OK);
  assert_int_equal(p.l->out->wire.count, LEFT);
  for (uint32_t i = 0; i < LEFT; i++)
    assert_true(kdp_load_le64(p.l->out->wire.packet[i].data + 8) == KDP_WG_REJECT_AFTER_MESSAGES - LEFT + i);
  assert_int_equal(node_counted(p.a, KDP_KEY_EXPIRED), BEFORE + 1 - LEFT);
  lane_pair_free(&p);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(an_engine_has_the_lanes_it_was_made_with_and_no_more_than_its_window_allows),
      cmocka_unit_test(creation_that_fails_leaves_nothing),
      cmocka_unit_test(another_lane_seals_and_opens_with_a_session_that_is_up),
      cmocka_unit_test(what_is_refused_without_a_change_is_refused_by_the_lane_itself),
      cmocka_unit_test(each_peer_of_a_mixed_batch_has_its_path),
      cmocka_unit_test(peers_of_one_place_keep_their_paths_apart),
      cmocka_unit_test(lanes_that_use_a_session_up_send_nothing_beyond_its_last_counter),
      cmocka_unit_test(a_counter_beyond_the_last_is_dropped),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
