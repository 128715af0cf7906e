/* Sessions and the rules for their key pairs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "support/hex.h"
#include "support/wireguard_node.h"

static const kdp_wireguard_config defaults;

static void a_first_packet_leads_to_a_session_and_arrives(void **state) {
  (void)state;
  node *a = node_make(1, NULL, NULL), *b = node_make(2, NULL, NULL);
  kdp_now now = node_time(1000);
  assert_int_equal(node_add_peer(a, b, true, now), KDP_OK);
  assert_int_equal(node_add_peer(b, a, false, now), KDP_OK);
  assert_int_equal(node_send_to(a, b, 100, now), KDP_OK);
  assert_int_equal(a->sent_count, 1);
  assert_int_equal(a->sent[0].size, 148);
  assert_int_equal(node_pass(a, 0, b, now), KDP_OK);
  assert_int_equal(b->sent_count, 1);
  assert_int_equal(b->sent[0].size, 92);
  assert_int_equal(node_pass(b, 0, a, now), KDP_OK);
  assert_int_equal(a->sent_count, 2);
  assert_int_equal(a->sent[1].size, 128 + 32);
  assert_int_equal(node_pass(a, 1, b, now), KDP_OK);
  assert_int_equal(b->delivered_count, 1);
  uint8_t packet[256];
  assert_int_equal(b->delivered[0].size, node_packet(packet, a, b, 100));
  assert_memory_equal(b->delivered[0].bytes, packet, b->delivered[0].size);
  assert_int_equal(node_send_to(b, a, 1, now), KDP_OK);
  assert_int_equal(node_pass(b, 1, a, now), KDP_OK);
  assert_int_equal(a->delivered_count, 1);
  assert_int_equal(node_count_events(a, KDP_EVENT_CONNECTED, NULL), 1);
  assert_int_equal(node_count_events(b, KDP_EVENT_CONNECTED, NULL), 1);
  kdp_statistics statistics;
  kdp_engine_statistics(a->engine, &statistics);
  assert_int_equal(statistics.handshakes, 1);
  assert_int_equal(statistics.handshake_tries, 1);
  assert_int_equal(statistics.wire_out.packets, 2);
  assert_int_equal(statistics.wire_out.bytes, 148 + 160);
  assert_int_equal(statistics.wire_in.bytes, 92 + 64);
  assert_int_equal(statistics.inside_in.bytes, 128);
  assert_int_equal(statistics.inside_out.bytes, 29);
  node_free(a);
  node_free(b);
}

/* The whole engine against answers computed from the paper's text with Python's hashlib and `cryptography`; keys,
   ephemeral keys, indices and the stamp are those of wireguard_crypto_test.c. */
static void the_wire_known_answers(void **state) {
  (void)state;
  static const char *const a_sends[] = {
      "010000004433221179a631eede1bf9c98f12032cdeadd0e7a079398fc786b88cc846ec89af85a51aaf78a785888c18dffdb126e53bb2e2f4"
      "3ef38e2c6036ce48edafbd01c267cee2c02034b0d13584735b570573ca45c9b379a820fc49c7389b374fe32930948cde1a9b5f53aedd17b4"
      "1bb6359022faf5987fcdb128ca622af3897a910300000000000000000000000000000000",
      "04000000ddccbbaa0000000000000000676b3269313f9147803eaf6d4847f8620138bc9139fa93956e028d0027db7179d2cb16f79b082bea"
      "97f2c9ae6c785821529ea2b37360842d2eb002786f055560",
  };
  static const char *const b_sends[] = {
      "02000000ddccbbaa44332211493e82fc74464a59268817623d2053c5eb8e2cc4a988b4fee179ec6b010d531dc6b7c88bdb9217687177085c"
      "b7"
      "a390f39cb8f446111e8017df95ad140f23f60600000000000000000000000000000000",
      "04000000443322110000000000000000896d21e754a386a05fd0a53a5065f81467a8ad26f9e30b43ca5db6cb447b5819dc0423b9a66778ed"
      "762e7fd837fbbcd2fa6c9e00bc759cc37662716c7d5f537c",
  };
  node *a = node_make(1, NULL, NULL), *b = node_make(2, NULL, NULL);
  kdp_now now = {.boot = 5 * KDP_SECOND, .wall = UINT64_C(1777629600123456789)};
  uint8_t a_random[36], b_random[36], preshared[32], expected[256];
  hex_read("00ab0e947f5caa6f53042086d01ee69dd9ecf6caba60469a6fd34e0b9da0fa48", a->private_key);
  hex_read("a0e54885e2f8e8c0d569731f6a3fd6c8c7eb1deb67b10cd482f6687d771cc96c", b->private_key);
  hex_read("9e6ef675ffc8fa197d2fb2d631f54f69a6b976dfb6f52e0d90470ef956a0d863", preshared);
  for (int i = 0; i < 32; i++) {
    a_random[i] = (uint8_t)(0x40 + i);
    b_random[i] = (uint8_t)(0x80 + i);
  }
  kdp_store_le32(a_random + 32, 0x11223344);
  kdp_store_le32(b_random + 32, 0xaabbccdd);
  node *ends[] = {a, b};
  for (int i = 0; i < 2; i++) {
    kdp_wireguard_public_key(ends[i]->private_key, ends[i]->public_key);
    assert_int_equal(node_set_private_key(ends[i], ends[i]->private_key, now), KDP_OK);
  }
  for (int i = 0; i < 2; i++) {
    kdp_wireguard_prefix_change prefix = node_prefix(ends[!i]);
    kdp_wireguard_peer_change peer = node_peer(ends[!i], true, &prefix, 1);
    peer.fields |= KDP_WIREGUARD_PEER_SET_PRESHARED_KEY;
    memcpy(peer.preshared_key, preshared, 32);
    kdp_wireguard_change change = {.peer = &peer, .peer_count = 1};
    assert_int_equal(node_apply(ends[i], &change, now), KDP_OK);
  }
  a->fixed_random = a_random;
  b->fixed_random = b_random;
  a->fixed_random_size = b->fixed_random_size = 36;
  uint8_t packet[64];
  assert_int_equal(node_send(a, packet, node_packet(packet, a, b, 8), now), KDP_OK);
  assert_int_equal(node_pass(a, 0, b, now), KDP_OK);
  assert_int_equal(node_pass(b, 0, a, now), KDP_OK);
  assert_int_equal(node_pass(a, 1, b, now), KDP_OK);
  /* The answer's inner packet is the same one; b may not receive it, but that is not what is looked at here. */
  kdp_wireguard_prefix_change own = node_prefix(b);
  own.prefix.bytes[3] = 2;
  kdp_wireguard_peer_change route = node_peer(a, false, &own, 1);
  kdp_wireguard_change change = {.peer = &route, .peer_count = 1};
  assert_int_equal(node_apply(b, &change, now), KDP_OK);
  assert_int_equal(node_send(b, packet, node_packet(packet, a, b, 8), now), KDP_OK);
  for (int i = 0; i < 2; i++) {
    assert_int_equal(a->sent[i].size, hex_read(a_sends[i], expected));
    assert_memory_equal(a->sent[i].bytes, expected, a->sent[i].size);
    assert_int_equal(b->sent[i].size, hex_read(b_sends[i], expected));
    assert_memory_equal(b->sent[i].bytes, expected, b->sent[i].size);
  }
  node_free(a);
  node_free(b);
}

static void the_responder_does_not_send_with_a_key_that_is_not_confirmed(void **state) {
  (void)state;
  node *a = node_make(1, NULL, NULL), *b = node_make(2, NULL, NULL);
  kdp_now now = node_time(1000);
  assert_int_equal(node_add_peer(a, b, true, now), KDP_OK);
  assert_int_equal(node_add_peer(b, a, false, now), KDP_OK);
  assert_int_equal(node_send_to(a, b, 10, now), KDP_OK);
  assert_int_equal(node_pass(a, 0, b, now), KDP_OK);
  assert_null(node_peer_of(b, a)->current);
  assert_non_null(node_peer_of(b, a)->next);
  assert_int_equal(node_count_events(b, KDP_EVENT_CONNECTED, NULL), 0);
  /* What it wants to send waits, and it does not begin a handshake of its own at once. */
  assert_int_equal(node_send_to(b, a, 20, now), KDP_OK);
  assert_int_equal(b->sent_count, 1);
  assert_int_equal(node_pass(b, 0, a, now), KDP_OK);
  assert_int_equal(node_pass(a, 1, b, now), KDP_OK);
  assert_non_null(node_peer_of(b, a)->current);
  assert_null(node_peer_of(b, a)->next);
  assert_int_equal(node_count_sent(b, KDP_WG_TRANSPORT, NULL), 1);
  assert_int_equal(node_pass(b, 1, a, now), KDP_OK);
  assert_int_equal(a->delivered_count, 1);
  node_free(a);
  node_free(b);
}

/* While the new key waits the old one goes on; once it is confirmed the old one still opens what is under way. */
static void old_and_new_keys_overlap_at_the_responder(void **state) {
  (void)state;
  node *a = node_make(1, NULL, NULL), *b = node_make(2, NULL, NULL);
  kdp_now now = node_time(1000);
  node_connect(a, b, now);
  now = node_run_both(a, b, now, now.boot + 121 * KDP_SECOND);
  uint32_t response, data;
  assert_int_equal(node_send_to(a, b, 1, now), KDP_OK); /* 0: data under the old key, 1: initiation */
  assert_int_equal(a->sent_count, 2);
  assert_int_equal(node_pass(a, 0, b, now), KDP_OK);
  assert_int_equal(node_pass(a, 1, b, now), KDP_OK);
  assert_int_equal(node_send_to(b, a, 2, now), KDP_OK); /* under the old key */
  assert_int_equal(node_count_sent(b, KDP_WG_RESPONSE, &response), 1);
  assert_int_equal(node_count_sent(b, KDP_WG_TRANSPORT, &data), 1);
  assert_int_equal(node_send_to(a, b, 3, now), KDP_OK); /* 2, 3: old key, one in time, one late */
  assert_int_equal(node_send_to(a, b, 3, now), KDP_OK);
  assert_int_equal(node_pass(a, 3, b, now), KDP_OK);
  assert_non_null(node_peer_of(b, a)->next);                /* which confirms nothing */
  assert_int_equal(node_pass(b, response, a, now), KDP_OK); /* 4: empty packet under the new key */
  assert_int_equal(a->sent_count, 5);
  assert_int_equal(node_pass(a, 4, b, now), KDP_KEEPALIVE);
  assert_null(node_peer_of(b, a)->next);
  assert_int_equal(node_count_events(b, KDP_EVENT_REKEYED, NULL), 1);
  assert_int_equal(node_pass(a, 2, b, now), KDP_OK);
  assert_int_equal(node_pass(b, data, a, now), KDP_OK);
  assert_int_equal(a->delivered_count, 1);
  assert_int_equal(b->delivered_count, 3);
  node_free(a);
  node_free(b);
}

static void a_new_pair_of_the_responder_takes_the_place_of_one_that_was_never_used(void **state) {
  (void)state;
  node *a = node_make(1, NULL, NULL), *b = node_make(2, NULL, NULL);
  kdp_now now = node_time(1000);
  node_connect(a, b, now);
  kdp_wg_peer *at_b = node_peer_of(b, a);
  for (int round = 0; round < 5; round++) {
    now = node_later(now, 130 * KDP_SECOND);
    uint32_t initiation = 0;
    (void)node_send_to(a, b, 1, now);
    if (node_count_sent(a, KDP_WG_INITIATION, &initiation)) (void)node_pass(a, initiation, b, now);
    node_forget(a);
    node_forget(b); /* the response is lost */
    assert_null(at_b->previous);
    assert_true(b->device->keys.used <= 2);
  }
  assert_non_null(at_b->next);
  node_free(a);
  node_free(b);
}

/* Both begin at once: each is the responder of the other, and both sessions work (K-035). */
static void simultaneous_initiations_leave_a_session_that_works_both_ways(void **state) {
  (void)state;
  node *a = node_make(1, NULL, NULL), *b = node_make(2, NULL, NULL);
  kdp_now now = node_time(1000);
  assert_int_equal(node_add_peer(a, b, true, now), KDP_OK);
  assert_int_equal(node_add_peer(b, a, true, now), KDP_OK);
  assert_int_equal(node_send_to(a, b, 1, now), KDP_OK);
  assert_int_equal(node_send_to(b, a, 1, now), KDP_OK);
  node_exchange(a, b, now);
  assert_int_equal(a->delivered_count, 1);
  assert_int_equal(b->delivered_count, 1);
  for (int i = 0; i < 3; i++) {
    assert_int_equal(node_send_to(a, b, 2, now), KDP_OK);
    assert_int_equal(node_send_to(b, a, 2, now), KDP_OK);
    node_exchange(a, b, now);
  }
  assert_int_equal(a->delivered_count, 4);
  assert_int_equal(b->delivered_count, 4);
  assert_int_equal(a->device->lane[0].statistics.handshake_tries, 1);
  assert_int_equal(b->device->lane[0].statistics.handshake_tries, 1);
  assert_int_equal(node_counted(a, KDP_UNKNOWN_SESSION) + node_counted(b, KDP_UNKNOWN_SESSION), 0);
  node_free(a);
  node_free(b);
}

/* Someone holds a response back and gives it to us when the other end has long forgotten that session. */
static void a_response_held_back_until_another_session_is_up_changes_nothing(void **state) {
  (void)state;
  node *a = node_make(1, NULL, NULL), *b = node_make(2, NULL, NULL);
  kdp_now now = node_time(1000);
  assert_int_equal(node_add_peer(a, b, true, now), KDP_OK);
  assert_int_equal(node_add_peer(b, a, true, now), KDP_OK);
  assert_int_equal(node_send_to(a, b, 1, now), KDP_OK);
  assert_int_equal(node_pass(a, 0, b, now), KDP_OK);
  kept_datagram *held = &b->sent[0];
  now = node_later(now, 5 * KDP_SECOND);
  kdp_wg_want_handshake(b->device, node_peer_of(b, a), now.boot);
  node_tick(b, now);
  assert_int_equal(node_pass(b, 1, a, now), KDP_OK);
  assert_int_equal(node_pass(a, 1, b, now), KDP_OK);
  for (uint32_t i = 2; i < b->sent_count; i++)
    (void)node_pass(b, i, a, now);
  kdp_wg_key_pair *current = node_peer_of(a, b)->current;
  assert_non_null(current);
  kdp_path path = node_path(a, b);
  assert_int_equal(node_receive(a, held->bytes, held->size, &path, now), KDP_UNKNOWN_SESSION);
  assert_ptr_equal(node_peer_of(a, b)->current, current);
  node_free(a);
  node_free(b);
}

static void a_peer_never_holds_more_than_two_pairs(void **state) {
  (void)state;
  node *a = node_make(1, NULL, NULL), *b = node_make(2, NULL, NULL);
  rng r = {21};
  kdp_now now = node_time(1000);
  node_connect(a, b, now);
  kdp_wireguard_peer_change peer = node_peer(a, true, NULL, 0);
  kdp_wireguard_change change = {.peer = &peer, .peer_count = 1};
  assert_int_equal(node_apply(b, &change, now), KDP_OK);
  uint64_t made = 0;
  for (int round = 0; round < 6000; round++) {
    now = node_later(now, rng_below(&r, 4000) * KDP_MILLISECOND);
    node *from = rng_one_in(&r, 2) ? a : b, *to = from == a ? b : a;
    switch (rng_below(&r, 4)) {
    case 0: (void)node_send_to(from, to, 5, now); break;
    case 1: node_tick(from, now); break;
    case 2:
      kdp_wg_want_handshake(from->device, node_peer_of(from, to), now.boot);
      node_tick(from, now);
      break;
    default:
      for (uint32_t i = 0; i < from->sent_count; i++)
        if (!rng_one_in(&r, 4)) (void)node_pass(from, i, to, now);
      node_forget(from);
    }
    assert_true(a->device->keys.used <= 2 && b->device->keys.used <= 2);
    for (int i = 0; i < 2; i++) {
      kdp_wg_peer *at = i ? node_peer_of(a, b) : node_peer_of(b, a);
      assert_false(at->previous && at->next);
      assert_int_equal((i ? a : b)->device->keys.used,
                       (at->current != NULL) + (at->previous != NULL) + (at->next != NULL));
    }
    made = a->device->lane[0].statistics.handshakes;
    if (a->sent_count + b->sent_count > 500) {
      node_forget(a);
      node_forget(b);
    }
    a->event_count = b->event_count = 0;
  }
  assert_true(made > 50);
  node_free(a);
  node_free(b);
}

/* ---- Limits of messages: reached by setting the counter ---- */

static void after_2_60_messages_a_new_session_is_asked_for(void **state) {
  (void)state;
  node *a = node_make(1, NULL, NULL), *b = node_make(2, NULL, NULL);
  kdp_now now = node_time(1000);
  node_connect(a, b, now);
  /* Both roles: the responder, too, and not before REKEY_TIMEOUT after its response. */
  now = node_later(now, 6 * KDP_SECOND);
  kdp_wg_peer *at_b = node_peer_of(b, a);
  assert_true(KDP_WG_REKEY_AFTER_MESSAGES == UINT64_C(1) << 60);
  at_b->current->send_counter = KDP_WG_REKEY_AFTER_MESSAGES - 1;
  assert_int_equal(node_send_to(b, a, 1, now), KDP_OK);
  assert_int_equal(node_count_sent(b, KDP_WG_INITIATION, NULL), 0);
  assert_int_equal(node_send_to(b, a, 1, now), KDP_OK);
  assert_int_equal(node_count_sent(b, KDP_WG_INITIATION, NULL), 1);
  node_exchange(b, a, now);
  assert_int_equal(node_count_events(b, KDP_EVENT_REKEYED, NULL), 1);
  assert_int_equal(at_b->current->send_counter, 1);
  node_free(a);
  node_free(b);
}

static void the_last_counter_is_never_used(void **state) {
  (void)state;
  node *a = node_make(1, NULL, NULL), *b = node_make(2, NULL, NULL);
  kdp_now now = node_time(1000);
  node_connect(a, b, now);
  now = node_later(now, 6 * KDP_SECOND);
  kdp_wg_peer *at_a = node_peer_of(a, b);
  assert_true(KDP_WG_REJECT_AFTER_MESSAGES == UINT64_MAX - 8192);
  at_a->current->send_counter = KDP_WG_REJECT_AFTER_MESSAGES - 2;
  uint8_t packet[64];
  uint32_t size = node_packet(packet, a, b, 9);
  /* Four in one batch: two are sealed, two wait for the handshake that begins. */
  kdp_packet packets[4];
  for (int i = 0; i < 4; i++) {
    assert_true(kdp_pool_take_packet(a->pool, 16, size, 31, &packets[i]));
    memcpy(packets[i].data, packet, size);
  }
  kdp_batch batch = {.packet = packets, .count = 4, .capacity = 4};
  assert_int_equal(kdp_engine_inside(a->lane, &batch, a->out, now), 4);
  assert_int_equal(a->out->wire.count, 3);
  assert_int_equal(kdp_load_le64(a->out->wire.packet[1].data + 8), KDP_WG_REJECT_AFTER_MESSAGES - 1);
  assert_int_equal(kdp_load_le32(a->out->wire.packet[2].data), KDP_WG_INITIATION);
  assert_int_equal(at_a->staged.count, 2);
  node_tick(a, now); /* collects */
  node_exchange(a, b, now);
  assert_int_equal(b->delivered_count, 4);
  node_free(a);
  node_free(b);
}

static void a_counter_beyond_the_limit_is_refused(void **state) {
  (void)state;
  node *a = node_make(1, NULL, NULL), *b = node_make(2, NULL, NULL);
  kdp_now now = node_time(1000);
  node_connect(a, b, now);
  assert_int_equal(node_send_to(a, b, 1, now), KDP_OK);
  kdp_store_le64(a->sent[0].bytes + 8, KDP_WG_REJECT_AFTER_MESSAGES);
  assert_int_equal(node_pass(a, 0, b, now), KDP_KEY_EXPIRED);
  kdp_store_le64(a->sent[0].bytes + 8, UINT64_MAX);
  assert_int_equal(node_pass(a, 0, b, now), KDP_KEY_EXPIRED);
  kdp_store_le64(a->sent[0].bytes + 8, KDP_WG_REJECT_AFTER_MESSAGES - 1);
  assert_int_equal(node_pass(a, 0, b, now), KDP_AUTHENTICATION_FAILED);
  kdp_store_le64(a->sent[0].bytes + 8, 1);
  assert_int_equal(node_pass(a, 0, b, now), KDP_OK); /* nothing before it moved the window */
  node_free(a);
  node_free(b);
}

/* A session that an initiation in the same batch ends is not there any more for what follows. */
static void a_session_that_ends_within_a_batch_is_gone_for_the_rest_of_it(void **state) {
  (void)state;
  node *a = node_make(1, NULL, NULL), *b = node_make(2, NULL, NULL);
  kdp_now now = node_time(1000);
  node_connect(a, b, now);
  uint8_t old[2][64], initiation[148];
  for (int i = 0; i < 2; i++) {
    assert_int_equal(node_send_to(a, b, 1, now), KDP_OK);
    memcpy(old[i], a->sent[i].bytes, 64);
  }
  node_forget(a);
  now = node_later(now, 6 * KDP_SECOND);
  kdp_wg_want_handshake(a->device, node_peer_of(a, b), now.boot);
  node_tick(a, now);
  node_exchange(a, b, now);
  assert_non_null(node_peer_of(b, a)->previous);
  now = node_later(now, 6 * KDP_SECOND);
  kdp_wg_want_handshake(a->device, node_peer_of(a, b), now.boot);
  node_tick(a, now);
  memcpy(initiation, a->sent[0].bytes, 148);
  kdp_packet packets[3];
  for (int i = 0; i < 3; i++) {
    const uint8_t *bytes = i == 1 ? initiation : old[i / 2];
    uint32_t size = i == 1 ? 148 : 64;
    assert_true(kdp_pool_take_packet(b->pool, 0, size, 0, &packets[i]));
    memcpy(packets[i].data, bytes, size);
  }
  kdp_path path = node_path(b, a);
  kdp_batch batch = {.packet = packets, .count = 3, .capacity = 3, .path = &path, .path_count = 1};
  assert_int_equal(kdp_engine_outside(b->lane, &batch, b->out, now), 3);
  assert_int_equal(packets[0].status, KDP_OK);
  assert_int_equal(packets[1].status, KDP_OK);
  assert_int_equal(packets[2].status, KDP_UNKNOWN_SESSION);
  node_tick(b, now);
  node_free(a);
  node_free(b);
}

/* ---- Replay ---- */

static void a_packet_is_taken_once_and_a_forged_one_moves_nothing(void **state) {
  (void)state;
  node *a = node_make(1, NULL, NULL), *b = node_make(2, NULL, NULL);
  kdp_now now = node_time(1000);
  node_connect(a, b, now);
  for (int i = 0; i < 3; i++)
    assert_int_equal(node_send_to(a, b, 1, now), KDP_OK);
  assert_int_equal(node_pass(a, 2, b, now), KDP_OK);
  assert_int_equal(node_pass(a, 0, b, now), KDP_OK);
  assert_int_equal(node_pass(a, 2, b, now), KDP_REPLAYED);
  assert_int_equal(node_pass(a, 0, b, now), KDP_REPLAYED);
  uint8_t forged[256];
  memcpy(forged, a->sent[1].bytes, a->sent[1].size);
  kdp_store_le64(forged + 8, UINT64_C(1) << 62);
  kdp_path path = node_path(b, a);
  assert_int_equal(node_receive(b, forged, a->sent[1].size, &path, now), KDP_AUTHENTICATION_FAILED);
  assert_int_equal(node_pass(a, 1, b, now), KDP_OK);
  assert_int_equal(node_counted(b, KDP_REPLAYED), 2);
  assert_int_equal(node_counted(b, KDP_AUTHENTICATION_FAILED), 1);
  node_free(a);
  node_free(b);
}

/* Two copies in one batch: the check before opening passes both. */
static void two_copies_in_one_batch_are_one_packet(void **state) {
  (void)state;
  node *a = node_make(1, NULL, NULL), *b = node_make(2, NULL, NULL);
  kdp_now now = node_time(1000);
  node_connect(a, b, now);
  assert_int_equal(node_send_to(a, b, 100, now), KDP_OK);
  kdp_packet packets[2];
  for (int i = 0; i < 2; i++) {
    assert_true(kdp_pool_take_packet(b->pool, 0, a->sent[0].size, 0, &packets[i]));
    memcpy(packets[i].data, a->sent[0].bytes, a->sent[0].size);
  }
  kdp_path path = node_path(b, a);
  kdp_batch batch = {.packet = packets, .count = 2, .capacity = 2, .path = &path, .path_count = 1, .path_capacity = 1};
  assert_int_equal(kdp_engine_outside(b->lane, &batch, b->out, now), 2);
  assert_int_equal(packets[0].status, KDP_OK);
  assert_int_equal(packets[1].status, KDP_REPLAYED);
  node_tick(b, now);
  assert_int_equal(b->delivered_count, 1);
  node_free(a);
  node_free(b);
}

static void the_window_reaches_8128_back(void **state) {
  (void)state;
  node *a = node_make(1, NULL, NULL), *b = node_make(2, NULL, NULL);
  kdp_now now = node_time(1000);
  node_connect(a, b, now);
  kdp_wg_peer *at_a = node_peer_of(a, b);
  at_a->current->send_counter = 9999 - 8128;
  assert_int_equal(node_send_to(a, b, 1, now), KDP_OK);
  at_a->current->send_counter = 9999;
  assert_int_equal(node_send_to(a, b, 1, now), KDP_OK);
  assert_int_equal(node_pass(a, 1, b, now), KDP_OK);
  assert_int_equal(node_pass(a, 0, b, now), KDP_OK);
  assert_int_equal(node_pass(a, 0, b, now), KDP_REPLAYED);
  node_free(a);
  node_free(b);
}

static void an_engine_has_one_lane_unless_more_are_asked_for(void **state) {
  (void)state;
  kdp_host host = kdp_host_default();
  kdp_limits limits = {0};
  kdp_engine *engine = NULL;
  assert_int_equal(kdp_wireguard_create(&defaults, &limits, &host, node_time(0), &engine), KDP_OK);
  assert_non_null(kdp_engine_lane(engine, 0));
  assert_null(kdp_engine_lane(engine, 1));
  assert_string_equal(kdp_engine_name(engine), "wireguard");
  kdp_room room = kdp_engine_room(engine, NULL);
  assert_int_equal(room.head, 16);
  assert_int_equal(room.tail, 31);
  assert_int_equal(room.inside_mtu, 1420);
  assert_int_equal(room.reorder_window, 8128);
  kdp_engine_destroy(engine);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_first_packet_leads_to_a_session_and_arrives),
      cmocka_unit_test(the_wire_known_answers),
      cmocka_unit_test(the_responder_does_not_send_with_a_key_that_is_not_confirmed),
      cmocka_unit_test(old_and_new_keys_overlap_at_the_responder),
      cmocka_unit_test(a_new_pair_of_the_responder_takes_the_place_of_one_that_was_never_used),
      cmocka_unit_test(simultaneous_initiations_leave_a_session_that_works_both_ways),
      cmocka_unit_test(a_response_held_back_until_another_session_is_up_changes_nothing),
      cmocka_unit_test(a_peer_never_holds_more_than_two_pairs),
      cmocka_unit_test(after_2_60_messages_a_new_session_is_asked_for),
      cmocka_unit_test(the_last_counter_is_never_used),
      cmocka_unit_test(a_counter_beyond_the_limit_is_refused),
      cmocka_unit_test(a_session_that_ends_within_a_batch_is_gone_for_the_rest_of_it),
      cmocka_unit_test(a_packet_is_taken_once_and_a_forged_one_moves_nothing),
      cmocka_unit_test(two_copies_in_one_batch_are_one_packet),
      cmocka_unit_test(the_window_reaches_8128_back),
      cmocka_unit_test(an_engine_has_one_lane_unless_more_are_asked_for),
  };
  return cmocka_run_group_tests_name("wireguard sessions", tests, NULL, NULL);
}
