/* Handshake messages: what they must pass, what they change, and what a flood of them can do. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "support/hex.h"
#include "support/wireguard_node.h"
#include "wireguard/tai64n.h"

#define SECONDS(n) ((n)*KDP_SECOND)

static void free_both(node *a, node *b) {
  node_free(a);
  node_free(b);
}

/* a and b know each other; a has sent an initiation that is sent[0]. */
static kdp_now with_initiation(node **a, node **b) {
  kdp_now now = node_time(1000);
  *a = node_make(1, NULL, NULL);
  *b = node_make(2, NULL, NULL);
  assert_int_equal(node_add_peer(*a, *b, true, now), KDP_OK);
  assert_int_equal(node_add_peer(*b, *a, false, now), KDP_OK);
  assert_int_equal(node_send_to(*a, *b, 10, now), KDP_OK);
  assert_int_equal((*a)->sent_count, 1);
  return now;
}

/* Makes MAC1 of a message to `to` right again after it was changed. */
static void fix_mac1(uint8_t *message, size_t size, const node *to) {
  kdp_wg_cookie cookie;
  kdp_wg_cookie_start(&cookie, to->public_key);
  kdp_wg_macs_write(&cookie, message, size, 1);
}

/* Without mac2: the cheapest message that gets as far as the load check. */
static kdp_status receive_junk_initiation(node *n, kdp_now now) {
  uint8_t junk[148] = {1};
  fix_mac1(junk, sizeof junk, n);
  kdp_path path = {.remote = {.family = KDP_FAMILY_IPV4, .port = 9, .bytes = {203, 0, 113, 66}}};
  kdp_packet packet;
  assert_true(kdp_pool_take_packet(n->pool, 16, sizeof junk, 31, &packet));
  memcpy(packet.data, junk, sizeof junk);
  kdp_batch batch = {.packet = &packet, .count = 1, .capacity = 1, .path = &path, .path_count = 1};
  assert_int_equal(kdp_engine_outside(n->lane, &batch, n->out, now), 1);
  kdp_batch_release(&n->out->wire, n->pool); /* a cookie for it is nobody's business here */
  return packet.status;
}

static void make_load(node *n, kdp_now now) {
  for (int i = 0; i < 32; i++)
    (void)receive_junk_initiation(n, now);
  kdp_lane_quiescent(n->lane, now);
  assert_true(kdp_wg_under_load(n->device, now.boot));
}

/* ---- What a message must pass ---- */

static void a_wrong_mac1_is_never_answered(void **state) {
  (void)state;
  node *a, *b;
  kdp_now now = with_initiation(&a, &b);
  a->sent[0].bytes[116] ^= 1;
  assert_int_equal(node_pass(a, 0, b, now), KDP_BAD_MAC1);
  make_load(b, now);
  assert_int_equal(node_pass(a, 0, b, now), KDP_BAD_MAC1);
  assert_int_equal(b->sent_count, 0);
  free_both(a, b);
}

static void an_initiation_of_a_stranger_is_counted_and_not_answered(void **state) {
  (void)state;
  node *a, *b;
  kdp_now now = with_initiation(&a, &b);
  node *c = node_make(3, NULL, NULL);
  assert_int_equal(node_add_peer(c, b, true, now), KDP_OK);
  assert_int_equal(node_send_to(c, b, 10, now), KDP_OK);
  assert_int_equal(node_pass(c, 0, b, now), KDP_UNKNOWN_PEER);
  assert_int_equal(b->sent_count, 0);
  node_free(c);
  free_both(a, b);
}

static void an_initiation_is_taken_once(void **state) {
  (void)state;
  node *a, *b;
  kdp_now now = with_initiation(&a, &b);
  assert_int_equal(node_pass(a, 0, b, now), KDP_OK);
  kdp_wg_key_pair *next = node_peer_of(b, a)->next;
  now = node_later(now, SECONDS(1));
  assert_int_equal(node_pass(a, 0, b, now), KDP_STALE_TIMESTAMP);
  assert_ptr_equal(node_peer_of(b, a)->next, next);
  assert_int_equal(node_count_sent(b, KDP_WG_RESPONSE, NULL), 1);
  free_both(a, b);
}

/* A peer that makes initiations as fast as it can. */
static void fifty_initiations_of_a_peer_are_answered_in_a_second(void **state) {
  (void)state;
  node *a, *b;
  kdp_now now = with_initiation(&a, &b);
  kdp_wg_peer *at_a = node_peer_of(a, b);
  uint32_t answered = 0, flood = 0;
  now = node_later(now, SECONDS(10));
  for (int i = 0; i < 1000; i++) { /* one a millisecond */
    kdp_now at = node_later(now, (uint64_t)i * KDP_MILLISECOND);
    node_forget(a);
    at_a->handshake_sent = 0;
    assert_int_equal(kdp_wg_send_initiation(a->device, at_a, a->out, at), KDP_OK);
    kdp_store_le32(a->out->wire.packet[0].data + 144, 0);
    a->device->budget = 100;
    kdp_packet sent = a->out->wire.packet[0];
    kdp_path path = node_path(b, a);
    kdp_status status = node_receive(b, sent.data, sent.size, &path, at);
    kdp_batch_release(&a->out->wire, a->pool);
    answered += status == KDP_OK;
    flood += status == KDP_FLOOD;
    b->event_count = a->event_count = 0;
    node_forget(b);
  }
  assert_int_equal(answered, 50);
  assert_int_equal(answered + flood, 1000);
  free_both(a, b);
}

static void a_preshared_key_must_be_the_same_on_both_sides(void **state) {
  (void)state;
  node *a, *b;
  kdp_now now = with_initiation(&a, &b);
  kdp_wireguard_peer_change peer = node_peer(a, false, NULL, 0);
  peer.fields = KDP_WIREGUARD_PEER_SET_PRESHARED_KEY;
  peer.preshared_key[0] = 1;
  kdp_wireguard_change change = {.peer = &peer, .peer_count = 1};
  assert_int_equal(node_apply(b, &change, now), KDP_OK);
  assert_int_equal(node_pass(a, 0, b, now), KDP_OK);
  assert_int_equal(node_pass(b, 0, a, now), KDP_AUTHENTICATION_FAILED);
  assert_null(node_peer_of(a, b)->current);
  /* The handshake stays open: a right response would still do. */
  assert_true(node_peer_of(a, b)->handshake_active);
  free_both(a, b);
}

static void a_response_counts_once_and_only_for_its_initiation(void **state) {
  (void)state;
  node *a, *b;
  kdp_now now = with_initiation(&a, &b);
  assert_int_equal(node_pass(a, 0, b, now), KDP_OK);
  uint8_t bent[92];
  kdp_path path = node_path(a, b);
  memcpy(bent, b->sent[0].bytes, 92);
  bent[8] ^= 1;
  fix_mac1(bent, 92, a);
  assert_int_equal(node_receive(a, bent, 92, &path, now), KDP_UNKNOWN_SESSION);
  memcpy(bent, b->sent[0].bytes, 92);
  bent[50] ^= 1;
  fix_mac1(bent, 92, a);
  assert_int_equal(node_receive(a, bent, 92, &path, now), KDP_AUTHENTICATION_FAILED);
  assert_int_equal(node_pass(b, 0, a, now), KDP_OK);
  kdp_wg_key_pair *current = node_peer_of(a, b)->current;
  assert_int_equal(node_pass(b, 0, a, now), KDP_UNEXPECTED_MESSAGE);
  assert_ptr_equal(node_peer_of(a, b)->current, current);
  free_both(a, b);
}

static void an_ephemeral_key_of_low_order_is_refused(void **state) {
  (void)state;
  node *a, *b;
  kdp_now now = with_initiation(&a, &b);
  memset(a->sent[0].bytes + 8, 0, 32);
  fix_mac1(a->sent[0].bytes, 148, b);
  assert_int_equal(node_pass(a, 0, b, now), KDP_LOW_ORDER_KEY);
  assert_int_equal(b->sent_count, 0);
  free_both(a, b);
}

static void a_peer_with_a_key_of_low_order_never_completes_and_does_not_spin(void **state) {
  (void)state;
  kdp_now now = node_time(1000);
  node *a = node_make(1, NULL, NULL), *b = node_make(2, NULL, NULL);
  memset(b->public_key, 0, 32);
  b->public_key[0] = 1;
  assert_int_equal(node_add_peer(a, b, true, now), KDP_OK);
  assert_int_equal(node_send_to(a, b, 10, now), KDP_OK);
  kdp_event failed;
  assert_int_equal(node_count_events(a, KDP_EVENT_HANDSHAKE_FAILED, &failed), 1);
  assert_int_equal(failed.status, KDP_LOW_ORDER_KEY);
  assert_int_equal(node_counted(a, KDP_STAGED_DROPPED), 1);
  assert_int_equal(a->sent_count, 0);
  (void)node_run(a, now, now.boot + SECONDS(100));
  assert_int_equal(node_count_events(a, KDP_EVENT_HANDSHAKE_FAILED, NULL), 1);
  free_both(a, b);
}

/* ---- Load ---- */

static void load_begins_with_the_32nd_message_of_a_round_and_is_kept_up_for_a_second(void **state) {
  (void)state;
  node *a, *b;
  kdp_now now = with_initiation(&a, &b);
  for (int window = 0; window < 3; window++) { /* 31 in each, never load */
    for (int i = 0; i < 31; i++)
      (void)receive_junk_initiation(b, node_later(now, i == 0 ? 0 : KDP_WG_LOAD_WINDOW - 1));
    now = node_later(now, KDP_WG_LOAD_WINDOW);
  }
  assert_false(kdp_wg_under_load(b->device, now.boot));
  for (int i = 0; i < 31; i++) { /* one a round */
    (void)receive_junk_initiation(b, now);
    kdp_lane_quiescent(b->lane, now);
  }
  assert_int_equal(node_pass(a, 0, b, now), KDP_COOKIE_SENT); /* the 32nd is under load already */
  assert_int_equal(node_count_events(b, KDP_EVENT_UNDER_LOAD, NULL), 1);
  kdp_wireguard_device_info info;
  kdp_wireguard_device(b->engine, &info);
  assert_true(info.under_load);
  assert_int_equal(node_pass(a, 0, b, node_later(now, SECONDS(1) - 1)), KDP_COOKIE_SENT);
  assert_int_equal(kdp_engine_deadline(b->lane), now.boot + SECONDS(1));
  node_tick(b, node_later(now, SECONDS(1)));
  kdp_event event;
  assert_int_equal(node_count_events(b, KDP_EVENT_UNDER_LOAD, &event), 2);
  assert_int_equal(event.value, 0);
  assert_int_equal(node_pass(a, 0, b, node_later(now, SECONDS(1))), KDP_OK);
  free_both(a, b);
}

static void a_host_that_never_ends_its_rounds_is_not_under_load_for_ever(void **state) {
  (void)state;
  node *a, *b;
  kdp_now now = with_initiation(&a, &b);
  for (int i = 0; i < 200; i++) {
    now = node_later(now, KDP_SECOND / 20);
    (void)receive_junk_initiation(b, now);
  }
  assert_false(kdp_wg_under_load(b->device, now.boot));
  free_both(a, b);
}

/* Rubbish of the right type and size is load, too, though it gets no cookie: the first MAC is looked at before. */
static void every_initiation_and_response_counts_whatever_its_first_mac(void **state) {
  (void)state;
  const struct {
    uint8_t type;
    uint32_t size;
  } rubbish[] = {{KDP_WG_INITIATION, sizeof(kdp_wg_initiation)}, {KDP_WG_RESPONSE, sizeof(kdp_wg_response)}};
  for (size_t kind = 0; kind < sizeof rubbish / sizeof rubbish[0]; kind++) {
    node *a, *b;
    kdp_now now = with_initiation(&a, &b);
    uint8_t junk[sizeof(kdp_wg_initiation)] = {rubbish[kind].type};
    kdp_path path = node_path(b, a);
    for (int i = 0; i < 31; i++)
      assert_int_equal(node_receive(b, junk, rubbish[kind].size, &path, now), KDP_BAD_MAC1);
    assert_false(kdp_wg_under_load(b->device, now.boot));
    assert_int_equal(node_pass(a, 0, b, now), KDP_COOKIE_SENT);
    assert_int_equal(node_receive(b, junk, rubbish[kind].size, &path, now), KDP_BAD_MAC1);
    assert_int_equal(b->sent_count, 1); /* the one cookie */
    free_both(a, b);
  }
}

/* Neither wrong sizes, nor cookie replies, nor data. */
static void what_is_no_handshake_message_is_no_load(void **state) {
  (void)state;
  node *a, *b;
  kdp_now now = with_initiation(&a, &b);
  kdp_path path = node_path(b, a);
  for (int i = 0; i < 100; i++) {
    uint8_t junk[sizeof(kdp_wg_initiation)] = {KDP_WG_INITIATION};
    (void)node_receive(b, junk, sizeof junk - 1, &path, now);
    junk[0] = KDP_WG_COOKIE_REPLY;
    (void)node_receive(b, junk, sizeof(kdp_wg_cookie_reply), &path, now);
    junk[0] = KDP_WG_TRANSPORT;
    (void)node_receive(b, junk, 96, &path, now);
  }
  assert_int_equal(node_pass(a, 0, b, now), KDP_OK);
  free_both(a, b);
}

/* Whatever the window had counted before. */
static void thirty_two_in_one_call_are_always_load(void **state) {
  (void)state;
  for (int before = 0; before < 32; before++) {
    node *a, *b;
    kdp_now now = with_initiation(&a, &b);
    for (int i = 0; i < before; i++)
      (void)receive_junk_initiation(b, now);
    now = node_later(now, before % 2 ? KDP_WG_LOAD_WINDOW - 1 : KDP_WG_LOAD_WINDOW);
    kdp_packet packet[32];
    kdp_path path = node_path(b, a);
    kdp_batch in = {.packet = packet, .count = 32, .capacity = 32, .path = &path, .path_count = 1, .path_capacity = 1};
    for (int i = 0; i < 32; i++) {
      assert_true(kdp_pool_take_packet(b->pool, 0, sizeof(kdp_wg_initiation), 0, &packet[i]));
      memset(packet[i].data, 0, packet[i].size);
      packet[i].data[0] = KDP_WG_INITIATION;
    }
    assert_int_equal(kdp_engine_outside(b->lane, &in, b->out, now), 32);
    assert_true(kdp_wg_under_load(b->device, now.boot));
    free_both(a, b);
  }
}

static void under_load_a_sender_must_show_that_it_receives(void **state) {
  (void)state;
  node *a, *b;
  kdp_now now = with_initiation(&a, &b);
  make_load(b, now);
  uint64_t handshakes_before = b->device->lane[0].statistics.handshakes;
  assert_int_equal(node_pass(a, 0, b, now), KDP_COOKIE_SENT);
  assert_int_equal(b->sent_count, 1);
  assert_int_equal(b->sent[0].size, 64);
  assert_null(node_peer_of(b, a)->next);
  assert_int_equal(node_pass(b, 0, a, now), KDP_OK);
  /* The next try carries MAC2 and is taken though the load goes on. */
  now = node_run(a, now, now.boot + SECONDS(6));
  make_load(b, now);
  uint32_t retry = a->sent_count - 1;
  assert_int_equal(retry, 1);
  uint8_t zero[16] = {0};
  assert_memory_not_equal(a->sent[retry].bytes + 132, zero, 16);
  assert_int_equal(node_pass(a, retry, b, now), KDP_OK);
  /* The response, too, is under the rules of load at a. */
  make_load(a, now);
  assert_int_equal(node_pass(b, b->sent_count - 1, a, now), KDP_COOKIE_SENT);
  assert_int_equal(b->device->lane[0].statistics.handshakes, handshakes_before);
  free_both(a, b);
}

static void under_load_a_cookie_does_not_lift_the_rate_of_a_source(void **state) {
  (void)state;
  node *a, *b;
  kdp_now now = with_initiation(&a, &b);
  make_load(b, now);
  assert_int_equal(node_pass(a, 0, b, now), KDP_COOKIE_SENT);
  assert_int_equal(node_pass(b, 0, a, now), KDP_OK);
  kdp_wg_macs_write(&node_peer_of(a, b)->cookie, a->sent[0].bytes, 148, now.boot);
  assert_int_equal(node_pass(a, 0, b, now), KDP_OK);
  for (int i = 0; i < 4; i++)
    assert_int_equal(node_pass(a, 0, b, now), KDP_STALE_TIMESTAMP);
  assert_int_equal(node_pass(a, 0, b, now), KDP_RATE_LIMITED);
  free_both(a, b);
}

/* K-037 */
static void a_cookie_reply_from_elsewhere_moves_nothing_but_the_cookie(void **state) {
  (void)state;
  node *a, *b;
  kdp_now now = with_initiation(&a, &b);
  make_load(b, now);
  assert_int_equal(node_pass(a, 0, b, now), KDP_COOKIE_SENT);
  kdp_path elsewhere = {.ifindex = 7, .remote = {.family = KDP_FAMILY_IPV4, .port = 9, .bytes = {203, 0, 113, 66}}};
  assert_int_equal(node_receive(a, b->sent[0].bytes, 64, &elsewhere, now), KDP_OK);
  kdp_wg_peer *at_a = node_peer_of(a, b);
  assert_true(at_a->cookie.valid);
  assert_int_equal(at_a->cookie.birth, now.boot);
  assert_true(kdp_address_equal(&at_a->path.remote, &b->address));
  assert_int_equal(node_receive(a, b->sent[0].bytes, 64, &elsewhere, node_later(now, SECONDS(1))), KDP_BAD_COOKIE);
  assert_int_equal(at_a->cookie.birth, now.boot);
  now = node_run(a, now, now.boot + SECONDS(6));
  assert_int_equal(a->sent_count, 2);
  assert_true(kdp_address_equal(&a->sent[1].path.remote, &b->address));
  uint8_t zero[16] = {0};
  assert_memory_not_equal(a->sent[1].bytes + 132, zero, 16);
  assert_int_equal(node_count_events(a, KDP_EVENT_ENDPOINT_CHANGED, NULL), 0);
  free_both(a, b);
}

static void a_cookie_reply_to_nobody_is_counted(void **state) {
  (void)state;
  node *a, *b;
  kdp_now now = with_initiation(&a, &b);
  uint8_t reply[64] = {3};
  kdp_path path = node_path(a, b);
  assert_int_equal(node_receive(a, reply, 64, &path, now), KDP_UNKNOWN_SESSION);
  kdp_store_le32(reply + 4, node_peer_of(a, b)->handshake_index);
  assert_int_equal(node_receive(a, reply, 64, &path, now), KDP_BAD_COOKIE);
  free_both(a, b);
}

/* ---- Budgets ---- */

static void a_call_does_no_more_handshakes_than_its_budget(void **state) {
  (void)state;
  enum { MANY = 20, BUDGET = 6 };
  kdp_limits limits = {.handshakes_per_call = BUDGET};
  node *b = node_make(200, NULL, &limits), *peer[MANY];
  kdp_now now = node_time(1000);
  kdp_packet packets[MANY];
  kdp_path paths[MANY];
  for (int i = 0; i < MANY; i++) {
    peer[i] = node_make((uint8_t)(i + 1), NULL, NULL);
    assert_int_equal(node_add_peer(peer[i], b, true, now), KDP_OK);
    assert_int_equal(node_add_peer(b, peer[i], false, now), KDP_OK);
    assert_int_equal(node_send_to(peer[i], b, 1, now), KDP_OK);
    assert_true(kdp_pool_take_packet(b->pool, 16, 148, 31, &packets[i]));
    memcpy(packets[i].data, peer[i]->sent[0].bytes, 148);
    packets[i].path = (uint16_t)i;
    paths[i] = node_path(b, peer[i]);
  }
  uint32_t taken = 0, calls = 0;
  while (taken < MANY) {
    kdp_batch rest = {.packet = packets + taken,
                      .count = MANY - taken,
                      .capacity = MANY,
                      .path = paths,
                      .path_count = MANY,
                      .path_capacity = MANY};
    uint32_t now_taken = kdp_engine_outside(b->lane, &rest, b->out, now);
    assert_int_equal(now_taken, MANY - taken < BUDGET ? MANY - taken : BUDGET);
    taken += now_taken;
    calls++;
  }
  assert_int_equal(calls, 4);
  node_tick(b, now);
  assert_int_equal(b->sent_count, MANY);
  /* The same towards the wire: initiations to many peers leave in pieces, and the deadline says that there are more. */
  node_forget(b);
  now = node_later(now, SECONDS(10));
  node_network_changed(b, now);
  for (int i = 0; i < MANY; i++)
    assert_int_equal(node_send_to(b, peer[i], 1, now), KDP_OK);
  assert_int_equal(node_count_sent(b, KDP_WG_INITIATION, NULL), MANY); /* one call each */
  node_forget(b);
  now = node_later(now, SECONDS(1));
  node_network_changed(b, now);
  assert_int_equal(node_count_sent(b, KDP_WG_INITIATION, NULL), BUDGET);
  assert_int_equal(kdp_engine_deadline(b->lane), now.boot);
  node_tick(b, now);
  assert_int_equal(node_count_sent(b, KDP_WG_INITIATION, NULL), 2 * BUDGET);
  node_tick(b, now);
  node_tick(b, now);
  assert_int_equal(node_count_sent(b, KDP_WG_INITIATION, NULL), MANY);
  assert_true(kdp_engine_deadline(b->lane) > now.boot);
  for (int i = 0; i < MANY; i++)
    node_free(peer[i]);
  node_free(b);
}

static void messages_that_fail_cheaply_do_not_use_up_the_budget(void **state) {
  (void)state;
  kdp_limits limits = {.handshakes_per_call = 1};
  node *a, *b = node_make(2, NULL, &limits), *unused;
  kdp_now now = with_initiation(&a, &unused);
  assert_int_equal(node_add_peer(b, a, false, now), KDP_OK);
  kdp_packet packets[10];
  kdp_path path = node_path(b, a);
  for (int i = 0; i < 10; i++) {
    assert_true(kdp_pool_take_packet(b->pool, 16, 148, 31, &packets[i]));
    memcpy(packets[i].data, a->sent[0].bytes, 148);
    if (i < 9) packets[i].data[117] ^= 1;
  }
  kdp_batch batch = {.packet = packets, .count = 10, .capacity = 10, .path = &path, .path_count = 1};
  assert_int_equal(kdp_engine_outside(b->lane, &batch, b->out, now), 10);
  assert_int_equal(packets[9].status, KDP_OK);
  node_free(unused);
  free_both(a, b);
}

/* ---- Where a peer is ---- */

static void the_endpoint_follows_the_last_authenticated_packet_only(void **state) {
  (void)state;
  node *a, *b;
  kdp_now now = with_initiation(&a, &b);
  kdp_wg_peer *at_b = node_peer_of(b, a);
  kdp_path first = node_path(b, a), second = first;
  second.remote.bytes[3] = 99;
  second.ifindex = 5;
  second.local.bytes[3] = 77;
  assert_false(kdp_wg_peer_has_endpoint(at_b));
  assert_int_equal(node_pass(a, 0, b, now), KDP_OK); /* an initiation authenticates */
  assert_true(kdp_address_equal(&at_b->path.remote, &first.remote));
  assert_int_equal(node_pass(b, 0, a, now), KDP_OK);
  node_exchange(a, b, now);
  assert_int_equal(node_send_to(a, b, 1, now), KDP_OK);
  assert_int_equal(node_send_to(a, b, 2, now), KDP_OK);
  /* Forged: no move. */
  a->sent[1].bytes[20] ^= 1;
  assert_int_equal(node_receive(b, a->sent[1].bytes, a->sent[1].size, &second, now), KDP_AUTHENTICATION_FAILED);
  assert_true(kdp_address_equal(&at_b->path.remote, &first.remote));
  /* Real: address, interface and our own address follow. */
  node_forget(b);
  assert_int_equal(node_receive(b, a->sent[0].bytes, a->sent[0].size, &second, now), KDP_OK);
  kdp_event event;
  assert_int_equal(node_count_events(b, KDP_EVENT_ENDPOINT_CHANGED, &event), 1);
  assert_true(kdp_address_equal(&event.address, &second.remote));
  assert_int_equal(node_send_to(b, a, 1, now), KDP_OK);
  assert_true(kdp_address_equal(&b->sent[0].path.remote, &second.remote));
  assert_int_equal(b->sent[0].path.ifindex, 5);
  assert_int_equal(b->sent[0].path.local.bytes[3], 77);
  assert_int_equal(b->device->lane[0].statistics.roams, 1);
  /* A replayed packet from the old place: no move. */
  assert_int_equal(node_receive(b, a->sent[0].bytes, a->sent[0].size, &first, now), KDP_REPLAYED);
  assert_true(kdp_address_equal(&at_b->path.remote, &second.remote));
  /* Our own side alone changes: no event. */
  node_forget(b);
  a->sent[1].bytes[20] ^= 1;
  second.ifindex = 6;
  assert_int_equal(node_receive(b, a->sent[1].bytes, a->sent[1].size, &second, now), KDP_OK);
  assert_int_equal(at_b->path.ifindex, 6);
  assert_int_equal(node_count_events(b, KDP_EVENT_ENDPOINT_CHANGED, NULL), 0);
  free_both(a, b);
}

static void a_configured_endpoint_forgets_our_side_of_the_path(void **state) {
  (void)state;
  node *a = node_make(1, NULL, NULL), *b = node_make(2, NULL, NULL);
  kdp_now now = node_time(1000);
  node_connect(a, b, now);
  kdp_wg_peer *at_a = node_peer_of(a, b);
  assert_int_equal(at_a->path.ifindex, 2);
  assert_int_equal(node_add_peer(a, b, true, now), KDP_OK);
  assert_int_equal(at_a->path.ifindex, 0);
  assert_int_equal(at_a->path.local.family, KDP_FAMILY_NONE);
  assert_true(at_a->current != NULL);
  assert_int_equal(node_send_to(a, b, 1, now), KDP_OK);
  assert_int_equal(a->sent[0].path.ifindex, 0);
  free_both(a, b);
}

static void a_retransmission_leaves_the_source_to_the_kernel(void **state) {
  (void)state;
  node *a = node_make(1, NULL, NULL), *b = node_make(2, NULL, NULL);
  kdp_now now = node_time(1000);
  node_connect(a, b, now);
  kdp_wg_want_handshake(a->device, node_peer_of(a, b), now.boot);
  now = node_run(a, now, now.boot + SECONDS(12));
  uint32_t last = 0;
  assert_true(node_count_sent(a, KDP_WG_INITIATION, &last) >= 1);
  assert_int_equal(a->sent[last].path.ifindex, 0);
  free_both(a, b);
}

/* ---- Stamps ---- */

static void read_stamp(node *a, node *b, uint8_t stamp[12]) {
  kdp_wg_reception reception;
  const kdp_wg_initiation *message = (const kdp_wg_initiation *)a->sent[a->sent_count - 1].bytes;
  uint8_t secret[32];
  assert_int_equal(kdp_wg_initiation_open_static(&b->device->identity, message, &reception), KDP_OK);
  assert_int_equal(kdp_wg_dh(secret, b->private_key, a->public_key), KDP_OK);
  assert_int_equal(kdp_wg_initiation_open_timestamp(message, secret, &reception), KDP_OK);
  memcpy(stamp, reception.timestamp, 12);
}

/* K-061 */
static void stamps_rise_while_the_wall_clock_goes_back_also_over_a_restart(void **state) {
  (void)state;
  const uint64_t in_2026 = UINT64_C(1777629600) * KDP_SECOND, in_2020 = UINT64_C(1577836800) * KDP_SECOND;
  kdp_now now = {.boot = SECONDS(10), .wall = in_2026};
  node *a = node_make(1, NULL, NULL), *b = node_make(2, NULL, NULL);
  uint8_t stamp[4][12];
  assert_int_equal(node_add_peer(a, b, true, now), KDP_OK);
  assert_int_equal(node_add_peer(b, a, false, now), KDP_OK);
  for (int i = 0; i < 3; i++) {
    if (i == 1) now.wall = in_2020;
    if (i == 0) assert_int_equal(node_send_to(a, b, 1, now), KDP_OK);
    if (i > 0) now = node_run(a, now, now.boot + SECONDS(6));
    read_stamp(a, b, stamp[i]);
    assert_int_equal(node_pass(a, a->sent_count - 1, b, now), KDP_OK);
  }
  kdp_event back;
  assert_int_equal(node_count_events(a, KDP_EVENT_CLOCK_BACK, &back), 1);
  assert_in_range(back.value, in_2026 - in_2020 - SECONDS(10), in_2026 - in_2020 + SECONDS(10));
  kdp_wireguard_config config = {.newest_stamp = kdp_wireguard_newest_stamp(a->engine)};
  assert_true(config.newest_stamp > in_2026);
  node_free(a);
  /* Restarted with what was kept. */
  a = node_make(1, &config, NULL);
  now = node_later(now, SECONDS(1));
  assert_int_equal(node_add_peer(a, b, true, now), KDP_OK);
  assert_int_equal(node_send_to(a, b, 1, now), KDP_OK);
  read_stamp(a, b, stamp[3]);
  for (int i = 1; i < 4; i++)
    assert_true(memcmp(stamp[i - 1], stamp[i], 12) < 0);
  assert_int_equal(node_pass(a, 0, b, now), KDP_OK);
  node_free(a);
  /* Restarted without: refused, and the clock is what one can see. */
  a = node_make(1, NULL, NULL);
  now = node_later(now, SECONDS(1));
  assert_int_equal(node_add_peer(a, b, true, now), KDP_OK);
  assert_int_equal(node_send_to(a, b, 1, now), KDP_OK);
  assert_int_equal(node_pass(a, 0, b, now), KDP_STALE_TIMESTAMP);
  free_both(a, b);
}

static void many_peers_at_once_do_not_push_the_stamps_ahead_of_the_clock(void **state) {
  (void)state;
  enum { MANY = 40 };
  node *a = node_make(200, NULL, NULL), *peer[MANY];
  kdp_now now = node_time(1000);
  for (int i = 0; i < MANY; i++) {
    peer[i] = node_make((uint8_t)(i + 1), NULL, NULL);
    assert_int_equal(node_add_peer(a, peer[i], true, now), KDP_OK);
    assert_int_equal(node_send_to(a, peer[i], 1, now), KDP_OK);
  }
  assert_true(kdp_wireguard_newest_stamp(a->engine) <= now.wall);
  for (int i = 0; i < MANY; i++)
    node_free(peer[i]);
  node_free(a);
}

static void a_peer_removed_and_added_again_is_still_above_its_last_stamp(void **state) {
  (void)state;
  node *a, *b;
  kdp_now now = with_initiation(&a, &b);
  uint8_t before[12], after[12];
  read_stamp(a, b, before);
  kdp_wireguard_peer_change peer = node_peer(b, false, NULL, 0);
  peer.fields = KDP_WIREGUARD_PEER_REMOVE;
  kdp_wireguard_change change = {.peer = &peer, .peer_count = 1};
  assert_int_equal(node_apply(a, &change, now), KDP_OK);
  now.wall -= SECONDS(1000);
  assert_int_equal(node_add_peer(a, b, true, now), KDP_OK);
  assert_int_equal(node_send_to(a, b, 1, now), KDP_OK);
  read_stamp(a, b, after);
  assert_true(memcmp(before, after, 12) < 0);
  free_both(a, b);
}

/* ---- Input that is no WireGuard ---- */

/* K-039 */
static void odd_datagrams_are_counted_and_change_nothing(void **state) {
  (void)state;
  node *a, *b;
  kdp_now now = with_initiation(&a, &b);
  static uint8_t zeros[65507];
  kdp_path path = {.remote = {.family = KDP_FAMILY_IPV4, .port = 1, .bytes = {198, 51, 100, 1}}};
  size_t allocations = b->allocations;
  assert_int_equal(node_receive(b, zeros, 10000, &path, now), KDP_UNKNOWN_TYPE);
  assert_int_equal(node_receive(b, zeros, 65507, &path, now), KDP_UNKNOWN_TYPE);
  assert_int_equal(node_receive(b, zeros, 0, &path, now), KDP_TOO_SHORT);
  assert_int_equal(node_receive(b, zeros, 1, &path, now), KDP_TOO_SHORT);
  for (int i = 0; i < 38; i++)
    assert_int_equal(node_receive(b, zeros, 1700, &path, now), KDP_UNKNOWN_TYPE);
  assert_int_equal(node_receive(b, zeros, 3, &path, now), KDP_TOO_SHORT);
  assert_int_equal(b->allocations, allocations);
  assert_int_equal(node_counted(b, KDP_UNKNOWN_TYPE), 40);
  assert_int_equal(node_counted(b, KDP_TOO_SHORT), 3);
  assert_int_equal(node_pass(a, 0, b, now), KDP_OK);
  assert_int_equal(node_count_sent(b, KDP_WG_RESPONSE, NULL), 1);
  free_both(a, b);
}

static void a_datagram_that_the_kernel_cut_is_counted_as_such(void **state) {
  (void)state;
  node *a, *b;
  kdp_now now = with_initiation(&a, &b);
  kdp_packet packet;
  kdp_path path = node_path(b, a);
  assert_true(kdp_pool_take_packet(b->pool, 0, 148, 0, &packet));
  memcpy(packet.data, a->sent[0].bytes, 148);
  packet.status = KDP_TRUNCATED;
  kdp_batch batch = {.packet = &packet, .count = 1, .capacity = 1, .path = &path, .path_count = 1};
  assert_int_equal(kdp_engine_outside(b->lane, &batch, b->out, now), 1);
  assert_int_equal(node_counted(b, KDP_TRUNCATED), 1);
  assert_int_equal(b->out->wire.count, 0);
  free_both(a, b);
}

static void random_datagrams_of_every_size_do_nothing(void **state) {
  (void)state;
  node *a = node_make(1, NULL, NULL), *b = node_make(2, NULL, NULL);
  kdp_now now = node_time(1000);
  node_connect(a, b, now);
  static uint8_t bytes[65535];
  rng r = {31};
  kdp_path path = {.remote = {.family = KDP_FAMILY_IPV6, .port = 1, .bytes = {0x20, 1}}};
  uint32_t real = node_peer_of(b, a)->current->local_index;
  for (int i = 0; i < 3000; i++) {
    static const uint32_t sizes[] = {148, 92, 64, 32, 31, 33, 48, 1452};
    uint32_t size = rng_one_in(&r, 2) ? sizes[rng_below(&r, 8)] : rng_below(&r, rng_one_in(&r, 20) ? 65536 : 2000);
    rng_fill(&r, bytes, size);
    if (size >= 4 && !rng_one_in(&r, 8)) kdp_store_le32(bytes, 1 + rng_below(&r, 4));
    if (size >= 16 && rng_one_in(&r, 2)) {
      kdp_store_le32(bytes + 4, real);
      if (rng_one_in(&r, 2)) kdp_store_le64(bytes + 8, rng_below(&r, 100));
    }
    kdp_status status = node_receive(b, bytes, size, &path, now);
    assert_int_not_equal(status, KDP_OK);
    assert_int_not_equal(status, KDP_KEEPALIVE);
  }
  assert_int_equal(b->sent_count, 0);
  assert_int_equal(b->delivered_count, 0);
  assert_int_equal(node_send_to(a, b, 1, now), KDP_OK);
  assert_int_equal(node_pass(a, 0, b, now), KDP_OK);
  free_both(a, b);
}

static void without_a_private_key_nothing_is_answered(void **state) {
  (void)state;
  node *a, *b;
  kdp_now now = with_initiation(&a, &b);
  uint8_t none[32] = {0};
  assert_int_equal(node_set_private_key(b, none, now), KDP_OK);
  assert_int_equal(node_pass(a, 0, b, now), KDP_NO_KEY);
  assert_int_equal(node_send_to(b, a, 1, now), KDP_NO_KEY);
  assert_int_equal(b->sent_count, 0);
  free_both(a, b);
}

/* ---- Key log ---- */

static void keep_line(void *context, const char *line, size_t size) {
  node *n = context;
  size_t at = strlen(n->keylog);
  assert_true(at + size + 2 < sizeof n->keylog);
  memcpy(n->keylog + at, line, size);
  memcpy(n->keylog + at + size, "\n", 2);
}

static void the_key_log_is_in_the_form_that_wireshark_reads_and_off_without_a_sink(void **state) {
  (void)state;
  node *a, *b;
  kdp_now now = with_initiation(&a, &b);
  node *c = node_make(3, NULL, NULL);
  uint8_t ephemeral[32];
  for (int i = 0; i < 32; i++)
    ephemeral[i] = (uint8_t)i;
  c->device->host.keylog = keep_line;
  kdp_wireguard_peer_change peer = node_peer(b, true, NULL, 0);
  peer.fields |= KDP_WIREGUARD_PEER_SET_PRESHARED_KEY | KDP_WIREGUARD_PEER_SET_KEEPALIVE;
  memset(peer.preshared_key, 0xff, 32);
  peer.keepalive_seconds = 25;
  c->fixed_random = ephemeral;
  c->fixed_random_size = sizeof ephemeral;
  kdp_wireguard_change change = {.peer = &peer, .peer_count = 1};
  assert_int_equal(node_apply(c, &change, now), KDP_OK);
  assert_string_equal(c->keylog, "LOCAL_STATIC_PRIVATE_KEY = EBYXGBkaGxwdHh8gISIjJCUmJygpKissLS4vMDEyM3Q=\n"
                                 "REMOTE_STATIC_PUBLIC_KEY = FVhuliSCRZy9rdIFUHmqp9RlKklgyFin4WQXM7jFN04=\n"
                                 "LOCAL_EPHEMERAL_PRIVATE_KEY = AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=\n"
                                 "PRESHARED_KEY = //////////////////////////////////////////8=\n");
  /* The responder's side. */
  b->device->host.keylog = keep_line;
  assert_int_equal(node_pass(a, 0, b, now), KDP_OK);
  assert_non_null(strstr(b->keylog, "LOCAL_EPHEMERAL_PRIVATE_KEY = "));
  assert_null(strstr(b->keylog, "PRESHARED_KEY"));
  assert_int_equal(a->keylog[0], 0);
  node_free(c);
  free_both(a, b);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_wrong_mac1_is_never_answered),
      cmocka_unit_test(an_initiation_of_a_stranger_is_counted_and_not_answered),
      cmocka_unit_test(an_initiation_is_taken_once),
      cmocka_unit_test(fifty_initiations_of_a_peer_are_answered_in_a_second),
      cmocka_unit_test(a_preshared_key_must_be_the_same_on_both_sides),
      cmocka_unit_test(a_response_counts_once_and_only_for_its_initiation),
      cmocka_unit_test(an_ephemeral_key_of_low_order_is_refused),
      cmocka_unit_test(a_peer_with_a_key_of_low_order_never_completes_and_does_not_spin),
      cmocka_unit_test(load_begins_with_the_32nd_message_of_a_round_and_is_kept_up_for_a_second),
      cmocka_unit_test(a_host_that_never_ends_its_rounds_is_not_under_load_for_ever),
      cmocka_unit_test(every_initiation_and_response_counts_whatever_its_first_mac),
      cmocka_unit_test(what_is_no_handshake_message_is_no_load),
      cmocka_unit_test(thirty_two_in_one_call_are_always_load),
      cmocka_unit_test(under_load_a_sender_must_show_that_it_receives),
      cmocka_unit_test(under_load_a_cookie_does_not_lift_the_rate_of_a_source),
      cmocka_unit_test(a_cookie_reply_from_elsewhere_moves_nothing_but_the_cookie),
      cmocka_unit_test(a_cookie_reply_to_nobody_is_counted),
      cmocka_unit_test(a_call_does_no_more_handshakes_than_its_budget),
      cmocka_unit_test(messages_that_fail_cheaply_do_not_use_up_the_budget),
      cmocka_unit_test(the_endpoint_follows_the_last_authenticated_packet_only),
      cmocka_unit_test(a_configured_endpoint_forgets_our_side_of_the_path),
      cmocka_unit_test(a_retransmission_leaves_the_source_to_the_kernel),
      cmocka_unit_test(stamps_rise_while_the_wall_clock_goes_back_also_over_a_restart),
      cmocka_unit_test(many_peers_at_once_do_not_push_the_stamps_ahead_of_the_clock),
      cmocka_unit_test(a_peer_removed_and_added_again_is_still_above_its_last_stamp),
      cmocka_unit_test(odd_datagrams_are_counted_and_change_nothing),
      cmocka_unit_test(a_datagram_that_the_kernel_cut_is_counted_as_such),
      cmocka_unit_test(random_datagrams_of_every_size_do_nothing),
      cmocka_unit_test(without_a_private_key_nothing_is_answered),
      cmocka_unit_test(the_key_log_is_in_the_form_that_wireshark_reads_and_off_without_a_sink),
  };
  return cmocka_run_group_tests_name("wireguard handshakes", tests, NULL, NULL);
}
