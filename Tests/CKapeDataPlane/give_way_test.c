/* A worker yields for those that receive its packets, and keeps its share beside those that never wait. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "io/give_way.h"
#include "kdp/time.h"
#include "support/rng.h"

static void rounds_of_few_frames_go_on(void **state) {
  (void)state;
  kdp_give_way way = {0};
  for (int i = 0; i < 1000; i++)
    assert_false(kdp_give_way_due(&way, KDP_GIVE_WAY_FRAMES - 1, KDP_MILLISECOND));
}

static void short_waits_are_given_after_every_full_round(void **state) {
  (void)state;
  kdp_give_way way = {0};
  for (int i = 0; i < 1000; i++) {
    assert_true(kdp_give_way_due(&way, KDP_GIVE_WAY_FRAMES, 100000));
    kdp_give_way_took(&way, 90000);
  }
}

/* Whatever a yield takes, over time not more is given than was worked, but for what the first ones cost before their
 * price was known. */
static void never_more_is_given_than_was_worked(void **state) {
  (void)state;
  rng random = {.state = 7};
  for (int run = 0; run < 200; run++) {
    kdp_give_way way = {0};
    uint64_t price = 1 + rng_below(&random, 4 * KDP_MILLISECOND), worked = 0, given = 0, yields = 0;
    for (int i = 0; i < 5000; i++) {
      uint64_t work = 1 + rng_below(&random, 300000);
      worked += work;
      if (!kdp_give_way_due(&way, 64, work)) continue;
      kdp_give_way_took(&way, price);
      given += price;
      yields++;
    }
    assert_true(yields > 10);
    assert_true(given <= worked + 16 * price);
  }
}

static void one_wait_without_end_is_not_the_last(void **state) {
  (void)state;
  kdp_give_way way = {0};
  assert_true(kdp_give_way_due(&way, 64, 1000));
  kdp_give_way_took(&way, 3600 * KDP_SECOND);
  unsigned rounds = 0;
  while (!kdp_give_way_due(&way, 64, 100000) && rounds < 1000)
    rounds++;
  assert_in_range(rounds, 10, 200);
  kdp_give_way_took(&way, 1000);
  for (int i = 0; i < 100; i++)
    if (kdp_give_way_due(&way, 64, 100000)) kdp_give_way_took(&way, 1000);
  assert_true(kdp_give_way_due(&way, 64, 100000)); /* cheap again, soon */
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(rounds_of_few_frames_go_on),
      cmocka_unit_test(short_waits_are_given_after_every_full_round),
      cmocka_unit_test(never_more_is_given_than_was_worked),
      cmocka_unit_test(one_wait_without_end_is_not_the_last),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
