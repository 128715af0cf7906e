/* The ring between workers: what goes in comes out, whole and in order, or is refused; and nobody sleeps over it. */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "io/handoff.h"
#include "support/rng.h"

static kdp_handoff *make(void) {
  kdp_host host = kdp_host_default();
  kdp_handoff *handoff = NULL;
  assert_int_equal(kdp_handoff_create(&host, &handoff), KDP_OK);
  return handoff;
}

/* Record `number` of a stream that both ends know: its kind, path and bytes follow from the number. */
static kdp_handoff_record record_of(uint32_t number, uint32_t most, uint8_t *bytes) {
  rng random = {number + 1};
  kdp_handoff_record record = {.size = rng_below(&random, most + 1),
                               .kind = (uint8_t)(KDP_HANDOFF_INSIDE + number % 4),
                               .ecn = (uint8_t)(number % 3),
                               .path = {.link = number, .remote = {.port = (uint16_t)number}}};
  rng_fill(&random, bytes, record.size);
  return record;
}

static bool push(kdp_handoff *handoff, uint32_t number, uint32_t most) {
  static _Thread_local uint8_t bytes[70000];
  kdp_handoff_record record = record_of(number, most, bytes);
  return kdp_handoff_push(handoff, &record, bytes);
}

/* Takes the oldest, which must be record `number`. */
static bool take(kdp_handoff *handoff, uint32_t number, uint32_t most) {
  static _Thread_local uint8_t bytes[70000];
  const kdp_handoff_record *got = kdp_handoff_peek(handoff);
  if (!got) return false;
  kdp_handoff_record record = record_of(number, most, bytes);
  if (got->size != record.size || got->kind != record.kind || got->ecn != record.ecn ||
      !kdp_path_equal(&got->path, &record.path) || memcmp(kdp_handoff_bytes(got), bytes, record.size) != 0)
    fail_msg("record %u is another", number);
  kdp_handoff_pop(handoff);
  return true;
}

static void an_empty_ring_gives_nothing(void **state) {
  (void)state;
  kdp_handoff *handoff = make();
  assert_null(kdp_handoff_peek(handoff));
  kdp_handoff_destroy(handoff);
  kdp_handoff_destroy(NULL);
}

static void records_come_out_in_order_at_every_place_of_the_ring(void **state) {
  (void)state;
  static const uint32_t most[] = {0, 1, 100, 1500, 65535};
  for (size_t i = 0; i < sizeof most / sizeof most[0]; i++) {
    kdp_handoff *handoff = make();
    uint32_t pushed = 0, taken = 0;
    rng random = {i + 1};
    while (taken < 20000) {
      for (uint32_t n = rng_below(&random, 20); n > 0 && push(handoff, pushed, most[i]); n--)
        pushed++;
      for (uint32_t n = rng_below(&random, 20); n > 0 && take(handoff, taken, most[i]); n--)
        taken++;
    }
    while (take(handoff, taken, most[i]))
      taken++;
    assert_int_equal(taken, pushed);
    kdp_handoff_destroy(handoff);
  }
}

static void a_full_ring_refuses_and_keeps_what_it_has(void **state) {
  (void)state;
  kdp_handoff *handoff = make();
  uint32_t pushed = 0, taken = 0;
  while (push(handoff, pushed, 1500))
    pushed++;
  assert_true(pushed > KDP_HANDOFF_BYTES / 1700);
  assert_false(push(handoff, pushed, 1500));
  while (take(handoff, taken, 1500))
    taken++;
  assert_int_equal(taken, pushed);
  assert_true(push(handoff, pushed, 1500));
  assert_true(take(handoff, pushed, 1500));
  kdp_handoff_destroy(handoff);
}

static void what_is_larger_than_the_ring_is_refused(void **state) {
  (void)state;
  kdp_handoff *handoff = make();
  uint8_t *bytes = calloc(1, KDP_HANDOFF_BYTES);
  kdp_handoff_record record = {.size = KDP_HANDOFF_BYTES, .kind = KDP_HANDOFF_INSIDE};
  assert_false(kdp_handoff_push(handoff, &record, bytes));
  record.size = UINT32_MAX;
  assert_false(kdp_handoff_push(handoff, &record, bytes));
  assert_null(kdp_handoff_peek(handoff));
  free(bytes);
  kdp_handoff_destroy(handoff);
}

static void pop_oldest(kdp_handoff *handoff) {
  assert_non_null(kdp_handoff_peek(handoff));
  kdp_handoff_pop(handoff);
}

/* Wherever the last record has ended. */
static void an_empty_ring_has_room_for_the_largest_packet(void **state) {
  (void)state;
  static uint8_t bytes[65535];
  kdp_handoff *handoff = make();
  rng random = {9};
  for (uint32_t i = 0; i < 20000; i++) {
    kdp_handoff_record record = {.size = rng_one_in(&random, 3) ? 65535 : rng_below(&random, 65536), .kind = 1};
    assert_true(kdp_handoff_push(handoff, &record, bytes));
    if (rng_one_in(&random, 2) && kdp_handoff_push(handoff, &record, bytes)) pop_oldest(handoff);
    pop_oldest(handoff);
  }
  kdp_handoff_destroy(handoff);
}

static void one_of_many_pushes_wakes(void **state) {
  (void)state;
  kdp_handoff *handoff = make();
  for (int round = 0; round < 3; round++) {
    assert_true(kdp_handoff_tell(handoff));
    assert_false(kdp_handoff_tell(handoff));
    assert_false(kdp_handoff_tell(handoff));
    kdp_handoff_listen(handoff);
  }
  kdp_handoff_destroy(handoff);
}

static struct {
  size_t size;
  bool clean;
} freed;

static void release_looking(void *context, void *memory, size_t size) {
  (void)context;
  freed.size = size;
  freed.clean = memmem(memory, size, "secret", 6) == NULL;
  free(memory);
}

static kdp_handoff *make_to_look_at(void) {
  kdp_host host = kdp_host_default();
  host.release = release_looking;
  kdp_handoff *handoff = NULL;
  assert_int_equal(kdp_handoff_create(&host, &handoff), KDP_OK);
  return handoff;
}

static void pass(kdp_handoff *handoff, const void *bytes, uint32_t size) {
  kdp_handoff_record record = {.size = size, .kind = KDP_HANDOFF_INSIDE};
  assert_true(kdp_handoff_push(handoff, &record, bytes));
  const kdp_handoff_record *got = kdp_handoff_peek(handoff);
  assert_non_null(got);
  assert_int_equal(got->size, size);
  kdp_handoff_pop(handoff);
}

static void a_ring_is_wiped(void **state) {
  (void)state;
  kdp_handoff *handoff = make_to_look_at();
  for (int i = 0; i < 5000; i++) /* more than once round */
    pass(handoff, "secret", 6);
  kdp_handoff_destroy(handoff);
  assert_true(freed.size > KDP_HANDOFF_BYTES);
  assert_true(freed.clean);
}

/* Positions are of 32 bits. */
static void a_ring_that_4_gib_have_passed_goes_on_and_is_wiped(void **state) {
  (void)state;
  enum { SIZE = 60000 };
  static uint8_t bytes[SIZE];
  for (size_t i = 0; i + 6 <= SIZE; i += 6)
    memcpy(bytes + i, "secret", 6);
  kdp_handoff *handoff = make_to_look_at();
  for (uint64_t passed = 0; passed < (UINT64_C(1) << 32); passed += KDP_HANDOFF_BYTES)
    for (int records = 0; records < 2; records++) /* and what is left of the ring behind them is skipped */
      pass(handoff, bytes, SIZE);
  pass(handoff, bytes, SIZE);
  kdp_handoff_destroy(handoff);
  assert_true(freed.clean);
}

/* ---- Two threads ---- */

enum { RECORDS = 200000 };

typedef struct ends {
  kdp_handoff *handoff;
  sem_t wake;
} ends;

static void *produce(void *context) {
  ends *e = context;
  for (uint32_t pushed = 0; pushed < RECORDS;) {
    if (push(e->handoff, pushed, 300)) pushed++;
    if (pushed % 5 == 0 && kdp_handoff_tell(e->handoff)) sem_post(&e->wake);
  }
  if (kdp_handoff_tell(e->handoff)) sem_post(&e->wake);
  return NULL;
}

static void a_sleeping_consumer_misses_nothing(void **state) {
  (void)state;
  ends e = {.handoff = make()};
  sem_init(&e.wake, 0, 0);
  pthread_t producer;
  assert_int_equal(pthread_create(&producer, NULL, produce, &e), 0);
  for (uint32_t taken = 0; taken < RECORDS;) {
    while (sem_wait(&e.wake) != 0 && errno == EINTR)
      ;
    kdp_handoff_listen(e.handoff);
    while (take(e.handoff, taken, 300))
      taken++;
  }
  pthread_join(producer, NULL);
  sem_destroy(&e.wake);
  kdp_handoff_destroy(e.handoff);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(an_empty_ring_gives_nothing),
      cmocka_unit_test(records_come_out_in_order_at_every_place_of_the_ring),
      cmocka_unit_test(a_full_ring_refuses_and_keeps_what_it_has),
      cmocka_unit_test(what_is_larger_than_the_ring_is_refused),
      cmocka_unit_test(an_empty_ring_has_room_for_the_largest_packet),
      cmocka_unit_test(one_of_many_pushes_wakes),
      cmocka_unit_test(a_ring_is_wiped),
      cmocka_unit_test(a_ring_that_4_gib_have_passed_goes_on_and_is_wiped),
      cmocka_unit_test(a_sleeping_consumer_misses_nothing),
  };
  return cmocka_run_group_tests_name("handoff", tests, NULL, NULL);
}
