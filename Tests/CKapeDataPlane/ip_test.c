/* The IP classifier, the ECN field and its rules. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/bytes.h"
#include "net/checksum.h"
#include "net/ip.h"
#include "support/guard.h"
#include "support/rng.h"

enum { NOT_ECT = 0, ECT1 = 1, ECT0 = 2, CE = 3 };

static void ipv4(uint8_t *p, unsigned header_size, uint16_t total, uint8_t protocol, uint16_t fragment) {
  memset(p, 0, header_size);
  p[0] = (uint8_t)(0x40 | header_size / 4);
  kdp_store_be16(p + 2, total);
  kdp_store_be16(p + 6, fragment);
  p[8] = 64;
  p[9] = protocol;
  memcpy(p + 12, "\x0a\x4d\x00\x02\xc6\x33\x64\x07", 8);
  uint16_t sum = (uint16_t)~kdp_checksum_fold(kdp_checksum_add(0, p, header_size));
  memcpy(p + 10, &sum, 2);
}

static void ipv6(uint8_t *p, uint16_t payload, uint8_t next) {
  memset(p, 0, 40);
  p[0] = 0x60;
  kdp_store_be16(p + 4, payload);
  p[6] = next;
  p[7] = 64;
}

/* Reads a copy that ends at a trap. Pointers in `ip` are made relative to it. */
static kdp_status read_guarded(const uint8_t *bytes, size_t size, kdp_ip *ip, kdp_ip_transport *transport) {
  guard copy = guard_copy(bytes, size);
  kdp_status status = kdp_ip_read(copy.bytes, size, ip);
  if (status == KDP_OK) {
    assert_true(ip->size <= size && ip->size >= ip->header_size);
    kdp_ip_transport found = kdp_ip_find_transport(copy.bytes, ip);
    assert_true(found.offset <= ip->size);
    assert_int_equal(found.fragment, ip->fragment);
    assert_ptr_equal(ip->source, copy.bytes + (ip->version == 4 ? 12 : 8));
    assert_ptr_equal(ip->destination, copy.bytes + (ip->version == 4 ? 16 : 24));
    if (transport) *transport = found;
  }
  guard_free(&copy);
  return status;
}

static void given_an_ipv4_packet_its_fields_are_found(void **state) {
  (void)state;
  uint8_t p[64] = {0};
  kdp_ip ip;
  ipv4(p, 20, 48, KDP_PROTOCOL_UDP, 0x4000);
  p[1] = 0xb8 | ECT0;
  assert_int_equal(read_guarded(p, 64, &ip, NULL), KDP_OK); /* 16 bytes of padding behind it */
  assert_int_equal(ip.version, 4);
  assert_int_equal(ip.protocol, KDP_PROTOCOL_UDP);
  assert_int_equal(ip.ecn, ECT0);
  assert_true(ip.plain && ip.df && !ip.fragment);
  assert_int_equal(ip.header_size, 20);
  assert_int_equal(ip.size, 48);
}

static void given_wrong_ipv4_lengths_it_is_refused(void **state) {
  (void)state;
  uint8_t p[64] = {0};
  kdp_ip ip;
  assert_int_equal(read_guarded(p, 0, &ip, NULL), KDP_TOO_SHORT);
  ipv4(p, 20, 20, 0, 0);
  assert_int_equal(read_guarded(p, 1, &ip, NULL), KDP_TOO_SHORT);
  assert_int_equal(read_guarded(p, 19, &ip, NULL), KDP_TOO_SHORT);
  assert_int_equal(read_guarded(p, 20, &ip, NULL), KDP_OK);
  static const uint16_t wrong_totals[] = {0, 1, 19, 65, 0xffff};
  for (size_t i = 0; i < 5; i++) {
    ipv4(p, 20, wrong_totals[i], 17, 0);
    assert_int_equal(read_guarded(p, 64, &ip, NULL), KDP_NOT_IP);
  }
  for (uint8_t words = 0; words < 5; words++) {
    ipv4(p, 20, 40, 17, 0);
    p[0] = 0x40 | words;
    assert_int_equal(read_guarded(p, 64, &ip, NULL), KDP_NOT_IP);
  }
  ipv4(p, 20, 40, 17, 0);
  p[0] = 0x4f; /* 60 bytes of header in a packet of 40 */
  assert_int_equal(read_guarded(p, 64, &ip, NULL), KDP_NOT_IP);
}

static void given_another_version_it_is_not_ip(void **state) {
  (void)state;
  uint8_t p[64] = {0};
  kdp_ip ip;
  for (unsigned version = 0; version < 16; version++) {
    p[0] = (uint8_t)(version << 4 | 5);
    p[3] = 40, p[6] = 59;
    kdp_status wanted = version == 4 || version == 6 ? KDP_OK : KDP_NOT_IP;
    assert_int_equal(read_guarded(p, 64, &ip, NULL), wanted);
  }
}

static void given_ipv4_options_or_fragments_it_is_not_plain(void **state) {
  (void)state;
  static const struct {
    unsigned header_size;
    uint16_t field;
    bool plain, fragment, found;
  } cases[] = {
      {20, 0x0000, true, false, true},  {20, 0x4000, true, false, true}, {24, 0x4000, false, false, true},
      {60, 0x0000, false, false, true}, {20, 0x2000, false, true, true}, {20, 0x0001, false, true, false},
      {20, 0x3fff, false, true, false}, {20, 0x8000, true, false, true},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    uint8_t p[80] = {0};
    kdp_ip ip;
    kdp_ip_transport transport;
    ipv4(p, cases[i].header_size, 80, KDP_PROTOCOL_UDP, cases[i].field);
    assert_int_equal(read_guarded(p, 80, &ip, &transport), KDP_OK);
    assert_int_equal(ip.plain, cases[i].plain);
    assert_int_equal(ip.fragment, cases[i].fragment);
    assert_int_equal(ip.df, cases[i].field == 0x4000);
    assert_int_equal(transport.found, cases[i].found);
    if (transport.found) assert_int_equal(transport.offset, cases[i].header_size);
  }
}

static void given_an_ipv6_packet_its_fields_are_found(void **state) {
  (void)state;
  uint8_t p[80];
  kdp_ip ip;
  kdp_ip_transport transport;
  ipv6(p, 24, KDP_PROTOCOL_TCP);
  p[1] = ECT1 << 4 | 0x05;
  assert_int_equal(read_guarded(p, 80, &ip, &transport), KDP_OK);
  assert_int_equal(ip.version, 6);
  assert_int_equal(ip.protocol, KDP_PROTOCOL_TCP);
  assert_int_equal(ip.ecn, ECT1);
  assert_true(ip.plain && ip.df && !ip.fragment && transport.found);
  assert_int_equal(ip.header_size, 40);
  assert_int_equal(ip.size, 64);
  assert_int_equal(transport.offset, 40);
}

static void given_wrong_ipv6_lengths_it_is_refused(void **state) {
  (void)state;
  uint8_t p[80] = {0};
  kdp_ip ip;
  ipv6(p, 0, 59);
  assert_int_equal(read_guarded(p, 39, &ip, NULL), KDP_TOO_SHORT);
  assert_int_equal(read_guarded(p, 40, &ip, NULL), KDP_OK);
  assert_int_equal(ip.size, 40);
  ipv6(p, 41, 17);
  assert_int_equal(read_guarded(p, 80, &ip, NULL), KDP_NOT_IP);
  ipv6(p, 0xffff, 17);
  assert_int_equal(read_guarded(p, 80, &ip, NULL), KDP_NOT_IP);
}

static void given_a_jumbogram_it_is_refused(void **state) {
  (void)state;
  uint8_t p[80] = {0};
  kdp_ip ip;
  ipv6(p, 0, 0);
  memcpy(p + 40, "\x11\x00\xc2\x04\x00\x01\x00\x00", 8);
  assert_int_equal(read_guarded(p, 80, &ip, NULL), KDP_NOT_IP);
  uint8_t *large = calloc(1, 65535 + 40);
  ipv6(large, 65535, 17);
  assert_int_equal(kdp_ip_read(large, 65535 + 40, &ip), KDP_NOT_IP);
  ipv6(large, 65535 - 40, 17);
  assert_int_equal(kdp_ip_read(large, 65535 + 40, &ip), KDP_OK);
  assert_int_equal(ip.size, 65535);
  free(large);
}

static void given_ipv6_extension_headers_it_is_not_plain_and_the_transport_is_behind_them(void **state) {
  (void)state;
  static const uint8_t kinds[] = {0, 43, 60, 135, 139, 140, 253, 254};
  for (size_t i = 0; i < sizeof kinds; i++) {
    uint8_t p[120] = {0};
    kdp_ip ip;
    kdp_ip_transport transport;
    ipv6(p, 80, kinds[i]);
    p[40] = 60, p[41] = 1; /* 16 bytes, then 8 of destination options */
    p[56] = KDP_PROTOCOL_TCP, p[57] = 0;
    assert_int_equal(read_guarded(p, 120, &ip, &transport), KDP_OK);
    assert_true(!ip.plain && !ip.fragment && transport.found);
    assert_int_equal(ip.protocol, kinds[i]);
    assert_int_equal(transport.protocol, KDP_PROTOCOL_TCP);
    assert_int_equal(transport.offset, 64);
  }
  uint8_t p[120] = {0};
  kdp_ip ip;
  kdp_ip_transport transport;
  ipv6(p, 80, 51); /* the authentication header counts in words of four */
  p[40] = KDP_PROTOCOL_UDP, p[41] = 4;
  assert_int_equal(read_guarded(p, 120, &ip, &transport), KDP_OK);
  assert_true(!ip.plain && transport.found);
  assert_int_equal(transport.offset, 64);
  ipv6(p, 80, 50);
  assert_int_equal(read_guarded(p, 120, &ip, &transport), KDP_OK);
  assert_false(ip.plain);
}

static void given_ipv6_extension_headers_cut_short_nothing_is_read_past_the_end(void **state) {
  (void)state;
  uint8_t p[200];
  memset(p, 0xff, sizeof p);
  for (uint16_t payload = 0; payload < 64; payload++) {
    static const uint8_t kinds[] = {0, 43, 44, 51, 60, 135};
    for (size_t i = 0; i < sizeof kinds; i++) {
      if (payload == 0 && kinds[i] == 0) continue;
      ipv6(p, payload, kinds[i]);
      memset(p + 40, 0xff, 64);
      p[40] = 60;
      kdp_ip ip;
      kdp_ip_transport transport;
      assert_int_equal(read_guarded(p, 40u + payload, &ip, &transport), KDP_OK);
      assert_false(ip.plain || transport.found);
    }
  }
}

static void given_an_ipv6_fragment_header_only_the_atomic_one_is_no_fragment(void **state) {
  (void)state;
  static const struct {
    uint16_t field;
    bool fragment, found;
  } cases[] = {{0x0000, false, true}, {0x0001, true, true},  {0x0008, true, false},
               {0x0009, true, false}, {0xfff8, true, false}, {0x0006, false, true} /* reserved bits */};
  for (unsigned before = 0; before < 2; before++)
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
      uint8_t p[80] = {0};
      ipv6(p, 40, before ? 0 : 44);
      uint8_t *header = p + 40;
      if (before) header[0] = 44, header += 8;
      header[0] = KDP_PROTOCOL_UDP;
      header[1] = 0xff; /* reserved, not a length */
      kdp_store_be16(header + 2, cases[i].field);
      kdp_ip ip;
      kdp_ip_transport transport;
      assert_int_equal(read_guarded(p, 80, &ip, &transport), KDP_OK);
      assert_false(ip.plain);
      assert_int_equal(ip.fragment, cases[i].fragment);
      assert_int_equal(transport.found, cases[i].found);
      if (transport.found) assert_int_equal(transport.offset, before ? 56 : 48);
      if (transport.found) assert_int_equal(transport.protocol, KDP_PROTOCOL_UDP);
    }
}

static void given_random_bytes_nothing_is_read_past_the_end(void **state) {
  (void)state;
  rng r = {6};
  for (int round = 0; round < 20000; round++) {
    uint8_t p[160];
    size_t size = rng_below(&r, sizeof p);
    rng_fill(&r, p, sizeof p);
    if (round % 2) {
      ipv6(p, (uint16_t)(size < 40 ? 0 : size - 40), (uint8_t[]){0, 43, 44, 51, 60}[rng_below(&r, 5)]);
      for (size_t at = 40; at + 1 < sizeof p; at += 8)
        p[at] = (uint8_t[]){0, 43, 44, 51, 60, 6}[rng_below(&r, 6)], p[at + 1] &= 1;
    }
    kdp_ip ip;
    (void)read_guarded(p, size, &ip, NULL);
  }
}

static void rfc_6040_egress_of_all_sixteen_combinations(void **state) {
  (void)state;
  static const struct {
    uint8_t inner, outer;
    int result;
  } cases[] = {
      {NOT_ECT, NOT_ECT, NOT_ECT}, {NOT_ECT, ECT0, NOT_ECT}, {NOT_ECT, ECT1, NOT_ECT}, {NOT_ECT, CE, -1},
      {ECT0, NOT_ECT, ECT0},       {ECT0, ECT0, ECT0},       {ECT0, ECT1, ECT1},       {ECT0, CE, CE},
      {ECT1, NOT_ECT, ECT1},       {ECT1, ECT0, ECT1},       {ECT1, ECT1, ECT1},       {ECT1, CE, CE},
      {CE, NOT_ECT, CE},           {CE, ECT0, CE},           {CE, ECT1, CE},           {CE, CE, CE},
  };
  for (size_t i = 0; i < 16; i++)
    assert_int_equal(kdp_ecn_decapsulate(cases[i].inner, cases[i].outer), cases[i].result);
  for (uint8_t ecn = 0; ecn < 4; ecn++)
    assert_int_equal(kdp_ecn_encapsulate(ecn), ecn);
}

static void setting_ecn_keeps_the_ipv4_checksum_and_all_other_bits(void **state) {
  (void)state;
  rng r = {6040};
  for (int round = 0; round < 20000; round++) {
    uint8_t p[40], before[40];
    rng_fill(&r, p, 40);
    p[0] = 0x45;
    memset(p + 10, 0, 2);
    uint16_t sum = (uint16_t)~kdp_checksum_fold(kdp_checksum_add(0, p, 20));
    memcpy(p + 10, &sum, 2);
    memcpy(before, p, 40);
    uint8_t ecn = (uint8_t)rng_below(&r, 4);
    kdp_ip_set_ecn(p, ecn);
    assert_int_equal(kdp_ip_ecn(p), ecn);
    memcpy(&sum, p + 10, 2);
    memset(p + 10, 0, 2);
    assert_int_equal(sum, (uint16_t)~kdp_checksum_fold(kdp_checksum_add(0, p, 20)));
    assert_int_equal(p[1] & 0xfc, before[1] & 0xfc);
    memcpy(p + 10, before + 10, 2);
    p[1] = before[1];
    assert_memory_equal(p, before, 40);

    p[0] = before[0] = 0x60 | (p[0] & 15);
    kdp_ip_set_ecn(p, ecn);
    assert_int_equal(kdp_ip_ecn(p), ecn);
    assert_int_equal(p[1] & 0xcf, before[1] & 0xcf);
    p[1] = before[1];
    assert_memory_equal(p, before, 40);
  }
}

static void a_wrong_ipv4_checksum_stays_wrong_when_ecn_changes(void **state) {
  (void)state;
  uint8_t p[20];
  ipv4(p, 20, 20, 17, 0);
  p[10] ^= 1;
  kdp_ip_set_ecn(p, CE);
  assert_int_not_equal(kdp_checksum_fold(kdp_checksum_add(0, p, 20)), 0xffff);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(given_an_ipv4_packet_its_fields_are_found),
      cmocka_unit_test(given_wrong_ipv4_lengths_it_is_refused),
      cmocka_unit_test(given_another_version_it_is_not_ip),
      cmocka_unit_test(given_ipv4_options_or_fragments_it_is_not_plain),
      cmocka_unit_test(given_an_ipv6_packet_its_fields_are_found),
      cmocka_unit_test(given_wrong_ipv6_lengths_it_is_refused),
      cmocka_unit_test(given_a_jumbogram_it_is_refused),
      cmocka_unit_test(given_ipv6_extension_headers_it_is_not_plain_and_the_transport_is_behind_them),
      cmocka_unit_test(given_ipv6_extension_headers_cut_short_nothing_is_read_past_the_end),
      cmocka_unit_test(given_an_ipv6_fragment_header_only_the_atomic_one_is_no_fragment),
      cmocka_unit_test(given_random_bytes_nothing_is_read_past_the_end),
      cmocka_unit_test(rfc_6040_egress_of_all_sixteen_combinations),
      cmocka_unit_test(setting_ecn_keeps_the_ipv4_checksum_and_all_other_bits),
      cmocka_unit_test(a_wrong_ipv4_checksum_stays_wrong_when_ecn_changes),
  };
  return cmocka_run_group_tests_name("ip", tests, NULL, NULL);
}
