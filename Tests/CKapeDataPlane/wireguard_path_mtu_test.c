/* What the engine makes of a path's MTU: what it asks for, what it refuses, and for how long it knows. */
#include "support/wireguard_pair.h"

#define SECONDS(n) ((n)*KDP_SECOND)

static void set_path_mtu(node *n, const node *to, uint16_t bytes, kdp_now now) {
  kdp_path path = {.remote = to->address};
  path.remote.port = 0;
  kdp_engine_path_mtu(n->lane, &path, bytes, now);
}

static void what_exceeds_the_path_sealed_is_refused_with_the_size_that_fits(void **state) {
  (void)state;
  node *a, *b;
  kdp_now now = connected(&a, &b);
  route_everything(a, b, now);
  uint8_t bytes[1500];
  set_path_mtu(a, b, 1400, now); /* 1400 - 20 - 8 - 32 = 1340 */
  assert_int_equal(node_send(a, bytes, packet4(bytes, a, b, 1340, true), now), KDP_OK);
  assert_int_equal(a->sent[0].size, 1340 + 32); /* padding does not push it over */
  assert_int_equal(node_send(a, bytes, packet4(bytes, a, b, 1339, true), now), KDP_OK);
  assert_int_equal(a->sent[1].size, 1340 + 32);
  assert_int_equal(node_send(a, bytes, packet4(bytes, a, b, 1341, true), now), KDP_TOO_BIG);
  assert_int_equal(a->delivered_count, 1);
  assert_int_equal(a->delivered[0].bytes[20], 3);
  assert_int_equal(a->delivered[0].bytes[21], 4);
  assert_int_equal(kdp_load_be16(a->delivered[0].bytes + 26), 1340);
  assert_memory_equal(a->delivered[0].bytes + 12, bytes + 16, 4);
  /* IPv4 that may be cut goes through: the outer datagram is fragmented on the way. */
  assert_int_equal(node_send(a, bytes, packet4(bytes, a, b, 1341, false), now), KDP_OK);
  assert_int_equal(a->sent[2].flags & KDP_DF, 0);
  assert_int_equal(node_send(a, bytes, packet6(bytes, 1341), now), KDP_TOO_BIG);
  assert_int_equal(a->delivered[1].bytes[40], 2);
  assert_int_equal(kdp_load_be32(a->delivered[1].bytes + 44), 1340);
  free_both(a, b);
}

static void ipv6_is_never_told_less_than_1280(void **state) {
  (void)state;
  node *a, *b;
  kdp_now now = connected(&a, &b);
  route_everything(a, b, now);
  uint8_t bytes[1500];
  set_path_mtu(a, b, 1280, now); /* 1220 would fit */
  assert_int_equal(node_send(a, bytes, packet6(bytes, 1281), now), KDP_TOO_BIG);
  assert_int_equal(kdp_load_be32(a->delivered[0].bytes + 44), 1280);
  assert_int_equal(node_send(a, bytes, packet6(bytes, 1280), now), KDP_OK);
  assert_int_equal(a->sent_count, 1);
  assert_int_equal(node_send(a, bytes, packet4(bytes, a, b, 1221, true), now), KDP_TOO_BIG);
  assert_int_equal(kdp_load_be16(a->delivered[1].bytes + 26), 1220);
  /* A nonsense value does no harm. */
  set_path_mtu(a, b, 40, now);
  assert_int_equal(node_send(a, bytes, packet4(bytes, a, b, 69, true), now), KDP_TOO_BIG);
  assert_int_equal(kdp_load_be16(a->delivered[2].bytes + 26), 68);
  assert_int_equal(node_send(a, bytes, packet4(bytes, a, b, 68, true), now), KDP_OK);
  free_both(a, b);
}

static void a_path_mtu_is_forgotten_after_10_min_or_when_told_or_with_the_address(void **state) {
  (void)state;
  node *a, *b;
  kdp_now now = connected(&a, &b), later;
  uint8_t bytes[1500];
  (void)packet4(bytes, a, b, 1400, true);
  set_path_mtu(a, b, 1400, now);
  assert_int_equal(node_send(a, bytes, 1400, now), KDP_TOO_BIG);
  assert_int_equal(node_set_keepalive(a, b, 25, now), KDP_OK); /* so that there is a session all the time */
  later = node_run_both(a, b, now, now.boot + SECONDS(600) - 1);
  assert_int_equal(node_send(a, bytes, 1400, later), KDP_TOO_BIG);
  assert_int_equal(node_send(a, bytes, 1400, node_later(now, SECONDS(600))), KDP_OK);
  now = node_later(now, SECONDS(600));
  set_path_mtu(a, b, 1400, now);
  assert_int_equal(node_send(a, bytes, 1400, now), KDP_TOO_BIG);
  set_path_mtu(a, b, 0, now);
  assert_int_equal(node_send(a, bytes, 1400, now), KDP_OK);
  set_path_mtu(a, b, 1400, now);
  assert_int_equal(node_send(a, bytes, 1400, now), KDP_TOO_BIG);
  kdp_wireguard_peer_change peer = node_peer(b, true, NULL, 0);
  peer.endpoint.bytes[3] = 77;
  kdp_wireguard_change change = {.peer = &peer, .peer_count = 1};
  assert_int_equal(node_apply(a, &change, now), KDP_OK);
  assert_int_equal(node_send(a, bytes, 1400, now), KDP_OK);
  free_both(a, b);
}

static uint32_t asked(node *n, const node *to, kdp_now now) {
  uint8_t bytes[200];
  kdp_action action;
  node_forget(n);
  assert_int_equal(node_send(n, bytes, packet4(bytes, n, to, 100, true), now), KDP_OK);
  uint32_t count = node_count_actions(n, KDP_ACTION_PATH_MTU, &action);
  if (count) assert_true(kdp_address_equal(&action.path.remote, &node_peer_of(n, to)->path.remote));
  return count;
}

static void the_path_mtu_is_asked_for_whenever_it_is_not_known(void **state) {
  (void)state;
  kdp_now now = node_time(1000);
  node *a = node_make(1, NULL, NULL), *b = node_make(2, NULL, NULL);
  assert_int_equal(node_add_peer(a, b, true, now), KDP_OK);
  assert_int_equal(node_add_peer(b, a, false, now), KDP_OK);
  assert_int_equal(node_send_to(a, b, 64, now), KDP_OK);
  assert_int_equal(node_count_actions(a, KDP_ACTION_PATH_MTU, NULL), 0); /* not for a handshake */
  assert_int_equal(node_pass(a, 0, b, now), KDP_OK);
  assert_int_equal(node_pass(b, 0, a, now), KDP_OK);
  assert_int_equal(node_count_actions(a, KDP_ACTION_PATH_MTU, NULL), 1); /* for what was staged */
  node_exchange(a, b, now);
  assert_int_equal(node_set_keepalive(a, b, 25, now), KDP_OK); /* so that there is a session all the time */
  assert_int_equal(asked(a, b, now), 0);                       /* no answer is an answer */
  set_path_mtu(a, b, 1400, now);
  assert_int_equal(asked(a, b, now), 0);
  kdp_now later = node_run_both(a, b, now, now.boot + SECONDS(600) - 1);
  assert_int_equal(asked(a, b, later), 0);
  now = node_later(now, SECONDS(600));
  assert_int_equal(asked(a, b, now), 1);
  set_path_mtu(a, b, 0, now); /* no route, perhaps for a moment */
  assert_int_equal(asked(a, b, node_later(now, SECONDS(10) - 1)), 0);
  now = node_later(now, SECONDS(10));
  assert_int_equal(asked(a, b, now), 1);
  set_path_mtu(a, b, 1400, now);
  node_forget(a);
  node_network_changed(a, now);
  assert_int_equal(node_count_actions(a, KDP_ACTION_PATH_MTU, NULL), 0); /* a keepalive fits anywhere */
  assert_int_equal(asked(a, b, now), 1);
  for (uint8_t last = 77; last <= 78; last++) {
    kdp_wireguard_peer_change peer = node_peer(b, true, NULL, 0);
    if (last == 77) peer.endpoint.bytes[3] = last; /* away, and back */
    kdp_wireguard_change change = {.peer = &peer, .peer_count = 1};
    assert_int_equal(node_apply(a, &change, now), KDP_OK);
    assert_int_equal(asked(a, b, now), 1);
    set_path_mtu(a, b, 1400, now);
  }
  free_both(a, b);
}

static void an_answered_path_mtu_is_the_askers_and_news_is_everybodys(void **state) {
  (void)state;
  kdp_now now = node_time(1000);
  node *a = node_make(1, NULL, NULL), *b = node_make(2, NULL, NULL), *c = node_make(3, NULL, NULL);
  node_connect(a, b, now);
  c->address.bytes[3] = b->address.bytes[3]; /* behind the same address, and idle */
  c->address.port++;
  assert_int_equal(node_add_peer(a, c, true, now), KDP_OK);
  const kdp_wg_peer *busy = node_peer_of(a, b), *idle = node_peer_of(a, c);
  set_path_mtu(a, b, 1400, now); /* what node_connect asked for */
  set_path_mtu(a, b, 1390, now); /* nobody asked */
  assert_int_equal(busy->path_mtu, 1390);
  assert_int_equal(idle->path_mtu, 1390);
  now = node_later(now, SECONDS(600));
  node_connect(a, b, now);
  assert_int_equal(node_send_to(a, b, 64, now), KDP_OK);
  set_path_mtu(a, b, 1300, now); /* the answer */
  assert_int_equal(busy->path_mtu, 1300);
  assert_int_equal(idle->path_mtu, 1390);
  set_path_mtu(a, b, 1200, now);
  assert_int_equal(busy->path_mtu, 1200);
  assert_int_equal(idle->path_mtu, 1200);
  node_free(c);
  free_both(a, b);
}

static void the_path_mtu_counts_for_what_was_staged_too(void **state) {
  (void)state;
  kdp_now now = node_time(1000);
  node *a = node_make(1, NULL, NULL), *b = node_make(2, NULL, NULL);
  uint8_t bytes[1500];
  assert_int_equal(node_add_peer(a, b, true, now), KDP_OK);
  assert_int_equal(node_add_peer(b, a, false, now), KDP_OK);
  set_path_mtu(a, b, 1400, now);
  assert_int_equal(node_send(a, bytes, packet4(bytes, a, b, 1400, true), now), KDP_OK);
  assert_int_equal(node_send(a, bytes, packet4(bytes, a, b, 100, true), now), KDP_OK);
  node_exchange(a, b, now);
  assert_int_equal(b->delivered_count, 1);
  assert_int_equal(node_counted(a, KDP_TOO_BIG), 1);
  assert_int_equal(a->delivered_count, 1);
  free_both(a, b);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(what_exceeds_the_path_sealed_is_refused_with_the_size_that_fits),
      cmocka_unit_test(ipv6_is_never_told_less_than_1280),
      cmocka_unit_test(a_path_mtu_is_forgotten_after_10_min_or_when_told_or_with_the_address),
      cmocka_unit_test(the_path_mtu_is_asked_for_whenever_it_is_not_known),
      cmocka_unit_test(an_answered_path_mtu_is_the_askers_and_news_is_everybodys),
      cmocka_unit_test(the_path_mtu_counts_for_what_was_staged_too),
  };
  return cmocka_run_group_tests_name("wireguard path mtu", tests, NULL, NULL);
}
