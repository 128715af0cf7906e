/* Packets, slots and the pool they live in. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/uio.h>

#include <cmocka.h>

#include "kdp/batch.h"

static kdp_pool *pool_of(uint32_t slots) {
  kdp_host host = kdp_host_default();
  kdp_pool *pool = NULL;
  assert_int_equal(kdp_pool_create(slots, &host, &pool), KDP_OK);
  return pool;
}

static void carved_packets_share_a_slot_until_it_is_full(void **state) {
  (void)state;
  kdp_pool *pool = pool_of(2);
  kdp_packet packet[100];
  uint32_t count = 0;
  while (count < 100 && kdp_pool_take_packet(pool, 16, 2000, 32, &packet[count]))
    count++;
  assert_int_equal(count, 2 * (KDP_SLOT_SIZE / 2048));
  assert_int_equal(kdp_pool_free_count(pool), 0);
  assert_int_equal(packet[0].slot, packet[1].slot);
  assert_ptr_equal(packet[1].data, packet[0].data + 2048);
  assert_int_equal((uintptr_t)(packet[1].data - packet[1].head) % 16, 0);
  for (uint32_t i = 0; i < count; i++) {
    memset(packet[i].data - packet[i].head, 0xa5, (size_t)packet[i].head + packet[i].size + packet[i].tail);
    kdp_pool_release(pool, packet[i].slot);
  }
  assert_int_equal(kdp_pool_free_count(pool), 1); /* the open slot stays open */
  assert_true(kdp_pool_take_packet(pool, 16, 2000, 32, &packet[0]));
  kdp_pool_release(pool, packet[0].slot);
  kdp_pool_destroy(pool);
}

static void adjacent_packets_lie_end_to_end_and_what_follows_is_aligned_again(void **state) {
  (void)state;
  kdp_pool *pool = pool_of(2);
  kdp_packet packet[100], next;
  assert_true(kdp_pool_take_packet(pool, 16, 1420, 16, &packet[0]));
  uint32_t count = 1;
  for (; count < 100; count++) {
    assert_true(kdp_pool_take_adjacent(pool, 16, 1420, 16, &packet[count]));
    if (packet[count].slot != packet[0].slot) break;
    assert_ptr_equal(packet[count].data - 16, packet[count - 1].data + 1420 + 16);
  }
  assert_int_equal(count, KDP_SLOT_SIZE / 1452);
  assert_int_equal((uintptr_t)(packet[count].data - 16) % 16, 0); /* the first of another slot */
  /* What is left over up to the next place that is aligned is not there for a packet that has to be aligned. */
  kdp_pool_release(pool, packet[count].slot);
  assert_true(kdp_pool_take_packet(pool, 0, 15, 0, &packet[count]));
  assert_false(kdp_pool_take_packet(pool, 0, KDP_SLOT_SIZE - 15, 0, &next));
  assert_true(kdp_pool_take_packet(pool, 0, KDP_SLOT_SIZE - 16, 0, &next));
  assert_int_equal((uintptr_t)next.data % 16, 0);
  assert_false(kdp_pool_take_adjacent(pool, 0, 1, 0, &next));
  assert_false(kdp_pool_take_adjacent(pool, 1, UINT32_MAX, 1, &next));
  kdp_pool_destroy(pool);
}

static void an_empty_pool_refuses_and_recovers(void **state) {
  (void)state;
  kdp_pool *pool = pool_of(1);
  kdp_slot slot, other;
  assert_non_null(kdp_pool_take_slot(pool, &slot));
  assert_null(kdp_pool_take_slot(pool, &other));
  kdp_packet packet;
  assert_false(kdp_pool_take_packet(pool, 0, 1, 0, &packet));
  kdp_pool_retain(pool, slot, 2);
  kdp_pool_release_users(pool, slot, 2);
  assert_int_equal(kdp_pool_free_count(pool), 0);
  kdp_pool_release(pool, slot);
  assert_true(kdp_pool_take_packet(pool, 0, KDP_SLOT_SIZE, 0, &packet));
  assert_false(kdp_pool_take_packet(pool, 0, KDP_SLOT_SIZE + 1, 0, &packet));
  kdp_pool_destroy(pool);
}

static void copies_keep_every_byte(void **state) {
  (void)state;
  kdp_pool *pool = pool_of(4);
  uint8_t bytes[3][1500], back[3][1500];
  struct iovec in[3], out[3];
  for (int i = 0; i < 3; i++) {
    memset(bytes[i], i + 1, sizeof bytes[i]);
    in[i] = (struct iovec){bytes[i], (size_t)(i * 700)};
    out[i] = (struct iovec){back[i], sizeof back[i]};
  }
  kdp_packet packet[3];
  kdp_batch batch = {.packet = packet, .capacity = 3};
  assert_int_equal(kdp_batch_copy_in(&batch, pool, (kdp_room){.head = 16, .tail = 32}, in, 3), 3);
  assert_int_equal(kdp_batch_copy_out(&batch, out, 3), 3);
  for (int i = 0; i < 3; i++) {
    assert_int_equal(out[i].iov_len, i * 700);
    assert_memory_equal(back[i], bytes[i], out[i].iov_len);
  }
  kdp_batch_release(&batch, pool);
  assert_int_equal(kdp_pool_free_count(pool), 3);
  kdp_pool_destroy(pool);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(carved_packets_share_a_slot_until_it_is_full),
      cmocka_unit_test(adjacent_packets_lie_end_to_end_and_what_follows_is_aligned_again),
      cmocka_unit_test(an_empty_pool_refuses_and_recovers),
      cmocka_unit_test(copies_keep_every_byte),
  };
  return cmocka_run_group_tests_name("pool", tests, NULL, NULL);
}
