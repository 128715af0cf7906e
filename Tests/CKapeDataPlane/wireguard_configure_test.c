/* What can be configured of a device, all or nothing, and what can be read back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <time.h>

#include <cmocka.h>

#include "support/wireguard_node.h"

#define SECONDS(n) ((n)*KDP_SECOND)

static const kdp_wireguard_prefix_change everything = {.prefix = {.family = KDP_FAMILY_IPV4}};

static void make_key(uint8_t key[32], uint32_t number) {
  memset(key, 0x11, 32);
  kdp_store_le32(key, number);
}

static kdp_wireguard_peer_change numbered(uint32_t number, uint32_t fields) {
  kdp_wireguard_peer_change change = {.fields = fields};
  make_key(change.public_key, number);
  return change;
}

static kdp_status apply(node *n, uint32_t fields, const kdp_wireguard_peer_change *peers, uint32_t count) {
  kdp_wireguard_change change = {.fields = fields, .peer = peers, .peer_count = count};
  return node_apply(n, &change, node_time(2000));
}

static bool exists(node *n, uint32_t number) {
  kdp_wireguard_peer_info info;
  uint8_t key[32];
  make_key(key, number);
  return kdp_wireguard_find_peer(n->engine, key, &info) == KDP_OK;
}

static uint32_t count_peers(node *n) {
  kdp_wireguard_device_info info;
  kdp_wireguard_device(n->engine, &info);
  return info.peer_count;
}

/* K-009 */
static void a_peer_may_come_before_the_private_key(void **state) {
  (void)state;
  node *a = node_make(1, NULL, NULL), *b = node_make(2, NULL, NULL);
  kdp_now now = node_time(1000);
  uint8_t none[32] = {0};
  kdp_wireguard_peer_info info;
  assert_int_equal(node_set_private_key(a, none, now), KDP_OK);
  assert_int_equal(node_add_peer(a, b, true, now), KDP_OK);
  assert_int_equal(kdp_wireguard_find_peer(a->engine, b->public_key, &info), KDP_OK);
  assert_false(info.has_session);
  assert_int_equal(node_send_to(a, b, 1, now), KDP_NO_KEY);
  assert_int_equal(node_counted(a, KDP_NO_KEY), 1);
  assert_int_equal(node_set_private_key(a, a->private_key, now), KDP_OK);
  assert_int_equal(a->sent_count, 0);
  assert_int_equal(node_send_to(a, b, 1, now), KDP_OK);
  assert_int_equal(node_count_sent(a, KDP_WG_INITIATION, NULL), 1);
  assert_int_equal(a->sent_count, 1);
  node_free(a);
  node_free(b);
}

static void a_peer_with_a_keepalive_begins_when_the_private_key_comes(void **state) {
  (void)state;
  node *a = node_make(1, NULL, NULL), *b = node_make(2, NULL, NULL);
  kdp_now now = node_time(1000);
  uint8_t none[32] = {0};
  assert_int_equal(node_set_private_key(a, none, now), KDP_OK);
  assert_int_equal(node_add_peer(a, b, true, now), KDP_OK);
  assert_int_equal(node_set_keepalive(a, b, 25, now), KDP_OK);
  assert_int_equal(a->sent_count, 0);
  assert_int_equal(node_set_private_key(a, a->private_key, now), KDP_OK);
  assert_int_equal(node_count_sent(a, KDP_WG_INITIATION, NULL), 1);
  node_free(a);
  node_free(b);
}

/* K-011 */
static void the_latest_claim_moves_a_prefix_and_its_removal_gives_it_to_nobody(void **state) {
  (void)state;
  node *a = node_make(1, NULL, NULL), *b = node_make(2, NULL, NULL), *c = node_make(3, NULL, NULL);
  kdp_now now = node_time(1000);
  kdp_wireguard_peer_change peers[2] = {node_peer(b, true, &everything, 1), node_peer(c, true, &everything, 1)};
  assert_int_equal(apply(a, 0, peers, 2), KDP_OK);
  kdp_event moved;
  assert_int_equal(node_count_events(a, KDP_EVENT_PREFIX_MOVED, &moved), 1);
  assert_int_equal(moved.peer, node_peer_of(a, c)->number);
  assert_int_equal(moved.other, node_peer_of(a, b)->number);
  assert_int_equal(moved.address.family, KDP_FAMILY_IPV4);
  assert_int_equal(moved.value, 0);
  uint8_t packet[64];
  uint32_t size = node_packet(packet, a, b, 10);
  memcpy(packet + 16, (uint8_t[]){198, 51, 100, 7}, 4);
  assert_int_equal(node_send(a, packet, size, now), KDP_OK);
  assert_true(kdp_address_equal(&a->sent[0].path.remote, &c->address));
  peers[1].fields = KDP_WIREGUARD_PEER_REMOVE;
  assert_int_equal(apply(a, 0, peers + 1, 1), KDP_OK);
  assert_int_equal(node_send(a, packet, size, node_time(3000)), KDP_NO_ROUTE);
  assert_int_equal(node_peer_of(a, b)->prefixes.count, 0);
  node_free(a);
  node_free(b);
  node_free(c);
}

static void prefixes_are_normalised_replaced_and_taken_away(void **state) {
  (void)state;
  node *a = node_make(1, NULL, NULL), *b = node_make(2, NULL, NULL);
  kdp_wireguard_prefix_change three[3] = {
      {.prefix = {.family = KDP_FAMILY_IPV4, .length = 8, .bytes = {10, 1, 2, 3}}},
      {.prefix = {.family = KDP_FAMILY_IPV6, .length = 64, .bytes = {0xfd, 0x77, [15] = 9}}},
      {.prefix = {.family = KDP_FAMILY_IPV4, .length = 32, .bytes = {192, 0, 2, 9}}},
  };
  kdp_wireguard_peer_change peer = node_peer(b, true, three, 3);
  kdp_prefix got[4];
  assert_int_equal(apply(a, 0, &peer, 1), KDP_OK);
  uint64_t number = node_peer_of(a, b)->number;
  assert_int_equal(kdp_wireguard_prefixes(a->engine, number, 0, got, 4), 3);
  assert_int_equal(got[0].bytes[1], 0);
  assert_int_equal(got[1].bytes[15], 0);
  assert_int_equal(kdp_wireguard_prefixes(a->engine, number, 2, got, 4), 1);
  assert_int_equal(got[0].length, 32);
  assert_int_equal(kdp_wireguard_prefixes(a->engine, number, 0, got, 2), 2);
  assert_int_equal(kdp_wireguard_prefixes(a->engine, number + 1, 0, got, 4), 0);
  three[0].remove = true;
  three[0].prefix.bytes[3] = 99; /* the same prefix */
  peer.prefix_count = 1;
  assert_int_equal(apply(a, 0, &peer, 1), KDP_OK);
  assert_int_equal(node_peer_of(a, b)->prefixes.count, 2);
  peer.fields |= KDP_WIREGUARD_PEER_REPLACE_PREFIXES;
  peer.prefix = three + 1;
  assert_int_equal(apply(a, 0, &peer, 1), KDP_OK);
  assert_int_equal(kdp_wireguard_prefixes(a->engine, number, 0, got, 4), 1);
  assert_int_equal(got[0].family, KDP_FAMILY_IPV6);
  node_free(a);
  node_free(b);
}

static void removing_a_prefix_of_another_peer_does_nothing(void **state) {
  (void)state;
  node *a = node_make(1, NULL, NULL), *b = node_make(2, NULL, NULL), *c = node_make(3, NULL, NULL);
  kdp_wireguard_prefix_change take = everything;
  take.remove = true;
  kdp_wireguard_peer_change peers[2] = {node_peer(b, true, &everything, 1), node_peer(c, true, &take, 1)};
  assert_int_equal(apply(a, 0, peers, 2), KDP_OK);
  assert_int_equal(node_peer_of(a, b)->prefixes.count, 1);
  node_free(a);
  node_free(b);
  node_free(c);
}

/* ---- Peers ---- */

static void peers_are_made_updated_and_removed_in_order(void **state) {
  (void)state;
  node *a = node_make(1, NULL, NULL);
  kdp_wireguard_peer_change changes[] = {
      numbered(1, 0),
      numbered(2, KDP_WIREGUARD_PEER_UPDATE_ONLY),
      numbered(3, KDP_WIREGUARD_PEER_REMOVE),
      numbered(4, 0),
      numbered(4, KDP_WIREGUARD_PEER_REMOVE),
      numbered(5, 0),
      numbered(5, KDP_WIREGUARD_PEER_REMOVE),
      numbered(5, 0),
      numbered(5, KDP_WIREGUARD_PEER_UPDATE_ONLY | KDP_WIREGUARD_PEER_SET_KEEPALIVE),
      numbered(4, KDP_WIREGUARD_PEER_UPDATE_ONLY),
  };
  changes[8].keepalive_seconds = 7;
  assert_int_equal(apply(a, 0, changes, 10), KDP_OK);
  assert_int_equal(count_peers(a), 2);
  assert_true(exists(a, 1) && exists(a, 5));
  assert_false(exists(a, 2) || exists(a, 3) || exists(a, 4));
  kdp_wireguard_peer_info info;
  assert_int_equal(kdp_wireguard_find_peer(a->engine, changes[8].public_key, &info), KDP_OK);
  assert_int_equal(info.keepalive_seconds, 7);
  node_free(a);
}

static void a_peer_that_is_removed_and_made_again_is_another_one(void **state) {
  (void)state;
  node *a = node_make(1, NULL, NULL), *b = node_make(2, NULL, NULL);
  kdp_now now = node_time(1000);
  node_connect(a, b, now);
  uint64_t number = node_peer_of(a, b)->number;
  kdp_wireguard_prefix_change prefix = node_prefix(b);
  kdp_wireguard_peer_change changes[2] = {node_peer(b, false, NULL, 0), node_peer(b, true, &prefix, 1)};
  changes[0].fields = KDP_WIREGUARD_PEER_REMOVE;
  assert_int_equal(apply(a, 0, changes, 2), KDP_OK);
  assert_true(node_peer_of(a, b)->number > number);
  assert_null(node_peer_of(a, b)->current);
  assert_int_equal(a->device->keys.used, 0);
  kdp_event gone;
  assert_int_equal(node_count_events(a, KDP_EVENT_DISCONNECTED, &gone), 1);
  assert_int_equal(gone.status, KDP_CLOSED);
  assert_int_equal(gone.peer, number);
  node_free(a);
  node_free(b);
}

static void replacing_the_peers_keeps_the_sessions_of_those_that_stay(void **state) {
  (void)state;
  node *a = node_make(1, NULL, NULL), *b = node_make(2, NULL, NULL), *c = node_make(3, NULL, NULL);
  kdp_now now = node_time(1000);
  node_connect(a, b, now);
  node_connect(a, c, now);
  assert_int_equal(node_set_keepalive(a, b, 25, now), KDP_OK);
  node_forget(a);
  kdp_wireguard_peer_change preshared = node_peer(b, false, NULL, 0);
  preshared.fields = KDP_WIREGUARD_PEER_SET_PRESHARED_KEY;
  preshared.preshared_key[0] = 5;
  assert_int_equal(apply(a, 0, &preshared, 1), KDP_OK);
  kdp_wireguard_prefix_change prefix = node_prefix(b);
  kdp_wireguard_peer_change changes[] = {node_peer(b, true, &prefix, 1), numbered(9, 0), node_peer(c, false, NULL, 0)};
  changes[2].fields = KDP_WIREGUARD_PEER_UPDATE_ONLY; /* does not keep it */
  assert_int_equal(apply(a, KDP_WIREGUARD_REPLACE_PEERS, changes, 3), KDP_OK);
  assert_int_equal(count_peers(a), 2);
  assert_non_null(node_peer_of(a, b)->current);
  assert_null(node_peer_of(a, c));
  assert_true(exists(a, 9));
  assert_int_equal(node_send_to(a, b, 1, node_time(2000)), KDP_OK);
  assert_int_equal(node_count_sent(a, KDP_WG_TRANSPORT, NULL), 1);
  /* What the change does not say of it is as for a new peer. */
  kdp_wireguard_peer_info info;
  assert_int_equal(kdp_wireguard_find_peer(a->engine, b->public_key, &info), KDP_OK);
  assert_int_equal(info.keepalive_seconds, 0);
  assert_int_equal(info.preshared_key[0], 0);
  assert_int_equal(apply(a, KDP_WIREGUARD_REPLACE_PEERS, NULL, 0), KDP_OK);
  assert_int_equal(count_peers(a), 0);
  assert_int_equal(a->device->keys.used, 0);
  assert_int_equal(a->device->indices.count, 0);
  node_free(a);
  node_free(b);
  node_free(c);
}

static void a_peer_with_our_own_key_is_no_peer(void **state) {
  (void)state;
  node *a = node_make(1, NULL, NULL), *b = node_make(2, NULL, NULL);
  kdp_wireguard_peer_change self = node_peer(a, true, &everything, 1);
  assert_int_equal(apply(a, 0, &self, 1), KDP_OK);
  assert_int_equal(count_peers(a), 0);
  /* It becomes ours only later: it goes. */
  assert_int_equal(node_add_peer(a, b, true, node_time(1000)), KDP_OK);
  assert_int_equal(node_set_private_key(a, b->private_key, node_time(1000)), KDP_OK);
  assert_int_equal(count_peers(a), 0);
  node_free(a);
  node_free(b);
}

static void another_private_key_ends_the_sessions_and_the_same_one_does_not(void **state) {
  (void)state;
  node *a = node_make(1, NULL, NULL), *b = node_make(2, NULL, NULL);
  kdp_now now = node_time(1000);
  node_connect(a, b, now);
  assert_int_equal(node_set_private_key(a, a->private_key, now), KDP_OK);
  assert_non_null(node_peer_of(a, b)->current);
  uint8_t unclamped[32];
  memcpy(unclamped, a->private_key, 32);
  unclamped[0] ^= 7; /* the same key */
  assert_int_equal(node_set_private_key(a, unclamped, now), KDP_OK);
  assert_non_null(node_peer_of(a, b)->current);
  uint8_t other[32] = {1, 2, 3};
  assert_int_equal(node_set_private_key(a, other, now), KDP_OK);
  assert_null(node_peer_of(a, b)->current);
  assert_int_equal(node_count_events(a, KDP_EVENT_DISCONNECTED, NULL), 1);
  kdp_wireguard_device_info info;
  kdp_wireguard_device(a->engine, &info);
  uint8_t public_key[32];
  kdp_wireguard_public_key(other, public_key);
  assert_memory_equal(info.public_key, public_key, 32);
  /* The new identity works. */
  memcpy(a->public_key, public_key, 32);
  assert_int_equal(node_add_peer(b, a, false, now), KDP_OK);
  now = node_later(now, SECONDS(10));
  assert_int_equal(node_send_to(a, b, 1, now), KDP_OK);
  node_exchange(a, b, now);
  assert_int_equal(b->delivered_count, 1);
  node_free(a);
  node_free(b);
}

static void a_preshared_key_counts_from_the_next_handshake_on(void **state) {
  (void)state;
  node *a = node_make(1, NULL, NULL), *b = node_make(2, NULL, NULL);
  kdp_now now = node_time(1000);
  node_connect(a, b, now);
  for (int i = 0; i < 2; i++) {
    kdp_wireguard_peer_change peer = node_peer(i ? a : b, false, NULL, 0);
    peer.fields = KDP_WIREGUARD_PEER_SET_PRESHARED_KEY;
    memset(peer.preshared_key, 0x33, 32);
    assert_int_equal(apply(i ? b : a, 0, &peer, 1), KDP_OK);
  }
  kdp_wireguard_peer_info info;
  assert_int_equal(kdp_wireguard_find_peer(a->engine, b->public_key, &info), KDP_OK);
  assert_int_equal(info.preshared_key[31], 0x33);
  assert_true(info.has_session);
  assert_int_equal(node_send_to(a, b, 1, node_time(2000)), KDP_OK);
  assert_int_equal(node_pass(a, 0, b, node_time(2000)), KDP_OK);
  now = node_time(130000);
  assert_int_equal(node_send_to(a, b, 1, now), KDP_OK);
  node_exchange(a, b, now);
  assert_true(node_count_events(a, KDP_EVENT_REKEYED, NULL) >= 1);
  node_free(a);
  node_free(b);
}

/* ---- All or nothing ---- */

typedef struct snapshot {
  kdp_wireguard_device_info device;
  kdp_wireguard_peer_info peer[64];
  kdp_prefix prefix[64][8];
  uint32_t peers, reserved;
} snapshot;

static void take_snapshot(node *n, snapshot *s) {
  uint64_t cursor = 0;
  memset(s, 0, sizeof *s);
  kdp_wireguard_device(n->engine, &s->device);
  while (s->peers < 64 && kdp_wireguard_next_peer(n->engine, &cursor, &s->peer[s->peers])) {
    (void)kdp_wireguard_prefixes(n->engine, s->peer[s->peers].peer, 0, s->prefix[s->peers], 8);
    s->peers++;
  }
}

static void expect_unchanged(node *n, const snapshot *before) {
  snapshot *after = test_malloc(sizeof *after);
  take_snapshot(n, after);
  assert_int_equal(after->peers, before->peers);
  assert_memory_equal(&after->device, &before->device, sizeof after->device);
  assert_memory_equal(after->peer, before->peer, sizeof after->peer);
  assert_memory_equal(after->prefix, before->prefix, sizeof after->prefix);
  test_free(after);
}

static void a_change_with_anything_wrong_in_it_changes_nothing(void **state) {
  (void)state;
  kdp_limits limits = {.peers = 4};
  node *a = node_make(1, NULL, &limits);
  kdp_wireguard_prefix_change prefixes[2] = {everything, everything};
  kdp_wireguard_peer_change changes[4];
  snapshot *before = test_malloc(sizeof *before);
  for (uint32_t i = 0; i < 3; i++)
    changes[i] = numbered(i + 1, 0);
  changes[1].prefix = prefixes;
  changes[1].prefix_count = 1;
  assert_int_equal(apply(a, 0, changes, 3), KDP_OK);
  take_snapshot(a, before);

  /* A prefix out of range, in the last of many. */
  for (uint32_t i = 0; i < 4; i++)
    changes[i] = numbered(i + 10, 0);
  changes[3].prefix = prefixes;
  changes[3].prefix_count = 2;
  prefixes[1].prefix.length = 33;
  uint8_t other[32] = {9};
  kdp_wireguard_change change = {.fields = KDP_WIREGUARD_REPLACE_PEERS | KDP_WIREGUARD_SET_PRIVATE_KEY |
                                           KDP_WIREGUARD_SET_FIXED_PORT,
                                 .fixed_port = true,
                                 .peer = changes,
                                 .peer_count = 4};
  memcpy(change.private_key, other, 32);
  assert_int_equal(node_apply(a, &change, node_time(2000)), KDP_INVALID_ARGUMENT);
  expect_unchanged(a, before);
  prefixes[1].prefix.family = 5;
  assert_int_equal(node_apply(a, &change, node_time(2000)), KDP_INVALID_ARGUMENT);
  expect_unchanged(a, before);
  prefixes[1] = everything;
  /* A key of zeros. */
  memset(changes[2].public_key, 0, 32);
  assert_int_equal(node_apply(a, &change, node_time(2000)), KDP_LOW_ORDER_KEY);
  expect_unchanged(a, before);
  assert_false(a->device->fixed_port);
  /* More than the limit: three are there, two more are asked for. */
  changes[2] = numbered(12, 0);
  assert_int_equal(apply(a, 0, changes, 2), KDP_LIMIT);
  expect_unchanged(a, before);
  /* With one removed first it fits. */
  kdp_wireguard_peer_change swap[3] = {numbered(1, KDP_WIREGUARD_PEER_REMOVE), numbered(10, 0), numbered(11, 0)};
  assert_int_equal(apply(a, 0, swap, 3), KDP_OK);
  assert_int_equal(count_peers(a), 4);
  test_free(before);
  node_free(a);
}

/* Every allocation of a large change fails once. */
static void without_memory_at_any_point_nothing_changes(void **state) {
  (void)state;
  enum { MANY = 40 };
  static kdp_wireguard_peer_change changes[MANY];
  static kdp_wireguard_prefix_change prefixes[MANY][3];
  uint32_t failures = 0;
  snapshot *before = test_malloc(sizeof *before);
  for (uint32_t i = 0; i < MANY; i++) {
    changes[i] = numbered(i + 1, i % 7 == 3 ? KDP_WIREGUARD_PEER_REMOVE : 0);
    changes[i].prefix = prefixes[i];
    changes[i].prefix_count = 3;
    for (uint32_t j = 0; j < 3; j++)
      prefixes[i][j].prefix = (kdp_prefix){.family = j == 2 ? KDP_FAMILY_IPV6 : KDP_FAMILY_IPV4,
                                           .length = (uint8_t)(24 + j),
                                           .bytes = {(uint8_t)(i * 3 + j), (uint8_t)i, (uint8_t)j}};
  }
  for (size_t fail = 0;; fail++) {
    node *a = node_make(1, NULL, NULL);
    assert_int_equal(apply(a, 0, changes, 5), KDP_OK);
    take_snapshot(a, before);
    a->fail_after = fail;
    kdp_status status = apply(a, fail % 2 ? KDP_WIREGUARD_REPLACE_PEERS : 0, changes, MANY);
    a->fail_after = SIZE_MAX;
    if (status == KDP_OK) {
      assert_int_equal(count_peers(a), MANY - 6);
      node_free(a);
      break;
    }
    assert_int_equal(status, KDP_NO_MEMORY);
    expect_unchanged(a, before);
    failures++;
    /* And it works once there is memory. */
    assert_int_equal(apply(a, 0, changes, MANY), KDP_OK);
    assert_int_equal(count_peers(a), MANY - 6);
    node_free(a);
  }
  assert_true(failures > MANY); /* one a peer at least */
  test_free(before);
}

static size_t allocations_left;
static void *few_allocations(void *context, size_t size) {
  (void)context;
  if (allocations_left == 0) return NULL;
  allocations_left--;
  return malloc(size);
}

static void without_memory_no_engine_is_made_and_nothing_leaks(void **state) {
  (void)state;
  kdp_host host = kdp_host_default();
  kdp_wireguard_config config = {0};
  kdp_limits limits = {0};
  host.allocate = few_allocations;
  for (size_t few = 0;; few++) {
    kdp_engine *engine = NULL;
    allocations_left = few;
    kdp_status status = kdp_wireguard_create(&config, &limits, &host, node_time(0), &engine);
    if (status == KDP_OK) {
      assert_true(few >= 4);
      kdp_engine_destroy(engine);
      break;
    }
    assert_int_equal(status, KDP_NO_MEMORY);
    assert_null(engine);
  }
}

static void after_creation_and_configuration_nothing_is_allocated(void **state) {
  (void)state;
  node *a = node_make(1, NULL, NULL), *b = node_make(2, NULL, NULL);
  kdp_now now = node_time(1000);
  assert_int_equal(node_add_peer(a, b, true, now), KDP_OK);
  assert_int_equal(node_add_peer(b, a, false, now), KDP_OK);
  a->fail_after = b->fail_after = 0;
  assert_int_equal(node_set_keepalive(a, b, 25, now), KDP_OK);
  for (int i = 0; i < 20; i++) {
    assert_int_equal(node_send_to(a, b, 100, now), KDP_OK);
    node_exchange(a, b, now);
    assert_int_equal(node_send_to(b, a, 100, now), KDP_OK);
    node_exchange(a, b, now);
    now = node_run_both(a, b, now, now.boot + SECONDS(50));
  }
  assert_true(a->device->lane[0].statistics.handshakes > 5);
  assert_true(b->delivered_count >= 20);
  node_free(a);
  node_free(b);
}

/* ---- Reading back ---- */

static void peers_are_listed_in_order_while_some_come_and_go(void **state) {
  (void)state;
  enum { MANY = 200 };
  node *a = node_make(1, NULL, NULL);
  static kdp_wireguard_peer_change changes[MANY];
  for (uint32_t i = 0; i < MANY; i++)
    changes[i] = numbered(i + 1, 0);
  assert_int_equal(apply(a, 0, changes, MANY), KDP_OK);
  uint64_t cursor = 0, last = 0;
  bool told[2 * MANY] = {false};
  kdp_wireguard_peer_info info;
  for (uint32_t step = 0; kdp_wireguard_next_peer(a->engine, &cursor, &info); step++) {
    uint32_t number = kdp_load_le32(info.public_key);
    assert_true(info.peer > last);
    assert_false(told[number]);
    told[number] = true;
    last = info.peer;
    if (step % 10 == 5) {
      kdp_wireguard_peer_change some[3] = {numbered(number, KDP_WIREGUARD_PEER_REMOVE),
                                           numbered(number + 3, KDP_WIREGUARD_PEER_REMOVE), numbered(MANY + step, 0)};
      assert_int_equal(apply(a, 0, some, 3), KDP_OK);
      a->event_count = 0;
    }
  }
  for (uint32_t i = 1; i <= MANY; i++)
    assert_true(told[i] || !exists(a, i));
  node_free(a);
}

static void counters_are_those_of_the_messages(void **state) {
  (void)state;
  node *a = node_make(1, NULL, NULL), *b = node_make(2, NULL, NULL);
  kdp_now now = node_time(1000);
  node_connect(a, b, now); /* initiation, response, 28 bytes of data in 32 + 32 */
  kdp_wireguard_peer_info at_a, at_b;
  assert_int_equal(kdp_wireguard_find_peer(a->engine, b->public_key, &at_a), KDP_OK);
  assert_int_equal(kdp_wireguard_find_peer(b->engine, a->public_key, &at_b), KDP_OK);
  assert_int_equal(at_a.sent_bytes, 148 + 64);
  assert_int_equal(at_a.received_bytes, 92);
  assert_int_equal(at_b.sent_bytes, 92);
  assert_int_equal(at_b.received_bytes, 148 + 64);
  assert_int_equal(at_a.inside_sent_bytes, 28);
  assert_int_equal(at_b.inside_received_bytes, 28);
  assert_int_equal(at_a.handshake_wall, now.wall);
  assert_int_equal(at_b.handshake_wall, now.wall);
  assert_true(at_a.has_session && at_b.has_session);
  assert_true(kdp_address_equal(&at_b.endpoint, &a->address));
  uint8_t nobody[32] = {0};
  assert_int_equal(kdp_wireguard_find_peer(a->engine, nobody, &at_a), KDP_NOT_FOUND);
  node_free(a);
  node_free(b);
}

/* `wg setconf` of the same file again and again. */
static void the_same_configuration_again_takes_no_more_memory(void **state) {
  (void)state;
  enum { MANY = 500 };
  node *a = node_make(1, NULL, NULL);
  static kdp_wireguard_peer_change changes[MANY];
  static kdp_wireguard_prefix_change prefixes[MANY];
  for (uint32_t i = 0; i < MANY; i++) {
    changes[i] = numbered(i + 1, KDP_WIREGUARD_PEER_REPLACE_PREFIXES);
    prefixes[i].prefix =
        (kdp_prefix){.family = KDP_FAMILY_IPV4, .length = 32, .bytes = {10, 1, (uint8_t)(i >> 8), (uint8_t)i}};
    changes[i].prefix = &prefixes[i];
    changes[i].prefix_count = 1;
  }
  size_t empty = a->allocated, first = 0;
  for (int round = 0; round < 20; round++) {
    assert_int_equal(apply(a, round % 2 ? KDP_WIREGUARD_REPLACE_PEERS : 0, changes, MANY), KDP_OK);
    if (round == 1) first = a->allocated;
    if (round > 1) assert_true(a->allocated <= first + first / 20);
  }
  print_message("%zu bytes for a peer with a prefix\n", (a->allocated - empty) / MANY);
  assert_int_equal(apply(a, KDP_WIREGUARD_REPLACE_PEERS, NULL, 0), KDP_OK);
  print_message("%zu bytes stay when all have gone\n", a->allocated - empty);
  assert_true(a->allocated - empty < (first - empty) / 10);
  node_free(a);
}

/* ---- Size ---- */

static void ten_thousand_peers_are_configured_and_read_back_quickly(void **state) {
  (void)state;
  enum { MANY = 10000 };
  node *a = node_make(1, NULL, NULL);
  kdp_wireguard_peer_change *changes = calloc(MANY, sizeof *changes);
  kdp_wireguard_prefix_change *prefixes = calloc(2 * MANY, sizeof *prefixes);
  assert_non_null(changes);
  assert_non_null(prefixes);
  for (uint32_t i = 0; i < MANY; i++) {
    changes[i] = numbered(i + 1, KDP_WIREGUARD_PEER_SET_ENDPOINT | KDP_WIREGUARD_PEER_SET_PRESHARED_KEY);
    changes[i].endpoint = a->address;
    changes[i].prefix = &prefixes[2 * i];
    changes[i].prefix_count = 2;
    prefixes[2 * i].prefix =
        (kdp_prefix){.family = KDP_FAMILY_IPV4, .length = 32, .bytes = {10, 1, (uint8_t)(i >> 8), (uint8_t)i}};
    prefixes[2 * i + 1].prefix = (kdp_prefix){
        .family = KDP_FAMILY_IPV6, .length = 128, .bytes = {0xfd, 0x77, [14] = (uint8_t)(i >> 8), [15] = (uint8_t)i}};
  }
  clock_t begin = clock();
  assert_int_equal(apply(a, KDP_WIREGUARD_REPLACE_PEERS, changes, MANY), KDP_OK);
  assert_int_equal(count_peers(a), MANY);
  uint64_t cursor = 0;
  kdp_wireguard_peer_info info;
  uint32_t listed = 0;
  while (kdp_wireguard_next_peer(a->engine, &cursor, &info))
    listed += kdp_wireguard_prefixes(a->engine, info.peer, 0, (kdp_prefix[2]){{0}}, 2) == 2;
  assert_int_equal(listed, MANY);
  assert_int_equal(apply(a, KDP_WIREGUARD_REPLACE_PEERS, changes, MANY / 2), KDP_OK);
  for (uint32_t i = 0; i < MANY / 2; i++)
    changes[i].fields = KDP_WIREGUARD_PEER_REMOVE;
  assert_int_equal(apply(a, 0, changes, MANY / 2), KDP_OK);
  assert_int_equal(count_peers(a), 0);
  /* Far below a second each; a sanitizer may take its time. */
  assert_true((double)(clock() - begin) / CLOCKS_PER_SEC < 3.0);
  free(changes);
  free(prefixes);
  node_free(a);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_peer_may_come_before_the_private_key),
      cmocka_unit_test(a_peer_with_a_keepalive_begins_when_the_private_key_comes),
      cmocka_unit_test(the_latest_claim_moves_a_prefix_and_its_removal_gives_it_to_nobody),
      cmocka_unit_test(prefixes_are_normalised_replaced_and_taken_away),
      cmocka_unit_test(removing_a_prefix_of_another_peer_does_nothing),
      cmocka_unit_test(peers_are_made_updated_and_removed_in_order),
      cmocka_unit_test(a_peer_that_is_removed_and_made_again_is_another_one),
      cmocka_unit_test(replacing_the_peers_keeps_the_sessions_of_those_that_stay),
      cmocka_unit_test(a_peer_with_our_own_key_is_no_peer),
      cmocka_unit_test(another_private_key_ends_the_sessions_and_the_same_one_does_not),
      cmocka_unit_test(a_preshared_key_counts_from_the_next_handshake_on),
      cmocka_unit_test(a_change_with_anything_wrong_in_it_changes_nothing),
      cmocka_unit_test(without_memory_at_any_point_nothing_changes),
      cmocka_unit_test(without_memory_no_engine_is_made_and_nothing_leaks),
      cmocka_unit_test(after_creation_and_configuration_nothing_is_allocated),
      cmocka_unit_test(peers_are_listed_in_order_while_some_come_and_go),
      cmocka_unit_test(counters_are_those_of_the_messages),
      cmocka_unit_test(the_same_configuration_again_takes_no_more_memory),
      cmocka_unit_test(ten_thousand_peers_are_configured_and_read_back_quickly),
  };
  return cmocka_run_group_tests_name("wireguard configuration", tests, NULL, NULL);
}
