/* The Internet checksum against RFC 1071's own example and a sum made the slow way. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/bytes.h"
#include "net/checksum.h"
#include "support/guard.h"
#include "support/rng.h"

/* As RFC 1071 section 1 defines it: 16-bit big-endian words, end-around carry. */
static uint32_t slow_add(uint32_t sum, const uint8_t *bytes, size_t size) {
  for (size_t i = 0; i < size; i++) {
    sum += i % 2 ? bytes[i] : (uint32_t)bytes[i] << 8;
    if (sum > 0xffff) sum = (sum & 0xffff) + 1;
  }
  return sum;
}

static uint16_t folded(uint64_t sum) {
  uint16_t memory = kdp_checksum_fold(sum);
  return kdp_load_be16(&memory);
}

static void rfc_1071_example(void **state) {
  (void)state;
  const uint8_t bytes[] = {0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7};
  assert_int_equal(folded(kdp_checksum_add(0, bytes, 8)), 0xddf2);
  /* section 3, byte order independence, and sums in pieces */
  uint64_t sum = kdp_checksum_add(kdp_checksum_add(0, bytes, 2), bytes + 2, 6);
  assert_int_equal(folded(sum), 0xddf2);
}

static void known_ipv4_header(void **state) {
  (void)state;
  const uint8_t header[20] = {0x45, 0x00, 0x00, 0x73, 0x00, 0x00, 0x40, 0x00, 0x40, 0x11,
                              0x00, 0x00, 0xc0, 0xa8, 0x00, 0x01, 0xc0, 0xa8, 0x00, 0xc7};
  assert_int_equal((uint16_t)~folded(kdp_checksum_add(0, header, 20)), 0xb861);
}

static void zero_stays_zero_and_all_ones_does_not_become_zero(void **state) {
  (void)state;
  uint8_t bytes[1500];
  memset(bytes, 0, sizeof bytes);
  for (size_t size = 0; size <= sizeof bytes; size += 50)
    assert_int_equal(kdp_checksum_fold(kdp_checksum_add(0, bytes, size)), 0);
  memset(bytes, 0xff, sizeof bytes);
  for (size_t size = 2; size <= sizeof bytes; size += 2)
    assert_int_equal(kdp_checksum_fold(kdp_checksum_add(0, bytes, size)), 0xffff);
  uint64_t sum = UINT64_MAX;
  for (int i = 0; i < 100; i++)
    sum = kdp_checksum_add(sum, bytes, 1500);
  assert_int_equal(kdp_checksum_fold(sum), 0xffff);
}

static void every_size_agrees_with_the_slow_sum_and_stays_between_its_guards(void **state) {
  (void)state;
  rng r = {1071};
  for (size_t size = 0; size <= 700; size++) {
    guard source = guard_make(size), target = guard_make(size), front = guard_make_front(size);
    rng_fill(&r, source.bytes, size);
    if (size) memcpy(front.bytes, source.bytes, size);
    uint16_t start;
    rng_fill(&r, &start, 2);
    uint32_t wanted = slow_add(kdp_load_be16(&start), source.bytes, size);
    assert_int_equal(folded(kdp_checksum_add(start, source.bytes, size)), wanted);
    assert_int_equal(folded(kdp_checksum_add(start, front.bytes, size)), wanted);
    assert_int_equal(folded(kdp_checksum_copy_add(start, target.bytes, source.bytes, size)), wanted);
    if (size) assert_memory_equal(target.bytes, source.bytes, size);
    assert_int_equal(folded(kdp_checksum_copy_add(start, target.bytes, front.bytes, size)), wanted);
    guard_free(&source), guard_free(&target), guard_free(&front);
  }
}

static void random_sizes_and_alignments_up_to_the_largest_packet(void **state) {
  (void)state;
  rng r = {2};
  enum { SIZE = 65600 };
  uint8_t *source = malloc(SIZE), *target = malloc(SIZE);
  for (int round = 0; round < 300; round++) {
    size_t from = rng_below(&r, 64), size = round < 8 ? 65535 : rng_below(&r, 65535), to = rng_below(&r, 64);
    if (round % 3 == 0)
      memset(source, round % 2 ? 0xff : 0xfe, SIZE); /* the most carries */
    else
      rng_fill(&r, source + from, size);
    uint64_t start = round % 4 ? rng_next(&r) : UINT64_MAX;
    uint32_t wanted = slow_add(slow_add(0, (const uint8_t *)&start, 8), source + from, size);
    assert_int_equal(folded(kdp_checksum_add(start, source + from, size)), wanted);
    memset(target, 0x5a, SIZE);
    assert_int_equal(folded(kdp_checksum_copy_add(start, target + to, source + from, size)), wanted);
    assert_memory_equal(target + to, source + from, size);
    assert_int_equal(target[to + size], 0x5a);
    if (to > 0) assert_int_equal(target[to - 1], 0x5a);
  }
  free(source), free(target);
}

static void pieces_of_even_size_add_up_to_the_whole(void **state) {
  (void)state;
  rng r = {3};
  uint8_t bytes[4001];
  rng_fill(&r, bytes, sizeof bytes);
  uint32_t wanted = slow_add(0, bytes, sizeof bytes);
  for (int round = 0; round < 200; round++) {
    uint64_t sum = 0;
    size_t at = 0;
    while (at < sizeof bytes) {
      size_t piece = 2 * (size_t)rng_below(&r, 300);
      if (piece > sizeof bytes - at) piece = sizeof bytes - at;
      sum = kdp_checksum_add(sum, bytes + at, piece);
      at += piece;
    }
    assert_int_equal(folded(sum), wanted);
  }
}

static void pseudo_headers_of_both_families(void **state) {
  (void)state;
  rng r = {4};
  for (int round = 0; round < 100; round++) {
    uint8_t header[40], pseudo[40] = {0};
    rng_fill(&r, header, sizeof header);
    uint32_t size = rng_below(&r, 65536);
    header[0] = 0x46;
    memcpy(pseudo, header + 12, 8);
    pseudo[9] = 17;
    kdp_store_be16(pseudo + 10, (uint16_t)size);
    assert_int_equal(folded(kdp_checksum_pseudo(header, 17, size)), slow_add(0, pseudo, 12));
    header[0] = 0x60;
    size += 65536;
    memset(pseudo, 0, sizeof pseudo);
    memcpy(pseudo, header + 8, 32);
    kdp_store_be32(pseudo + 32, size);
    pseudo[39] = 6;
    assert_int_equal(folded(kdp_checksum_pseudo(header, 6, size)), slow_add(0, pseudo, 40));
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(rfc_1071_example),
      cmocka_unit_test(known_ipv4_header),
      cmocka_unit_test(zero_stays_zero_and_all_ones_does_not_become_zero),
      cmocka_unit_test(every_size_agrees_with_the_slow_sum_and_stays_between_its_guards),
      cmocka_unit_test(random_sizes_and_alignments_up_to_the_largest_packet),
      cmocka_unit_test(pieces_of_even_size_add_up_to_the_whole),
      cmocka_unit_test(pseudo_headers_of_both_families),
  };
  return cmocka_run_group_tests_name("checksum", tests, NULL, NULL);
}
