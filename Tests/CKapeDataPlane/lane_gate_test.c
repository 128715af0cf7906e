/* The gate between lane 0, which changes what all read, and the other lanes; and the small lock. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "core/lane_gate.h"

enum { LANES = 4, CHANGES = 5000 };

typedef struct shared {
  kdp_lane_gate gate;
  kdp_lane_door door[LANES];
  atomic_uint done;
  uint64_t first, second; /* equal, except in the middle of a change */
  kdp_lane_lock lock;
  uint64_t sum; /* behind the lock */
} shared;

typedef struct reader {
  shared *with;
  uint32_t index;
  uint64_t calls, torn;
} reader;

static void *read_on(void *context) {
  reader *r = context;
  shared *s = r->with;
  while (!atomic_load(&s->done)) {
    kdp_lane_enter(&s->gate, &s->door[r->index]);
    if (s->first != s->second) r->torn++;
    kdp_lane_leave(&s->door[r->index]);
    kdp_lane_lock_take(&s->lock);
    s->sum++;
    kdp_lane_lock_give(&s->lock);
    r->calls++;
  }
  return NULL;
}

static void no_lane_sees_half_a_change(void **state) {
  (void)state;
  static shared s;
  s.gate = (kdp_lane_gate){.lanes = LANES, .door = s.door};
  pthread_t thread[LANES];
  reader reader[LANES] = {{0}};
  for (uint32_t i = 1; i < LANES; i++) {
    reader[i].with = &s;
    reader[i].index = i;
    assert_int_equal(pthread_create(&thread[i], NULL, read_on, &reader[i]), 0);
  }
  for (uint32_t i = 0; i < CHANGES; i++) {
    kdp_lane_change_begin(&s.gate);
    s.first++;
    kdp_lane_change_begin(&s.gate); /* one within another ends nothing */
    kdp_lane_change_end(&s.gate);
    s.second++;
    kdp_lane_change_end(&s.gate);
  }
  atomic_store(&s.done, 1);
  uint64_t calls = 0;
  for (uint32_t i = 1; i < LANES; i++) {
    pthread_join(thread[i], NULL);
    assert_int_equal(reader[i].torn, 0);
    calls += reader[i].calls;
  }
  assert_int_equal(s.first, CHANGES);
  assert_int_equal(s.sum, calls);
}

static void with_one_lane_nothing_is_touched(void **state) {
  (void)state;
  kdp_lane_gate gate = {.lanes = 1};
  kdp_lane_change_begin(&gate);
  assert_int_equal(gate.depth, 0);
  assert_int_equal(atomic_load(&gate.changing), 0);
  kdp_lane_change_end(&gate);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(no_lane_sees_half_a_change),
      cmocka_unit_test(with_one_lane_nothing_is_touched),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
