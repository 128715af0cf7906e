/* The ring of events: what is lost is told. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "core/event_queue.h"

static void push(kdp_event_queue *queue, uint64_t first, uint64_t count, bool kept) {
  for (uint64_t i = 0; i < count; i++) {
    kdp_event event = {.kind = KDP_EVENT_CONNECTED, .value = first + i};
    assert_int_equal(kdp_event_queue_push(queue, &event), kept);
  }
}

static void events_come_out_in_order_and_none_is_lost_while_there_is_room(void **state) {
  (void)state;
  static kdp_event_queue queue;
  memset(&queue, 0, sizeof queue);
  kdp_event event;
  assert_false(kdp_event_queue_take(&queue, &event));
  for (uint64_t round = 0; round < 5; round++) { /* also across the end of the ring */
    push(&queue, round * 1000, 200, true);
    for (uint64_t i = 0; i < 200; i++) {
      assert_true(kdp_event_queue_take(&queue, &event));
      assert_int_equal(event.value, round * 1000 + i);
      assert_int_equal(event.lost, 0);
    }
    assert_false(kdp_event_queue_take(&queue, &event));
  }
}

static void given_a_full_queue_the_oldest_goes_and_the_next_one_taken_says_how_many(void **state) {
  (void)state;
  static kdp_event_queue queue;
  memset(&queue, 0, sizeof queue);
  push(&queue, 0, KDP_EVENT_QUEUE_CAPACITY, true);
  push(&queue, KDP_EVENT_QUEUE_CAPACITY, 7, false);
  kdp_event event;
  assert_true(kdp_event_queue_take(&queue, &event));
  assert_int_equal(event.value, 7);
  assert_int_equal(event.lost, 7);
  assert_true(kdp_event_queue_take(&queue, &event));
  assert_int_equal(event.value, 8);
  assert_int_equal(event.lost, 0);
  push(&queue, 1000, 2, true);
  push(&queue, 2000, 3, false);
  assert_true(kdp_event_queue_take(&queue, &event));
  assert_int_equal(event.lost, 3);
  uint32_t left = 0;
  while (kdp_event_queue_take(&queue, &event))
    left++;
  assert_int_equal(left, KDP_EVENT_QUEUE_CAPACITY - 1);
  assert_int_equal(event.value, 2002);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(events_come_out_in_order_and_none_is_lost_while_there_is_room),
      cmocka_unit_test(given_a_full_queue_the_oldest_goes_and_the_next_one_taken_says_how_many),
  };
  return cmocka_run_group_tests_name("event queue", tests, NULL, NULL);
}
