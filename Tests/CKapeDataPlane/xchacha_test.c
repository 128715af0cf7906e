/* XChaCha20-Poly1305, single. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "core/wipe.h"
#include "support/guard.h"
#include "support/reference_aead.h"
#include "support/rng.h"

/* draft-irtf-cfrg-xchacha-03, appendix A.3.1. */
static const char text[] = "Ladies and Gentlemen of the class of '99: If I could offer you only one tip for the "
                           "future, sunscreen would be it.";
static const uint8_t aad[12] = {0x50, 0x51, 0x52, 0x53, 0xc0, 0xc1, 0xc2, 0xc3, 0xc4, 0xc5, 0xc6, 0xc7};
static const uint8_t sealed[] = {
    0xbd, 0x6d, 0x17, 0x9d, 0x3e, 0x83, 0xd4, 0x3b, 0x95, 0x76, 0x57, 0x94, 0x93, 0xc0, 0xe9, 0x39, 0x57, 0x2a, 0x17,
    0x00, 0x25, 0x2b, 0xfa, 0xcc, 0xbe, 0xd2, 0x90, 0x2c, 0x21, 0x39, 0x6c, 0xbb, 0x73, 0x1c, 0x7f, 0x1b, 0x0b, 0x4a,
    0xa6, 0x44, 0x0b, 0xf3, 0xa8, 0x2f, 0x4e, 0xda, 0x7e, 0x39, 0xae, 0x64, 0xc6, 0x70, 0x8c, 0x54, 0xc2, 0x16, 0xcb,
    0x96, 0xb7, 0x2e, 0x12, 0x13, 0xb4, 0x52, 0x2f, 0x8c, 0x9b, 0xa4, 0x0d, 0xb5, 0xd9, 0x45, 0xb1, 0x1b, 0x69, 0xb9,
    0x82, 0xc1, 0xbb, 0x9e, 0x3f, 0x3f, 0xac, 0x2b, 0xc3, 0x69, 0x48, 0x8f, 0x76, 0xb2, 0x38, 0x35, 0x65, 0xd3, 0xff,
    0xf9, 0x21, 0xf9, 0x66, 0x4c, 0x97, 0x63, 0x7d, 0xa9, 0x76, 0x88, 0x12, 0xf6, 0x15, 0xc6, 0x8b, 0x13, 0xb5, 0x2e,
    0xc0, 0x87, 0x59, 0x24, 0xc1, 0xc7, 0x98, 0x79, 0x47, 0xde, 0xaf, 0xd8, 0x78, 0x0a, 0xcf, 0x49};
enum { TEXT_SIZE = sizeof text - 1, SEALED_SIZE = sizeof sealed };

static void key_and_nonce(uint8_t key[32], uint8_t nonce[24]) {
  for (int i = 0; i < 32; i++)
    key[i] = (uint8_t)(0x80 + i);
  for (int i = 0; i < 24; i++)
    nonce[i] = (uint8_t)(0x40 + i);
}

static void the_draft_s_vector_is_met_both_ways_and_in_place(void **state) {
  (void)state;
  uint8_t key[32], nonce[24], out[SEALED_SIZE], back[SEALED_SIZE];
  key_and_nonce(key, nonce);
  assert_int_equal(SEALED_SIZE, TEXT_SIZE + 16);
  kdp_xchacha_seal(key, nonce, aad, sizeof aad, (const uint8_t *)text, TEXT_SIZE, out);
  assert_memory_equal(out, sealed, SEALED_SIZE);
  reference_xchacha_seal(key, nonce, aad, sizeof aad, (const uint8_t *)text, TEXT_SIZE, back);
  assert_memory_equal(back, sealed, SEALED_SIZE);
  assert_int_equal(kdp_xchacha_open(key, nonce, aad, sizeof aad, sealed, SEALED_SIZE, back), KDP_OK);
  assert_memory_equal(back, text, TEXT_SIZE);
  assert_int_equal(kdp_xchacha_open(key, nonce, aad, sizeof aad, out, SEALED_SIZE, out), KDP_OK);
  assert_memory_equal(out, text, TEXT_SIZE);
  kdp_xchacha_seal(key, nonce, aad, sizeof aad, out, TEXT_SIZE, out);
  assert_memory_equal(out, sealed, SEALED_SIZE);
}

static void any_changed_bit_is_refused_and_leaves_no_text(void **state) {
  (void)state;
  for (uint32_t bit = 0; bit < (SEALED_SIZE + 12 + 24 + 32) * 8; bit++) {
    uint8_t key[32], nonce[24], changed_aad[12], changed[SEALED_SIZE], out[TEXT_SIZE];
    key_and_nonce(key, nonce);
    memcpy(changed_aad, aad, sizeof aad);
    memcpy(changed, sealed, SEALED_SIZE);
    memset(out, 0xa5, sizeof out);
    uint32_t byte = bit / 8;
    uint8_t flip = (uint8_t)(1 << bit % 8);
    if (byte < SEALED_SIZE)
      changed[byte] ^= flip;
    else if ((byte -= SEALED_SIZE) < 12)
      changed_aad[byte] ^= flip;
    else if ((byte -= 12) < 24)
      nonce[byte] ^= flip;
    else
      key[byte - 24] ^= flip;
    assert_int_equal(kdp_xchacha_open(key, nonce, changed_aad, sizeof changed_aad, changed, SEALED_SIZE, out),
                     KDP_AUTHENTICATION_FAILED);
    assert_true(kdp_is_zero(out, sizeof out));
  }
}

static void anything_shorter_than_a_tag_is_too_short(void **state) {
  (void)state;
  uint8_t key[32] = {0}, nonce[24] = {0};
  for (size_t size = 0; size < 16; size++) {
    guard bytes = guard_make(size);
    assert_int_equal(kdp_xchacha_open(key, nonce, NULL, 0, bytes.bytes, size, NULL), KDP_TOO_SHORT);
    guard_free(&bytes);
  }
}

static void every_size_agrees_with_the_reference(void **state) {
  (void)state;
  rng r = {3};
  for (uint32_t size = 0; size < 200; size++) {
    uint8_t key[32], nonce[24];
    rng_fill(&r, key, sizeof key);
    rng_fill(&r, nonce, sizeof nonce);
    guard plain = guard_make(size), extra = guard_make(size % 40), out = guard_make(size + 16);
    guard want = guard_make(size + 16), back = guard_make(size);
    rng_fill(&r, plain.bytes, size);
    rng_fill(&r, extra.bytes, extra.size);
    reference_xchacha_seal(key, nonce, extra.bytes, extra.size, plain.bytes, size, want.bytes);
    kdp_xchacha_seal(key, nonce, extra.bytes, extra.size, plain.bytes, size, out.bytes);
    assert_memory_equal(out.bytes, want.bytes, size + 16);
    assert_int_equal(kdp_xchacha_open(key, nonce, extra.bytes, extra.size, out.bytes, size + 16, back.bytes), KDP_OK);
    assert_memory_equal(back.bytes, plain.bytes, size);
    guard *all[] = {&plain, &extra, &out, &want, &back};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
      guard_free(all[i]);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_draft_s_vector_is_met_both_ways_and_in_place),
      cmocka_unit_test(any_changed_bit_is_refused_and_leaves_no_text),
      cmocka_unit_test(anything_shorter_than_a_tag_is_too_short),
      cmocka_unit_test(every_size_agrees_with_the_reference),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
