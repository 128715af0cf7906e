/* Each timer of WireGuard at its exact boundary, and what they do together. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "core/wipe.h"
#include "support/wireguard_node.h"

#define SECONDS(n) ((n)*KDP_SECOND)

/* Two nodes with a session that a began at the time returned. */
static kdp_now connected(node **a, node **b) {
  kdp_now now = node_time(1000);
  *a = node_make(1, NULL, NULL);
  *b = node_make(2, NULL, NULL);
  node_connect(*a, *b, now);
  return now;
}

/* A peer that never answers, with one packet staged for it. */
static node *node_with_a_silent_peer(node *silent, kdp_now now) {
  node *a = node_make(1, NULL, NULL);
  assert_int_equal(node_add_peer(a, silent, true, now), KDP_OK);
  assert_int_equal(node_send_to(a, silent, 10, now), KDP_OK);
  assert_int_equal(node_count_sent(a, KDP_WG_INITIATION, NULL), 1);
  return a;
}

static void free_both(node *a, node *b) {
  node_free(a);
  node_free(b);
}

/* ---- Retransmission ---- */

static void an_initiation_is_repeated_after_5_s_and_up_to_333_ms_with_another_key(void **state) {
  (void)state;
  uint64_t least = UINT64_MAX, most = 0;
  node *b = node_make(2, NULL, NULL);
  for (int round = 0; round < 20; round++) {
    kdp_now now = node_time(1000 + (uint64_t)round);
    node *a = node_make((uint8_t)(10 + round), NULL, NULL);
    assert_int_equal(node_add_peer(a, b, true, now), KDP_OK);
    assert_int_equal(node_send_to(a, b, 10, now), KDP_OK);
    uint64_t due = kdp_engine_deadline(a->lane);
    assert_in_range(due - now.boot, SECONDS(5), SECONDS(5) + 333 * KDP_MILLISECOND);
    if (due - now.boot < least) least = due - now.boot;
    if (due - now.boot > most) most = due - now.boot;
    node_tick(a, node_later(now, due - now.boot - 1));
    assert_int_equal(a->sent_count, 1);
    node_tick(a, node_later(now, due - now.boot));
    assert_int_equal(a->sent_count, 2);
    assert_int_equal(kdp_load_le32(a->sent[1].bytes), KDP_WG_INITIATION);
    assert_memory_not_equal(a->sent[0].bytes + 8, a->sent[1].bytes + 8, 32);
    assert_memory_not_equal(a->sent[0].bytes + 4, a->sent[1].bytes + 4, 4);
    node_free(a);
  }
  assert_true(most - least > 100 * KDP_MILLISECOND); /* they do not keep in step */
  node_free(b);
}

static void only_the_newest_initiation_can_be_answered(void **state) {
  (void)state;
  kdp_now now = node_time(1000);
  node *b = node_make(2, NULL, NULL), *a = node_with_a_silent_peer(b, now);
  assert_int_equal(node_add_peer(b, a, false, now), KDP_OK);
  assert_int_equal(node_pass(a, 0, b, now), KDP_OK);
  now = node_run(a, now, now.boot + SECONDS(6));
  assert_int_equal(a->sent_count, 2);
  assert_int_equal(node_pass(b, 0, a, now), KDP_UNKNOWN_SESSION);
  assert_int_equal(node_pass(a, 1, b, now), KDP_OK);
  assert_int_equal(node_pass(b, 1, a, now), KDP_OK);
  free_both(a, b);
}

static void after_90_s_an_attempt_ends_and_what_was_staged_is_dropped(void **state) {
  (void)state;
  kdp_now start = node_time(1000);
  node *b = node_make(2, NULL, NULL), *a = node_with_a_silent_peer(b, start);
  assert_int_equal(node_send_to(a, b, 20, start), KDP_OK);
  kdp_now now = node_run(a, start, start.boot + SECONDS(90) - 1);
  uint32_t sent = node_count_sent(a, KDP_WG_INITIATION, NULL);
  assert_in_range(sent, 17, 18);
  assert_int_equal(node_count_events(a, KDP_EVENT_HANDSHAKE_STARTED, NULL), sent);
  assert_int_equal(node_count_events(a, KDP_EVENT_HANDSHAKE_FAILED, NULL), 0);
  assert_int_equal(node_counted(a, KDP_STAGED_DROPPED), 0);
  now = node_run(a, now, start.boot + SECONDS(90));
  kdp_event failed;
  assert_int_equal(node_count_events(a, KDP_EVENT_HANDSHAKE_FAILED, &failed), 1);
  assert_int_equal(failed.status, KDP_HANDSHAKE_TIMEOUT);
  assert_int_equal(failed.value, sent);
  assert_int_equal(failed.boot, start.boot + SECONDS(90));
  assert_int_equal(node_counted(a, KDP_STAGED_DROPPED), 2);
  /* Silence from then on, until there is something to send again. */
  now = node_run(a, now, start.boot + SECONDS(1000));
  assert_int_equal(node_count_sent(a, KDP_WG_INITIATION, NULL), sent);
  assert_int_equal(kdp_engine_deadline(a->lane), KDP_NEVER);
  assert_int_equal(node_send_to(a, b, 30, now), KDP_OK);
  assert_int_equal(node_count_sent(a, KDP_WG_INITIATION, NULL), sent + 1);
  kdp_event started;
  (void)node_count_events(a, KDP_EVENT_HANDSHAKE_STARTED, &started);
  assert_int_equal(started.value, 1);
  free_both(a, b);
}

/* Traffic goes on while nobody answers: the attempt ends all the same, and the next one begins. */
static void data_during_an_attempt_does_not_prolong_it(void **state) {
  (void)state;
  kdp_now start = node_time(1000), now = start;
  node *b = node_make(2, NULL, NULL), *a = node_with_a_silent_peer(b, start);
  while (now.boot < start.boot + SECONDS(100)) {
    now = node_run(a, now, now.boot + SECONDS(1));
    assert_int_equal(node_send_to(a, b, 1, now), KDP_OK);
  }
  assert_int_equal(node_count_events(a, KDP_EVENT_HANDSHAKE_FAILED, NULL), 1);
  assert_in_range(node_count_sent(a, KDP_WG_INITIATION, NULL), 18, 21);
  assert_true(node_peer_of(a, b)->staged.count <= 11);
  free_both(a, b);
}

static void no_two_handshake_messages_leave_within_5_s(void **state) {
  (void)state;
  node *a, *b;
  kdp_now now = connected(&a, &b);
  /* b has answered just now; a reason to begin itself has to wait for REKEY_TIMEOUT, but is not lost. */
  kdp_now later = node_later(now, SECONDS(2));
  kdp_wg_want_handshake(b->device, node_peer_of(b, a), later.boot);
  node_tick(b, later);
  assert_int_equal(b->sent_count, 0);
  now = node_run(b, now, now.boot + SECONDS(5) - 1);
  assert_int_equal(node_count_sent(b, KDP_WG_INITIATION, NULL), 0);
  now = node_run(b, now, now.boot + 1 + 333 * KDP_MILLISECOND);
  assert_int_equal(node_count_sent(b, KDP_WG_INITIATION, NULL), 1);
  free_both(a, b);
}

/* ---- Sessions grow old ---- */

static void the_initiator_rekeys_when_it_sends_after_120_s(void **state) {
  (void)state;
  node *a, *b;
  kdp_now start = connected(&a, &b);
  kdp_now now = node_run_both(a, b, start, start.boot + SECONDS(120) - 1);
  assert_int_equal(node_send_to(a, b, 1, now), KDP_OK);
  assert_int_equal(node_count_sent(a, KDP_WG_INITIATION, NULL), 0);
  now = node_later(start, SECONDS(120));
  assert_int_equal(node_send_to(a, b, 1, now), KDP_OK);
  assert_int_equal(node_count_sent(a, KDP_WG_INITIATION, NULL), 1);
  /* The packet itself did not wait. */
  assert_int_equal(node_count_sent(a, KDP_WG_TRANSPORT, NULL), 2);
  free_both(a, b);
}

static void the_responder_does_not_rekey_for_age(void **state) {
  (void)state;
  node *a, *b;
  kdp_now start = connected(&a, &b);
  kdp_now now = node_later(node_run_both(a, b, start, start.boot + SECONDS(20)), SECONDS(159));
  assert_int_equal(node_send_to(b, a, 1, now), KDP_OK);
  assert_int_equal(node_count_sent(b, KDP_WG_INITIATION, NULL), 0);
  free_both(a, b);
}

static void the_initiator_rekeys_when_it_receives_after_165_s(void **state) {
  (void)state;
  node *a, *b;
  kdp_now start = connected(&a, &b), now = node_run_both(a, b, start, start.boot + SECONDS(20));
  now = node_later(start, SECONDS(165) - 1);
  assert_int_equal(node_send_to(b, a, 1, now), KDP_OK);
  assert_int_equal(node_send_to(b, a, 1, now), KDP_OK);
  assert_int_equal(node_send_to(b, a, 1, now), KDP_OK);
  assert_int_equal(node_pass(b, 0, a, now), KDP_OK);
  assert_int_equal(node_count_sent(a, KDP_WG_INITIATION, NULL), 0);
  now = node_later(start, SECONDS(165));
  assert_int_equal(node_pass(b, 1, a, now), KDP_OK);
  assert_int_equal(node_count_sent(a, KDP_WG_INITIATION, NULL), 1);
  assert_int_equal(node_pass(b, 2, a, now), KDP_OK);
  assert_int_equal(node_count_sent(a, KDP_WG_INITIATION, NULL), 1);
  free_both(a, b);
}

static void the_responder_does_not_rekey_when_it_receives(void **state) {
  (void)state;
  node *a, *b;
  kdp_now start = connected(&a, &b), now = node_run_both(a, b, start, start.boot + SECONDS(20));
  now = node_later(start, SECONDS(170));
  assert_int_equal(node_send_to(a, b, 1, now), KDP_OK);
  assert_int_equal(node_pass(a, 0, b, now), KDP_OK);
  assert_int_equal(node_count_sent(b, KDP_WG_INITIATION, NULL), 0);
  free_both(a, b);
}

static void a_session_of_180_s_neither_sends_nor_receives(void **state) {
  (void)state;
  node *a, *b;
  kdp_now start = connected(&a, &b), now = node_run_both(a, b, start, start.boot + SECONDS(20));
  now = node_later(start, SECONDS(180) - 1);
  for (int i = 0; i < 2; i++)
    assert_int_equal(node_send_to(b, a, 1, now), KDP_OK);
  assert_int_equal(node_count_sent(b, KDP_WG_TRANSPORT, NULL), 2);
  assert_int_equal(node_pass(b, 0, a, now), KDP_OK);
  now = node_later(start, SECONDS(180));
  assert_int_equal(node_pass(b, 1, a, now), KDP_KEY_EXPIRED);
  assert_int_equal(node_send_to(b, a, 2, now), KDP_OK);
  assert_int_equal(node_count_sent(b, KDP_WG_TRANSPORT, NULL), 2);
  assert_int_equal(node_count_sent(b, KDP_WG_INITIATION, NULL), 1);
  kdp_event ended;
  assert_int_equal(node_count_events(b, KDP_EVENT_DISCONNECTED, &ended), 1);
  assert_int_equal(ended.status, KDP_KEY_EXPIRED);
  free_both(a, b);
}

static void the_end_of_a_session_is_told_at_180_s_and_a_renewed_one_goes_on(void **state) {
  (void)state;
  node *a, *b;
  kdp_now start = connected(&a, &b);
  kdp_now now = node_run(a, start, start.boot + SECONDS(180) - 1);
  assert_int_equal(node_count_events(a, KDP_EVENT_DISCONNECTED, NULL), 0);
  (void)node_run(a, now, start.boot + SECONDS(180));
  kdp_event ended;
  assert_int_equal(node_count_events(a, KDP_EVENT_DISCONNECTED, &ended), 1);
  assert_int_equal(ended.boot, start.boot + SECONDS(180));
  free_both(a, b);

  start = connected(&a, &b);
  assert_int_equal(node_set_keepalive(a, b, 25, start), KDP_OK);
  (void)node_run_both(a, b, start, start.boot + SECONDS(1000));
  assert_int_equal(node_count_events(a, KDP_EVENT_DISCONNECTED, NULL), 0);
  assert_int_equal(node_count_events(b, KDP_EVENT_DISCONNECTED, NULL), 0);
  assert_true(node_count_events(a, KDP_EVENT_REKEYED, NULL) >= 7);
  free_both(a, b);
}

static void all_keys_are_wiped_after_540_s(void **state) {
  (void)state;
  node *a, *b;
  kdp_now start = connected(&a, &b);
  kdp_wg_peer *at_a = node_peer_of(a, b);
  kdp_wg_key_pair *pair = at_a->current;
  kdp_now now = node_run(a, start, start.boot + SECONDS(540) - 1);
  assert_ptr_equal(at_a->current, pair);
  assert_false(kdp_is_zero(&pair->keys, sizeof pair->keys));
  (void)node_run(a, now, start.boot + SECONDS(540));
  assert_null(at_a->current);
  assert_true(kdp_is_zero(&pair->keys, sizeof pair->keys));
  assert_int_equal(a->device->indices.count, 0);
  assert_int_equal(kdp_engine_deadline(a->lane), KDP_NEVER);
  free_both(a, b);
}

static void the_keys_of_a_handshake_that_came_to_nothing_are_wiped(void **state) {
  (void)state;
  kdp_now start = node_time(1000);
  node *b = node_make(2, NULL, NULL), *a = node_with_a_silent_peer(b, start);
  kdp_wg_peer *at_a = node_peer_of(a, b);
  kdp_now now = node_run(a, start, start.boot + SECONDS(90 + 540) - 1);
  assert_true(at_a->handshake_active);
  assert_false(kdp_is_zero(&at_a->handshake, sizeof at_a->handshake));
  (void)node_run(a, now, start.boot + SECONDS(90 + 540));
  assert_false(at_a->handshake_active);
  assert_true(kdp_is_zero(&at_a->handshake, sizeof at_a->handshake));
  assert_int_equal(a->device->indices.count, 0);
  free_both(a, b);
}

/* ---- Keepalives ---- */

/* K-041 */
static void one_data_packet_is_answered_by_one_empty_packet_after_10_s_and_then_all_is_silent(void **state) {
  (void)state;
  node *a, *b;
  kdp_now start = connected(&a, &b);
  start = node_run_both(a, b, start, start.boot + SECONDS(30));
  node_forget(a);
  node_forget(b);
  assert_int_equal(node_send_to(a, b, 100, start), KDP_OK);
  assert_int_equal(node_pass(a, 0, b, start), KDP_OK);
  kdp_now now = node_run(b, start, start.boot + SECONDS(10) - 1);
  assert_int_equal(b->sent_count, 0);
  now = node_run(b, now, start.boot + SECONDS(10));
  assert_int_equal(b->sent_count, 1);
  assert_int_equal(b->sent[0].size, 32);
  assert_int_equal(node_pass(b, 0, a, now), KDP_KEEPALIVE);
  (void)node_run(a, now, start.boot + SECONDS(100));
  (void)node_run(b, now, start.boot + SECONDS(100));
  assert_int_equal(a->sent_count, 1);
  assert_int_equal(b->sent_count, 1);
  free_both(a, b);
}

static void data_on_the_way_back_replaces_the_keepalive(void **state) {
  (void)state;
  node *a, *b;
  kdp_now start = connected(&a, &b);
  start = node_run_both(a, b, start, start.boot + SECONDS(30));
  assert_int_equal(node_send_to(a, b, 100, start), KDP_OK);
  assert_int_equal(node_pass(a, 0, b, start), KDP_OK);
  kdp_now now = node_run(b, start, start.boot + SECONDS(9));
  assert_int_equal(node_send_to(b, a, 1, now), KDP_OK);
  (void)node_run(b, now, start.boot + SECONDS(20));
  assert_int_equal(b->sent_count, 1);
  /* Due in the same call as data: the data is enough. */
  now = node_later(start, SECONDS(21));
  assert_int_equal(node_send_to(a, b, 100, now), KDP_OK);
  assert_int_equal(node_pass(a, 1, b, now), KDP_OK);
  assert_int_equal(node_send_to(b, a, 1, node_later(now, SECONDS(10))), KDP_OK);
  assert_int_equal(b->sent_count, 2);
  free_both(a, b);
}

static void a_persistent_keepalive_leaves_after_exactly_its_interval_of_silence(void **state) {
  (void)state;
  node *a, *b;
  kdp_now start = connected(&a, &b);
  start = node_run_both(a, b, start, start.boot + SECONDS(30));
  node_forget(a);
  node_forget(b);
  assert_int_equal(node_set_keepalive(a, b, 25, start), KDP_OK);
  assert_int_equal(a->sent_count, 1); /* switched on: one at once */
  assert_int_equal(node_pass(a, 0, b, start), KDP_KEEPALIVE);
  kdp_now now = node_run(a, start, start.boot + SECONDS(25) - 1);
  assert_int_equal(a->sent_count, 1);
  now = node_run(a, now, start.boot + SECONDS(25));
  assert_int_equal(a->sent_count, 2);
  assert_int_equal(a->sent[1].size, 32);
  /* Anything authenticated either way begins the silence anew. */
  now = node_later(now, SECONDS(20));
  assert_int_equal(node_send_to(b, a, 1, now), KDP_OK);
  assert_int_equal(node_pass(b, 0, a, now), KDP_OK);
  kdp_now last = node_run(a, now, now.boot + SECONDS(10)); /* the passive one, at 10 s, counts as well */
  assert_int_equal(a->sent_count, 3);
  last = node_run(a, last, now.boot + SECONDS(35) - 1);
  assert_int_equal(a->sent_count, 3);
  last = node_run(a, last, now.boot + SECONDS(35));
  assert_int_equal(a->sent_count, 4);
  /* Switched off: no more. */
  assert_int_equal(node_set_keepalive(a, b, 0, last), KDP_OK);
  (void)node_run(a, last, last.boot + SECONDS(100));
  assert_int_equal(a->sent_count, 4);
  free_both(a, b);
}

static void a_persistent_keepalive_makes_and_renews_a_session_by_itself(void **state) {
  (void)state;
  kdp_now now = node_time(1000);
  node *a = node_make(1, NULL, NULL), *b = node_make(2, NULL, NULL);
  assert_int_equal(node_add_peer(a, b, true, now), KDP_OK);
  assert_int_equal(node_add_peer(b, a, false, now), KDP_OK);
  assert_int_equal(node_set_keepalive(a, b, 25, now), KDP_OK);
  assert_int_equal(node_count_sent(a, KDP_WG_INITIATION, NULL), 1);
  node_exchange(a, b, now);
  (void)node_run_both(a, b, now, now.boot + SECONDS(600));
  assert_int_equal(a->device->lane[0].statistics.handshake_tries, a->device->lane[0].statistics.handshakes);
  assert_in_range(a->device->lane[0].statistics.handshakes, 4, 6);
  free_both(a, b);
}

/* K-035, without delay or loss here; with them it runs in the simulated network. */
static void two_ends_with_keepalives_do_not_disturb_each_other(void **state) {
  (void)state;
  static const uint64_t offsets_ms[] = {0, 7000, 12500, 24990};
  for (size_t i = 0; i < 4; i++) {
    kdp_now start = node_time(1000), now = start;
    node *a = node_make(1, NULL, NULL), *b = node_make(2, NULL, NULL);
    assert_int_equal(node_add_peer(a, b, true, now), KDP_OK);
    assert_int_equal(node_add_peer(b, a, true, now), KDP_OK);
    assert_int_equal(node_set_keepalive(a, b, 25, now), KDP_OK);
    if (offsets_ms[i] > 0) {
      node_exchange(a, b, now);
      now = node_run_both(a, b, now, now.boot + offsets_ms[i] * KDP_MILLISECOND);
    }
    assert_int_equal(node_set_keepalive(b, a, 25, now), KDP_OK);
    node_exchange(a, b, now);
    (void)node_run_both(a, b, now, start.boot + SECONDS(600));
    assert_in_range(a->device->lane[0].statistics.handshake_tries, 1, 6);
    assert_true(b->device->lane[0].statistics.handshake_tries <= 6);
    assert_int_equal(node_count_events(a, KDP_EVENT_DISCONNECTED, NULL), 0);
    assert_int_equal(node_count_events(b, KDP_EVENT_DISCONNECTED, NULL), 0);
    assert_int_equal(node_counted(a, KDP_UNKNOWN_SESSION) + node_counted(b, KDP_UNKNOWN_SESSION), 0);
    free_both(a, b);
  }
}

/* ---- No answer ---- */

static void data_without_any_answer_for_15_s_leads_to_a_handshake(void **state) {
  (void)state;
  node *a, *b;
  kdp_now start = connected(&a, &b);
  start = node_run_both(a, b, start, start.boot + SECONDS(30));
  node_forget(a);
  assert_int_equal(node_send_to(a, b, 1, start), KDP_OK);
  kdp_now now = node_later(start, SECONDS(3));
  assert_int_equal(node_send_to(a, b, 1, now), KDP_OK); /* later data does not move it */
  now = node_run(a, now, start.boot + SECONDS(15) - 1);
  assert_int_equal(node_count_sent(a, KDP_WG_INITIATION, NULL), 0);
  (void)node_run(a, now, start.boot + SECONDS(15) + 333 * KDP_MILLISECOND);
  assert_int_equal(node_count_sent(a, KDP_WG_INITIATION, NULL), 1);
  free_both(a, b);
}

static void an_empty_packet_is_an_answer(void **state) {
  (void)state;
  node *a, *b;
  kdp_now start = connected(&a, &b);
  start = node_run_both(a, b, start, start.boot + SECONDS(30));
  node_forget(a);
  node_forget(b);
  assert_int_equal(node_send_to(a, b, 1, start), KDP_OK);
  assert_int_equal(node_pass(a, 0, b, start), KDP_OK);
  kdp_now now = node_run(b, start, start.boot + SECONDS(10));
  assert_int_equal(node_pass(b, 0, a, now), KDP_KEEPALIVE);
  (void)node_run(a, now, start.boot + SECONDS(60));
  assert_int_equal(node_count_sent(a, KDP_WG_INITIATION, NULL), 0);
  free_both(a, b);
}

/* ---- The host sleeps ---- */

/* K-043 */
static void ten_hours_of_sleep_end_in_one_pass_and_one_initiation(void **state) {
  (void)state;
  node *a, *b;
  kdp_now start = connected(&a, &b);
  assert_int_equal(node_set_keepalive(a, b, 25, start), KDP_OK);
  assert_int_equal(node_send_to(b, a, 9, start), KDP_OK);
  uint32_t late = b->sent_count - 1;
  node_forget(a);
  kdp_wg_key_pair *pair = node_peer_of(a, b)->current;
  kdp_now woken = node_later(start, SECONDS(36000));
  /* The first call after waking: a packet to send. */
  assert_int_equal(node_send_to(a, b, 50, woken), KDP_OK);
  assert_true(kdp_is_zero(&pair->keys, sizeof pair->keys));
  assert_int_equal(a->sent_count, 1);
  assert_int_equal(kdp_load_le32(a->sent[0].bytes), KDP_WG_INITIATION);
  assert_int_equal(node_peer_of(a, b)->staged.count, 1);
  assert_true(kdp_engine_deadline(a->lane) - woken.boot <= SECONDS(5) + 340 * KDP_MILLISECOND);
  assert_int_equal(node_pass(b, late, a, woken), KDP_UNKNOWN_SESSION);
  kdp_now now = node_run(a, woken, woken.boot + SECONDS(5) - 1);
  assert_int_equal(a->sent_count, 1);
  assert_int_equal(node_pass(a, 0, b, now), KDP_OK);
  assert_int_equal(node_pass(b, b->sent_count - 1, a, now), KDP_OK);
  node_exchange(a, b, now);
  assert_int_equal(b->delivered_count, 1);
  free_both(a, b);
}

static void sleep_in_the_middle_of_an_attempt_begins_it_anew_and_keeps_what_is_staged(void **state) {
  (void)state;
  kdp_now start = node_time(1000);
  node *b = node_make(2, NULL, NULL), *a = node_with_a_silent_peer(b, start);
  kdp_now now = node_run(a, start, start.boot + SECONDS(20));
  node_forget(a);
  kdp_now woken = node_later(now, SECONDS(36000));
  node_tick(a, woken);
  assert_int_equal(a->sent_count, 1);
  assert_int_equal(node_peer_of(a, b)->staged.count, 1);
  assert_int_equal(node_count_events(a, KDP_EVENT_HANDSHAKE_FAILED, NULL), 0);
  assert_int_equal(node_count_actions(a, KDP_ACTION_REBIND, NULL), 0);
  now = node_run(a, woken, woken.boot + SECONDS(90) - 1);
  assert_int_equal(node_count_events(a, KDP_EVENT_HANDSHAKE_FAILED, NULL), 0);
  (void)node_run(a, now, woken.boot + SECONDS(90));
  assert_int_equal(node_count_events(a, KDP_EVENT_HANDSHAKE_FAILED, NULL), 1);
  free_both(a, b);
}

static void an_idle_peer_sleeps_and_wakes_without_a_word(void **state) {
  (void)state;
  node *a, *b;
  kdp_now start = connected(&a, &b);
  start = node_run_both(a, b, start, start.boot + SECONDS(30));
  node_forget(a);
  node_tick(a, node_later(start, SECONDS(36000)));
  assert_int_equal(a->sent_count, 0);
  assert_int_equal(kdp_engine_deadline(a->lane), KDP_NEVER);
  free_both(a, b);
}

static void boot_time_that_goes_back_is_taken_as_standing_still(void **state) {
  (void)state;
  node *a, *b;
  kdp_now start = connected(&a, &b), before = node_time(10);
  assert_int_equal(node_send_to(a, b, 1, before), KDP_OK);
  assert_int_equal(node_pass(a, 0, b, before), KDP_OK);
  assert_int_equal(node_set_keepalive(a, b, 25, before), KDP_OK);
  assert_int_equal(node_peer_of(a, b)->timer[KDP_WG_TIMER_PERSISTENT_KEEPALIVE], start.boot + SECONDS(25));
  free_both(a, b);
}

/* ---- Another port, another address ---- */

/* K-045 */
static void after_three_unanswered_initiations_another_port_is_asked_for(void **state) {
  (void)state;
  node *a, *b;
  kdp_now start = connected(&a, &b);
  start = node_run_both(a, b, start, start.boot + SECONDS(30));
  node_forget(a);
  assert_int_equal(node_send_to(a, b, 1, start), KDP_OK);
  kdp_now now = node_run(a, start, start.boot + SECONDS(16));
  assert_int_equal(node_count_sent(a, KDP_WG_INITIATION, NULL), 1);
  uint64_t first = a->event[a->event_count - 1].boot;
  now = node_run(a, now, first + SECONDS(15) - 1);
  assert_int_equal(node_count_sent(a, KDP_WG_INITIATION, NULL), 3);
  assert_int_equal(node_count_actions(a, KDP_ACTION_REBIND, NULL), 0);
  uint32_t sent = a->sent_count;
  now = node_run(a, now, first + SECONDS(16));
  kdp_action action;
  kdp_event event;
  assert_int_equal(node_count_actions(a, KDP_ACTION_REBIND, &action), 1);
  assert_int_equal(action.wire_count, 0); /* before the fourth initiation, which leaves by the new port */
  assert_int_equal(action.peer, node_peer_of(a, b)->number);
  assert_int_equal(action.path.remote.port, 51820);
  assert_int_equal(node_count_events(a, KDP_EVENT_REBIND, &event), 1);
  assert_int_equal(event.status, KDP_OK);
  assert_int_equal(node_count_sent(a, KDP_WG_INITIATION, NULL), 4);
  /* And when that one is answered traffic goes on. */
  assert_int_equal(node_pass(a, sent, b, now), KDP_OK);
  assert_int_equal(node_pass(b, b->sent_count - 1, a, now), KDP_OK);
  assert_int_equal(node_count_events(a, KDP_EVENT_REKEYED, NULL), 1);
  free_both(a, b);
}

static void another_port_is_asked_for_less_and_less_often(void **state) {
  (void)state;
  kdp_now start = node_time(1000);
  node *b = node_make(2, NULL, NULL), *a = node_with_a_silent_peer(b, start);
  kdp_now now = start;
  uint64_t times[16], count = 0;
  while (now.boot < start.boot + SECONDS(2400)) {
    now = node_run(a, now, now.boot + SECONDS(1));
    (void)node_send_to(a, b, 1, now); /* keeps trying */
    for (uint32_t i = 0; i < a->event_count; i++)
      if (a->event[i].kind == KDP_EVENT_REBIND) times[count++] = a->event[i].boot - start.boot;
    node_forget(a);
  }
  static const uint64_t gaps_s[] = {30, 60, 120, 240, 300, 300, 300};
  assert_true(count >= 8);
  assert_in_range(times[0], SECONDS(15), SECONDS(16));
  for (uint64_t i = 1; i < 8; i++) /* the next retransmission after the gap */
    assert_in_range(times[i] - times[i - 1], gaps_s[i - 1] * KDP_SECOND, (gaps_s[i - 1] + 11) * KDP_SECOND);
  free_both(a, b);
}

static void a_fixed_port_stays_and_the_event_says_so(void **state) {
  (void)state;
  kdp_now start = node_time(1000);
  kdp_wireguard_config config = {.fixed_port = true};
  node *a = node_make(1, &config, NULL), *b = node_make(2, NULL, NULL);
  assert_int_equal(node_add_peer(a, b, true, start), KDP_OK);
  assert_int_equal(node_send_to(a, b, 10, start), KDP_OK);
  (void)node_run(a, start, start.boot + SECONDS(16));
  kdp_event event;
  assert_int_equal(node_count_actions(a, KDP_ACTION_REBIND, NULL), 0);
  assert_int_equal(node_count_events(a, KDP_EVENT_REBIND, &event), 1);
  assert_int_equal(event.status, KDP_UNSUPPORTED);
  free_both(a, b);
}

static void while_another_peer_is_heard_the_port_stays(void **state) {
  (void)state;
  node *a, *b;
  kdp_now start = connected(&a, &b), now = start;
  node *silent = node_make(3, NULL, NULL);
  assert_int_equal(node_add_peer(a, silent, true, now), KDP_OK);
  assert_int_equal(node_send_to(a, silent, 10, now), KDP_OK);
  uint32_t seen = 0;
  for (int second = 0; second < 60; second++) {
    now = node_run(a, now, now.boot + SECONDS(1));
    if (second % 4 != 0) continue;
    assert_int_equal(node_send_to(b, a, 1, now), KDP_OK);
    assert_int_equal(node_pass(b, seen, a, now), KDP_OK);
    seen = b->sent_count;
  }
  assert_int_equal(node_count_actions(a, KDP_ACTION_REBIND, NULL), 0);
  /* The silent one's name is looked up again all the same. */
  assert_true(node_count_actions(a, KDP_ACTION_RESOLVE, NULL) >= 1);
  /* Once the other falls silent, too, the port may change. */
  now = node_run(a, now, now.boot + SECONDS(29));
  assert_int_equal(node_count_actions(a, KDP_ACTION_REBIND, NULL), 1);
  node_free(silent);
  free_both(a, b);
}

static void a_name_is_looked_up_again_after_three_unanswered_initiations_and_every_30_s(void **state) {
  (void)state;
  kdp_now start = node_time(1000);
  node *b = node_make(2, NULL, NULL), *a = node_with_a_silent_peer(b, start);
  kdp_now now = node_run(a, start, start.boot + SECONDS(15) - 1);
  assert_int_equal(node_count_events(a, KDP_EVENT_RESOLVE, NULL), 0);
  now = node_run(a, now, start.boot + SECONDS(16));
  kdp_event event;
  assert_int_equal(node_count_events(a, KDP_EVENT_RESOLVE, &event), 1);
  assert_int_equal(event.peer, node_peer_of(a, b)->number);
  assert_true(kdp_address_equal(&event.address, &b->address));
  now = node_run(a, now, event.boot + SECONDS(30) - 1);
  assert_int_equal(node_count_events(a, KDP_EVENT_RESOLVE, NULL), 1);
  (void)node_run(a, now, start.boot + SECONDS(90));
  assert_in_range(node_count_events(a, KDP_EVENT_RESOLVE, NULL), 3, 3);
  free_both(a, b);
}

static void an_answer_begins_the_count_of_unanswered_initiations_anew(void **state) {
  (void)state;
  kdp_now start = node_time(1000);
  node *b = node_make(2, NULL, NULL), *a = node_with_a_silent_peer(b, start);
  assert_int_equal(node_add_peer(b, a, false, start), KDP_OK);
  kdp_now now = node_run(a, start, start.boot + SECONDS(11));
  assert_int_equal(a->sent_count, 3);
  assert_int_equal(node_pass(a, 2, b, now), KDP_OK);
  assert_int_equal(node_pass(b, 0, a, now), KDP_OK);
  now = node_later(now, SECONDS(6));
  kdp_wg_want_handshake(a->device, node_peer_of(a, b), now.boot);
  (void)node_run(a, now, now.boot + SECONDS(11)); /* two more, unanswered */
  assert_int_equal(node_count_sent(a, KDP_WG_INITIATION, NULL), 6);
  assert_int_equal(node_count_events(a, KDP_EVENT_RESOLVE, NULL), 0);
  assert_int_equal(node_count_events(a, KDP_EVENT_REBIND, NULL), 0);
  free_both(a, b);
}

static void after_a_new_network_peers_in_use_speak_at_once(void **state) {
  (void)state;
  node *a, *b;
  kdp_now now = connected(&a, &b);
  node *silent = node_make(3, NULL, NULL), *idle = node_make(4, NULL, NULL);
  assert_int_equal(node_add_peer(a, silent, true, now), KDP_OK);
  assert_int_equal(node_add_peer(a, idle, true, now), KDP_OK);
  assert_int_equal(node_send_to(a, silent, 10, now), KDP_OK);
  assert_int_equal(node_peer_of(a, b)->path.ifindex, 2);
  node_forget(a);
  now = node_later(now, SECONDS(1));
  node_network_changed(a, now);
  assert_int_equal(a->sent_count, 2);
  assert_int_equal(node_count_sent(a, KDP_WG_TRANSPORT, NULL), 1);
  assert_int_equal(node_count_sent(a, KDP_WG_INITIATION, NULL), 1); /* it did not wait for 5 s to pass */
  for (int i = 0; i < 2; i++) {
    assert_int_equal(a->sent[i].path.ifindex, 0);
    assert_int_equal(a->sent[i].path.local.family, KDP_FAMILY_NONE);
  }
  node_free(silent);
  node_free(idle);
  free_both(a, b);
}

static void an_interface_taken_down_forgets_its_sessions_and_begins_anew_when_it_is_up(void **state) {
  (void)state;
  node *a, *b;
  kdp_now now = connected(&a, &b);
  kdp_path path = {0};
  assert_int_equal(node_set_keepalive(a, b, 25, now), KDP_OK);
  node_forget(a);
  kdp_wg_key_pair *pair = node_peer_of(a, b)->current;
  kdp_engine_link_down(a->lane, 0, 0, a->out, now);
  assert_null(node_peer_of(a, b)->current);
  assert_true(kdp_is_zero(&pair->keys, sizeof pair->keys));
  node_tick(a, now);
  kdp_event gone;
  assert_int_equal(node_count_events(a, KDP_EVENT_DISCONNECTED, &gone), 1);
  assert_int_equal(gone.status, KDP_CLOSED);
  assert_int_equal(kdp_engine_deadline(a->lane), KDP_NEVER);
  /* Nothing is begun while it is down, whatever is configured. */
  node *c = node_make(3, NULL, NULL);
  assert_int_equal(node_add_peer(a, c, true, now), KDP_OK);
  assert_int_equal(node_set_keepalive(a, c, 10, now), KDP_OK);
  assert_int_equal(node_set_keepalive(a, c, 20, now), KDP_OK);
  now = node_run(a, now, now.boot + SECONDS(100));
  assert_int_equal(a->sent_count, 0);
  assert_int_equal(kdp_engine_deadline(a->lane), KDP_NEVER);
  kdp_engine_link_up(a->lane, 0, KDP_LINK_DATAGRAM, &path, a->out, now);
  node_tick(a, now);
  assert_int_equal(node_count_sent(a, KDP_WG_INITIATION, NULL), 2);
  assert_int_equal(a->sent_count, 2);
  node_free(c);
  free_both(a, b);
}

static void a_link_that_is_lost_takes_only_its_source_addresses_along(void **state) {
  (void)state;
  node *a, *b;
  kdp_now now = connected(&a, &b);
  kdp_engine_link_down(a->lane, 7, 19, a->out, now);
  assert_int_equal(node_peer_of(a, b)->path.ifindex, 2);
  kdp_engine_link_down(a->lane, 0, 19, a->out, now);
  assert_int_equal(node_peer_of(a, b)->path.ifindex, 0);
  assert_int_equal(node_send_to(a, b, 1, now), KDP_OK);
  assert_int_equal(node_count_sent(a, KDP_WG_TRANSPORT, NULL), 1);
  free_both(a, b);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(an_initiation_is_repeated_after_5_s_and_up_to_333_ms_with_another_key),
      cmocka_unit_test(only_the_newest_initiation_can_be_answered),
      cmocka_unit_test(after_90_s_an_attempt_ends_and_what_was_staged_is_dropped),
      cmocka_unit_test(data_during_an_attempt_does_not_prolong_it),
      cmocka_unit_test(no_two_handshake_messages_leave_within_5_s),
      cmocka_unit_test(the_initiator_rekeys_when_it_sends_after_120_s),
      cmocka_unit_test(the_responder_does_not_rekey_for_age),
      cmocka_unit_test(the_initiator_rekeys_when_it_receives_after_165_s),
      cmocka_unit_test(the_responder_does_not_rekey_when_it_receives),
      cmocka_unit_test(a_session_of_180_s_neither_sends_nor_receives),
      cmocka_unit_test(the_end_of_a_session_is_told_at_180_s_and_a_renewed_one_goes_on),
      cmocka_unit_test(all_keys_are_wiped_after_540_s),
      cmocka_unit_test(the_keys_of_a_handshake_that_came_to_nothing_are_wiped),
      cmocka_unit_test(one_data_packet_is_answered_by_one_empty_packet_after_10_s_and_then_all_is_silent),
      cmocka_unit_test(data_on_the_way_back_replaces_the_keepalive),
      cmocka_unit_test(a_persistent_keepalive_leaves_after_exactly_its_interval_of_silence),
      cmocka_unit_test(a_persistent_keepalive_makes_and_renews_a_session_by_itself),
      cmocka_unit_test(two_ends_with_keepalives_do_not_disturb_each_other),
      cmocka_unit_test(data_without_any_answer_for_15_s_leads_to_a_handshake),
      cmocka_unit_test(an_empty_packet_is_an_answer),
      cmocka_unit_test(ten_hours_of_sleep_end_in_one_pass_and_one_initiation),
      cmocka_unit_test(sleep_in_the_middle_of_an_attempt_begins_it_anew_and_keeps_what_is_staged),
      cmocka_unit_test(an_idle_peer_sleeps_and_wakes_without_a_word),
      cmocka_unit_test(boot_time_that_goes_back_is_taken_as_standing_still),
      cmocka_unit_test(after_three_unanswered_initiations_another_port_is_asked_for),
      cmocka_unit_test(another_port_is_asked_for_less_and_less_often),
      cmocka_unit_test(a_fixed_port_stays_and_the_event_says_so),
      cmocka_unit_test(while_another_peer_is_heard_the_port_stays),
      cmocka_unit_test(a_name_is_looked_up_again_after_three_unanswered_initiations_and_every_30_s),
      cmocka_unit_test(an_answer_begins_the_count_of_unanswered_initiations_anew),
      cmocka_unit_test(after_a_new_network_peers_in_use_speak_at_once),
      cmocka_unit_test(an_interface_taken_down_forgets_its_sessions_and_begins_anew_when_it_is_up),
      cmocka_unit_test(a_link_that_is_lost_takes_only_its_source_addresses_along),
  };
  return cmocka_run_group_tests_name("wireguard timers", tests, NULL, NULL);
}
