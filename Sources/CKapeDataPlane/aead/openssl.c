/* AEAD by libcrypto's EVP: on every machine. Contexts are made once and keep their key: a new one is set only when a
   job's key differs from the last. One context for sealing and one for opening, so that a tunnel that does both by
   turns does not set keys at each turn. libcrypto takes its own memory, when the worker is made. */
#include <openssl/evp.h>
#include <stdio.h>

#include "aead/chacha_mask.h"
#include "aead/worker.h"
#include "core/wipe.h"

typedef struct keyed {
  EVP_CIPHER_CTX *context;
  bool has_key;
  uint8_t key[KDP_AEAD_MAX_KEY_SIZE];
} keyed;

enum { SEAL, OPEN, MASK, PURPOSES };

typedef struct openssl_worker {
  kdp_aead_worker base;
  keyed keyed[KDP_AEAD_ALGORITHM_COUNT][PURPOSES];
} openssl_worker;

/* NULL: it has this key already. */
static const uint8_t *key_to_set(keyed *keyed, const uint8_t *key, size_t size) {
  if (keyed->has_key && memcmp(keyed->key, key, size) == 0) return NULL;
  memcpy(keyed->key, key, size);
  keyed->has_key = true;
  return key;
}

static bool seal_one(EVP_CIPHER_CTX *context, const uint8_t *key, const kdp_aead_job *job) {
  int size;
  return EVP_EncryptInit_ex(context, NULL, NULL, key, job->nonce) == 1 &&
         (job->aad_size == 0 || EVP_EncryptUpdate(context, NULL, &size, job->aad, (int)job->aad_size) == 1) &&
         (job->size == 0 || EVP_EncryptUpdate(context, job->destination, &size, job->source, (int)job->size) == 1) &&
         EVP_EncryptFinal_ex(context, job->tag, &size) == 1 &&
         EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_GET_TAG, KDP_AEAD_TAG_SIZE, job->tag) == 1;
}

/* OK, AUTHENTICATION_FAILED or SYSTEM. */
static kdp_status open_one(EVP_CIPHER_CTX *context, const uint8_t *key, const kdp_aead_job *job) {
  int size;
  uint8_t none[KDP_AEAD_TAG_SIZE]; /* EVP wants room for a last block, which these ciphers do not have */
  if (EVP_DecryptInit_ex(context, NULL, NULL, key, job->nonce) != 1 ||
      (job->aad_size != 0 && EVP_DecryptUpdate(context, NULL, &size, job->aad, (int)job->aad_size) != 1) ||
      (job->size != 0 && EVP_DecryptUpdate(context, job->destination, &size, job->source, (int)job->size) != 1) ||
      EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_SET_TAG, KDP_AEAD_TAG_SIZE, job->tag) != 1)
    return KDP_SYSTEM;
  return EVP_DecryptFinal_ex(context, none, &size) == 1 ? KDP_OK : KDP_AUTHENTICATION_FAILED;
}

static void seal(kdp_aead_worker *worker, kdp_aead_algorithm algorithm, kdp_aead_job *job, uint32_t count) {
  keyed *keyed = &((openssl_worker *)worker)->keyed[algorithm][SEAL];
  size_t key_size = worker->table[algorithm].key_size;
  for (uint32_t i = 0; i < count; i++) {
    if (!kdp_aead_job_fits(&job[i])) {
      job[i].status = KDP_INVALID_ARGUMENT;
      continue;
    }
    bool sealed = seal_one(keyed->context, key_to_set(keyed, job[i].key, key_size), &job[i]);
    job[i].status = sealed ? KDP_OK : KDP_SYSTEM;
    if (sealed) continue;
    keyed->has_key = false;
    kdp_wipe(job[i].destination, job[i].size);
    kdp_wipe(job[i].tag, KDP_AEAD_TAG_SIZE);
  }
}

static uint32_t open(kdp_aead_worker *worker, kdp_aead_algorithm algorithm, kdp_aead_job *job, uint32_t count) {
  keyed *keyed = &((openssl_worker *)worker)->keyed[algorithm][OPEN];
  size_t key_size = worker->table[algorithm].key_size;
  uint32_t opened = 0;
  for (uint32_t i = 0; i < count; i++) {
    if (!kdp_aead_job_fits(&job[i])) {
      job[i].status = KDP_INVALID_ARGUMENT;
      continue;
    }
    job[i].status = open_one(keyed->context, key_to_set(keyed, job[i].key, key_size), &job[i]);
    if (job[i].status == KDP_OK) {
      opened++;
      continue;
    }
    if (job[i].status == KDP_SYSTEM) keyed->has_key = false;
    kdp_wipe(job[i].destination, job[i].size);
  }
  return opened;
}

/* AES-ECB, with the samples gathered where the masks go. */
static void aes_mask(kdp_aead_worker *worker, kdp_aead_algorithm algorithm, const uint8_t *key,
                     const uint8_t *const *sample, uint8_t (*mask)[KDP_AEAD_MASK_SIZE], uint32_t count) {
  if (count == 0) return;
  keyed *keyed = &((openssl_worker *)worker)->keyed[algorithm][MASK];
  const uint8_t *new_key = key_to_set(keyed, key, worker->table[algorithm].key_size);
  int size;
  for (uint32_t i = 0; i < count; i++)
    memcpy(mask[i], sample[i], KDP_AEAD_MASK_SIZE);
  if (EVP_EncryptInit_ex(keyed->context, NULL, NULL, new_key, NULL) == 1 &&
      EVP_EncryptUpdate(keyed->context, mask[0], &size, mask[0], (int)(count * KDP_AEAD_MASK_SIZE)) == 1)
    return;
  /* Cannot happen with the key and sizes given. A mask of zeros shows as records that do not open. */
  keyed->has_key = false;
  memset(mask, 0, count * (size_t)KDP_AEAD_MASK_SIZE);
}

#define FUNCTIONS(name, algorithm)                                                                                     \
  static void name##_seal(kdp_aead_worker *worker, kdp_aead_job *job, uint32_t count) {                                \
    seal(worker, algorithm, job, count);                                                                               \
  }                                                                                                                    \
  static uint32_t name##_open(kdp_aead_worker *worker, kdp_aead_job *job, uint32_t count) {                            \
    return open(worker, algorithm, job, count);                                                                        \
  }
#define MASK_FUNCTION(name, algorithm)                                                                                 \
  static void name##_mask(kdp_aead_worker *worker, const uint8_t *key, const uint8_t *const *sample,                   \
                          uint8_t(*mask)[KDP_AEAD_MASK_SIZE], uint32_t count) {                                        \
    aes_mask(worker, algorithm, key, sample, mask, count);                                                             \
  }
FUNCTIONS(chacha, KDP_AEAD_CHACHA20_POLY1305)
FUNCTIONS(aes_128, KDP_AEAD_AES_128_GCM)
FUNCTIONS(aes_192, KDP_AEAD_AES_192_GCM)
FUNCTIONS(aes_256, KDP_AEAD_AES_256_GCM)
MASK_FUNCTION(aes_128, KDP_AEAD_AES_128_GCM)
MASK_FUNCTION(aes_192, KDP_AEAD_AES_192_GCM)
MASK_FUNCTION(aes_256, KDP_AEAD_AES_256_GCM)

static const kdp_aead table[KDP_AEAD_ALGORITHM_COUNT] = {
    {.name = "ChaCha20-Poly1305",
     .algorithm = KDP_AEAD_CHACHA20_POLY1305,
     .key_size = 32,
     .limits = KDP_AEAD_CHACHA20_LIMITS,
     .seal = chacha_seal,
     .open = chacha_open,
     .mask = kdp_aead_chacha_mask},
    {.name = "AES-128-GCM",
     .algorithm = KDP_AEAD_AES_128_GCM,
     .key_size = 16,
     .limits = KDP_AEAD_GCM_LIMITS,
     .seal = aes_128_seal,
     .open = aes_128_open,
     .mask = aes_128_mask},
    {.name = "AES-192-GCM",
     .algorithm = KDP_AEAD_AES_192_GCM,
     .key_size = 24,
     .limits = KDP_AEAD_GCM_LIMITS,
     .seal = aes_192_seal,
     .open = aes_192_open,
     .mask = aes_192_mask},
    {.name = "AES-256-GCM",
     .algorithm = KDP_AEAD_AES_256_GCM,
     .key_size = 32,
     .limits = KDP_AEAD_GCM_LIMITS,
     .seal = aes_256_seal,
     .open = aes_256_open,
     .mask = aes_256_mask},
};

/* What EVP calls them; NULL where the mask does not need libcrypto. */
static const char *const cipher_name[KDP_AEAD_ALGORITHM_COUNT][PURPOSES] = {
    {"ChaCha20-Poly1305", "ChaCha20-Poly1305", NULL},
    {"AES-128-GCM", "AES-128-GCM", "AES-128-ECB"},
    {"AES-192-GCM", "AES-192-GCM", "AES-192-ECB"},
    {"AES-256-GCM", "AES-256-GCM", "AES-256-ECB"},
};

static void close_contexts(kdp_aead_worker *worker) {
  openssl_worker *self = (openssl_worker *)worker;
  for (int i = 0; i < KDP_AEAD_ALGORITHM_COUNT; i++)
    for (int purpose = 0; purpose < PURPOSES; purpose++)
      EVP_CIPHER_CTX_free(self->keyed[i][purpose].context); /* wipes the expanded key */
}

/* A context gives its key up only for another one. */
static void forget(kdp_aead_worker *worker) {
  static const uint8_t other_key[KDP_AEAD_MAX_KEY_SIZE];
  openssl_worker *self = (openssl_worker *)worker;
  for (int i = 0; i < KDP_AEAD_ALGORITHM_COUNT; i++)
    for (int purpose = 0; purpose < PURPOSES; purpose++) {
      keyed *keyed = &self->keyed[i][purpose];
      if (!keyed->has_key) continue;
      (void)EVP_CipherInit_ex(keyed->context, NULL, NULL, other_key, NULL, -1); /* cannot fail: it has done so before */
      kdp_wipe(keyed->key, sizeof keyed->key);
      keyed->has_key = false;
    }
}

static kdp_status make_context(const char *name, bool seals, EVP_CIPHER_CTX **context) {
  EVP_CIPHER *cipher = EVP_CIPHER_fetch(NULL, name, NULL);
  if (cipher == NULL) return KDP_UNSUPPORTED; /* a configuration without it, FIPS for one */
  *context = EVP_CIPHER_CTX_new();
  bool made = *context != NULL && EVP_CipherInit_ex2(*context, cipher, NULL, NULL, seals, NULL) == 1;
  EVP_CIPHER_free(cipher); /* the context holds it */
  return made ? KDP_OK : KDP_NO_MEMORY;
}

kdp_status kdp_aead_openssl_open(const kdp_host *host, kdp_aead_worker **worker) {
  openssl_worker *self = (void *)kdp_aead_worker_allocate(sizeof *self, KDP_AEAD_OPENSSL, host);
  if (self == NULL) return KDP_NO_MEMORY;
  self->base.table = table;
  self->base.close = close_contexts;
  self->base.forget = forget;
  snprintf(self->base.version, sizeof self->base.version, "OpenSSL %s", OpenSSL_version(OPENSSL_VERSION_STRING));
  kdp_status status = KDP_OK;
  for (int i = 0; i < KDP_AEAD_ALGORITHM_COUNT && status == KDP_OK; i++)
    for (int purpose = 0; purpose < PURPOSES && status == KDP_OK; purpose++)
      if (cipher_name[i][purpose] != NULL)
        status = make_context(cipher_name[i][purpose], purpose != OPEN, &self->keyed[i][purpose].context);
  if (status != KDP_OK) {
    kdp_aead_worker_destroy(&self->base);
    return status;
  }
  *worker = &self->base;
  return KDP_OK;
}
