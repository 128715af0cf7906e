/* AEAD by AVX-512: ChaCha20-Poly1305 by our own code for batches, everything else by the best library behind it. */
#include "aead/worker.h"

#if defined(__x86_64__)
#include <stdio.h>

#include "aead/chacha_avx512.h"
#include "aead/chacha_mask.h"

typedef struct avx512_worker {
  kdp_aead_worker base;
  kdp_aead_worker *behind;
  uint32_t fewest;
  kdp_aead table[KDP_AEAD_ALGORITHM_COUNT];
} avx512_worker;

static bool is_few(const kdp_aead_worker *worker, uint32_t count) {
  return count < ((const avx512_worker *)worker)->fewest;
}

static kdp_aead_worker *behind(kdp_aead_worker *worker) {
  return ((avx512_worker *)worker)->behind;
}

static void chacha_seal(kdp_aead_worker *worker, kdp_aead_job *job, uint32_t count) {
  if (is_few(worker, count))
    behind(worker)->table[KDP_AEAD_CHACHA20_POLY1305].seal(behind(worker), job, count);
  else
    kdp_chacha_avx512_seal(job, count);
}

static uint32_t chacha_open(kdp_aead_worker *worker, kdp_aead_job *job, uint32_t count) {
  if (is_few(worker, count)) return behind(worker)->table[KDP_AEAD_CHACHA20_POLY1305].open(behind(worker), job, count);
  return kdp_chacha_avx512_open(job, count);
}

/* A worker's functions get the worker that they belong to. */
#define PASS_ON(name, algorithm)                                                                                       \
  static void name##_expand(kdp_aead_worker *worker, const uint8_t *key, uint8_t *expanded) {                          \
    behind(worker)->table[algorithm].expand(behind(worker), key, expanded);                                            \
  }                                                                                                                    \
  static void name##_seal(kdp_aead_worker *worker, kdp_aead_job *job, uint32_t count) {                                \
    behind(worker)->table[algorithm].seal(behind(worker), job, count);                                                 \
  }                                                                                                                    \
  static uint32_t name##_open(kdp_aead_worker *worker, kdp_aead_job *job, uint32_t count) {                            \
    return behind(worker)->table[algorithm].open(behind(worker), job, count);                                          \
  }                                                                                                                    \
  static void name##_mask(kdp_aead_worker *worker, const uint8_t *key, const uint8_t *const *sample,                   \
                          uint8_t(*mask)[KDP_AEAD_MASK_SIZE], uint32_t count) {                                        \
    behind(worker)->table[algorithm].mask(behind(worker), key, sample, mask, count);                                   \
  }
PASS_ON(aes_128, KDP_AEAD_AES_128_GCM)
PASS_ON(aes_192, KDP_AEAD_AES_192_GCM)
PASS_ON(aes_256, KDP_AEAD_AES_256_GCM)

static void fill_table(avx512_worker *self) {
  /* Names, sizes and limits are those of the library. */
  memcpy(self->table, self->behind->table, sizeof self->table);
  self->table[KDP_AEAD_CHACHA20_POLY1305].seal = chacha_seal;
  self->table[KDP_AEAD_CHACHA20_POLY1305].open = chacha_open;
  self->table[KDP_AEAD_CHACHA20_POLY1305].mask = kdp_aead_chacha_mask;
#define ENTRY(name, algorithm)                                                                                         \
  if (self->table[algorithm].expand) self->table[algorithm].expand = name##_expand;                                    \
  self->table[algorithm].seal = name##_seal;                                                                           \
  self->table[algorithm].open = name##_open;                                                                           \
  self->table[algorithm].mask = name##_mask
  ENTRY(aes_128, KDP_AEAD_AES_128_GCM);
  ENTRY(aes_192, KDP_AEAD_AES_192_GCM);
  ENTRY(aes_256, KDP_AEAD_AES_256_GCM);
#undef ENTRY
  self->base.table = self->table;
}

static void close_behind(kdp_aead_worker *worker) {
  kdp_aead_worker_destroy(behind(worker));
}

static void forget(kdp_aead_worker *worker) {
  kdp_aead_worker_forget(behind(worker));
}

kdp_status kdp_aead_avx512_open(uint32_t fewest, const kdp_host *host, kdp_aead_worker **worker) {
  if (!kdp_chacha_avx512_available()) return KDP_UNSUPPORTED;
  kdp_aead_worker *library = NULL;
  kdp_status status = kdp_aead_ipsec_mb_open(host, &library);
  if (status == KDP_UNSUPPORTED) status = kdp_aead_openssl_open(host, &library);
  if (status != KDP_OK) return status;
  avx512_worker *self = (void *)kdp_aead_worker_allocate(sizeof *self, KDP_AEAD_AVX512, host);
  if (self == NULL) {
    kdp_aead_worker_destroy(library);
    return KDP_NO_MEMORY;
  }
  self->behind = library;
  self->fewest = fewest;
  fill_table(self);
  self->base.close = close_behind;
  self->base.forget = forget;
  snprintf(self->base.version, sizeof self->base.version, "AVX-512, with %.32s", library->version);
  *worker = &self->base;
  return KDP_OK;
}

#else

kdp_status kdp_aead_avx512_open(uint32_t fewest, const kdp_host *host, kdp_aead_worker **worker) {
  (void)fewest;
  (void)host;
  (void)worker;
  return KDP_UNSUPPORTED;
}

#endif
