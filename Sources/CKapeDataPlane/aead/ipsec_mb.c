/* AEAD by intel-ipsec-mb: x86-64 with AES instructions. The library is opened at run time, so that a program built with
   its header runs without it, and one that does not use it does not map it.

   ChaCha20-Poly1305 goes by jobs (a direct call takes 90 ns longer), one submit each: version 1.3 finishes a job within
   its submit, but nothing here relies on that. Its burst calls gain 3 % at 64 bytes and want session ids from version
   1.4 on. GCM goes by direct calls with expanded keys, which take a fifth of the time of any other way for small
   packets. */
#include "aead/worker.h"

#if defined(__x86_64__) && defined(__has_include)
#if __has_include(<intel-ipsec-mb.h>)
#define HAS_HEADER 1
#endif
#endif

#ifndef HAS_HEADER

kdp_status kdp_aead_ipsec_mb_open(const kdp_host *host, kdp_aead_worker **worker) {
  (void)host;
  (void)worker;
  return KDP_UNSUPPORTED;
}

#else

#include <dlfcn.h>
#include <intel-ipsec-mb.h>
#include <stdio.h>

#include "aead/chacha_mask.h"
#include "core/wipe.h"

enum { EXPANDED_GCM_SIZE = (sizeof(struct gcm_key_data) + 63) / 64 * 64 };

/* An AES key schedule for the mask, for the key it was last asked with. */
typedef struct mask_key {
  _Alignas(16) uint32_t encrypt[15 * 4];
  _Alignas(16) uint32_t decrypt[15 * 4]; /* the library makes both */
  bool has_key;
  uint8_t key[KDP_AEAD_MAX_KEY_SIZE];
} mask_key;

typedef struct ipsec_mb_worker {
  kdp_aead_worker base;
  void *library;
  IMB_MGR *manager;
  void *manager_memory;
  size_t manager_size;
  struct gcm_context_data gcm;
  mask_key mask[KDP_AEAD_ALGORITHM_COUNT];
} ipsec_mb_worker;

/* ---- ChaCha20-Poly1305 ---- */

/* What a batch of jobs has come to. A job's status is not written before the library has read its nonce: they lie in
   the same 16 bytes, and a load that overlaps a store still under way costs 20 ns. */
typedef struct progress {
  kdp_aead_job *job;
  uint64_t completed; /* a bit for each job */
  uint32_t returned;
} progress;

static void take_back(const IMB_JOB *done, progress *progress) {
  const kdp_aead_job *job = done->user_data;
  if (done->status == IMB_STATUS_COMPLETED) progress->completed |= UINT64_C(1) << (job - progress->job);
  progress->returned++;
}

static void submit(IMB_MGR *manager, kdp_aead_job *job, IMB_CIPHER_DIRECTION direction, uint8_t *tag,
                   progress *progress) {
  IMB_JOB *work = IMB_GET_NEXT_JOB(manager);
  work->cipher_direction = direction;
  work->chain_order = direction == IMB_DIR_ENCRYPT ? IMB_ORDER_CIPHER_HASH : IMB_ORDER_HASH_CIPHER;
  work->cipher_mode = IMB_CIPHER_CHACHA20_POLY1305;
  work->hash_alg = IMB_AUTH_CHACHA20_POLY1305;
  work->enc_keys = job->key;
  work->dec_keys = job->key;
  work->key_len_in_bytes = 32;
  work->src = job->source;
  work->dst = job->destination;
  work->cipher_start_src_offset_in_bytes = 0;
  work->hash_start_src_offset_in_bytes = 0;
  work->msg_len_to_cipher_in_bytes = job->size;
  work->msg_len_to_hash_in_bytes = job->size;
  work->iv = job->nonce;
  work->iv_len_in_bytes = KDP_AEAD_NONCE_SIZE;
  work->auth_tag_output = tag;
  work->auth_tag_output_len_in_bytes = KDP_AEAD_TAG_SIZE;
  work->u.CHACHA20_POLY1305.aad = job->aad;
  work->u.CHACHA20_POLY1305.aad_len_in_bytes = job->aad_size;
  work->user_data = job;
  for (IMB_JOB *done = IMB_SUBMIT_JOB_NOCHECK(manager); done != NULL; done = IMB_GET_COMPLETED_JOB(manager))
    take_back(done, progress);
}

/* At most KDP_AEAD_MAX_BATCH jobs, fewer than the library's queue holds. Tags go to `tag` where that is not NULL. */
static void run_jobs(ipsec_mb_worker *self, IMB_CIPHER_DIRECTION direction, kdp_aead_job *job, uint32_t count,
                     uint8_t (*tag)[KDP_AEAD_TAG_SIZE]) {
  progress progress = {.job = job};
  uint32_t submitted = 0;
  for (uint32_t i = 0; i < count; i++) {
    if (!kdp_aead_job_fits(&job[i])) continue;
    submit(self->manager, &job[i], direction, tag != NULL ? tag[i] : job[i].tag, &progress);
    submitted++;
  }
  while (progress.returned < submitted) {
    const IMB_JOB *done = IMB_FLUSH_JOB(self->manager);
    if (done == NULL) break;
    take_back(done, &progress);
  }
  for (uint32_t i = 0; i < count; i++)
    job[i].status = progress.completed >> i & 1  ? KDP_OK
                    : kdp_aead_job_fits(&job[i]) ? KDP_SYSTEM
                                                 : KDP_INVALID_ARGUMENT;
}

static void chacha_seal(kdp_aead_worker *worker, kdp_aead_job *job, uint32_t count) {
  while (count > 0) {
    uint32_t part = count < KDP_AEAD_MAX_BATCH ? count : KDP_AEAD_MAX_BATCH;
    run_jobs((ipsec_mb_worker *)worker, IMB_DIR_ENCRYPT, job, part, NULL);
    job += part;
    count -= part;
  }
}

/* Compares the tag that was computed with the one that came. */
static bool finish_open(kdp_aead_job *job, const uint8_t *computed) {
  if (job->status == KDP_INVALID_ARGUMENT) return false;
  if (job->status == KDP_OK) {
    if (kdp_aead_tags_equal(computed, job->tag)) return true;
    job->status = KDP_AUTHENTICATION_FAILED;
  }
  kdp_wipe(job->destination, job->size);
  return false;
}

static uint32_t chacha_open(kdp_aead_worker *worker, kdp_aead_job *job, uint32_t count) {
  uint8_t tag[KDP_AEAD_MAX_BATCH][KDP_AEAD_TAG_SIZE];
  uint32_t opened = 0;
  while (count > 0) {
    uint32_t part = count < KDP_AEAD_MAX_BATCH ? count : KDP_AEAD_MAX_BATCH;
    run_jobs((ipsec_mb_worker *)worker, IMB_DIR_DECRYPT, job, part, tag);
    for (uint32_t i = 0; i < part; i++)
      opened += finish_open(&job[i], tag[i]);
    job += part;
    count -= part;
  }
  return opened;
}

/* ---- AES-GCM ---- */

#define GCM_FUNCTIONS(bits)                                                                                            \
  static void gcm_##bits##_expand(kdp_aead_worker *worker, const uint8_t *key, uint8_t *expanded) {                    \
    IMB_AES##bits##_GCM_PRE(((ipsec_mb_worker *)worker)->manager, key, (struct gcm_key_data *)(void *)expanded);       \
  }                                                                                                                    \
  static void gcm_##bits##_seal(kdp_aead_worker *worker, kdp_aead_job *job, uint32_t count) {                          \
    ipsec_mb_worker *self = (ipsec_mb_worker *)worker;                                                                 \
    for (uint32_t i = 0; i < count; i++) {                                                                             \
      kdp_aead_job *j = &job[i];                                                                                       \
      if (!kdp_aead_job_fits(j)) {                                                                                     \
        j->status = KDP_INVALID_ARGUMENT;                                                                              \
        continue;                                                                                                      \
      }                                                                                                                \
      IMB_AES##bits##_GCM_ENC(self->manager, gcm_key(j), &self->gcm, j->destination, j->source, j->size, j->nonce,     \
                              aad_of(j), j->aad_size, j->tag, KDP_AEAD_TAG_SIZE);                                      \
      j->status = KDP_OK; /* only now: see `progress` */                                                               \
    }                                                                                                                  \
  }                                                                                                                    \
  static uint32_t gcm_##bits##_open(kdp_aead_worker *worker, kdp_aead_job *job, uint32_t count) {                      \
    ipsec_mb_worker *self = (ipsec_mb_worker *)worker;                                                                 \
    uint8_t tag[KDP_AEAD_TAG_SIZE];                                                                                    \
    uint32_t opened = 0;                                                                                               \
    for (uint32_t i = 0; i < count; i++) {                                                                             \
      kdp_aead_job *j = &job[i];                                                                                       \
      if (!kdp_aead_job_fits(j)) {                                                                                     \
        j->status = KDP_INVALID_ARGUMENT;                                                                              \
        continue;                                                                                                      \
      }                                                                                                                \
      IMB_AES##bits##_GCM_DEC(self->manager, gcm_key(j), &self->gcm, j->destination, j->source, j->size, j->nonce,     \
                              aad_of(j), j->aad_size, tag, KDP_AEAD_TAG_SIZE);                                         \
      j->status = KDP_OK;                                                                                              \
      opened += finish_open(j, tag);                                                                                   \
    }                                                                                                                  \
    return opened;                                                                                                     \
  }

static const struct gcm_key_data *gcm_key(const kdp_aead_job *job) {
  return (const void *)job->key;
}
/* The library refuses a NULL pointer whatever the size, and computes nothing then. */
static const uint8_t *aad_of(const kdp_aead_job *job) {
  return job->aad_size != 0 ? job->aad : job->nonce;
}

GCM_FUNCTIONS(128)
GCM_FUNCTIONS(192)
GCM_FUNCTIONS(256)

/* ---- Mask ---- */

/* AES-ECB as one job over the samples, gathered where the masks go. */
static void aes_mask(kdp_aead_worker *worker, kdp_aead_algorithm algorithm, keyexp_t expand, const uint8_t *key,
                     const uint8_t *const *sample, uint8_t (*mask)[KDP_AEAD_MASK_SIZE], uint32_t count) {
  if (count == 0) return;
  ipsec_mb_worker *self = (ipsec_mb_worker *)worker;
  mask_key *keys = &self->mask[algorithm];
  size_t key_size = worker->table[algorithm].key_size;
  if (!keys->has_key || memcmp(keys->key, key, key_size) != 0) {
    expand(key, keys->encrypt, keys->decrypt);
    memcpy(keys->key, key, key_size);
    keys->has_key = true;
  }
  for (uint32_t i = 0; i < count; i++)
    memcpy(mask[i], sample[i], KDP_AEAD_MASK_SIZE);

  IMB_JOB *work = IMB_GET_NEXT_JOB(self->manager);
  work->cipher_direction = IMB_DIR_ENCRYPT;
  work->chain_order = IMB_ORDER_CIPHER_HASH;
  work->cipher_mode = IMB_CIPHER_ECB;
  work->hash_alg = IMB_AUTH_NULL;
  work->enc_keys = keys->encrypt;
  work->dec_keys = keys->decrypt;
  work->key_len_in_bytes = key_size;
  work->src = mask[0];
  work->dst = mask[0];
  work->cipher_start_src_offset_in_bytes = 0;
  work->msg_len_to_cipher_in_bytes = (uint64_t)count * KDP_AEAD_MASK_SIZE;
  work->msg_len_to_hash_in_bytes = 0;
  work->iv = NULL;
  work->iv_len_in_bytes = 0;
  const IMB_JOB *done = IMB_SUBMIT_JOB_NOCHECK(self->manager);
  if (done == NULL) done = IMB_FLUSH_JOB(self->manager);
  /* Cannot happen with the key and sizes given. A mask of zeros shows as records that do not open. */
  if (done == NULL || done->status != IMB_STATUS_COMPLETED) memset(mask, 0, count * (size_t)KDP_AEAD_MASK_SIZE);
}

#define MASK_FUNCTION(bits)                                                                                            \
  static void aes_##bits##_mask(kdp_aead_worker *worker, const uint8_t *key, const uint8_t *const *sample,             \
                                uint8_t(*mask)[KDP_AEAD_MASK_SIZE], uint32_t count) {                                  \
    aes_mask(worker, KDP_AEAD_AES_##bits##_GCM, ((ipsec_mb_worker *)worker)->manager->keyexp_##bits, key, sample,      \
             mask, count);                                                                                             \
  }
MASK_FUNCTION(128)
MASK_FUNCTION(192)
MASK_FUNCTION(256)

static void forget(kdp_aead_worker *worker) {
  ipsec_mb_worker *self = (ipsec_mb_worker *)worker;
  for (int i = 0; i < KDP_AEAD_ALGORITHM_COUNT; i++)
    if (self->mask[i].has_key) kdp_wipe(&self->mask[i], sizeof self->mask[i]);
}

/* ---- Opening ---- */

#define GCM_ENTRY(bits)                                                                                                \
  {                                                                                                                    \
    .name = "AES-" #bits "-GCM", .algorithm = KDP_AEAD_AES_##bits##_GCM, .key_size = bits / 8,                         \
    .expanded_size = EXPANDED_GCM_SIZE, .limits = KDP_AEAD_GCM_LIMITS, .expand = gcm_##bits##_expand,                  \
    .seal = gcm_##bits##_seal, .open = gcm_##bits##_open, .mask = aes_##bits##_mask                                    \
  }
static const kdp_aead table[KDP_AEAD_ALGORITHM_COUNT] = {
    {.name = "ChaCha20-Poly1305",
     .algorithm = KDP_AEAD_CHACHA20_POLY1305,
     .key_size = 32,
     .limits = KDP_AEAD_CHACHA20_LIMITS,
     .seal = chacha_seal,
     .open = chacha_open,
     .mask = kdp_aead_chacha_mask},
    GCM_ENTRY(128),
    GCM_ENTRY(192),
    GCM_ENTRY(256),
};

/* The functions that are called by name; the rest is in the manager. */
typedef struct library_functions {
  unsigned (*version)(void);
  const char *(*version_text)(void);
  size_t (*manager_size)(void);
  IMB_MGR *(*set_pointers)(void *, uint64_t, unsigned);
  void (*init_auto)(IMB_MGR *, IMB_ARCH *);
} library_functions;

static bool find_functions(void *library, library_functions *functions) {
  const struct {
    const char *name;
    void *into;
  } wanted[] = {
      {"imb_get_version", &functions->version},          {"imb_get_version_str", &functions->version_text},
      {"imb_get_mb_mgr_size", &functions->manager_size}, {"imb_set_pointers_mb_mgr", &functions->set_pointers},
      {"init_mb_mgr_auto", &functions->init_auto},
  };
  for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++) {
    void *symbol = dlsym(library, wanted[i].name);
    if (symbol == NULL) return false;
    memcpy(wanted[i].into, &symbol, sizeof symbol);
  }
  return true;
}

static void close_library(kdp_aead_worker *worker) {
  ipsec_mb_worker *self = (ipsec_mb_worker *)worker;
  if (self->manager_memory != NULL) {
    kdp_wipe(self->manager_memory, self->manager_size);
    worker->host.release(worker->host.context, self->manager_memory, self->manager_size);
  }
  if (self->library != NULL) dlclose(self->library);
}

static kdp_status start(ipsec_mb_worker *self) {
  /* Version 1's soname, 2's, ...: the manager's layout, which the header describes, is kept within one. */
  char name[32];
  snprintf(name, sizeof name, "libIPSec_MB.so.%u", (unsigned)IMB_VERSION_NUM >> 16);
  self->library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
  library_functions functions;
  if (self->library == NULL || !find_functions(self->library, &functions)) return KDP_UNSUPPORTED;
  /* An older library has fewer functions in its manager than the header knows. */
  if (functions.version() < IMB_VERSION_NUM) return KDP_UNSUPPORTED;

  const kdp_host *host = &self->base.host;
  self->manager_size = functions.manager_size() + 63;
  self->manager_memory = host->allocate(host->context, self->manager_size);
  if (self->manager_memory == NULL) return KDP_NO_MEMORY;
  uintptr_t aligned = ((uintptr_t)self->manager_memory + 63) & ~(uintptr_t)63;
  self->manager = functions.set_pointers((void *)aligned, 0, 1);
  if (self->manager == NULL) return KDP_UNSUPPORTED;
  IMB_ARCH architecture = IMB_ARCH_NONE;
  functions.init_auto(self->manager, &architecture);
  /* Without AES instructions the library would emulate them. */
  uint64_t needed = IMB_FEATURE_AESNI | IMB_FEATURE_PCLMULQDQ;
  if (self->manager->imb_errno != 0 || architecture < IMB_ARCH_SSE || (self->manager->features & needed) != needed)
    return KDP_UNSUPPORTED;
  snprintf(self->base.version, sizeof self->base.version, "intel-ipsec-mb %s", functions.version_text());
  return KDP_OK;
}

kdp_status kdp_aead_ipsec_mb_open(const kdp_host *host, kdp_aead_worker **worker) {
  ipsec_mb_worker *self = (void *)kdp_aead_worker_allocate(sizeof *self, KDP_AEAD_IPSEC_MB, host);
  if (self == NULL) return KDP_NO_MEMORY;
  self->base.table = table;
  self->base.close = close_library;
  self->base.forget = forget;
  kdp_status status = start(self);
  if (status != KDP_OK) {
    kdp_aead_worker_destroy(&self->base);
    return status;
  }
  *worker = &self->base;
  return KDP_OK;
}

#endif
