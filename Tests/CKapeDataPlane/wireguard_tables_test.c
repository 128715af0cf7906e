/* The tables under the engine: indices, deadlines, staged packets, key pairs, token buckets. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "support/rng.h"
#include "wireguard/deadline_heap.h"
#include "wireguard/index_table.h"
#include "wireguard/key_pair.h"
#include "wireguard/peer.h"
#include "wireguard/ratelimit.h"
#include "wireguard/staging.h"

/* ---- Indices ---- */

/* A host whose random indices all fall on a few places, so that chains form and wrap round. */
static void crowded_random(void *context, void *bytes, size_t size) {
  rng *r = context;
  uint32_t index = rng_below(r, 1 << 16) << 16 | (0xfffa + rng_below(r, 10));
  assert_int_equal(size, sizeof index);
  memcpy(bytes, &index, sizeof index);
}

static void indices_find_what_they_were_taken_for_also_in_a_crowd(void **state) {
  (void)state;
  enum { MOST = 300 };
  rng r = {11};
  kdp_host host = kdp_host_default();
  host.context = &r;
  host.random = crowded_random;
  kdp_wg_index_table table = {0};
  uint32_t taken[MOST], count = 0;
  int values[MOST];
  int *value_of[MOST];
  assert_int_equal(kdp_wg_index_reserve(&table, MOST, &host), KDP_OK);
  for (int i = 0; i < 20000; i++) {
    if (count < MOST && (count == 0 || rng_one_in(&r, 2))) {
      value_of[count] = &values[rng_below(&r, MOST)];
      taken[count] = kdp_wg_index_take(&table, KDP_WG_INDEX_KEY_PAIR, value_of[count], &host);
      count++;
    } else {
      uint32_t gone = rng_below(&r, count);
      kdp_wg_index_release(&table, taken[gone]);
      assert_null(kdp_wg_index_find(&table, taken[gone]));
      taken[gone] = taken[--count];
      value_of[gone] = value_of[count];
    }
    for (uint32_t j = 0; j < count; j++) {
      kdp_wg_index_entry *entry = kdp_wg_index_find(&table, taken[j]);
      assert_non_null(entry);
      assert_ptr_equal(entry->value, value_of[j]);
    }
  }
  kdp_wg_index_change(&table, taken[0], KDP_WG_INDEX_HANDSHAKE, &values[3]);
  assert_int_equal(kdp_wg_index_find(&table, taken[0])->kind, KDP_WG_INDEX_HANDSHAKE);
  assert_int_equal(table.count, count);
  /* Growing keeps all. */
  assert_int_equal(kdp_wg_index_reserve(&table, 5000, &host), KDP_OK);
  for (uint32_t j = 0; j < count; j++)
    assert_non_null(kdp_wg_index_find(&table, taken[j]));
  assert_int_equal(table.count, count);
  kdp_wg_index_destroy(&table, &host);
}

static void an_empty_index_table_has_nothing(void **state) {
  (void)state;
  kdp_wg_index_table table = {0};
  assert_null(kdp_wg_index_find(&table, 0));
  assert_null(kdp_wg_index_find(&table, 77));
}

/* ---- Deadlines ---- */

static void the_heap_gives_the_earliest_whatever_happened_before(void **state) {
  (void)state;
  enum { PEERS = 100 };
  static kdp_wg_peer peer[PEERS];
  kdp_host host = kdp_host_default();
  kdp_wg_heap heap = {0};
  rng r = {12};
  uint64_t deadline[PEERS];
  assert_int_equal(kdp_wg_heap_reserve(&heap, PEERS, &host), KDP_OK);
  for (int i = 0; i < PEERS; i++) {
    peer[i].heap_index = KDP_WG_NOT_IN_HEAP;
    deadline[i] = KDP_NEVER;
  }
  for (int i = 0; i < 50000; i++) {
    uint32_t which = rng_below(&r, PEERS);
    uint64_t when = rng_one_in(&r, 4) ? KDP_NEVER : rng_below(&r, 10000);
    if (when != KDP_NEVER && rng_one_in(&r, 2)) {
      kdp_wg_heap_not_later(&heap, &peer[which], when);
      if (when < deadline[which]) deadline[which] = when;
    } else {
      kdp_wg_heap_set(&heap, &peer[which], when);
      deadline[which] = when;
    }
    uint64_t earliest = KDP_NEVER;
    uint32_t held = 0;
    for (int j = 0; j < PEERS; j++) {
      if (deadline[j] < earliest) earliest = deadline[j];
      held += deadline[j] != KDP_NEVER;
      assert_int_equal(peer[j].heap_index == KDP_WG_NOT_IN_HEAP, deadline[j] == KDP_NEVER);
    }
    assert_int_equal(kdp_wg_heap_first(&heap), earliest);
    assert_int_equal(heap.count, held);
  }
  kdp_wg_heap_destroy(&heap, &host);
}

/* ---- Staged packets ---- */

static void put(kdp_wg_staging *staging, kdp_wg_staged *staged, uint8_t mark, uint32_t size, uint32_t dropped) {
  static uint8_t bytes[65535];
  memset(bytes, mark, size);
  assert_int_equal(kdp_wg_staging_copy_in(staging, staged, bytes, size), dropped);
}

static void expect_oldest(kdp_wg_staging *staging, kdp_wg_staged *staged, uint8_t mark, uint32_t size) {
  static uint8_t bytes[65535];
  assert_true(staged->count > 0);
  assert_int_equal(kdp_wg_staging_oldest_size(staging, staged), size);
  memset(bytes, 0, sizeof bytes);
  kdp_wg_staging_copy_out(staging, staged, bytes);
  for (uint32_t i = 0; i < size; i++)
    assert_int_equal(bytes[i], mark);
}

static void a_peer_with_128_staged_packets_loses_its_oldest(void **state) {
  (void)state;
  kdp_host host = kdp_host_default();
  kdp_wg_staging staging;
  kdp_wg_staged staged = {0};
  assert_int_equal(kdp_wg_staging_create(&staging, 512, &host), KDP_OK);
  for (uint32_t i = 0; i < 128; i++)
    put(&staging, &staged, (uint8_t)i, 100 + i, 0);
  put(&staging, &staged, 200, 60, 1);
  assert_int_equal(staged.count, 128);
  for (uint32_t i = 1; i < 128; i++)
    expect_oldest(&staging, &staged, (uint8_t)i, 100 + i);
  expect_oldest(&staging, &staged, 200, 60);
  assert_int_equal(staged.count, 0);
  assert_int_equal(staging.free_count, 512);
  kdp_wg_staging_destroy(&staging, &host);
}

static void when_the_pool_is_empty_the_peer_with_most_loses_its_oldest(void **state) {
  (void)state;
  kdp_host host = kdp_host_default();
  kdp_wg_staging staging;
  kdp_wg_staged a = {0}, b = {0}, c = {0};
  assert_int_equal(kdp_wg_staging_create(&staging, 16, &host), KDP_OK);
  for (uint8_t i = 0; i < 10; i++)
    put(&staging, &a, i, 500, 0);
  for (uint8_t i = 0; i < 6; i++)
    put(&staging, &b, (uint8_t)(100 + i), 500, 0);
  put(&staging, &c, 50, 500, 1);
  put(&staging, &b, 106, 500, 1);
  assert_int_equal(a.count, 8);
  assert_int_equal(b.count, 7);
  assert_int_equal(c.count, 1);
  expect_oldest(&staging, &a, 2, 500);
  /* Its own oldest goes when it is the one with most. */
  put(&staging, &a, 77, 500, 0);
  put(&staging, &a, 78, 500, 1);
  expect_oldest(&staging, &a, 4, 500);
  (void)kdp_wg_staging_drop_all(&staging, &a);
  assert_int_equal(kdp_wg_staging_drop_all(&staging, &b), 7);
  assert_int_equal(kdp_wg_staging_drop_all(&staging, &c), 1);
  assert_int_equal(staging.free_count, 16);
  kdp_wg_staging_destroy(&staging, &host);
}

static void large_packets_take_chains_and_come_back_whole(void **state) {
  (void)state;
  kdp_host host = kdp_host_default();
  kdp_wg_staging staging;
  kdp_wg_staged a = {0}, b = {0};
  assert_int_equal(kdp_wg_staging_create(&staging, 40, &host), KDP_OK);
  put(&staging, &a, 1, 65535, 0);
  assert_int_equal(staging.free_count, 40 - 33);
  put(&staging, &a, 2, 1, 0);
  put(&staging, &b, 3, 0, 0);
  put(&staging, &b, 4, 9000, 0);
  expect_oldest(&staging, &a, 1, 65535);
  expect_oldest(&staging, &a, 2, 1);
  expect_oldest(&staging, &b, 3, 0);
  /* What does not fit even an empty pool goes itself, and nothing else does. */
  kdp_wg_staging small;
  kdp_wg_staged lone = {0};
  assert_int_equal(kdp_wg_staging_create(&small, 2, &host), KDP_OK);
  put(&small, &lone, 9, 10, 0);
  put(&small, &lone, 8, 9000, 1);
  assert_int_equal(lone.count, 1);
  (void)kdp_wg_staging_drop_all(&small, &lone);
  (void)kdp_wg_staging_drop_all(&staging, &b);
  kdp_wg_staging_destroy(&small, &host);
  kdp_wg_staging_destroy(&staging, &host);
}

static void staging_loses_nothing_that_it_does_not_count(void **state) {
  (void)state;
  enum { PEERS = 20 };
  kdp_host host = kdp_host_default();
  kdp_wg_staging staging;
  kdp_wg_staged staged[PEERS] = {{0}};
  static uint8_t bytes[20000];
  rng r = {13};
  uint64_t in = 0, out = 0, dropped = 0;
  assert_int_equal(kdp_wg_staging_create(&staging, 64, &host), KDP_OK);
  for (int i = 0; i < 20000; i++) {
    kdp_wg_staged *at = &staged[rng_below(&r, PEERS)];
    if (rng_below(&r, 3) > 0) {
      dropped += kdp_wg_staging_copy_in(&staging, at, bytes, rng_below(&r, rng_one_in(&r, 8) ? 20000 : 1500));
      in++;
    } else if (at->count > 0) {
      if (rng_one_in(&r, 30)) {
        dropped += kdp_wg_staging_drop_all(&staging, at);
      } else {
        kdp_wg_staging_copy_out(&staging, at, bytes);
        out++;
      }
    }
    uint64_t held = 0;
    uint32_t most = 0;
    for (int j = 0; j < PEERS; j++) {
      held += staged[j].count;
      if (staged[j].count > most) most = staged[j].count;
    }
    assert_int_equal(in, out + dropped + held);
    assert_int_equal(staging.most, most);
  }
  for (int j = 0; j < PEERS; j++)
    (void)kdp_wg_staging_drop_all(&staging, &staged[j]);
  assert_int_equal(staging.free_count, 64);
  kdp_wg_staging_destroy(&staging, &host);
}

/* ---- Key pairs ---- */

static void key_pairs_come_back_wiped_and_the_last_used_is_used_first(void **state) {
  (void)state;
  kdp_host host = kdp_host_default();
  kdp_wg_key_store store = {0};
  kdp_wg_key_pair *taken[40];
  assert_int_equal(kdp_wg_key_store_reserve(&store, 40, &host), KDP_OK);
  assert_true(store.capacity >= 40);
  for (int i = 0; i < 40; i++) {
    taken[i] = kdp_wg_key_pair_take(&store);
    assert_non_null(taken[i]);
    memset(&taken[i]->keys, 0x77, sizeof taken[i]->keys);
    assert_true(kdp_replay_window_check(&taken[i]->window, 0));
  }
  kdp_wg_key_pair *last = taken[17];
  kdp_wg_key_pair_give_back(&store, last);
  for (size_t i = 0; i < sizeof last->keys; i++)
    assert_int_equal(((uint8_t *)&last->keys)[i], 0);
  assert_ptr_equal(kdp_wg_key_pair_take(&store), last);
  for (int i = 0; i < 40; i++)
    kdp_wg_key_pair_give_back(&store, taken[i]);
  assert_int_equal(store.used, 0);
  kdp_wg_key_store_trim(&store, 0, &host);
  assert_int_equal(store.capacity, 0);
  kdp_wg_key_store_destroy(&store, &host);
}

static void a_used_up_store_gives_nothing(void **state) {
  (void)state;
  kdp_host host = kdp_host_default();
  kdp_wg_key_store store = {0};
  assert_null(kdp_wg_key_pair_take(&store));
  assert_int_equal(kdp_wg_key_store_reserve(&store, 1, &host), KDP_OK);
  kdp_wg_key_pair *taken[8];
  uint32_t count = 0;
  while (count < 8 && (taken[count] = kdp_wg_key_pair_take(&store)))
    count++;
  assert_int_equal(count, store.capacity);
  while (count > 0)
    kdp_wg_key_pair_give_back(&store, taken[--count]);
  kdp_wg_key_store_destroy(&store, &host);
}

/* ---- Token buckets ---- */

static kdp_wg_ratelimit *limiter(void) {
  kdp_host host = kdp_host_default();
  kdp_wg_ratelimit *limit = test_malloc(sizeof *limit);
  kdp_wg_ratelimit_start(limit, &host);
  return limit;
}

static void a_source_has_five_at_once_and_twenty_a_second(void **state) {
  (void)state;
  kdp_wg_ratelimit *limit = limiter();
  kdp_address source = {.family = KDP_FAMILY_IPV4, .bytes = {192, 0, 2, 1}};
  uint64_t now = 1000;
  for (int i = 0; i < 5; i++)
    assert_true(kdp_wg_ratelimit_allow(limit, &source, now));
  assert_false(kdp_wg_ratelimit_allow(limit, &source, now));
  now += 50 * KDP_MILLISECOND - 1;
  assert_false(kdp_wg_ratelimit_allow(limit, &source, now));
  now += 1;
  assert_true(kdp_wg_ratelimit_allow(limit, &source, now));
  assert_false(kdp_wg_ratelimit_allow(limit, &source, now));
  /* A long rest fills the bucket and no more. */
  now += 3600 * KDP_SECOND;
  for (int i = 0; i < 5; i++)
    assert_true(kdp_wg_ratelimit_allow(limit, &source, now));
  assert_false(kdp_wg_ratelimit_allow(limit, &source, now));
  test_free(limit);
}

static void a_source_is_an_ipv4_address_or_an_ipv6_64(void **state) {
  (void)state;
  kdp_wg_ratelimit *limit = limiter();
  kdp_address six = {.family = KDP_FAMILY_IPV6, .bytes = {0x20, 0x01, 0x0d, 0xb8, 0, 0, 0, 1}};
  kdp_address four = {.family = KDP_FAMILY_IPV4, .bytes = {192, 0, 2, 1}};
  for (int i = 0; i < 5; i++) {
    six.bytes[15] = (uint8_t)i;
    six.port = (uint16_t)i;
    assert_true(kdp_wg_ratelimit_allow(limit, &six, 5));
    four.port = (uint16_t)i;
    assert_true(kdp_wg_ratelimit_allow(limit, &four, 5));
  }
  six.bytes[8] = 99;
  assert_false(kdp_wg_ratelimit_allow(limit, &six, 5));
  assert_false(kdp_wg_ratelimit_allow(limit, &four, 5));
  six.bytes[7] = 2;
  assert_true(kdp_wg_ratelimit_allow(limit, &six, 5));
  four.bytes[3] = 2;
  assert_true(kdp_wg_ratelimit_allow(limit, &four, 5));
  test_free(limit);
}

static void a_crowd_of_sources_finds_a_bounded_table(void **state) {
  (void)state;
  kdp_wg_ratelimit *limit = limiter();
  uint32_t places = KDP_WG_RATE_SETS * KDP_WG_RATE_WAYS, allowed = 0;
  kdp_address source = {.family = KDP_FAMILY_IPV4};
  for (uint32_t i = 0; i < 4 * places; i++) {
    memcpy(source.bytes, &i, sizeof i);
    allowed += kdp_wg_ratelimit_allow(limit, &source, 1000);
  }
  assert_true(allowed > places * 9 / 10 && allowed <= places);
  /* A quarter of a second later all buckets are full again, so all places are free. */
  memset(source.bytes, 0xee, 4);
  assert_true(kdp_wg_ratelimit_allow(limit, &source, 1000 + KDP_SECOND / 4));
  test_free(limit);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(indices_find_what_they_were_taken_for_also_in_a_crowd),
      cmocka_unit_test(an_empty_index_table_has_nothing),
      cmocka_unit_test(the_heap_gives_the_earliest_whatever_happened_before),
      cmocka_unit_test(a_peer_with_128_staged_packets_loses_its_oldest),
      cmocka_unit_test(when_the_pool_is_empty_the_peer_with_most_loses_its_oldest),
      cmocka_unit_test(large_packets_take_chains_and_come_back_whole),
      cmocka_unit_test(staging_loses_nothing_that_it_does_not_count),
      cmocka_unit_test(key_pairs_come_back_wiped_and_the_last_used_is_used_first),
      cmocka_unit_test(a_used_up_store_gives_nothing),
      cmocka_unit_test(a_source_has_five_at_once_and_twenty_a_second),
      cmocka_unit_test(a_source_is_an_ipv4_address_or_an_ipv6_64),
      cmocka_unit_test(a_crowd_of_sources_finds_a_bounded_table),
  };
  return cmocka_run_group_tests_name("wireguard tables", tests, NULL, NULL);
}
