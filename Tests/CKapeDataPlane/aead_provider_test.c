/* The choice of a provider, its self test, and what a worker costs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>
#include <openssl/crypto.h>

#include "aead/chacha_avx512.h"
#include "aead/self_test.h"
#include "aead/worker.h"
#include "support/providers.h"
#include "support/reference_aead.h"

static const char *program;

static void an_unknown_name_is_an_error_never_a_silent_change_of_mind(void **state) {
  (void)state;
  kdp_host host = kdp_host_default();
  const char *const wrong[] = {"Openssl", "openssl ", "aes", "ipsec_mb", "ipsec-mbx", "openss", " "};
  for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
    kdp_aead_worker *worker = (void *)&host;
    assert_int_equal(kdp_aead_worker_choose(wrong[i], &host, &worker), KDP_UNSUPPORTED);
    assert_null(worker);
  }
  kdp_aead_worker *worker = (void *)&host;
  assert_int_equal(kdp_aead_worker_create(KDP_AEAD_PROVIDER_COUNT, &host, &worker), KDP_UNSUPPORTED);
  assert_null(worker);
}

static void a_name_gives_that_provider_and_its_library_version(void **state) {
  (void)state;
  kdp_host host = kdp_host_default();
  providers all = providers_open();
  for (int i = 0; i < all.count; i++) {
    kdp_aead_provider provider = kdp_aead_worker_provider(all.worker[i]);
    kdp_aead_worker *worker;
    assert_int_equal(kdp_aead_worker_choose(kdp_aead_provider_name(provider), &host, &worker), KDP_OK);
    assert_int_equal(kdp_aead_worker_provider(worker), provider);
    const char *const library = (const char *const[]){"OpenSSL 3.", "intel-ipsec-mb ", "AVX-512, with "}[provider];
    assert_memory_equal(kdp_aead_worker_version(worker), library, strlen(library));
    kdp_aead_worker_destroy(worker);
  }
  providers_close(&all);
  assert_string_equal(kdp_aead_provider_name(KDP_AEAD_PROVIDER_COUNT), "unknown");
  kdp_aead_worker_destroy(NULL);
}

static void without_a_name_the_fastest_that_is_there_is_chosen(void **state) {
  (void)state;
  kdp_host host = kdp_host_default();
  providers all = providers_open();
  const char *const none[] = {NULL, ""};
  for (int i = 0; i < 2; i++) {
    kdp_aead_worker *worker;
    assert_int_equal(kdp_aead_worker_choose(none[i], &host, &worker), KDP_OK);
    /* They are opened from the slowest on. */
    assert_int_equal(kdp_aead_worker_provider(worker), kdp_aead_worker_provider(all.worker[all.count - 1]));
    kdp_aead_worker_destroy(worker);
  }
  providers_close(&all);
}

/* The program again, with a library in front of the machine's that is none. */
static int run_with_broken_library(const char *mode) {
  char directory[] = "/tmp/kdp-aead-XXXXXX", file[64];
  assert_non_null(mkdtemp(directory));
  snprintf(file, sizeof file, "%s/libIPSec_MB.so.1", directory);
  FILE *broken = fopen(file, "w");
  assert_non_null(broken);
  fputs("not a library\n", broken);
  fclose(broken);
  pid_t child = fork();
  if (child == 0) {
    setenv("LD_LIBRARY_PATH", directory, 1);
    execl("/proc/self/exe", program, mode, (char *)NULL);
    _exit(99);
  }
  int status = 0;
  assert_int_equal(waitpid(child, &status, 0), child);
  unlink(file);
  rmdir(directory);
  assert_true(WIFEXITED(status));
  return WEXITSTATUS(status);
}

/* What the child does: its exit status is the provider chosen, or 50 and the error. */
static int child_choose(const char *mode) {
  kdp_host host = kdp_host_default();
  kdp_aead_worker *worker;
  kdp_status status = kdp_aead_worker_choose(strcmp(mode, "choose") == 0 ? NULL : mode, &host, &worker);
  if (status != KDP_OK) return 50 + (int)status;
  int provider = (int)kdp_aead_worker_provider(worker);
  kdp_aead_worker_destroy(worker);
  return provider;
}

static void given_a_broken_library_openssl_is_chosen_but_not_in_place_of_a_named_one(void **state) {
  (void)state;
  assert_int_equal(run_with_broken_library("choose"),
                   kdp_chacha_avx512_available() ? KDP_AEAD_AVX512 : KDP_AEAD_OPENSSL);
  assert_int_equal(run_with_broken_library("openssl"), KDP_AEAD_OPENSSL);
  assert_int_equal(run_with_broken_library("ipsec-mb"), 50 + KDP_UNSUPPORTED);
}

/* A host that counts, and refuses the allocation numbered `refuse`. */
typedef struct counting {
  int allocations, refuse;
  long live;
} counting;

static void *counting_allocate(void *context, size_t size) {
  counting *c = context;
  if (c->allocations++ == c->refuse) return NULL;
  c->live += (long)size;
  return malloc(size);
}

static void counting_release(void *context, void *memory, size_t size) {
  ((counting *)context)->live -= (long)size;
  free(memory);
}

static void without_memory_creation_fails_cleanly_and_nothing_leaks(void **state) {
  (void)state;
  providers all = providers_open();
  for (int i = 0; i < all.count; i++) {
    kdp_aead_provider provider = kdp_aead_worker_provider(all.worker[i]);
    kdp_status status = KDP_NO_MEMORY;
    for (int refuse = 0; status != KDP_OK; refuse++) {
      counting c = {.refuse = refuse};
      kdp_host host = {.context = &c, .allocate = counting_allocate, .release = counting_release};
      kdp_aead_worker *worker;
      status = kdp_aead_worker_create(provider, &host, &worker);
      if (status == KDP_OK) {
        assert_true(c.live > 0 && c.live < 512 * 1024);
        kdp_aead_worker_destroy(worker);
      } else {
        assert_int_equal(status, KDP_NO_MEMORY);
        assert_null(worker);
      }
      assert_int_equal(c.live, 0);
      assert_true(refuse < 10);
    }
  }
  providers_close(&all);
}

static long openssl_allocations;

static void *counted_malloc(size_t size, const char *file, int line) {
  (void)file;
  (void)line;
  openssl_allocations++;
  return malloc(size);
}
static void *counted_realloc(void *memory, size_t size, const char *file, int line) {
  (void)file;
  (void)line;
  openssl_allocations++;
  return realloc(memory, size);
}
static void counted_free(void *memory, const char *file, int line) {
  (void)file;
  (void)line;
  free(memory);
}

static void sealing_opening_and_masks_allocate_nothing_with_keys_that_change_each_time(void **state) {
  (void)state;
  counting c = {.refuse = -1};
  kdp_host host = {.context = &c, .allocate = counting_allocate, .release = counting_release};
  static _Alignas(64) uint8_t expanded[PROVIDERS_EXPANDED_SIZE];
  providers all = providers_open();
  for (int i = 0; i < all.count; i++) {
    kdp_aead_worker *worker;
    assert_int_equal(kdp_aead_worker_create(kdp_aead_worker_provider(all.worker[i]), &host, &worker), KDP_OK);
    long before = openssl_allocations;
    int before_ours = c.allocations;
    for (int a = 0; a < KDP_AEAD_ALGORITHM_COUNT; a++) {
      const kdp_aead *aead = kdp_aead_of(worker, (kdp_aead_algorithm)a);
      for (int round = 0; round < 50; round++) {
        uint8_t key[32] = {(uint8_t)(round / 2)}, text[100] = {0}, tag[16], mask[1][16];
        kdp_aead_job job = {.key = providers_key(worker, aead->algorithm, key, expanded),
                            .source = text,
                            .destination = text,
                            .tag = tag,
                            .aad = key,
                            .size = sizeof text,
                            .aad_size = 13,
                            .nonce = {(uint8_t)round}};
        aead->seal(worker, &job, 1);
        if (round % 5 == 0) tag[3] ^= 1; /* failing allocates nothing either */
        assert_int_equal(aead->open(worker, &job, 1), round % 5 != 0);
        const uint8_t *const sample[1] = {tag};
        aead->mask(worker, key, sample, mask, 1);
      }
    }
    assert_int_equal(openssl_allocations, before);
    assert_int_equal(c.allocations, before_ours);
    kdp_aead_worker_destroy(worker);
  }
  assert_true(openssl_allocations > 0); /* the counter is in place */
  providers_close(&all);
}

static void limits_are_those_of_the_standards(void **state) {
  (void)state;
  providers all = providers_open();
  for (int i = 0; i < all.count; i++)
    for (int a = 0; a < KDP_AEAD_ALGORITHM_COUNT; a++) {
      const kdp_aead *aead = kdp_aead_of(all.worker[i], (kdp_aead_algorithm)a);
      assert_int_equal(aead->algorithm, a);
      assert_int_equal(aead->key_size, reference_key_size((kdp_aead_algorithm)a));
      assert_string_equal(aead->name,
                          ((const char *const[]){"ChaCha20-Poly1305", "AES-128-GCM", "AES-192-GCM", "AES-256-GCM"})[a]);
      assert_int_equal(aead->expanded_size == 0, aead->expand == NULL);
      assert_int_equal(aead->expanded_size % 64, 0);
      assert_true(aead->limits.failed_opens == UINT64_C(1) << 36);
      assert_true(aead->limits.packet_bytes == 16384);
      /* 2^24.5 squared is 2^49: rounded down, so that one more is beyond. */
      uint64_t packets = aead->limits.seal_packets;
      if (a == KDP_AEAD_CHACHA20_POLY1305)
        assert_true(packets == UINT64_MAX && aead->limits.seal_blocks == UINT64_MAX);
      else
        assert_true(packets * packets <= UINT64_C(1) << 49 && (packets + 1) * (packets + 1) > UINT64_C(1) << 49 &&
                    aead->limits.seal_blocks == (UINT64_C(1) << 36) - 1);
    }
  providers_close(&all);
}

/* ---- The self test finds a provider that does its work wrongly ---- */

typedef enum defect {
  DEFECT_NONE,
  DEFECT_TAG_NOT_COMPARED,
  DEFECT_NOT_WIPED,
  DEFECT_WRONG_TAG,
  DEFECT_ONLY_FIRST_SEALED,
  DEFECT_OPENED_NOT_COUNTED,
  DEFECT_STATUS_NOT_SET,
  DEFECT_MASK,
  DEFECTS
} defect;

/* A real provider whose AES-256-GCM goes through the functions below. */
static struct {
  defect defect;
  const kdp_aead *real;
  kdp_aead table[KDP_AEAD_ALGORITHM_COUNT];
} broken;

static void broken_seal(kdp_aead_worker *worker, kdp_aead_job *job, uint32_t count) {
  broken.real->seal(worker, job, broken.defect == DEFECT_ONLY_FIRST_SEALED ? 1 : count);
  if (broken.defect == DEFECT_WRONG_TAG) job[count - 1].tag[0] ^= 1;
}

static uint32_t broken_open(kdp_aead_worker *worker, kdp_aead_job *job, uint32_t count) {
  uint32_t opened = broken.real->open(worker, job, count);
  for (uint32_t i = 0; i < count; i++) {
    bool failed = job[i].status != KDP_OK;
    if (broken.defect == DEFECT_TAG_NOT_COMPARED && failed) {
      job[i].status = KDP_OK;
      opened++;
    }
    if (broken.defect == DEFECT_NOT_WIPED && failed && job[i].size > 0) job[i].destination[job[i].size - 1] = 1;
    if (broken.defect == DEFECT_STATUS_NOT_SET && failed) job[i].status = KDP_OK;
  }
  return broken.defect == DEFECT_OPENED_NOT_COUNTED && opened > 0 ? opened - 1 : opened;
}

static void broken_mask(kdp_aead_worker *worker, const uint8_t *key, const uint8_t *const *sample,
                        uint8_t (*mask)[KDP_AEAD_MASK_SIZE], uint32_t count) {
  broken.real->mask(worker, key, sample, mask, count);
  if (broken.defect == DEFECT_MASK) mask[count - 1][15] ^= 1;
}

static void the_self_test_finds_each_defect(void **state) {
  (void)state;
  providers all = providers_open();
  for (int i = 0; i < all.count; i++)
    for (int d = DEFECT_NONE; d < DEFECTS; d++) {
      kdp_aead_worker *worker = all.worker[i];
      const kdp_aead *real_table = worker->table;
      memcpy(broken.table, real_table, sizeof broken.table);
      broken.defect = (defect)d;
      broken.real = &real_table[KDP_AEAD_AES_256_GCM];
      kdp_aead *changed = &broken.table[KDP_AEAD_AES_256_GCM];
      changed->seal = broken_seal;
      changed->open = broken_open;
      changed->mask = broken_mask;
      worker->table = broken.table;
      bool passed = kdp_aead_self_test(worker);
      worker->table = real_table;
      if (passed != (d == DEFECT_NONE)) fail_msg("defect %d, provider %d", d, i);
    }
  providers_close(&all);
}

int main(int count, char **argument) {
  if (CRYPTO_set_mem_functions(counted_malloc, counted_realloc, counted_free) != 1) return 1;
  program = argument[0];
  if (count > 1) return child_choose(argument[1]);
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(an_unknown_name_is_an_error_never_a_silent_change_of_mind),
      cmocka_unit_test(a_name_gives_that_provider_and_its_library_version),
      cmocka_unit_test(without_a_name_the_fastest_that_is_there_is_chosen),
      cmocka_unit_test(given_a_broken_library_openssl_is_chosen_but_not_in_place_of_a_named_one),
      cmocka_unit_test(without_memory_creation_fails_cleanly_and_nothing_leaks),
      cmocka_unit_test(sealing_opening_and_masks_allocate_nothing_with_keys_that_change_each_time),
      cmocka_unit_test(limits_are_those_of_the_standards),
      cmocka_unit_test(the_self_test_finds_each_defect),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
