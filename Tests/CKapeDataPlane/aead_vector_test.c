/* Known answers, against every provider and the tests' own reference: in place and not, as one batch with all others,
   and each refused when anything about it is changed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "core/wipe.h"
#include "support/aead_vectors.h"
#include "support/providers.h"
#include "support/reference_aead.h"

enum { LONGEST = 512 };

typedef struct vector {
  uint8_t key[32], nonce[12], aad[LONGEST], text[LONGEST], sealed[LONGEST], tag[16];
  uint32_t aad_size, size;
} vector;

static uint32_t from_hex(const char *hex, uint8_t *bytes, size_t capacity) {
  size_t size = strlen(hex) / 2;
  assert_true(size <= capacity);
  for (size_t i = 0; i < size; i++) {
    unsigned value;
    assert_int_equal(sscanf(hex + 2 * i, "%2x", &value), 1);
    bytes[i] = (uint8_t)value;
  }
  return (uint32_t)size;
}

static vector vector_at(size_t index) {
  const aead_vector *from = &aead_vectors[index];
  vector v = {.size = 0};
  assert_int_equal(from_hex(from->key, v.key, sizeof v.key), reference_key_size(from->algorithm));
  assert_int_equal(from_hex(from->nonce, v.nonce, sizeof v.nonce), sizeof v.nonce);
  v.aad_size = from_hex(from->aad, v.aad, sizeof v.aad);
  v.size = from_hex(from->text, v.text, sizeof v.text);
  assert_int_equal(from_hex(from->sealed, v.sealed, sizeof v.sealed), v.size);
  assert_int_equal(from_hex(from->tag, v.tag, sizeof v.tag), sizeof v.tag);
  return v;
}

static void the_reference_gives_the_known_answers(void **state) {
  (void)state;
  for (size_t i = 0; i < aead_vector_count; i++) {
    vector v = vector_at(i);
    uint8_t out[LONGEST], tag[16];
    reference_seal(aead_vectors[i].algorithm, v.key, v.nonce, v.aad, v.aad_size, v.text, v.size, out, tag);
    if (memcmp(out, v.sealed, v.size) != 0 || memcmp(tag, v.tag, 16) != 0) fail_msg("%s", aead_vectors[i].name);
  }
}

static void every_provider_gives_the_known_answers(void **state) {
  const providers *all = *state;
  _Alignas(64) uint8_t expanded[PROVIDERS_EXPANDED_SIZE];
  for (int p = 0; p < all->count; p++)
    for (size_t i = 0; i < aead_vector_count; i++) {
      vector v = vector_at(i);
      kdp_aead_worker *worker = all->worker[p];
      const kdp_aead *aead = kdp_aead_of(worker, aead_vectors[i].algorithm);
      uint8_t out[LONGEST], back[LONGEST], tag[16];
      kdp_aead_job job = {.key = providers_key(worker, aead->algorithm, v.key, expanded),
                          .source = v.text,
                          .destination = out,
                          .tag = tag,
                          .aad = v.aad,
                          .size = v.size,
                          .aad_size = v.aad_size};
      memcpy(job.nonce, v.nonce, sizeof job.nonce);
      aead->seal(worker, &job, 1);
      if (job.status != KDP_OK || memcmp(out, v.sealed, v.size) != 0 || memcmp(tag, v.tag, 16) != 0)
        fail_msg("seal: %s: %s", kdp_aead_worker_version(worker), aead_vectors[i].name);
      job.source = v.sealed;
      job.destination = back;
      job.tag = v.tag;
      if (aead->open(worker, &job, 1) != 1 || job.status != KDP_OK || memcmp(back, v.text, v.size) != 0)
        fail_msg("open: %s: %s", kdp_aead_worker_version(worker), aead_vectors[i].name);
      job.source = job.destination = v.sealed;
      if (aead->open(worker, &job, 1) != 1 || memcmp(v.sealed, v.text, v.size) != 0)
        fail_msg("open in place: %s: %s", kdp_aead_worker_version(worker), aead_vectors[i].name);
    }
}

/* Opens a copy of the vector, changed by `flip` at bit `bit`, and wants it refused and wiped. */
typedef enum part { PART_TAG, PART_SEALED, PART_AAD, PART_NONCE, PART_KEY, PARTS } part;

static void refuse(kdp_aead_worker *worker, size_t index, part changed, uint32_t bit) {
  vector v = vector_at(index);
  uint8_t *bytes[PARTS] = {v.tag, v.sealed, v.aad, v.nonce, v.key};
  bytes[changed][bit / 8] ^= (uint8_t)(1 << bit % 8);
  _Alignas(64) uint8_t expanded[PROVIDERS_EXPANDED_SIZE];
  const kdp_aead *aead = kdp_aead_of(worker, aead_vectors[index].algorithm);
  uint8_t out[LONGEST];
  memset(out, 0xa5, sizeof out);
  kdp_aead_job job = {.key = providers_key(worker, aead->algorithm, v.key, expanded),
                      .source = v.sealed,
                      .destination = out,
                      .tag = v.tag,
                      .aad = v.aad,
                      .size = v.size,
                      .aad_size = v.aad_size};
  memcpy(job.nonce, v.nonce, sizeof job.nonce);
  uint32_t opened = aead->open(worker, &job, 1);
  if (opened != 0 || job.status != KDP_AUTHENTICATION_FAILED || !kdp_is_zero(out, v.size))
    fail_msg("%s opened %s, part %d, bit %u changed", kdp_aead_worker_version(worker), aead_vectors[index].name,
             changed, bit);
  assert_int_equal(out[v.size], 0xa5);
}

static void any_changed_bit_is_refused_and_what_was_opened_wiped(void **state) {
  const providers *all = *state;
  for (int p = 0; p < all->count; p++)
    for (size_t i = 0; i < aead_vector_count; i++) {
      vector v = vector_at(i);
      kdp_aead_worker *worker = all->worker[p];
      for (uint32_t bit = 0; bit < 128; bit++)
        refuse(worker, i, PART_TAG, bit);
      for (uint32_t bit = 0; bit < v.size * 8; bit += 13)
        refuse(worker, i, PART_SEALED, bit);
      for (uint32_t bit = 0; bit < v.aad_size * 8; bit += 7)
        refuse(worker, i, PART_AAD, bit);
      for (uint32_t bit = 0; bit < 96; bit++)
        refuse(worker, i, PART_NONCE, bit);
      for (uint32_t bit = 0; bit < reference_key_size(aead_vectors[i].algorithm) * 8; bit += 11)
        refuse(worker, i, PART_KEY, bit);
    }
}

/* FIPS 197 appendix C for AES, RFC 9001 appendix A.5 for ChaCha20 (its mask is five bytes long). */
static const struct {
  kdp_aead_algorithm algorithm;
  const char *key, *sample, *mask;
} masks[] = {
    {KDP_AEAD_CHACHA20_POLY1305, "25a282b9e82f06f21f488917a4fc8f1b73573685608597d0efcb076b0ab7a7a4",
     "5e5cd55c41f69080575d7999c25a5bfb", "aefefe7d03"},
    {KDP_AEAD_AES_128_GCM, "9f50449e04a0e810283a1e9933adedd2", "d1b1c98dd7689fb8ec11d242b123dc9b",
     "437b9aec36"}, /* RFC 9001 appendix A.2 */
    {KDP_AEAD_AES_128_GCM, "000102030405060708090a0b0c0d0e0f", "00112233445566778899aabbccddeeff",
     "69c4e0d86a7b0430d8cdb78070b4c55a"},
    {KDP_AEAD_AES_192_GCM, "000102030405060708090a0b0c0d0e0f1011121314151617", "00112233445566778899aabbccddeeff",
     "dda97ca4864cdfe06eaf70a0ec0d7191"},
    {KDP_AEAD_AES_256_GCM, "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f",
     "00112233445566778899aabbccddeeff", "8ea2b7ca516745bfeafc49904b496089"},
};

static void masks_are_those_of_the_standards(void **state) {
  const providers *all = *state;
  for (size_t i = 0; i < sizeof masks / sizeof masks[0]; i++) {
    uint8_t key[32], sample[16], want[16], mask[3][16], reference[16];
    from_hex(masks[i].key, key, sizeof key);
    from_hex(masks[i].sample, sample, sizeof sample);
    uint32_t size = from_hex(masks[i].mask, want, sizeof want);
    reference_mask(masks[i].algorithm, key, sample, reference);
    assert_memory_equal(reference, want, size);
    for (int p = 0; p < all->count; p++) {
      const uint8_t *const samples[3] = {sample, sample, sample};
      memset(mask, 0x5a, sizeof mask);
      kdp_aead_of(all->worker[p], masks[i].algorithm)->mask(all->worker[p], key, samples, mask, 2);
      assert_memory_equal(mask[0], want, size);
      assert_memory_equal(mask[1], want, size);
      assert_int_equal(mask[2][0], 0x5a);
      kdp_aead_of(all->worker[p], masks[i].algorithm)->mask(all->worker[p], key, samples, mask, 0);
    }
  }
}

static int open_all(void **state) {
  static providers all;
  all = providers_open();
  *state = &all;
  return 0;
}

static int close_all(void **state) {
  providers_close(*state);
  return 0;
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_reference_gives_the_known_answers),
      cmocka_unit_test(every_provider_gives_the_known_answers),
      cmocka_unit_test(any_changed_bit_is_refused_and_what_was_opened_wiped),
      cmocka_unit_test(masks_are_those_of_the_standards),
  };
  return cmocka_run_group_tests(tests, open_all, close_all);
}
