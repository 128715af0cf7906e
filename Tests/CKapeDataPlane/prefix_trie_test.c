/* The prefix trie: single decisions, memory, and a comparison with a plain list. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "net/prefix_trie.h"
#include "support/guard.h"
#include "support/rng.h"

typedef struct ledger {
  size_t bytes, allocations, fail_after;
} ledger;

static void *count_allocate(void *context, size_t size) {
  ledger *l = context;
  if (l->fail_after == 0) return NULL;
  l->fail_after--;
  l->bytes += size;
  l->allocations++;
  void *memory = malloc(size);
  if (memory) memset(memory, 0xa5, size);
  return memory;
}

static void count_release(void *context, void *memory, size_t size) {
  ledger *l = context;
  l->bytes -= size;
  l->allocations--;
  free(memory);
}

static kdp_trie *trie_in(ledger *l) {
  *l = (ledger){.fail_after = SIZE_MAX};
  kdp_host host = {.context = l, .allocate = count_allocate, .release = count_release};
  kdp_trie *trie = NULL;
  assert_int_equal(kdp_trie_create(&host, &trie), KDP_OK);
  return trie;
}

static kdp_prefix prefix4(uint8_t a, uint8_t b, uint8_t c, uint8_t d, uint8_t length) {
  kdp_prefix prefix = {.family = KDP_FAMILY_IPV4, .length = length, .bytes = {a, b, c, d}};
  assert_true(kdp_prefix_normalise(&prefix));
  return prefix;
}

static kdp_trie_owner *find4(const kdp_trie *trie, uint8_t a, uint8_t b, uint8_t c, uint8_t d) {
  const uint8_t address[4] = {a, b, c, d};
  guard copy = guard_copy(address, 4);
  kdp_trie_owner *found = kdp_trie_find(trie, KDP_FAMILY_IPV4, copy.bytes);
  guard_free(&copy);
  return found;
}

static kdp_trie_owner *insert(kdp_trie *trie, kdp_prefix prefix, kdp_trie_owner *owner) {
  assert_int_equal(kdp_trie_reserve(trie, 1), KDP_OK);
  return kdp_trie_insert(trie, &prefix, owner);
}

static void the_longest_prefix_wins_in_any_order_of_insertion(void **state) {
  (void)state;
  static const uint8_t order[6][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
  for (int i = 0; i < 6; i++) {
    ledger l;
    kdp_trie *trie = trie_in(&l);
    kdp_trie_owner owner[3] = {0};
    const kdp_prefix prefix[3] = {prefix4(0, 0, 0, 0, 0), prefix4(10, 0, 0, 0, 8), prefix4(10, 1, 0, 0, 16)};
    for (int j = 0; j < 3; j++)
      assert_null(insert(trie, prefix[order[i][j]], &owner[order[i][j]]));
    assert_ptr_equal(find4(trie, 192, 0, 2, 1), &owner[0]);
    assert_ptr_equal(find4(trie, 10, 0, 0, 1), &owner[1]);
    assert_ptr_equal(find4(trie, 10, 1, 255, 255), &owner[2]);
    assert_ptr_equal(find4(trie, 10, 2, 0, 0), &owner[1]);
    kdp_prefix middle = prefix[1];
    assert_true(kdp_trie_remove(trie, &middle, &owner[1]));
    assert_ptr_equal(find4(trie, 10, 0, 0, 1), &owner[0]);
    assert_ptr_equal(find4(trie, 10, 1, 0, 1), &owner[2]);
    kdp_trie_destroy(trie);
    assert_int_equal(l.bytes, 0);
  }
}

static void an_empty_trie_finds_nothing(void **state) {
  (void)state;
  ledger l;
  kdp_trie *trie = trie_in(&l);
  kdp_trie_owner owner = {0};
  const uint8_t address[16] = {0};
  kdp_prefix prefix = prefix4(0, 0, 0, 0, 0), out;
  assert_null(kdp_trie_find(trie, KDP_FAMILY_IPV4, address));
  assert_null(kdp_trie_find(trie, KDP_FAMILY_IPV6, address));
  assert_null(kdp_trie_find_exact(trie, &prefix));
  assert_false(kdp_trie_remove(trie, &prefix, &owner));
  kdp_trie_remove_owner(trie, &owner);
  assert_int_equal(kdp_trie_list(&owner, 0, &out, 1), 0);
  assert_int_equal(kdp_trie_count(trie), 0);
  kdp_trie_destroy(trie);
  kdp_trie_destroy(NULL);
}

static void the_families_do_not_mix(void **state) {
  (void)state;
  ledger l;
  kdp_trie *trie = trie_in(&l);
  kdp_trie_owner four = {0}, six = {0};
  const uint8_t address[16] = {10, 0, 0, 1};
  kdp_prefix all6 = {.family = KDP_FAMILY_IPV6};
  insert(trie, prefix4(0, 0, 0, 0, 0), &four);
  assert_null(kdp_trie_find(trie, KDP_FAMILY_IPV6, address));
  insert(trie, all6, &six);
  assert_ptr_equal(kdp_trie_find(trie, KDP_FAMILY_IPV6, address), &six);
  assert_ptr_equal(kdp_trie_find(trie, KDP_FAMILY_IPV4, address), &four);
  kdp_trie_remove_owner(trie, &four);
  assert_null(kdp_trie_find(trie, KDP_FAMILY_IPV4, address));
  assert_ptr_equal(kdp_trie_find(trie, KDP_FAMILY_IPV6, address), &six);
  kdp_trie_destroy(trie);
}

static void the_latest_claim_moves_a_prefix_and_its_old_owner_does_not_get_it_back(void **state) {
  (void)state;
  ledger l;
  kdp_trie *trie = trie_in(&l);
  kdp_trie_owner b = {0}, c = {0};
  assert_null(insert(trie, prefix4(0, 0, 0, 0, 0), &b));
  assert_ptr_equal(insert(trie, prefix4(0, 0, 0, 0, 0), &c), &b);
  assert_int_equal(b.count, 0);
  assert_int_equal(c.count, 1);
  assert_ptr_equal(find4(trie, 198, 51, 100, 7), &c);
  assert_null(insert(trie, prefix4(0, 0, 0, 0, 0), &c));
  assert_int_equal(kdp_trie_count(trie), 1);
  kdp_trie_remove_owner(trie, &c);
  assert_null(find4(trie, 198, 51, 100, 7));
  assert_int_equal(kdp_trie_count(trie), 0);
  kdp_trie_destroy(trie);
}

static void a_prefix_is_removed_only_from_its_owner(void **state) {
  (void)state;
  ledger l;
  kdp_trie *trie = trie_in(&l);
  kdp_trie_owner a = {0}, b = {0};
  kdp_prefix p = prefix4(10, 0, 0, 0, 8), q = prefix4(10, 0, 0, 0, 9);
  insert(trie, p, &a);
  assert_false(kdp_trie_remove(trie, &p, &b));
  assert_false(kdp_trie_remove(trie, &q, &a));
  assert_ptr_equal(kdp_trie_find_exact(trie, &p), &a);
  assert_null(kdp_trie_find_exact(trie, &q));
  assert_true(kdp_trie_remove(trie, &p, &a));
  assert_false(kdp_trie_remove(trie, &p, &a));
  kdp_trie_destroy(trie);
}

static void prefixes_are_listed_in_order_of_insertion_and_in_pages(void **state) {
  (void)state;
  ledger l;
  kdp_trie *trie = trie_in(&l);
  kdp_trie_owner owner = {0}, thief = {0};
  enum { COUNT = 300 };
  for (unsigned i = 0; i < COUNT; i++)
    insert(trie, prefix4(10, (uint8_t)(i * 7), (uint8_t)(i >> 8), 0, 24), &owner);
  kdp_prefix fifth = prefix4(10, 5 * 7, 0, 0, 24), page[64];
  insert(trie, fifth, &owner); /* again: keeps its place */
  for (uint32_t at = 0; at < COUNT; at += 64) {
    uint32_t wanted = COUNT - at < 64 ? COUNT - at : 64;
    assert_int_equal(kdp_trie_list(&owner, at, page, 64), wanted);
    for (uint32_t i = 0; i < wanted; i++) {
      kdp_prefix expected = prefix4(10, (uint8_t)((at + i) * 7), (uint8_t)((at + i) >> 8), 0, 24);
      assert_memory_equal(&page[i], &expected, sizeof expected);
    }
  }
  assert_int_equal(kdp_trie_list(&owner, COUNT, page, 64), 0);
  insert(trie, fifth, &thief);
  insert(trie, fifth, &owner); /* taken back: now the last */
  assert_int_equal(kdp_trie_list(&owner, COUNT - 1, page, 64), 1);
  assert_memory_equal(&page[0], &fifth, sizeof fifth);
  kdp_trie_destroy(trie);
}

static void nested_prefixes_of_every_length_are_told_apart(void **state) {
  (void)state;
  static kdp_trie_owner owner[129];
  for (int downward = 0; downward < 2; downward++) {
    memset(owner, 0, sizeof owner);
    ledger l;
    kdp_trie *trie = trie_in(&l);
    kdp_prefix whole = {.family = KDP_FAMILY_IPV6, .length = 128};
    memset(whole.bytes, 0xa7, 16);
    for (unsigned i = 0; i <= 128; i++) {
      kdp_prefix prefix = whole;
      prefix.length = (uint8_t)(downward ? 128 - i : i);
      kdp_prefix_normalise(&prefix);
      assert_null(insert(trie, prefix, &owner[prefix.length]));
    }
    for (unsigned same = 0; same <= 128; same++) {
      uint8_t address[16];
      memcpy(address, whole.bytes, 16);
      if (same < 128) address[same / 8] ^= (uint8_t)(0x80 >> same % 8);
      assert_ptr_equal(kdp_trie_find(trie, KDP_FAMILY_IPV6, address), &owner[same]);
    }
    kdp_trie_destroy(trie);
    assert_int_equal(l.bytes, 0);
  }
}

static void without_memory_reserve_fails_and_nothing_changes(void **state) {
  (void)state;
  for (size_t allowed = 0; allowed < 12; allowed++) {
    ledger l = {.fail_after = allowed};
    kdp_host host = {.context = &l, .allocate = count_allocate, .release = count_release};
    kdp_trie *trie = NULL;
    if (kdp_trie_create(&host, &trie) != KDP_OK) {
      assert_int_equal(l.bytes, 0);
      continue;
    }
    kdp_trie_owner owner = {0};
    kdp_prefix prefix = prefix4(10, 0, 0, 0, 8);
    assert_int_equal(kdp_trie_reserve(trie, 1), KDP_OK);
    kdp_trie_insert(trie, &prefix, &owner);
    assert_int_equal(kdp_trie_reserve(trie, 100000), KDP_NO_MEMORY);
    assert_ptr_equal(find4(trie, 10, 1, 2, 3), &owner);
    l.fail_after = SIZE_MAX;
    assert_int_equal(kdp_trie_reserve(trie, 1000), KDP_OK);
    l.fail_after = 0;
    for (unsigned i = 0; i < 1000; i++) { /* what was promised cannot fail */
      prefix = prefix4(11, (uint8_t)(i >> 8), (uint8_t)i, 0, 24);
      kdp_trie_insert(trie, &prefix, &owner);
    }
    assert_int_equal(owner.count, 1001);
    assert_int_equal(kdp_trie_reserve(trie, UINT32_MAX), KDP_NO_MEMORY);
    kdp_trie_destroy(trie);
    assert_int_equal(l.bytes, 0);
    assert_int_equal(l.allocations, 0);
  }
}

static void fifty_thousand_prefixes_cost_64_bytes_each_and_linear_time(void **state) {
  (void)state;
  enum { COUNT = 50000 };
  ledger l;
  kdp_trie *trie = trie_in(&l);
  kdp_trie_owner owner = {0}, other = {0};
  rng r = {50000};
  clock_t start = clock();
  for (int round = 0; round < 2; round++) {
    assert_int_equal(kdp_trie_reserve(trie, COUNT), KDP_OK);
    l.fail_after = 0;
    while (kdp_trie_count(trie) < COUNT) {
      kdp_prefix prefix = {.family = round ? KDP_FAMILY_IPV6 : KDP_FAMILY_IPV4, .length = round ? 128 : 32};
      rng_fill(&r, prefix.bytes, round ? 16 : 4);
      assert_int_equal(kdp_trie_reserve(trie, 1), KDP_OK);
      kdp_trie_insert(trie, &prefix, kdp_trie_count(trie) % 10 ? &owner : &other);
    }
    l.fail_after = SIZE_MAX;
    assert_true(l.bytes <= 64 * COUNT);
    kdp_trie_remove_owner(trie, &owner);
    assert_int_equal(owner.count, 0);
    assert_int_equal(kdp_trie_count(trie), other.count);
    kdp_trie_remove_owner(trie, &other);
    assert_int_equal(kdp_trie_count(trie), 0);
  }
  /* A step that walks all of them for each of them would be 10^10 steps. */
  assert_true((double)(clock() - start) / CLOCKS_PER_SEC < 5);
  assert_true(l.bytes <= 64 * COUNT); /* the second round lived in what the first one left */
  kdp_trie_destroy(trie);
  assert_int_equal(l.bytes, 0);
}

enum { MOST = 400, OWNERS = 8 };
typedef struct oracle {
  kdp_prefix prefix[MOST];
  int owner[MOST];
  int count;
} oracle;

static bool prefix_covers(const kdp_prefix *prefix, const uint8_t *address) {
  for (unsigned bit = 0; bit < prefix->length; bit++)
    if ((prefix->bytes[bit / 8] ^ address[bit / 8]) & (0x80 >> bit % 8)) return false;
  return true;
}

static int oracle_find(const oracle *o, uint8_t family, const uint8_t *address) {
  int best = -1, owner = -1;
  for (int i = 0; i < o->count; i++)
    if (o->prefix[i].family == family && o->prefix[i].length > best && prefix_covers(&o->prefix[i], address)) {
      best = o->prefix[i].length;
      owner = o->owner[i];
    }
  return owner;
}

static int oracle_exact(const oracle *o, const kdp_prefix *prefix) {
  for (int i = 0; i < o->count; i++)
    if (memcmp(&o->prefix[i], prefix, sizeof *prefix) == 0) return i;
  return -1;
}

static void oracle_drop(oracle *o, int i) { /* keeps the order */
  memmove(&o->prefix[i], &o->prefix[i + 1], (size_t)(o->count - i - 1) * sizeof *o->prefix);
  memmove(&o->owner[i], &o->owner[i + 1], (size_t)(o->count - i - 1) * sizeof *o->owner);
  o->count--;
}

static void oracle_add(oracle *o, const kdp_prefix *prefix, int owner) {
  o->prefix[o->count] = *prefix;
  o->owner[o->count++] = owner;
}

/* Few distinct bytes, so that prefixes nest, repeat and lie side by side. */
static void random_bytes(rng *r, uint8_t *bytes) {
  for (int i = 0; i < 16; i++)
    bytes[i] = (uint8_t[]){0, 0, 0xff, 0x80, 0x01, 0x55}[rng_below(r, 6)];
}

static void compare_lists(const oracle *o, kdp_trie_owner *owners) {
  for (int which = 0; which < OWNERS; which++) {
    kdp_prefix listed[MOST];
    uint32_t count = kdp_trie_list(&owners[which], 0, listed, MOST), at = 0;
    assert_int_equal(count, owners[which].count);
    for (int i = 0; i < o->count; i++)
      if (o->owner[i] == which) {
        assert_true(at < count);
        assert_memory_equal(&listed[at++], &o->prefix[i], sizeof(kdp_prefix));
      }
    assert_int_equal(at, count);
  }
}

static void a_hundred_thousand_random_operations_agree_with_a_plain_list(void **state) {
  (void)state;
  static oracle o;
  static kdp_trie_owner owners[OWNERS];
  ledger l;
  kdp_trie *trie = trie_in(&l);
  rng r = {20230};
  for (int step = 0; step < 100000; step++) {
    kdp_prefix prefix = {.family = rng_below(&r, 2) ? KDP_FAMILY_IPV4 : KDP_FAMILY_IPV6};
    random_bytes(&r, prefix.bytes);
    unsigned bits = prefix.family == KDP_FAMILY_IPV4 ? 32 : 128;
    prefix.length = (uint8_t)(rng_one_in(&r, 3) ? rng_below(&r, bits + 1) : rng_below(&r, 20));
    kdp_prefix_normalise(&prefix);
    int which = (int)rng_below(&r, OWNERS), at = oracle_exact(&o, &prefix);
    if (o.count > 0 && rng_one_in(&r, 3)) { /* one that is there */
      at = (int)rng_below(&r, (uint32_t)o.count);
      prefix = o.prefix[at];
      if (rng_one_in(&r, 2)) which = o.owner[at];
    }
    uint32_t action = rng_below(&r, 1000);
    if (action < 500 && o.count < MOST) {
      kdp_trie_owner *before = insert(trie, prefix, &owners[which]);
      assert_ptr_equal(before, at >= 0 && o.owner[at] != which ? &owners[o.owner[at]] : NULL);
      if (at < 0 || o.owner[at] != which) {
        if (at >= 0) oracle_drop(&o, at);
        oracle_add(&o, &prefix, which);
      }
    } else if (action < 996) {
      bool there = at >= 0 && o.owner[at] == which;
      assert_int_equal(kdp_trie_remove(trie, &prefix, &owners[which]), there);
      if (there) oracle_drop(&o, at);
    } else {
      kdp_trie_remove_owner(trie, &owners[which]);
      for (int i = o.count; i-- > 0;)
        if (o.owner[i] == which) oracle_drop(&o, i);
    }
    assert_int_equal(kdp_trie_count(trie), o.count);
    for (int look = 0; look < 4; look++) {
      uint8_t address[16];
      random_bytes(&r, address);
      if (o.count && look % 2) memcpy(address, o.prefix[rng_below(&r, (uint32_t)o.count)].bytes, 16);
      if (look == 3) address[rng_below(&r, 16)] ^= (uint8_t)(1 << rng_below(&r, 8));
      uint8_t family = look < 2 ? KDP_FAMILY_IPV4 : KDP_FAMILY_IPV6;
      int wanted = oracle_find(&o, family, address);
      assert_ptr_equal(kdp_trie_find(trie, family, address), wanted < 0 ? NULL : &owners[wanted]);
    }
    int exact = oracle_exact(&o, &prefix);
    assert_ptr_equal(kdp_trie_find_exact(trie, &prefix), exact < 0 ? NULL : &owners[o.owner[exact]]);
    if (step % 500 == 0) compare_lists(&o, owners);
  }
  kdp_trie_destroy(trie);
  assert_int_equal(l.bytes, 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_longest_prefix_wins_in_any_order_of_insertion),
      cmocka_unit_test(an_empty_trie_finds_nothing),
      cmocka_unit_test(the_families_do_not_mix),
      cmocka_unit_test(the_latest_claim_moves_a_prefix_and_its_old_owner_does_not_get_it_back),
      cmocka_unit_test(a_prefix_is_removed_only_from_its_owner),
      cmocka_unit_test(prefixes_are_listed_in_order_of_insertion_and_in_pages),
      cmocka_unit_test(nested_prefixes_of_every_length_are_told_apart),
      cmocka_unit_test(without_memory_reserve_fails_and_nothing_changes),
      cmocka_unit_test(fifty_thousand_prefixes_cost_64_bytes_each_and_linear_time),
      cmocka_unit_test(a_hundred_thousand_random_operations_agree_with_a_plain_list),
  };
  return cmocka_run_group_tests_name("prefix trie", tests, NULL, NULL);
}
