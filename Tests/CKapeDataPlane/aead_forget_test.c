/* Keys that were given up are nowhere in memory: neither in the workers' own nor in what libcrypto keeps for them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <openssl/crypto.h>

#include "aead/worker.h"
#include "support/providers.h"
#include "support/wireguard_node.h"

/* ---- Memory that is looked through ---- */

enum { BLOCKS = 8192 };
static struct {
  uint8_t *bytes;
  size_t size;
} block[BLOCKS];
static size_t block_count;

static void *note(void *memory, size_t size) {
  if (!memory) return NULL;
  if (block_count == BLOCKS) abort();
  block[block_count].bytes = memory;
  block[block_count++].size = size;
  return memory;
}
static void forget_block(void *memory) {
  for (size_t i = block_count; memory && i-- > 0;)
    if (block[i].bytes == memory) {
      block[i] = block[--block_count];
      return;
    }
}

static void *crypto_malloc(size_t size, const char *file, int line) {
  (void)file, (void)line;
  return note(malloc(size), size);
}
static void *crypto_realloc(void *memory, size_t size, const char *file, int line) {
  (void)file, (void)line;
  forget_block(memory);
  return note(realloc(memory, size), size);
}
static void crypto_free(void *memory, const char *file, int line) {
  (void)file, (void)line;
  forget_block(memory);
  free(memory);
}

static uint32_t count_in(const uint8_t *bytes, size_t size, const uint8_t *key) {
  uint32_t found = 0;
  for (size_t at = 0; at + 16 <= size; at++)
    found += bytes[at] == key[0] && memcmp(bytes + at, key, 16) == 0;
  return found;
}

/* How often the first half of the key is there. */
static uint32_t count_key(const kdp_aead_worker *worker, const uint8_t *key) {
  uint32_t found = count_in(worker->memory, worker->memory_size, key);
  for (size_t i = 0; i < block_count; i++)
    found += count_in(block[i].bytes, block[i].size, key);
  return found;
}

/* ---- Tests ---- */

static void use(kdp_aead_worker *worker, kdp_aead_algorithm algorithm, const uint8_t raw[32], const uint8_t *key) {
  const kdp_aead *aead = kdp_aead_of(worker, algorithm);
  uint8_t text[100] = {1}, tag[16], mask[1][KDP_AEAD_MASK_SIZE];
  const uint8_t *sample[1] = {text};
  kdp_aead_job job = {.key = key, .source = text, .destination = text, .tag = tag, .size = sizeof text};
  aead->seal(worker, &job, 1);
  assert_int_equal(job.status, KDP_OK);
  assert_int_equal(aead->open(worker, &job, 1), 1);
  assert_int_equal(text[0], 1);
  aead->mask(worker, raw, sample, mask, 1);
}

static void a_worker_forgets_its_keys_and_goes_on(void **state) {
  (void)state;
  static _Alignas(64) uint8_t expanded[PROVIDERS_EXPANDED_SIZE];
  rng random = {7};
  providers all = providers_open();
  for (int i = 0; i < all.count; i++)
    for (int algorithm = 0; algorithm < KDP_AEAD_ALGORITHM_COUNT; algorithm++) {
      kdp_aead_worker *worker = all.worker[i];
      uint8_t raw[32];
      rng_fill(&random, raw, sizeof raw);
      const uint8_t *key = providers_key(worker, (kdp_aead_algorithm)algorithm, raw, expanded);
      use(worker, (kdp_aead_algorithm)algorithm, raw, key);
      if (kdp_aead_worker_provider(worker) == KDP_AEAD_OPENSSL) assert_true(count_key(worker, raw) > 0);
      kdp_aead_worker_forget(worker);
      assert_int_equal(count_key(worker, raw), 0);
      use(worker, (kdp_aead_algorithm)algorithm, raw, key);
    }
  providers_close(&all);
}

static void when_a_session_is_wiped_no_worker_has_its_keys(void **state) {
  (void)state;
  kdp_wireguard_config config = {.aead_provider = "openssl"};
  node *a = node_make(1, &config, NULL), *b = node_make(2, &config, NULL);
  kdp_now now = node_time(1000);
  node_connect(a, b, now);
  assert_int_equal(node_send_to(a, b, 100, now), KDP_OK);
  assert_int_equal(node_send_to(b, a, 100, now), KDP_OK);
  node_exchange(a, b, now);
  kdp_wg_session_keys keys = node_peer_of(a, b)->current->keys;
  assert_true(count_key(a->device->lane[0].worker, keys.send) > 0 &&
              count_key(a->device->lane[0].worker, keys.receive) > 0);
  (void)node_run(a, now, now.boot + 600 * KDP_SECOND); /* nobody answers */
  (void)node_run(b, now, now.boot + 600 * KDP_SECOND);
  assert_null(node_peer_of(a, b)->current);
  assert_int_equal(count_key(a->device->lane[0].worker, keys.send), 0);
  assert_int_equal(count_key(b->device->lane[0].worker, keys.send), 0);
  assert_int_equal(count_key(a->device->lane[0].worker, keys.receive), 0);
  assert_int_equal(count_key(b->device->lane[0].worker, keys.receive), 0);
  node_free(a);
  node_free(b);
}

int main(void) {
  if (CRYPTO_set_mem_functions(crypto_malloc, crypto_realloc, crypto_free) != 1) return 1;
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_worker_forgets_its_keys_and_goes_on),
      cmocka_unit_test(when_a_session_is_wiped_no_worker_has_its_keys),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
