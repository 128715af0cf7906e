/* What another lane than 0 notes of a peer, and what lane 0 makes of it: keepalives, handshakes, renewals, questions
   for the path MTU, at the times that one lane would have them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "support/wireguard_lane.h"

#define SECONDS(n) ((n)*KDP_SECOND)

static const kdp_limits three_lanes = {.lanes = 3};

/* Half a minute of silence: no timer that data started runs any more. */
static void settle(lane_pair *p) {
  p->now = node_run_both(p->a, p->b, p->now, p->now.boot + SECONDS(30));
  node_forget(p->a);
  node_forget(p->b);
}

/* Data from a on lane 1; lane 0 is told as a worker would tell it. */
static void send_on_lane_1(lane_pair *p) {
  assert_int_equal(side_lane_send_to(p->l, p->b, 10, p->now), KDP_OK);
  (void)side_lane_pass_on(p->l, p->now);
}

static void receive_on_lane_1(lane_pair *p) {
  assert_int_equal(side_lane_receive_from(p->l, p->b, 10, p->now), KDP_OK);
  (void)side_lane_pass_on(p->l, p->now);
}

static void pass_time(lane_pair *p, uint64_t nanoseconds) {
  p->now = node_run(p->a, p->now, p->now.boot + nanoseconds);
}

static void lane_0_is_woken_once_as_long_as_a_peer_is_active(void **state) {
  (void)state;
  lane_pair p = lane_pair_make();
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
  lane_pair_free(&p);
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
  lane_pair p = lane_pair_make();
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
  lane_pair_free(&p);
}

static void data_without_an_answer_begins_a_handshake_after_15_s(void **state) {
  (void)state;
  lane_pair p = lane_pair_make();
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
  lane_pair_free(&p);
}

static void an_answer_on_a_lane_begins_no_handshake(void **state) {
  (void)state;
  lane_pair p = lane_pair_make();
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
  lane_pair_free(&p);
}

static void data_received_on_a_lane_is_answered_by_a_keepalive_after_10_s(void **state) {
  (void)state;
  lane_pair p = lane_pair_make();
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
  lane_pair_free(&p);
}

/* An empty packet that a lane opens starts nothing. */
static void two_ends_fall_silent(void **state) {
  (void)state;
  lane_pair p = lane_pair_make();
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
  lane_pair_free(&p);
}

static void traffic_of_a_lane_puts_the_persistent_keepalive_off(void **state) {
  (void)state;
  lane_pair p = lane_pair_make();
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
  lane_pair_free(&p);
}

static void an_old_session_is_renewed_by_what_a_lane_sends(void **state) {
  (void)state;
  lane_pair p = lane_pair_make();
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
  lane_pair_free(&p);
}

static void a_session_that_sealed_much_is_renewed(void **state) {
  (void)state;
  lane_pair p = lane_pair_make();
  settle(&p);
  node_peer_of(p.a, p.b)->current->send_counter = KDP_WG_REKEY_AFTER_MESSAGES;
  send_on_lane_1(&p);
  pass_time(&p, KDP_WG_NOTES_INTERVAL);
  assert_int_equal(node_count_sent(p.a, KDP_WG_INITIATION, NULL), 1);
  lane_pair_free(&p);
}

static void an_old_session_is_renewed_by_what_a_lane_receives(void **state) {
  (void)state;
  lane_pair p = lane_pair_make();
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
  lane_pair_free(&p);
}

/* What a lane sealed with the old keys, and lane 0 reads of only after the new ones were made, is no reason to renew
   those. */
static void notes_from_before_a_new_session_renew_nothing(void **state) {
  (void)state;
  lane_pair p = lane_pair_make();
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
  lane_pair_free(&p);
}

/* A peer that is heard on another lane is no reason to bind the socket anew, nor to look its name up. */
static void a_peer_heard_on_a_lane_counts_as_heard(void **state) {
  (void)state;
  lane_pair p = lane_pair_make();
  settle(&p);
  kdp_wg_peer *peer = node_peer_of(p.a, p.b);
  peer->unanswered = 5;
  peer->initiated[0] = p.now.boot;
  p.now = node_later(p.now, 1);
  receive_on_lane_1(&p);
  assert_int_equal(peer->unanswered, 0);
  assert_true(p.a->device->authenticated == p.now.boot);
  lane_pair_free(&p);
}

static void the_path_mtu_is_asked_for_with_data_of_a_lane(void **state) {
  (void)state;
  lane_pair p = lane_pair_make();
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
  lane_pair_free(&p);
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
  lane_pair p = lane_pair_make();
  send_on_lane_1(&p);
  p.now = node_later(p.now, KDP_SECOND);
  kdp_engine_link_down(p.a->lane, 0, 0, p.a->out, p.now);
  kdp_engine_link_up(p.a->lane, 0, KDP_LINK_DATAGRAM, &(kdp_path){0}, p.a->out, p.now);
  assert_int_equal(side_lane_send_to(p.l, p.b, 10, p.now), KDP_HANDED_OVER);
  (void)side_lane_pass_on(p.l, p.now);
  node_exchange(p.a, p.b, p.now);
  assert_int_equal(side_lane_send_to(p.l, p.b, 10, p.now), KDP_OK);
  assert_int_equal(side_lane_wakes(p.l), 1);
  lane_pair_free(&p);
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
    lane_pair p = lane_pair_make();
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
    lane_pair_free(&p);
  }
  assert_true(keepalives > 20);
}

int main(void) {
  const struct CMUnitTest tests[] = {
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
