/* ICMP errors given back to the inside. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/bytes.h"
#include "net/checksum.h"
#include "net/icmp.h"
#include "net/ip.h"
#include "support/guard.h"
#include "support/rng.h"

static const uint8_t SOURCE4[4] = {10, 77, 0, 2}, DESTINATION4[4] = {198, 51, 100, 7};
static const uint8_t SOURCE6[16] = {0xfd, 0x77, [15] = 2}, DESTINATION6[16] = {0x20, 0x01, 0x0d, 0xb8, [15] = 9};

typedef struct offender {
  uint8_t bytes[65535];
  size_t size;
} offender;

static offender *ipv4(size_t size, uint8_t protocol) {
  offender *o = calloc(1, sizeof *o);
  o->size = size;
  uint8_t *p = o->bytes;
  p[0] = 0x45;
  kdp_store_be16(p + 2, (uint16_t)size);
  p[8] = 64, p[9] = protocol;
  memcpy(p + 12, SOURCE4, 4);
  memcpy(p + 16, DESTINATION4, 4);
  rng r = {size};
  rng_fill(&r, p + 20, size - 20);
  return o;
}

static offender *ipv6(size_t size, uint8_t next) {
  offender *o = calloc(1, sizeof *o);
  o->size = size;
  uint8_t *p = o->bytes;
  p[0] = 0x60;
  kdp_store_be16(p + 4, (uint16_t)(size - 40));
  p[6] = next, p[7] = 64;
  memcpy(p + 8, SOURCE6, 16);
  memcpy(p + 24, DESTINATION6, 16);
  rng r = {size};
  rng_fill(&r, p + 40, size - 40);
  return o;
}

/* Answers from and into guarded memory. Frees the offender. */
static size_t answer_to(offender *o, kdp_icmp_kind kind, uint16_t mtu, uint8_t *answer) {
  guard in = guard_copy(o->bytes, o->size), out = guard_make(KDP_ICMP_MAX_SIZE);
  size_t size = kdp_icmp_write_error(kind, mtu, in.bytes, o->size, out.bytes);
  assert_true(size <= KDP_ICMP_MAX_SIZE);
  memcpy(answer, out.bytes, size);
  guard_free(&in), guard_free(&out), free(o);
  return size;
}

static bool is_answered(offender *o) {
  uint8_t answer[KDP_ICMP_MAX_SIZE];
  return answer_to(o, KDP_ICMP_HOST_UNREACHABLE, 0, answer) != 0;
}

static void check_ipv4(const uint8_t *answer, size_t size, const uint8_t *quoted, size_t quote) {
  kdp_ip ip;
  assert_int_equal(kdp_ip_read(answer, size, &ip), KDP_OK);
  assert_int_equal(ip.size, size);
  assert_true(ip.plain);
  assert_int_equal(ip.protocol, KDP_PROTOCOL_ICMP);
  assert_memory_equal(ip.source, DESTINATION4, 4);
  assert_memory_equal(ip.destination, SOURCE4, 4);
  assert_int_equal(kdp_checksum_fold(kdp_checksum_add(0, answer, 20)), 0xffff);
  assert_int_equal(kdp_checksum_fold(kdp_checksum_add(0, answer + 20, size - 20)), 0xffff);
  assert_int_equal(size, 28 + quote);
  assert_memory_equal(answer + 28, quoted, quote);
}

static void check_ipv6(const uint8_t *answer, size_t size, const uint8_t *quoted, size_t quote) {
  kdp_ip ip;
  assert_int_equal(kdp_ip_read(answer, size, &ip), KDP_OK);
  assert_int_equal(ip.size, size);
  assert_true(ip.plain);
  assert_int_equal(ip.protocol, KDP_PROTOCOL_ICMPV6);
  assert_memory_equal(ip.source, DESTINATION6, 16);
  assert_memory_equal(ip.destination, SOURCE6, 16);
  uint64_t sum = kdp_checksum_pseudo(answer, KDP_PROTOCOL_ICMPV6, (uint32_t)size - 40);
  assert_int_equal(kdp_checksum_fold(kdp_checksum_add(sum, answer + 40, size - 40)), 0xffff);
  assert_int_equal(size, 48 + quote);
  assert_memory_equal(answer + 48, quoted, quote);
}

static void ipv4_host_unreachable_quotes_at_most_548_bytes(void **state) {
  (void)state;
  static const size_t sizes[] = {20, 28, 60, 547, 548, 549, 1420, 65535};
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
    offender *o = ipv4(sizes[i], KDP_PROTOCOL_UDP);
    uint8_t quoted[548], answer[KDP_ICMP_MAX_SIZE];
    size_t quote = sizes[i] < 548 ? sizes[i] : 548;
    memcpy(quoted, o->bytes, quote);
    size_t size = answer_to(o, KDP_ICMP_HOST_UNREACHABLE, 1400, answer);
    check_ipv4(answer, size, quoted, quote);
    assert_int_equal(answer[20], 3);
    assert_int_equal(answer[21], 1);
    assert_int_equal(kdp_load_be32(answer + 24), 0);
  }
}

static void ipv4_fragmentation_needed_names_the_mtu(void **state) {
  (void)state;
  offender *o = ipv4(1500, KDP_PROTOCOL_TCP);
  uint8_t quoted[548], answer[KDP_ICMP_MAX_SIZE];
  memcpy(quoted, o->bytes, 548);
  size_t size = answer_to(o, KDP_ICMP_TOO_BIG, 1380, answer);
  check_ipv4(answer, size, quoted, 548);
  assert_int_equal(answer[20], 3);
  assert_int_equal(answer[21], 4);
  assert_int_equal(kdp_load_be32(answer + 24), 1380);
}

static void ipv6_address_unreachable_stays_within_1280(void **state) {
  (void)state;
  static const size_t sizes[] = {40, 48, 100, 1231, 1232, 1233, 1420, 65535};
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
    offender *o = ipv6(sizes[i], KDP_PROTOCOL_UDP);
    uint8_t quoted[1232], answer[KDP_ICMP_MAX_SIZE];
    size_t quote = sizes[i] < 1232 ? sizes[i] : 1232;
    memcpy(quoted, o->bytes, quote);
    size_t size = answer_to(o, KDP_ICMP_HOST_UNREACHABLE, 1400, answer);
    check_ipv6(answer, size, quoted, quote);
    assert_int_equal(answer[40], 1);
    assert_int_equal(answer[41], 3);
    assert_int_equal(kdp_load_be32(answer + 44), 0);
  }
}

static void ipv6_packet_too_big_never_names_less_than_1280(void **state) {
  (void)state;
  static const uint16_t mtus[][2] = {{0, 1280}, {1000, 1280}, {1279, 1280}, {1280, 1280}, {1281, 1281}, {65535, 65535}};
  for (size_t i = 0; i < sizeof mtus / sizeof *mtus; i++) {
    offender *o = ipv6(1500, KDP_PROTOCOL_TCP);
    uint8_t quoted[1232], answer[KDP_ICMP_MAX_SIZE];
    memcpy(quoted, o->bytes, 1232);
    size_t size = answer_to(o, KDP_ICMP_TOO_BIG, mtus[i][0], answer);
    check_ipv6(answer, size, quoted, 1232);
    assert_int_equal(answer[40], 2);
    assert_int_equal(answer[41], 0);
    assert_int_equal(kdp_load_be32(answer + 44), mtus[i][1]);
  }
}

static void padding_behind_the_packet_is_not_quoted(void **state) {
  (void)state;
  offender *o = ipv4(45, KDP_PROTOCOL_UDP);
  o->size = 48;
  uint8_t answer[KDP_ICMP_MAX_SIZE];
  assert_int_equal(answer_to(o, KDP_ICMP_HOST_UNREACHABLE, 0, answer), 28 + 45);
}

static void no_icmp_error_is_answered_but_echo_is(void **state) {
  (void)state;
  for (unsigned type = 0; type < 256; type++) {
    bool error = type == 3 || type == 4 || type == 5 || type == 11 || type == 12;
    offender *o = ipv4(60, KDP_PROTOCOL_ICMP);
    o->bytes[20] = (uint8_t)type;
    assert_int_equal(is_answered(o), !error);
    o = ipv6(100, KDP_PROTOCOL_ICMPV6);
    o->bytes[40] = (uint8_t)type;
    assert_int_equal(is_answered(o), !(type < 128 || type == 137));
    o = ipv6(100, 60); /* the same behind destination options */
    o->bytes[40] = KDP_PROTOCOL_ICMPV6, o->bytes[41] = 0, o->bytes[48] = (uint8_t)type;
    assert_int_equal(is_answered(o), !(type < 128 || type == 137));
  }
  assert_false(is_answered(ipv4(20, KDP_PROTOCOL_ICMP))); /* its type cannot be seen */
  assert_false(is_answered(ipv6(40, KDP_PROTOCOL_ICMPV6)));
  assert_true(is_answered(ipv4(60, KDP_PROTOCOL_ICMPV6))); /* the other family's protocol number says nothing */
}

static void only_the_first_fragment_is_answered(void **state) {
  (void)state;
  static const struct {
    uint16_t ipv4, ipv6;
    bool answered;
  } cases[] = {{0x2000, 0x0001, true}, {0x0001, 0x0008, false}, {0x2001, 0x0009, false}, {0x4000, 0x0000, true}};
  for (size_t i = 0; i < 4; i++) {
    offender *o = ipv4(100, KDP_PROTOCOL_UDP);
    kdp_store_be16(o->bytes + 6, cases[i].ipv4);
    assert_int_equal(is_answered(o), cases[i].answered);
    o = ipv6(100, 44);
    o->bytes[40] = KDP_PROTOCOL_UDP;
    kdp_store_be16(o->bytes + 42, cases[i].ipv6);
    assert_int_equal(is_answered(o), cases[i].answered);
  }
}

static void addresses_that_name_no_single_host_are_not_answered(void **state) {
  (void)state;
  static const struct {
    uint8_t address[4];
    bool answered;
  } ipv4_cases[] = {{{0, 0, 0, 0}, false},         {{0, 1, 2, 3}, false},   {{127, 0, 0, 1}, false},
                    {{224, 0, 0, 1}, false},       {{239, 1, 1, 1}, false}, {{240, 0, 0, 1}, false},
                    {{255, 255, 255, 255}, false}, {{223, 1, 1, 1}, true},  {{1, 0, 0, 1}, true}};
  static const struct {
    uint8_t address[16];
    bool answered;
  } ipv6_cases[] = {{{0}, false},       {{[15] = 1}, false},          {{0xff, 2, [15] = 1}, false},  {{0xff}, false},
                    {{[15] = 2}, true}, {{[14] = 1, [15] = 1}, true}, {{0xfe, 0x80, [15] = 1}, true}};
  for (unsigned at = 0; at < 2; at++) {
    for (size_t i = 0; i < sizeof ipv4_cases / sizeof *ipv4_cases; i++) {
      offender *o = ipv4(100, KDP_PROTOCOL_UDP);
      memcpy(o->bytes + 12 + 4 * at, ipv4_cases[i].address, 4);
      assert_int_equal(is_answered(o), ipv4_cases[i].answered);
    }
    for (size_t i = 0; i < sizeof ipv6_cases / sizeof *ipv6_cases; i++) {
      offender *o = ipv6(100, KDP_PROTOCOL_UDP);
      memcpy(o->bytes + 8 + 16 * at, ipv6_cases[i].address, 16);
      assert_int_equal(is_answered(o), ipv6_cases[i].answered);
    }
  }
}

static void an_answer_is_never_answered(void **state) {
  (void)state;
  uint8_t answer[KDP_ICMP_MAX_SIZE], second[KDP_ICMP_MAX_SIZE];
  size_t size = answer_to(ipv4(100, KDP_PROTOCOL_UDP), KDP_ICMP_TOO_BIG, 1400, answer);
  assert_int_equal(kdp_icmp_write_error(KDP_ICMP_TOO_BIG, 1400, answer, size, second), 0);
  size = answer_to(ipv6(100, KDP_PROTOCOL_UDP), KDP_ICMP_TOO_BIG, 1400, answer);
  assert_int_equal(kdp_icmp_write_error(KDP_ICMP_TOO_BIG, 1400, answer, size, second), 0);
}

static void random_bytes_are_survived(void **state) {
  (void)state;
  rng r = {792};
  for (int round = 0; round < 5000; round++) {
    offender *o = calloc(1, sizeof *o);
    o->size = rng_below(&r, 1600);
    rng_fill(&r, o->bytes, o->size);
    o->bytes[0] = round % 2 ? 0x45 : 0x60;
    kdp_store_be16(o->bytes + (round % 2 ? 2 : 4), (uint16_t)(o->size - (round % 2 ? 0 : 40)));
    if (rng_one_in(&r, 2)) o->bytes[round % 2 ? 9 : 6] = (uint8_t[]){1, 58, 0, 44}[rng_below(&r, 4)];
    (void)is_answered(o);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(ipv4_host_unreachable_quotes_at_most_548_bytes),
      cmocka_unit_test(ipv4_fragmentation_needed_names_the_mtu),
      cmocka_unit_test(ipv6_address_unreachable_stays_within_1280),
      cmocka_unit_test(ipv6_packet_too_big_never_names_less_than_1280),
      cmocka_unit_test(padding_behind_the_packet_is_not_quoted),
      cmocka_unit_test(no_icmp_error_is_answered_but_echo_is),
      cmocka_unit_test(only_the_first_fragment_is_answered),
      cmocka_unit_test(addresses_that_name_no_single_host_are_not_answered),
      cmocka_unit_test(an_answer_is_never_answered),
      cmocka_unit_test(random_bytes_are_survived),
  };
  return cmocka_run_group_tests_name("icmp", tests, NULL, NULL);
}
