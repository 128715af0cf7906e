/* The replay window: tables of single decisions, sweeps, and a comparison with a window that forgets nothing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "net/replay_window.h"
#include "support/rng.h"

enum { WORDS = 128, REACH = (WORDS - 1) * 64 }; /* WireGuard's: 8,128 behind the newest */

typedef struct step {
  uint64_t counter;
  bool accepted;
} step;

static uint64_t words[WORDS];

static kdp_replay_window fresh(void) {
  memset(words, 0xff, sizeof words);
  kdp_replay_window window;
  kdp_replay_window_start(&window, words, WORDS);
  return window;
}

static bool offer(kdp_replay_window *window, uint64_t counter) {
  bool foreseen = kdp_replay_window_check(window, counter);
  bool accepted = kdp_replay_window_commit(window, counter);
  assert_int_equal(foreseen, accepted);
  assert_false(kdp_replay_window_check(window, counter)); /* accepted, or refused before and after */
  return accepted;
}

static void play(const step *steps, size_t count) {
  kdp_replay_window window = fresh();
  for (size_t i = 0; i < count; i++)
    if (offer(&window, steps[i].counter) != steps[i].accepted)
      fail_msg("step %zu: counter %llu", i, (unsigned long long)steps[i].counter);
}
#define PLAY(...)                                                                                                      \
  do {                                                                                                                 \
    const step steps[] = {__VA_ARGS__};                                                                                \
    play(steps, sizeof steps / sizeof *steps);                                                                         \
  } while (0)

static void decisions_near_zero_and_at_the_window_edge(void **state) {
  (void)state;
  PLAY({0, true}, {1, true}, {1, false}, {9, true}, {8, true}, {7, true}, {7, false}, {0, false}, {8, false});
  /* the edge itself is inside, one beyond it is not; seen or not */
  PLAY({REACH, true}, {REACH - 1, true}, {REACH - 1, false}, {REACH - 2, true}, {2, true}, {2, false}, {0, true},
       {0, false});
  PLAY({REACH + 1, true}, {0, false}, {1, true}, {1, false});
  PLAY({REACH + 17, true}, {16, false}, {17, true}, {17, false}, {18, true}, {REACH + 17, false}, {REACH + 18, true},
       {17, false}, {18, false}, {19, true});
}

static void decisions_around_word_and_ring_boundaries(void **state) {
  (void)state;
  PLAY({63, true}, {64, true}, {63, false}, {62, true}, {65, true}, {127, true}, {128, true}, {64, false},
       {127, false});
  /* one turn of the ring: the same word and bit stand for another counter */
  PLAY({5, true}, {5 + WORDS * 64, true}, {5, false}, {5 + WORDS * 64, false}, {5 + 64, true},
       {5 + 2 * WORDS * 64, true}, {5 + WORDS * 64, false}, {5 + WORDS * 64 + 64, true});
  PLAY({WORDS * 64 - 1, true}, {WORDS * 64, true}, {63, false}, {64, true}, {WORDS * 64 - 2, true});
}

static void decisions_after_jumps(void **state) {
  (void)state;
  const uint64_t far = UINT64_C(1) << 40;
  PLAY({3, true}, {far, true}, {3, false}, {far - 1, true}, {far - REACH, true}, {far - REACH - 1, false}, {far, false},
       {far + 3 * REACH, true}, {far, false}, {far + 2 * REACH, true}, {far + 2 * REACH, false},
       {far + 2 * REACH - 1, false});
  /* a jump of exactly the ring, and of one word more and less, leaves no stale bit */
  for (int delta = -1; delta <= 1; delta++) {
    uint64_t jump = (uint64_t)(WORDS + delta) * 64;
    kdp_replay_window window = fresh();
    for (uint64_t counter = 0; counter < WORDS * 64; counter++)
      assert_true(offer(&window, counter));
    assert_true(offer(&window, WORDS * 64 - 1 + jump));
    for (uint64_t back = 1; back <= REACH; back++) {
      uint64_t counter = WORDS * 64 - 1 + jump - back;
      assert_int_equal(offer(&window, counter), counter >= WORDS * 64);
    }
  }
}

static void decisions_at_the_end_of_the_counters(void **state) {
  (void)state;
  PLAY({UINT64_MAX, false}, {0, true}, {UINT64_MAX, false}, {UINT64_MAX - 1, true}, {UINT64_MAX, false},
       {UINT64_MAX - 1, false}, {UINT64_MAX - 2, true}, {UINT64_MAX - 1 - REACH, true}, {UINT64_MAX - 2 - REACH, false},
       {0, false}, {1, false});
}

static void sweep_upwards_accepts_each_once(void **state) {
  (void)state;
  kdp_replay_window window = fresh();
  for (uint64_t counter = 0; counter < 3 * WORDS * 64; counter++) {
    assert_true(offer(&window, counter));
    assert_false(offer(&window, counter / 2));
  }
}

static void sweep_downwards_accepts_the_whole_window_and_no_more(void **state) {
  (void)state;
  for (uint64_t top = 100000; top < 100000 + 65; top++) {
    kdp_replay_window window = fresh();
    for (uint64_t back = 0; back < REACH + 200; back++)
      assert_int_equal(offer(&window, top - back), back <= REACH);
    for (uint64_t back = 0; back < REACH + 200; back++)
      assert_false(offer(&window, top - back));
  }
}

static void reordering_of_four_workers_over_2000_packets_loses_nothing(void **state) {
  (void)state;
  kdp_replay_window window = fresh();
  rng r = {59};
  enum { COUNT = 20000, DEPTH = 2000 };
  static uint32_t order[COUNT];
  for (uint32_t i = 0; i < COUNT; i++)
    order[i] = i;
  for (uint32_t at = 0; at < COUNT; at += DEPTH)
    for (uint32_t i = DEPTH - 1; i > 0; i--) {
      uint32_t j = rng_below(&r, i + 1), swap = order[at + i];
      order[at + i] = order[at + j];
      order[at + j] = swap;
    }
  for (uint32_t i = 0; i < COUNT; i++)
    assert_true(offer(&window, order[i]));
  assert_false(offer(&window, order[0]));
  /* a forged packet is checked, never committed: it moves nothing */
  assert_true(kdp_replay_window_check(&window, UINT64_C(1) << 63));
  assert_true(offer(&window, COUNT));
}

/* The oracle remembers each accepted counter of a small range in a table of its own. */
static void random_counters_agree_with_an_oracle(void **state) {
  (void)state;
  enum { RANGE = 4096 };
  for (uint64_t seed = 1; seed <= 60; seed++) {
    rng r = {seed};
    uint32_t count = 2u << rng_below(&r, 4);
    uint64_t memory[16], base = seed % 3 == 0 ? UINT64_MAX - RANGE : seed % 3 == 1 ? 0 : rng_next(&r) >> 1;
    kdp_replay_window window;
    kdp_replay_window_start(&window, memory, count);
    static bool seen[RANGE + 1];
    memset(seen, 0, sizeof seen);
    int64_t newest = -1;
    uint32_t at = 0;
    for (int i = 0; i < 20000; i++) {
      switch (rng_below(&r, 8)) {
      case 0: at = rng_below(&r, RANGE + 1); break;
      case 1: at = newest < 0 ? 0 : (uint32_t)newest; break;
      case 2: at = newest < (int64_t)(count - 1) * 64 ? 0 : (uint32_t)(newest - (count - 1) * 64); break;
      default: at = (at + rng_below(&r, 40)) % (RANGE + 1); break;
      }
      bool fits = base + at != UINT64_MAX && !seen[at] && newest - (int64_t)at <= (int64_t)(count - 1) * 64;
      assert_int_equal(offer(&window, base + at), fits);
      if (fits) {
        seen[at] = true;
        if ((int64_t)at > newest) newest = at;
      }
    }
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(decisions_near_zero_and_at_the_window_edge),
      cmocka_unit_test(decisions_around_word_and_ring_boundaries),
      cmocka_unit_test(decisions_after_jumps),
      cmocka_unit_test(decisions_at_the_end_of_the_counters),
      cmocka_unit_test(sweep_upwards_accepts_each_once),
      cmocka_unit_test(sweep_downwards_accepts_the_whole_window_and_no_more),
      cmocka_unit_test(reordering_of_four_workers_over_2000_packets_loses_nothing),
      cmocka_unit_test(random_counters_agree_with_an_oracle),
  };
  return cmocka_run_group_tests_name("replay window", tests, NULL, NULL);
}
