/* WireGuard on more than one lane, one call after the other: what another lane than 0 does itself, what it hands over
   and how, and what its notes bring about. With threads: wireguard_lane_threads_test.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "support/wireguard_lane.h"

#define SECONDS(n) ((n)*KDP_SECOND)

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
  node *a = node_make(1, NULL, &three_lanes), *b = node_make(2, NULL, NULL);
  kdp_now now = node_time(1000);
  node_connect(a, b, now);
  side_lane *l = side_lane_make(a, 1);
  kdp_path path = node_path(a, b);
  uint8_t bytes[64] = {KDP_WG_TRANSPORT};
  assert_int_equal(side_lane_receive(l, bytes, sizeof bytes, &path, now), KDP_UNKNOWN_SESSION);
  assert_int_equal(side_lane_receive(l, bytes, 3, &path, now), KDP_TOO_SHORT);
  bytes[0] = 9;
  assert_int_equal(side_lane_receive(l, bytes, sizeof bytes, &path, now), KDP_UNKNOWN_TYPE);
  assert_int_equal(node_send_to(b, a, 1, now), KDP_OK);
  b->sent[0].bytes[40] ^= 1;
  assert_int_equal(side_lane_receive(l, b->sent[0].bytes, b->sent[0].size, &path, now), KDP_AUTHENTICATION_FAILED);
  b->sent[0].bytes[40] ^= 1;
  assert_int_equal(side_lane_receive(l, b->sent[0].bytes, b->sent[0].size, &path, now), KDP_OK);
  assert_int_equal(side_lane_send(l, bytes, sizeof bytes, now), KDP_NOT_IP);
  assert_int_equal(node_counted(a, KDP_UNKNOWN_SESSION), 1);
  assert_int_equal(node_counted(a, KDP_AUTHENTICATION_FAILED), 1);
  assert_int_equal(node_counted(a, KDP_NOT_IP), 1);
  assert_int_equal(node_counted(a, KDP_HANDED_OVER), 0);
  side_lane_free(l);
  node_free(a);
  node_free(b);
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

/* ---- What it hands over ---- */

/* The one action of the lane is this packet, whole. */
static void assert_handed_over(const side_lane *l, const void *bytes, uint32_t size, const kdp_path *path) {
  assert_int_equal(l->out->action_count, 1);
  const kdp_action *action = &l->out->action[0];
  assert_int_equal(action->kind, KDP_ACTION_HANDOFF);
  assert_int_equal(action->from_inside, path == NULL);
  if (path) assert_true(kdp_path_equal(&action->path, path));
  assert_int_equal(action->packet.size, size);
  assert_memory_equal(action->packet.data, bytes, size);
  assert_int_equal(l->out->wire.count + l->out->inside.count, 0);
}

static void handshake_messages_are_handed_over_and_lane_0_answers(void **state) {
  (void)state;
  node *a = node_make(1, NULL, &three_lanes), *b = node_make(2, NULL, &three_lanes);
  side_lane *at_a = side_lane_make(a, 1), *at_b = side_lane_make(b, 1);
  kdp_now now = node_time(1000);
  assert_int_equal(node_add_peer(a, b, true, now), KDP_OK);
  assert_int_equal(node_add_peer(b, a, false, now), KDP_OK);
  assert_int_equal(node_send_to(a, b, 10, now), KDP_OK);
  kdp_path to_b = node_path(b, a), to_a = node_path(a, b);

  assert_int_equal(side_lane_receive(at_b, a->sent[0].bytes, a->sent[0].size, &to_b, now), KDP_HANDED_OVER);
  assert_handed_over(at_b, a->sent[0].bytes, a->sent[0].size, &to_b);
  assert_int_equal(side_lane_pass_on(at_b, now), 1);
  assert_int_equal(node_count_sent(b, KDP_WG_RESPONSE, NULL), 1);
  assert_int_equal(side_lane_receive(at_a, b->sent[0].bytes, b->sent[0].size, &to_a, now), KDP_HANDED_OVER);
  assert_handed_over(at_a, b->sent[0].bytes, b->sent[0].size, &to_a);
  assert_int_equal(side_lane_pass_on(at_a, now), 1);

  /* The packet that was staged: the key is not confirmed yet, so the lane neither opens it nor moves its window. */
  uint32_t data = 0;
  assert_int_equal(node_count_sent(a, KDP_WG_TRANSPORT, &data), 1);
  assert_int_equal(side_lane_receive(at_b, a->sent[data].bytes, a->sent[data].size, &to_b, now), KDP_HANDED_OVER);
  assert_handed_over(at_b, a->sent[data].bytes, a->sent[data].size, &to_b);
  assert_int_equal(node_peer_of(b, a)->next->window.next, 0);
  assert_int_equal(side_lane_pass_on(at_b, now), 1);
  assert_int_equal(b->delivered_count, 1);
  assert_non_null(node_peer_of(b, a)->current);

  /* A cookie reply (this one is nobody's). */
  uint8_t cookie[sizeof(kdp_wg_cookie_reply)] = {KDP_WG_COOKIE_REPLY};
  assert_int_equal(side_lane_receive(at_a, cookie, sizeof cookie, &to_a, now), KDP_HANDED_OVER);
  assert_int_equal(side_lane_pass_on(at_a, now), 1);
  assert_int_equal(node_counted(a, KDP_UNKNOWN_SESSION), 1);

  /* From now on it is all the lanes' own. */
  assert_int_equal(side_lane_receive_from(at_b, a, 20, now), KDP_OK);
  assert_int_equal(side_lane_receive_from(at_a, b, 20, now), KDP_OK);
  assert_int_equal(node_counted(a, KDP_HANDED_OVER), 2);
  assert_int_equal(node_counted(b, KDP_HANDED_OVER), 2);
  side_lane_free(at_a);
  side_lane_free(at_b);
  node_free(a);
  node_free(b);
}

enum { BURST = 200 };

/* As many packets of b as one batch brings, on the lane; returns what became of the first, all others being `rest`. */
static kdp_status receive_burst(side_lane *l, node *b, kdp_status rest, kdp_now now) {
  kdp_path path = node_path(l->of, b);
  kdp_packet packet[BURST];
  kdp_batch batch = {
      .packet = packet, .count = BURST, .capacity = BURST, .path = &path, .path_count = 1, .path_capacity = 1};
  for (uint32_t i = 0; i < BURST; i++) {
    const kept_datagram *data = sealed_data(b, l->of, 10, now);
    assert_true(kdp_pool_take_packet(l->pool, 0, data->size, 0, &packet[i]));
    memcpy(packet[i].data, data->bytes, data->size);
    node_forget(b);
  }
  assert_int_equal(kdp_engine_outside(l->lane, &batch, l->out, now), BURST);
  for (uint32_t i = 1; i < BURST; i++)
    assert_int_equal(packet[i].status, rest);
  return packet[0].status;
}

/* b renews the session while it sends more in a batch than can be handed over. */
static void a_burst_under_a_new_key_is_not_lost(void **state) {
  (void)state;
  node *a = node_make(1, NULL, &three_lanes), *b = node_make(2, NULL, NULL);
  kdp_now now = node_time(1000);
  node_connect(a, b, now);
  side_lane *l = side_lane_make(a, 1);
  kdp_wg_peer *peer = node_peer_of(a, b);
  now = node_later(now, KDP_WG_REKEY_TIMEOUT);
  node_forget(a), node_forget(b);
  kdp_wg_want_handshake(b->device, node_peer_of(b, a), now.boot);
  node_tick(b, now);
  assert_int_equal(node_pass(b, 0, a, now), KDP_OK);
  assert_int_equal(node_pass(a, 0, b, now), KDP_OK);
  const kdp_wg_key_pair *fresh = peer->next;
  assert_non_null(fresh);

  uint32_t room = l->out->action_capacity;
  assert_true(BURST > room);
  l->out->action_capacity = 0;
  assert_int_equal(receive_burst(l, b, KDP_OK, now), KDP_OK);
  assert_int_equal(l->out->inside.count, BURST);
  side_lane_drain(l);
  l->out->action_capacity = room;
  assert_int_equal(receive_burst(l, b, KDP_OK, now), KDP_HANDED_OVER);
  assert_int_equal(l->out->inside.count, BURST - 1);
  assert_ptr_equal(peer->next, fresh); /* that is lane 0's to change */
  assert_int_equal(side_lane_pass_on(l, now), 1);
  assert_ptr_equal(peer->current, fresh);
  assert_int_equal(a->delivered_count, 1);
  assert_int_equal(side_lane_receive_from(l, b, 10, now), KDP_OK);
  side_lane_free(l);
  node_free(a);
  node_free(b);
}

/* An answer to what was opened could not leave before lane 0 has confirmed the key. */
static void a_burst_under_the_first_key_is_all_for_lane_0(void **state) {
  (void)state;
  node *a = node_make(1, NULL, &three_lanes), *b = node_make(2, NULL, NULL);
  kdp_now now = node_time(1000);
  side_lane *l = side_lane_make(a, 1);
  assert_int_equal(node_add_peer(a, b, false, now), KDP_OK);
  assert_int_equal(node_add_peer(b, a, true, now), KDP_OK);
  assert_int_equal(node_send_to(b, a, 10, now), KDP_OK);
  assert_int_equal(node_pass(b, 0, a, now), KDP_OK);
  assert_int_equal(node_pass(a, 0, b, now), KDP_OK);
  assert_non_null(node_peer_of(a, b)->next);
  l->out->action_capacity = 1;
  assert_int_equal(receive_burst(l, b, KDP_HANDOVER_FULL, now), KDP_HANDED_OVER);
  assert_int_equal(l->out->inside.count, 0);
  side_lane_free(l);
  node_free(a);
  node_free(b);
}

static void a_packet_from_elsewhere_is_handed_over_and_the_endpoint_follows(void **state) {
  (void)state;
  node *a = node_make(1, NULL, &three_lanes), *b = node_make(2, NULL, NULL);
  kdp_now now = node_time(1000);
  node_connect(a, b, now);
  side_lane *l = side_lane_make(a, 1);
  kdp_path moved = node_path(a, b);
  moved.remote.port++;
  assert_int_equal(node_send_to(b, a, 10, now), KDP_OK);
  assert_int_equal(side_lane_receive(l, b->sent[0].bytes, b->sent[0].size, &moved, now), KDP_HANDED_OVER);
  assert_handed_over(l, b->sent[0].bytes, b->sent[0].size, &moved);
  assert_int_equal(side_lane_pass_on(l, now), 1);
  assert_int_equal(a->delivered_count, 1);
  assert_int_equal(node_count_events(a, KDP_EVENT_ENDPOINT_CHANGED, NULL), 1);
  assert_true(kdp_path_equal(&node_peer_of(a, b)->path, &moved));
  /* Along the new path it opens, and seals to it. */
  assert_int_equal(node_send_to(b, a, 10, now), KDP_OK);
  assert_int_equal(side_lane_receive(l, b->sent[1].bytes, b->sent[1].size, &moved, now), KDP_OK);
  assert_int_equal(side_lane_send_to(l, b, 10, now), KDP_OK);
  assert_true(kdp_address_equal(&l->out->wire.path[0].remote, &moved.remote));
  side_lane_free(l);
  node_free(a);
  node_free(b);
}

/* Two paths in one batch: only what comes along the peer's own is opened. */
static void paths_of_one_batch_are_told_apart(void **state) {
  (void)state;
  node *a = node_make(1, NULL, &three_lanes), *b = node_make(2, NULL, NULL);
  kdp_now now = node_time(1000);
  node_connect(a, b, now);
  side_lane *l = side_lane_make(a, 1);
  kdp_path path[2] = {node_path(a, b), node_path(a, b)};
  path[1].ifindex++;
  kdp_packet packet[6];
  for (uint32_t i = 0; i < 6; i++) {
    assert_int_equal(node_send_to(b, a, i, now), KDP_OK);
    assert_true(kdp_pool_take_packet(l->pool, 0, b->sent[i].size, 0, &packet[i]));
    memcpy(packet[i].data, b->sent[i].bytes, b->sent[i].size);
    packet[i].path = (uint16_t)(i / 2 % 2);
  }
  kdp_batch batch = {.packet = packet, .count = 6, .capacity = 6, .path = path, .path_count = 2, .path_capacity = 2};
  assert_int_equal(kdp_engine_outside(l->lane, &batch, l->out, now), 6);
  for (uint32_t i = 0; i < 6; i++)
    assert_int_equal(packet[i].status, i / 2 % 2 ? KDP_HANDED_OVER : KDP_OK);
  assert_int_equal(l->out->inside.count, 4);
  side_lane_free(l);
  node_free(a);
  node_free(b);
}

static void inside_packets_without_a_way_are_handed_over(void **state) {
  (void)state;
  node *a = node_make(1, NULL, &three_lanes), *b = node_make(2, NULL, NULL), *c = node_make(3, NULL, NULL);
  node *silent = node_make(4, NULL, NULL);
  kdp_now now = node_time(1000);
  uint8_t packet[2000];
  side_lane *l = side_lane_make(a, 1);
  assert_int_equal(node_add_peer(a, b, false, now), KDP_OK);
  assert_int_equal(node_add_peer(a, silent, true, now), KDP_OK);

  /* Nobody has the address; the peer's place is not known: ICMP errors are lane 0's. */
  const node *nowhere[] = {c, b};
  const kdp_status why[] = {KDP_NO_ROUTE, KDP_NO_ENDPOINT};
  for (int i = 0; i < 2; i++) {
    uint32_t size = node_packet(packet, a, nowhere[i], 10);
    assert_int_equal(side_lane_send(l, packet, size, now), KDP_HANDED_OVER);
    assert_handed_over(l, packet, size, NULL);
    assert_int_equal(side_lane_pass_on(l, now), 1);
    assert_int_equal(node_counted(a, why[i]), 1);
    assert_int_equal(a->delivered_count, (uint32_t)i + 1);
  }
  /* No session: lane 0 stages it and begins a handshake. */
  uint32_t size = node_packet(packet, a, silent, 10);
  assert_int_equal(side_lane_send(l, packet, size, now), KDP_HANDED_OVER);
  assert_handed_over(l, packet, size, NULL);
  assert_int_equal(side_lane_pass_on(l, now), 1);
  assert_int_equal(node_peer_of(a, silent)->staged.count, 1);
  assert_int_equal(node_count_sent(a, KDP_WG_INITIATION, NULL), 1);
  kdp_statistics statistics;
  kdp_engine_statistics(a->engine, &statistics);
  assert_int_equal(statistics.inside_in.packets, 3); /* counted where they end, once */
  assert_int_equal(statistics.status[KDP_HANDED_OVER], 3);
  side_lane_free(l);
  node_free(a);
  node_free(b);
  node_free(c);
  node_free(silent);
}

static void a_packet_too_big_for_the_path_is_handed_over(void **state) {
  (void)state;
  node *a = node_make(1, NULL, &three_lanes), *b = node_make(2, NULL, NULL);
  kdp_now now = node_time(1000);
  node_connect(a, b, now);
  side_lane *l = side_lane_make(a, 1);
  kdp_path path = node_path(a, b);
  kdp_engine_path_mtu(a->lane, &path, 1400, now); /* 1400 - 20 - 8 - 32 = 1340 */
  uint8_t packet[2000];
  uint32_t size = node_packet(packet, a, b, 1341 - 28);
  assert_int_equal(side_lane_send(l, packet, size, now), KDP_OK); /* it may be fragmented */
  side_lane_drain(l);
  packet[6] = 0x40; /* DF */
  assert_int_equal(side_lane_send(l, packet, size, now), KDP_HANDED_OVER);
  assert_handed_over(l, packet, size, NULL);
  assert_int_equal(side_lane_pass_on(l, now), 1);
  assert_int_equal(node_counted(a, KDP_TOO_BIG), 1);
  assert_int_equal(a->delivered_count, 1);
  packet[3]--; /* one less fits */
  assert_int_equal(side_lane_send(l, packet, size - 1, now), KDP_OK);
  side_lane_free(l);
  node_free(a);
  node_free(b);
}

static void staged_packets_go_first(void **state) {
  (void)state;
  node *a = node_make(1, NULL, &three_lanes), *b = node_make(2, NULL, NULL);
  kdp_now now = node_time(1000);
  node_connect(a, b, now);
  side_lane *l = side_lane_make(a, 1);
  uint8_t packet[100];
  uint32_t size = node_packet(packet, a, b, 7);
  (void)kdp_wg_staging_copy_in(&a->device->staging, &node_peer_of(a, b)->staged, packet, size);
  size = node_packet(packet, a, b, 8);
  assert_int_equal(side_lane_send(l, packet, size, now), KDP_HANDED_OVER);
  assert_int_equal(side_lane_pass_on(l, now), 1);
  node_exchange(a, b, now);
  assert_int_equal(b->delivered_count, 2);
  assert_int_equal(b->delivered[0].size, 28 + 7);
  assert_int_equal(b->delivered[1].size, 28 + 8);
  side_lane_free(l);
  node_free(a);
  node_free(b);
}

static void a_full_list_of_actions_drops_and_counts(void **state) {
  (void)state;
  node *a = node_make(1, NULL, &three_lanes), *b = node_make(2, NULL, NULL);
  kdp_now now = node_time(1000);
  side_lane *l = side_lane_make(a, 1);
  uint32_t room = l->out->action_capacity;
  kdp_path path = node_path(a, b);
  uint8_t initiation[sizeof(kdp_wg_initiation)] = {KDP_WG_INITIATION};
  for (uint32_t i = 0; i < room; i++)
    assert_int_equal(side_lane_receive(l, initiation, sizeof initiation, &path, now), KDP_HANDED_OVER);
  assert_int_equal(side_lane_receive(l, initiation, sizeof initiation, &path, now), KDP_HANDOVER_FULL);
  assert_int_equal(side_lane_send_to(l, b, 10, now), KDP_HANDOVER_FULL);
  kdp_statistics statistics;
  kdp_engine_statistics(a->engine, &statistics);
  assert_int_equal(statistics.status[KDP_HANDED_OVER], room);
  assert_int_equal(statistics.status[KDP_HANDOVER_FULL], 2);
  assert_int_equal(statistics.inside_in.packets, 1); /* it ended here */
  side_lane_free(l);
  node_free(a);
  node_free(b);
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
  node *a = node_make(1, NULL, &three_lanes), *b = node_make(2, NULL, NULL);
  kdp_now now = node_time(1000);
  node_connect(a, b, now);
  side_lane *l = side_lane_make(a, 1);
  kdp_packet packet[BEFORE];
  uint8_t bytes[64];
  uint32_t size = node_packet(bytes, a, b, 1);
  for (int i = 0; i < BEFORE; i++) {
    assert_true(kdp_pool_take_packet(l->pool, KDP_WIREGUARD_HEAD, size, KDP_WIREGUARD_TAIL, &packet[i]));
    memcpy(packet[i].data, bytes, size);
  }
  kdp_batch batch = {.packet = packet, .count = BEFORE, .capacity = BEFORE};
  assert_int_equal(kdp_engine_inside(l->lane, &batch, l->out, now), BEFORE);
  kdp_pool_retain(l->pool, packet[0].slot, BEFORE);
  side_lane_drain(l);
  kdp_wg_lane_of(l->lane)->group.count = BEFORE;
  node_peer_of(a, b)->current->send_counter = KDP_WG_REJECT_AFTER_MESSAGES - LEFT;
  assert_int_equal(side_lane_send(l, bytes, size, now), KDP_OK);
  assert_int_equal(l->out->wire.count, LEFT);
  for (uint32_t i = 0; i < LEFT; i++)
    assert_true(kdp_load_le64(l->out->wire.packet[i].data + 8) == KDP_WG_REJECT_AFTER_MESSAGES - LEFT + i);
  assert_int_equal(node_counted(a, KDP_KEY_EXPIRED), BEFORE + 1 - LEFT);
  side_lane_free(l);
  node_free(a);
  node_free(b);
}

/* ---- Notes and timers ---- */

/* a (three lanes) and b with a session that a began. */
typedef struct pair {
  node *a, *b;
  side_lane *l; /* lane 1 of a */
  kdp_now now;
} pair;

static pair connected(void) {
  pair p = {.a = node_make(1, NULL, &three_lanes), .b = node_make(2, NULL, NULL), .now = node_time(1000)};
  node_connect(p.a, p.b, p.now);
  p.l = side_lane_make(p.a, 1);
  return p;
}

/* Half a minute of silence: no timer that data started runs any more. */
static void settle(pair *p) {
  p->now = node_run_both(p->a, p->b, p->now, p->now.boot + SECONDS(30));
  node_forget(p->a);
  node_forget(p->b);
}

static void done(pair *p) {
  side_lane_free(p->l);
  node_free(p->a);
  node_free(p->b);
}

/* Data from a on lane 1; lane 0 is told as a worker would tell it. */
static void send_on_lane_1(pair *p) {
  assert_int_equal(side_lane_send_to(p->l, p->b, 10, p->now), KDP_OK);
  (void)side_lane_pass_on(p->l, p->now);
}

static void receive_on_lane_1(pair *p) {
  assert_int_equal(side_lane_receive_from(p->l, p->b, 10, p->now), KDP_OK);
  (void)side_lane_pass_on(p->l, p->now);
}

static void pass_time(pair *p, uint64_t nanoseconds) {
  p->now = node_run(p->a, p->now, p->now.boot + nanoseconds);
}

static void lane_0_is_woken_once_as_long_as_a_peer_is_active(void **state) {
  (void)state;
  pair p = connected();
  assert_true(kdp_engine_deadline(p.l->lane) == KDP_NEVER);
  uint64_t idle = kdp_engine_deadline(p.a->lane);
  assert_int_equal(side_lane_send_to(p.l, p.b, 10, p.now), KDP_OK);
  assert_int_equal(side_lane_wakes(p.l), 1);
  assert_int_equal(p.l->out->action[0].packet.slot, KDP_NO_SLOT);
  assert_true(kdp_engine_deadline(p.a->lane) == p.now.boot && idle > p.now.boot);
  (void)side_lane_pass_on(p.l, p.now);
  assert_true(kdp_engine_deadline(p.a->lane) > p.now.boot);
  for (int i = 0; i < 100; i++) {
    assert_int_equal(side_lane_send_to(p.l, p.b, 10, p.now), KDP_OK);
    assert_int_equal(side_lane_wakes(p.l), 0);
    side_lane_drain(p.l);
    pass_time(&p, 20 * KDP_MILLISECOND);
  }
  /* Idle for two looks: nobody watches, and the next packet is told again. */
  pass_time(&p, 2 * KDP_WG_NOTES_INTERVAL + KDP_MILLISECOND);
  assert_int_equal(atomic_load(&node_peer_of(p.a, p.b)->notes.watched), 0);
  assert_int_equal(side_lane_send_to(p.l, p.b, 10, p.now), KDP_OK);
  assert_int_equal(side_lane_wakes(p.l), 1);
  (void)side_lane_pass_on(p.l, p.now);
  done(&p);
}

/* Twenty that become active a few milliseconds apart are looked at together from then on. */
static void many_active_peers_do_not_wake_lane_0_more_often(void **state) {
  (void)state;
  enum { PEERS = 20 };
  node *a = node_make(1, NULL, &three_lanes), *peer[PEERS];
  kdp_now now = node_time(1000);
  for (int i = 0; i < PEERS; i++) {
    peer[i] = node_make((uint8_t)(2 + i), NULL, NULL);
    node_connect(a, peer[i], now);
  }
  side_lane *l = side_lane_make(a, 1);
  for (int i = 0; i < PEERS; i++) {
    now = node_later(now, 3 * KDP_MILLISECOND);
    assert_int_equal(side_lane_send_to(l, peer[i], 10, now), KDP_OK);
    (void)side_lane_pass_on(l, now);
  }
  uint32_t ticks = 0;
  for (uint64_t until = now.boot + 2 * KDP_WG_NOTES_INTERVAL, next; (next = kdp_engine_deadline(a->lane)) <= until;) {
    now = node_later(now, next - now.boot);
    node_tick(a, now);
    ticks++;
  }
  assert_in_range(ticks, 1, 2);
  for (int i = 0; i < PEERS; i++)
    assert_int_equal(atomic_load(&node_peer_of(a, peer[i])->notes.watched), 0);
  side_lane_free(l);
  for (int i = 0; i < PEERS; i++)
    node_free(peer[i]);
  node_free(a);
}

/* The wake finds no room among the actions: the lane's own deadline brings it about. */
static void a_wake_waits_for_room(void **state) {
  (void)state;
  pair p = connected();
  kdp_path path = node_path(p.a, p.b);
  uint8_t initiation[sizeof(kdp_wg_initiation)] = {KDP_WG_INITIATION};
  for (uint32_t i = 0; i < p.l->out->action_capacity; i++)
    assert_int_equal(side_lane_receive(p.l, initiation, sizeof initiation, &path, p.now), KDP_HANDED_OVER);
  assert_int_equal(side_lane_send_to(p.l, p.b, 10, p.now), KDP_OK);
  assert_int_equal(side_lane_wakes(p.l), 0);
  assert_true(kdp_engine_deadline(p.l->lane) <= p.now.boot);
  kdp_engine_tick(p.l->lane, p.l->out, p.now);
  assert_int_equal(side_lane_wakes(p.l), 0);
  side_lane_drain(p.l);
  kdp_engine_tick(p.l->lane, p.l->out, p.now);
  assert_int_equal(side_lane_wakes(p.l), 1);
  assert_true(kdp_engine_deadline(p.l->lane) == KDP_NEVER);
  (void)side_lane_pass_on(p.l, p.now);
  done(&p);
}

static void data_without_an_answer_begins_a_handshake_after_15_s(void **state) {
  (void)state;
  pair p = connected();
  settle(&p);
  send_on_lane_1(&p);
  for (int i = 0; i < 10; i++) { /* later packets do not put it off */
    pass_time(&p, SECONDS(1));
    send_on_lane_1(&p);
  }
  pass_time(&p, SECONDS(5) - 1);
  assert_int_equal(node_count_sent(p.a, KDP_WG_INITIATION, NULL), 0);
  pass_time(&p, KDP_WG_REKEY_TIMEOUT_JITTER + 1);
  assert_int_equal(node_count_sent(p.a, KDP_WG_INITIATION, NULL), 1);
  done(&p);
}

static void an_answer_on_a_lane_begins_no_handshake(void **state) {
  (void)state;
  pair p = connected();
  settle(&p);
  send_on_lane_1(&p);
  pass_time(&p, SECONDS(14));
  receive_on_lane_1(&p);
  pass_time(&p, SECONDS(9));
  send_on_lane_1(&p); /* so that no keepalive is due */
  pass_time(&p, SECONDS(15) - 1);
  assert_int_equal(p.a->sent_count, 0);
  /* Nor does one that lane 0 opened. */
  const kept_datagram *data = sealed_data(p.b, p.a, 1, p.now);
  kdp_path path = node_path(p.a, p.b);
  assert_int_equal(node_receive(p.a, data->bytes, data->size, &path, p.now), KDP_OK);
  pass_time(&p, SECONDS(9));
  assert_int_equal(node_count_sent(p.a, KDP_WG_INITIATION, NULL), 0);
  done(&p);
}

static void data_received_on_a_lane_is_answered_by_a_keepalive_after_10_s(void **state) {
  (void)state;
  pair p = connected();
  settle(&p);
  receive_on_lane_1(&p);
  pass_time(&p, SECONDS(4));
  receive_on_lane_1(&p); /* does not put it off */
  pass_time(&p, SECONDS(6) - 1);
  assert_int_equal(p.a->sent_count, 0);
  pass_time(&p, 1);
  assert_int_equal(p.a->sent_count, 1);
  assert_int_equal(p.a->sent[0].size, KDP_WIREGUARD_OVERHEAD);
  pass_time(&p, SECONDS(30));
  assert_int_equal(p.a->sent_count, 1);

  /* Data of a lane in time makes it unnecessary. */
  receive_on_lane_1(&p);
  pass_time(&p, SECONDS(10) - 1);
  send_on_lane_1(&p);
  receive_on_lane_1(&p);
  pass_time(&p, SECONDS(10) - 1);
  assert_int_equal(p.a->sent_count, 1);
  pass_time(&p, 1);
  assert_int_equal(p.a->sent_count, 2);
  done(&p);
}

/* An empty packet that a lane opens starts nothing. */
static void two_ends_fall_silent(void **state) {
  (void)state;
  pair p = connected();
  settle(&p);
  send_on_lane_1(&p);
  pass_time(&p, SECONDS(10));
  kdp_path path = node_path(p.a, p.b);
  uint32_t before = p.b->sent_count;
  kdp_wg_owe_keepalive(p.b->device, node_peer_of(p.b, p.a));
  node_tick(p.b, p.now);
  assert_int_equal(p.b->sent_count, before + 1);
  assert_int_equal(side_lane_receive(p.l, p.b->sent[before].bytes, p.b->sent[before].size, &path, p.now),
                   KDP_KEEPALIVE);
  (void)side_lane_pass_on(p.l, p.now);
  pass_time(&p, SECONDS(60));
  assert_int_equal(p.a->sent_count, 0);
  done(&p);
}

static void traffic_of_a_lane_puts_the_persistent_keepalive_off(void **state) {
  (void)state;
  pair p = connected();
  assert_int_equal(node_set_keepalive(p.a, p.b, 2, p.now), KDP_OK);
  node_exchange(p.a, p.b, p.now);
  node_forget(p.a);
  for (int i = 0; i < 20; i++) {
    pass_time(&p, SECONDS(2) - 1);
    if (i % 2)
      send_on_lane_1(&p);
    else
      receive_on_lane_1(&p);
  }
  assert_int_equal(p.a->sent_count, 0);
  pass_time(&p, SECONDS(2) - 1);
  assert_int_equal(p.a->sent_count, 0);
  pass_time(&p, 1);
  assert_int_equal(p.a->sent_count, 1);
  done(&p);
}

static void an_old_session_is_renewed_by_what_a_lane_sends(void **state) {
  (void)state;
  pair p = connected();
  uint64_t birth = node_peer_of(p.a, p.b)->current->birth;
  while (p.now.boot < birth + KDP_WG_REKEY_AFTER_TIME - SECONDS(2)) {
    send_on_lane_1(&p);
    receive_on_lane_1(&p);
    pass_time(&p, SECONDS(2));
  }
  assert_int_equal(node_count_sent(p.a, KDP_WG_INITIATION, NULL), 0);
  pass_time(&p, birth + KDP_WG_REKEY_AFTER_TIME - 1 - p.now.boot);
  send_on_lane_1(&p);
  receive_on_lane_1(&p);
  pass_time(&p, KDP_WG_NOTES_INTERVAL);
  assert_int_equal(node_count_sent(p.a, KDP_WG_INITIATION, NULL), 0);
  send_on_lane_1(&p);
  pass_time(&p, KDP_WG_NOTES_INTERVAL);
  assert_int_equal(node_count_sent(p.a, KDP_WG_INITIATION, NULL), 1);
  done(&p);
}

static void a_session_that_sealed_much_is_renewed(void **state) {
  (void)state;
  pair p = connected();
  settle(&p);
  node_peer_of(p.a, p.b)->current->send_counter = KDP_WG_REKEY_AFTER_MESSAGES;
  send_on_lane_1(&p);
  pass_time(&p, KDP_WG_NOTES_INTERVAL);
  assert_int_equal(node_count_sent(p.a, KDP_WG_INITIATION, NULL), 1);
  done(&p);
}

static void an_old_session_is_renewed_by_what_a_lane_receives(void **state) {
  (void)state;
  pair p = connected();
  settle(&p);
  uint64_t birth = node_peer_of(p.a, p.b)->current->birth;
  pass_time(&p, birth + KDP_WG_REKEY_ON_RECEIVE_TIME - 1 - p.now.boot);
  node_forget(p.a);
  receive_on_lane_1(&p);
  pass_time(&p, 1);
  assert_int_equal(node_count_sent(p.a, KDP_WG_INITIATION, NULL), 0);
  receive_on_lane_1(&p);
  pass_time(&p, KDP_WG_NOTES_INTERVAL);
  assert_int_equal(node_count_sent(p.a, KDP_WG_INITIATION, NULL), 1);
  done(&p);
}

/* What a lane sealed with the old keys, and lane 0 reads of only after the new ones were made, is no reason to renew
   those. */
static void notes_from_before_a_new_session_renew_nothing(void **state) {
  (void)state;
  pair p = connected();
  kdp_wg_peer *peer = node_peer_of(p.a, p.b);
  pass_time(&p, KDP_WG_REKEY_AFTER_TIME - SECONDS(5));
  send_on_lane_1(&p);
  p.now = node_later(p.now, 1);
  assert_int_equal(side_lane_send_to(p.l, p.b, 10, p.now), KDP_OK);
  assert_int_equal(side_lane_wakes(p.l), 0); /* lane 0 looks by itself, later */
  uint64_t noted = p.now.boot;
  p.now = node_later(p.now, 1);
  node_forget(p.a);
  kdp_wg_want_handshake(p.a->device, peer, p.now.boot);
  node_tick(p.a, p.now);
  node_exchange(p.a, p.b, p.now);
  assert_true(peer->current->birth == p.now.boot);
  assert_true(peer->notes.seen_sent < noted);
  node_forget(p.a);
  pass_time(&p, SECONDS(6));
  assert_true(peer->notes.seen_sent == noted);
  assert_int_equal(node_count_sent(p.a, KDP_WG_INITIATION, NULL), 0);
  done(&p);
}

/* A peer that is heard on another lane is no reason to bind the socket anew, nor to look its name up. */
static void a_peer_heard_on_a_lane_counts_as_heard(void **state) {
  (void)state;
  pair p = connected();
  settle(&p);
  kdp_wg_peer *peer = node_peer_of(p.a, p.b);
  peer->unanswered = 5;
  peer->initiated[0] = p.now.boot;
  p.now = node_later(p.now, 1);
  receive_on_lane_1(&p);
  assert_int_equal(peer->unanswered, 0);
  assert_true(p.a->device->authenticated == p.now.boot);
  done(&p);
}

static void the_path_mtu_is_asked_for_with_data_of_a_lane(void **state) {
  (void)state;
  pair p = connected();
  kdp_path path = node_path(p.a, p.b);
  kdp_engine_path_mtu(p.a->lane, &path, 1400, p.now);
  node_forget(p.a);
  for (int i = 0; i < 30; i++) { /* silent otherwise; the session is renewed on the way */
    pass_time(&p, SECONDS(21));
    if (side_lane_send_to(p.l, p.b, 10, p.now) != KDP_OK) (void)0;
    (void)side_lane_pass_on(p.l, p.now);
    node_exchange(p.a, p.b, p.now);
  }
  kdp_action action = {0};
  assert_true(node_count_actions(p.a, KDP_ACTION_PATH_MTU, &action) >= 1);
  assert_true(kdp_address_equal(&action.path.remote, &p.b->address));
  done(&p);
}

/* A lane whose clock was read before the session was made is not told that the session is too old. */
static void a_session_made_a_moment_ago_is_not_from_the_future(void **state) {
  (void)state;
  node *a = node_make(1, NULL, &three_lanes), *b = node_make(2, NULL, NULL);
  side_lane *l = side_lane_make(a, 1);
  kdp_now now = node_time(1000), earlier = node_time(900);
  node_connect(a, b, now);
  assert_int_equal(side_lane_send_to(l, b, 10, earlier), KDP_OK);
  kdp_path path = node_path(a, b);
  assert_int_equal(node_send_to(b, a, 10, now), KDP_OK);
  assert_int_equal(side_lane_receive(l, b->sent[0].bytes, b->sent[0].size, &path, earlier), KDP_OK);
  side_lane_free(l);
  node_free(a);
  node_free(b);
}

/* An interface that was down is as new. */
static void a_peer_that_was_stopped_is_noticed_again(void **state) {
  (void)state;
  pair p = connected();
  send_on_lane_1(&p);
  p.now = node_later(p.now, KDP_SECOND);
  kdp_engine_link_down(p.a->lane, 0, 0, p.a->out, p.now);
  kdp_engine_link_up(p.a->lane, 0, KDP_LINK_DATAGRAM, &(kdp_path){0}, p.a->out, p.now);
  assert_int_equal(side_lane_send_to(p.l, p.b, 10, p.now), KDP_HANDED_OVER);
  (void)side_lane_pass_on(p.l, p.now);
  node_exchange(p.a, p.b, p.now);
  assert_int_equal(side_lane_send_to(p.l, p.b, 10, p.now), KDP_OK);
  assert_int_equal(side_lane_wakes(p.l), 1);
  done(&p);
}

static void a_peer_on_the_list_may_be_removed(void **state) {
  (void)state;
  enum { PEERS = 3 };
  node *a = node_make(1, NULL, &three_lanes), *peer[PEERS];
  side_lane *l = side_lane_make(a, 1);
  kdp_now now = node_time(1000);
  for (int i = 0; i < PEERS; i++) {
    peer[i] = node_make((uint8_t)(2 + i), NULL, NULL);
    node_connect(a, peer[i], now);
  }
  for (int removed = 0; removed < PEERS; removed++) {
    for (int i = 0; i < PEERS; i++)
      assert_int_equal(side_lane_send_to(l, peer[i], 10, now), KDP_OK);
    side_lane_drain(l);
    kdp_wg_peer *gone = node_peer_of(a, peer[removed]);
    kdp_wg_change_begin(a->device);
    kdp_wg_notes_forget(a->device, gone); /* what a removal does, with all of them on the list */
    kdp_wg_change_end(a->device);
    uint32_t listed = 0;
    for (kdp_wg_peer *at = atomic_load(&a->device->noted.first); at; at = at->notes.next) {
      assert_ptr_not_equal(at, gone);
      listed++;
    }
    assert_int_equal(listed, PEERS - 1);
    now = node_run(a, now, now.boot + SECONDS(5));
    for (int i = 0; i < PEERS; i++)
      assert_int_equal(atomic_load(&node_peer_of(a, peer[i])->notes.watched), 0);
  }
  for (int i = 0; i < PEERS; i++) {
    assert_int_equal(side_lane_send_to(l, peer[i], 10, now), KDP_OK);
    kdp_wireguard_peer_change change = node_peer(peer[i], false, NULL, 0);
    change.fields = KDP_WIREGUARD_PEER_REMOVE;
    assert_int_equal(node_apply(a, &(kdp_wireguard_change){.peer = &change, .peer_count = 1}, now), KDP_OK);
    assert_int_equal(side_lane_send_to(l, peer[i], 10, now), KDP_HANDED_OVER);
    side_lane_drain(l);
  }
  now = node_run(a, now, now.boot + SECONDS(60));
  side_lane_free(l);
  for (int i = 0; i < PEERS; i++)
    node_free(peer[i]);
  node_free(a);
}

/* Random traffic over three lanes against the two timers as the paper has them: every keepalive at its time, none that
   is not due, and no handshake as long as everything is answered within 15 s. */
static void timers_over_lanes_are_those_of_one(void **state) {
  (void)state;
  uint32_t keepalives = 0;
  for (uint64_t seed = 1; seed <= 40; seed++) {
    pair p = connected();
    side_lane *other = side_lane_make(p.a, 2);
    rng r = {seed};
    settle(&p);
    uint64_t owing = 0, awaiting = 0, end = p.now.boot + SECONDS(70);
    while (p.now.boot < end) {
      uint64_t step = rng_below(&r, 9000) * KDP_MILLISECOND, until = p.now.boot + step;
      if (awaiting != 0 && until >= awaiting + KDP_WG_NEW_HANDSHAKE_TIME)
        until = awaiting + KDP_WG_NEW_HANDSHAKE_TIME - 1;
      if (owing != 0 && until >= owing + KDP_WG_KEEPALIVE_TIMEOUT) {
        uint64_t due = owing + KDP_WG_KEEPALIVE_TIMEOUT;
        pass_time(&p, due - 1 - p.now.boot);
        assert_int_equal(p.a->sent_count, 0);
        pass_time(&p, 1);
        assert_int_equal(p.a->sent_count, 1);
        assert_int_equal(p.a->sent[0].size, KDP_WIREGUARD_OVERHEAD);
        node_forget(p.a);
        owing = 0;
        keepalives++;
      }
      pass_time(&p, until > p.now.boot ? until - p.now.boot : 0);
      assert_int_equal(p.a->sent_count, 0);
      uint32_t lane = rng_below(&r, 3);
      side_lane *l = lane == 1 ? p.l : other;
      bool must_receive = awaiting != 0 && p.now.boot + 1 == awaiting + KDP_WG_NEW_HANDSHAKE_TIME;
      if (!must_receive && rng_one_in(&r, 2)) {
        if (lane == 0)
          assert_int_equal(node_send_to(p.a, p.b, 10, p.now), KDP_OK);
        else
          assert_int_equal(side_lane_send_to(l, p.b, 10, p.now), KDP_OK);
        owing = 0;
        if (awaiting == 0) awaiting = p.now.boot;
      } else {
        if (lane == 0) {
          const kept_datagram *data = sealed_data(p.b, p.a, 10, p.now);
          kdp_path path = node_path(p.a, p.b);
          assert_int_equal(node_receive(p.a, data->bytes, data->size, &path, p.now), KDP_OK);
        } else {
          assert_int_equal(side_lane_receive_from(l, p.b, 10, p.now), KDP_OK);
        }
        awaiting = 0;
        if (owing == 0) owing = p.now.boot;
      }
      if (lane != 0) (void)side_lane_pass_on(l, p.now);
      node_forget(p.a);
    }
    side_lane_free(other);
    done(&p);
  }
  assert_true(keepalives > 20);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(an_engine_has_the_lanes_it_was_made_with_and_no_more_than_its_window_allows),
      cmocka_unit_test(creation_that_fails_leaves_nothing),
      cmocka_unit_test(another_lane_seals_and_opens_with_a_session_that_is_up),
      cmocka_unit_test(what_is_refused_without_a_change_is_refused_by_the_lane_itself),
      cmocka_unit_test(each_peer_of_a_mixed_batch_has_its_path),
      cmocka_unit_test(peers_of_one_place_keep_their_paths_apart),
      cmocka_unit_test(handshake_messages_are_handed_over_and_lane_0_answers),
      cmocka_unit_test(a_burst_under_a_new_key_is_not_lost),
      cmocka_unit_test(a_burst_under_the_first_key_is_all_for_lane_0),
      cmocka_unit_test(a_packet_from_elsewhere_is_handed_over_and_the_endpoint_follows),
      cmocka_unit_test(paths_of_one_batch_are_told_apart),
      cmocka_unit_test(inside_packets_without_a_way_are_handed_over),
      cmocka_unit_test(a_packet_too_big_for_the_path_is_handed_over),
      cmocka_unit_test(staged_packets_go_first),
      cmocka_unit_test(a_full_list_of_actions_drops_and_counts),
      cmocka_unit_test(lanes_that_use_a_session_up_send_nothing_beyond_its_last_counter),
      cmocka_unit_test(a_counter_beyond_the_last_is_dropped),
      cmocka_unit_test(lane_0_is_woken_once_as_long_as_a_peer_is_active),
      cmocka_unit_test(many_active_peers_do_not_wake_lane_0_more_often),
      cmocka_unit_test(a_wake_waits_for_room),
      cmocka_unit_test(data_without_an_answer_begins_a_handshake_after_15_s),
      cmocka_unit_test(an_answer_on_a_lane_begins_no_handshake),
      cmocka_unit_test(data_received_on_a_lane_is_answered_by_a_keepalive_after_10_s),
      cmocka_unit_test(two_ends_fall_silent),
      cmocka_unit_test(traffic_of_a_lane_puts_the_persistent_keepalive_off),
      cmocka_unit_test(an_old_session_is_renewed_by_what_a_lane_sends),
      cmocka_unit_test(a_session_that_sealed_much_is_renewed),
      cmocka_unit_test(an_old_session_is_renewed_by_what_a_lane_receives),
      cmocka_unit_test(notes_from_before_a_new_session_renew_nothing),
      cmocka_unit_test(a_peer_heard_on_a_lane_counts_as_heard),
      cmocka_unit_test(the_path_mtu_is_asked_for_with_data_of_a_lane),
      cmocka_unit_test(a_session_made_a_moment_ago_is_not_from_the_future),
      cmocka_unit_test(a_peer_that_was_stopped_is_noticed_again),
      cmocka_unit_test(a_peer_on_the_list_may_be_removed),
      cmocka_unit_test(timers_over_lanes_are_those_of_one),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
