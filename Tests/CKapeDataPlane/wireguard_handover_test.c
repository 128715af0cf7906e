/* What another lane than 0 hands over to it, and how. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "support/wireguard_lane.h"

static const kdp_limits three_lanes = {.lanes = 3};

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

/* As many packets of b as one batch brings, on the lane, `first` along its own path, the others along path + i % paths;
   returns what became of the first, all others being OK. */
static kdp_status receive_burst_along(side_lane *l, node *b, kdp_path *path, uint16_t paths, kdp_now now) {
  kdp_packet packet[BURST];
  kdp_batch batch = {
      .packet = packet, .count = BURST, .capacity = BURST, .path = path, .path_count = paths, .path_capacity = paths};
  for (uint32_t i = 0; i < BURST; i++) {
    const kept_datagram *data = sealed_data(b, l->of, 10, now);
    assert_true(kdp_pool_take_packet(l->pool, 0, data->size, 0, &packet[i]));
    memcpy(packet[i].data, data->bytes, data->size);
    packet[i].path = (uint16_t)(i % paths);
    node_forget(b);
  }
  assert_int_equal(kdp_engine_outside(l->lane, &batch, l->out, now), BURST);
  for (uint32_t i = 1; i < BURST; i++)
    assert_int_equal(packet[i].status, KDP_OK);
  return packet[0].status;
}

static kdp_status receive_burst(side_lane *l, node *b, kdp_now now) {
  kdp_path path = node_path(l->of, b);
  return receive_burst_along(l, b, &path, 1, now);
}

/* b renews the session while it sends more in a batch than can be handed over. */
static void a_burst_under_a_new_key_is_not_lost(void **state) {
  (void)state;
  lane_pair p = lane_pair_make();
  kdp_wg_peer *peer = node_peer_of(p.a, p.b);
  p.now = node_later(p.now, KDP_WG_REKEY_TIMEOUT);
  node_forget(p.a), node_forget(p.b);
  kdp_wg_want_handshake(p.b->device, node_peer_of(p.b, p.a), p.now.boot);
  node_tick(p.b, p.now);
  assert_int_equal(node_pass(p.b, 0, p.a, p.now), KDP_OK);
  assert_int_equal(node_pass(p.a, 0, p.b, p.now), KDP_OK);
  const kdp_wg_key_pair *fresh = peer->next;
  assert_non_null(fresh);

  uint32_t room = p.l->out->action_capacity;
  assert_true(BURST > room);
  p.l->out->action_capacity = 0;
  assert_int_equal(receive_burst(p.l, p.b, p.now), KDP_OK);
  assert_int_equal(p.l->out->inside.count, BURST);
  side_lane_drain(p.l);
  p.l->out->action_capacity = room;
  assert_int_equal(receive_burst(p.l, p.b, p.now), KDP_HANDED_OVER);
  assert_int_equal(p.l->out->inside.count, BURST - 1);
  assert_ptr_equal(peer->next, fresh); /* that is lane 0's to change */
  assert_int_equal(side_lane_pass_on(p.l, p.now), 1);
  assert_ptr_equal(peer->current, fresh);
  assert_int_equal(p.a->delivered_count, 1);
  assert_int_equal(side_lane_receive_from(p.l, p.b, 10, p.now), KDP_OK);
  lane_pair_free(&p);
}

/* Lane 0 confirms the first session of a peer by the first packet; the others are opened meanwhile. */
static void a_burst_under_the_first_key_is_not_lost(void **state) {
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
  assert_int_equal(receive_burst(l, b, now), KDP_HANDED_OVER);
  assert_int_equal(l->out->inside.count, BURST - 1);
  assert_null(node_peer_of(a, b)->current);
  assert_int_equal(side_lane_pass_on(l, now), 1);
  assert_non_null(node_peer_of(a, b)->current);
  assert_int_equal(a->delivered_count, 1);
  side_lane_free(l);
  node_free(a);
  node_free(b);
}

static void a_burst_from_elsewhere_is_not_lost(void **state) {
  (void)state;
  lane_pair p = lane_pair_make();
  kdp_path moved = node_path(p.a, p.b);
  moved.remote.port++;
  p.l->out->action_capacity = 2;         /* one to hand over, one to wake */
  for (int call = 0; call < 3; call++) { /* lane 0 is slow: it is told again with each call */
    assert_int_equal(receive_burst_along(p.l, p.b, &moved, 1, p.now), KDP_HANDED_OVER);
    assert_int_equal(p.l->out->inside.count, BURST - 1);
    if (call < 2) side_lane_drain(p.l);
  }
  assert_int_equal(side_lane_pass_on(p.l, p.now), 1);
  assert_true(kdp_path_equal(&node_peer_of(p.a, p.b)->path, &moved));
  lane_pair_free(&p);
}

/* A peer with two addresses of its own, or that reaches two of ours: packet by packet along another path. */
static void a_peer_that_alternates_costs_lane_0_one_packet_a_call(void **state) {
  (void)state;
  lane_pair p = lane_pair_make();
  kdp_path path[2] = {node_path(p.a, p.b), node_path(p.a, p.b)};
  path[0].local = (kdp_address){.family = KDP_FAMILY_IPV4, .bytes = {192, 0, 2, 77}};
  assert_int_equal(receive_burst_along(p.l, p.b, path, 2, p.now), KDP_HANDED_OVER);
  assert_int_equal(p.l->out->inside.count, BURST - 1);
  assert_int_equal(side_lane_pass_on(p.l, p.now), 1);
  assert_true(kdp_path_equal(&node_peer_of(p.a, p.b)->path, &path[0]));
  lane_pair_free(&p);
}

static void a_packet_from_elsewhere_is_handed_over_and_the_endpoint_follows(void **state) {
  (void)state;
  lane_pair p = lane_pair_make();
  kdp_path moved = node_path(p.a, p.b);
  moved.remote.port++;
  assert_int_equal(node_send_to(p.b, p.a, 10, p.now), KDP_OK);
  assert_int_equal(side_lane_receive(p.l, p.b->sent[0].bytes, p.b->sent[0].size, &moved, p.now), KDP_HANDED_OVER);
  assert_handed_over(p.l, p.b->sent[0].bytes, p.b->sent[0].size, &moved);
  assert_int_equal(side_lane_pass_on(p.l, p.now), 1);
  assert_int_equal(p.a->delivered_count, 1);
  assert_int_equal(node_count_events(p.a, KDP_EVENT_ENDPOINT_CHANGED, NULL), 1);
  assert_true(kdp_path_equal(&node_peer_of(p.a, p.b)->path, &moved));
  /* Along the new path it opens, and seals to it. */
  assert_int_equal(node_send_to(p.b, p.a, 10, p.now), KDP_OK);
  assert_int_equal(side_lane_receive(p.l, p.b->sent[1].bytes, p.b->sent[1].size, &moved, p.now), KDP_OK);
  assert_int_equal(side_lane_send_to(p.l, p.b, 10, p.now), KDP_OK);
  assert_true(kdp_address_equal(&p.l->out->wire.path[0].remote, &moved.remote));
  lane_pair_free(&p);
}

/* Two paths in one batch: of what comes along another than the peer's, the first is lane 0's. */
static void paths_of_one_batch_are_told_apart(void **state) {
  (void)state;
  lane_pair p = lane_pair_make();
  kdp_path path[2] = {node_path(p.a, p.b), node_path(p.a, p.b)};
  path[1].ifindex++;
  kdp_packet packet[6];
  for (uint32_t i = 0; i < 6; i++) {
    assert_int_equal(node_send_to(p.b, p.a, i, p.now), KDP_OK);
    assert_true(kdp_pool_take_packet(p.l->pool, 0, p.b->sent[i].size, 0, &packet[i]));
    memcpy(packet[i].data, p.b->sent[i].bytes, p.b->sent[i].size);
    packet[i].path = (uint16_t)(i / 2 % 2);
  }
  kdp_batch batch = {.packet = packet, .count = 6, .capacity = 6, .path = path, .path_count = 2, .path_capacity = 2};
  assert_int_equal(kdp_engine_outside(p.l->lane, &batch, p.l->out, p.now), 6);
  for (uint32_t i = 0; i < 6; i++)
    assert_int_equal(packet[i].status, i == 2 ? KDP_HANDED_OVER : KDP_OK);
  assert_int_equal(p.l->out->inside.count, 5);
  lane_pair_free(&p);
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
  lane_pair p = lane_pair_make();
  kdp_path path = node_path(p.a, p.b);
  kdp_engine_path_mtu(p.a->lane, &path, 1400, p.now); /* 1400 - 20 - 8 - 32 = 1340 */
  uint8_t packet[2000];
  uint32_t size = node_packet(packet, p.a, p.b, 1341 - 28);
  assert_int_equal(side_lane_send(p.l, packet, size, p.now), KDP_OK); /* it may be fragmented */
  side_lane_drain(p.l);
  packet[6] = 0x40; /* DF */
  assert_int_equal(side_lane_send(p.l, packet, size, p.now), KDP_HANDED_OVER);
  assert_handed_over(p.l, packet, size, NULL);
  assert_int_equal(side_lane_pass_on(p.l, p.now), 1);
  assert_int_equal(node_counted(p.a, KDP_TOO_BIG), 1);
  assert_int_equal(p.a->delivered_count, 1);
  packet[3]--; /* one less fits */
  assert_int_equal(side_lane_send(p.l, packet, size - 1, p.now), KDP_OK);
  lane_pair_free(&p);
}

static void staged_packets_go_first(void **state) {
  (void)state;
  lane_pair p = lane_pair_make();
  uint8_t packet[100];
  uint32_t size = node_packet(packet, p.a, p.b, 7);
  (void)kdp_wg_staging_copy_in(&p.a->device->staging, &node_peer_of(p.a, p.b)->staged, packet, size);
  size = node_packet(packet, p.a, p.b, 8);
  assert_int_equal(side_lane_send(p.l, packet, size, p.now), KDP_HANDED_OVER);
  assert_int_equal(side_lane_pass_on(p.l, p.now), 1);
  node_exchange(p.a, p.b, p.now);
  assert_int_equal(p.b->delivered_count, 2);
  assert_int_equal(p.b->delivered[0].size, 28 + 7);
  assert_int_equal(p.b->delivered[1].size, 28 + 8);
  lane_pair_free(&p);
}

enum { MANY = 150 };

/* Shows the batch to the lane again and again, and what it hands over to lane 0; returns how often. */
static uint32_t push_all(side_lane *l, kdp_batch batch, uint32_t (*call)(kdp_lane *, kdp_batch *, kdp_out *, kdp_now),
                         kdp_now now) {
  uint32_t calls = 0;
  while (batch.count > 0) {
    uint32_t taken = call(l->lane, &batch, l->out, now);
    assert_true(taken > 0 && l->out->action_count <= l->out->action_capacity);
    for (uint32_t i = 0; i < taken; i++)
      assert_int_equal(batch.packet[i].status, KDP_HANDED_OVER);
    batch.packet += taken;
    batch.count -= taken;
    assert_int_equal(side_lane_pass_on(l, now), taken);
    calls++;
  }
  return calls;
}

/* More than there is room for actions: the batch stops there, and goes on once they are done. */
static void a_full_list_of_actions_stops_the_batch_and_loses_nothing(void **state) {
  (void)state;
  node *a = node_make(1, NULL, &three_lanes), *silent = node_make(2, NULL, NULL);
  kdp_now now = node_time(1000);
  side_lane *l = side_lane_make(a, 1);
  assert_int_equal(node_add_peer(a, silent, true, now), KDP_OK);
  assert_true(MANY > 2 * l->out->action_capacity);
  kdp_packet packet[MANY];
  uint8_t bytes[100];
  /* The first packets for a peer, in a burst. */
  for (uint32_t i = 0; i < MANY; i++) {
    uint32_t size = node_packet(bytes, a, silent, i % 10);
    assert_true(kdp_pool_take_packet(l->pool, KDP_WIREGUARD_HEAD, size, KDP_WIREGUARD_TAIL, &packet[i]));
    memcpy(packet[i].data, bytes, size);
  }
  kdp_batch inside = {.packet = packet, .count = MANY, .capacity = MANY};
  assert_int_equal(push_all(l, inside, kdp_engine_inside, now), 3);
  assert_int_equal(node_peer_of(a, silent)->staged.count, KDP_WG_STAGED_PER_PEER); /* as with one lane */
  assert_int_equal(node_counted(a, KDP_STAGED_DROPPED), MANY - KDP_WG_STAGED_PER_PEER);
  /* Handshake messages. */
  kdp_path path = node_path(a, silent);
  for (uint32_t i = 0; i < MANY; i++) {
    assert_true(kdp_pool_take_packet(l->pool, 0, sizeof(kdp_wg_cookie_reply), 0, &packet[i]));
    memset(packet[i].data, 0, sizeof(kdp_wg_cookie_reply));
    packet[i].data[0] = KDP_WG_COOKIE_REPLY;
  }
  kdp_batch outside = {
      .packet = packet, .count = MANY, .capacity = MANY, .path = &path, .path_count = 1, .path_capacity = 1};
  assert_int_equal(push_all(l, outside, kdp_engine_outside, now), 3);
  assert_int_equal(node_counted(a, KDP_UNKNOWN_SESSION), MANY);
  assert_int_equal(node_counted(a, KDP_HANDED_OVER), 2 * MANY);
  assert_int_equal(node_counted(a, KDP_HANDOVER_FULL), 0);
  side_lane_free(l);
  node_free(a);
  node_free(silent);
}

static void without_any_room_for_actions_it_is_dropped_and_counted(void **state) {
  (void)state;
  node *a = node_make(1, NULL, &three_lanes), *b = node_make(2, NULL, NULL);
  kdp_now now = node_time(1000);
  side_lane *l = side_lane_make(a, 1);
  l->out->action_capacity = 0;
  kdp_path path = node_path(a, b);
  uint8_t initiation[sizeof(kdp_wg_initiation)] = {KDP_WG_INITIATION};
  assert_int_equal(side_lane_receive(l, initiation, sizeof initiation, &path, now), KDP_HANDOVER_FULL);
  assert_int_equal(side_lane_send_to(l, b, 10, now), KDP_HANDOVER_FULL);
  kdp_statistics statistics;
  kdp_engine_statistics(a->engine, &statistics);
  assert_int_equal(statistics.status[KDP_HANDED_OVER], 0);
  assert_int_equal(statistics.status[KDP_HANDOVER_FULL], 2);
  assert_int_equal(statistics.inside_in.packets, 1); /* it ended here */
  side_lane_free(l);
  node_free(a);
  node_free(b);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(handshake_messages_are_handed_over_and_lane_0_answers),
      cmocka_unit_test(a_burst_under_a_new_key_is_not_lost),
      cmocka_unit_test(a_burst_under_the_first_key_is_not_lost),
      cmocka_unit_test(a_burst_from_elsewhere_is_not_lost),
      cmocka_unit_test(a_peer_that_alternates_costs_lane_0_one_packet_a_call),
      cmocka_unit_test(a_packet_from_elsewhere_is_handed_over_and_the_endpoint_follows),
      cmocka_unit_test(paths_of_one_batch_are_told_apart),
      cmocka_unit_test(inside_packets_without_a_way_are_handed_over),
      cmocka_unit_test(a_packet_too_big_for_the_path_is_handed_over),
      cmocka_unit_test(staged_packets_go_first),
      cmocka_unit_test(a_full_list_of_actions_stops_the_batch_and_loses_nothing),
      cmocka_unit_test(without_any_room_for_actions_it_is_dropped_and_counted),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
