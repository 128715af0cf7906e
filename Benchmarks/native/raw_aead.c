#include "raw_aead.h"

#include "aead/chacha_avx512.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#include "side.h"

#if defined(__x86_64__) && __has_include(<intel-ipsec-mb.h>)
#include <intel-ipsec-mb.h>
#define HAS_IPSEC_MB 1
#else
#define HAS_IPSEC_MB 0
#endif

enum { CHACHA, AES, CIPHERS, SEAL = 0, OPEN, DIRECTIONS };

struct raw_aead {
  uint8_t key[32];
  EVP_CIPHER_CTX *evp[CIPHERS][DIRECTIONS];
#if HAS_IPSEC_MB
  IMB_MGR *manager;
  _Alignas(64) struct gcm_key_data gcm_key;
  _Alignas(64) struct gcm_context_data gcm;
  _Alignas(64) struct chacha20_poly1305_context_data chacha;
#endif
};

static bool always(const raw_aead *raw) {
  (void)raw;
  return true;
}

static uint32_t equal(const uint8_t *computed, const kdp_aead_job *job) {
  return CRYPTO_memcmp(computed, job->tag, KDP_AEAD_TAG_SIZE) == 0;
}

/* ---- OpenSSL ---- */

static void evp_seal(EVP_CIPHER_CTX *context, kdp_aead_job *job, uint32_t count) {
  int size;
  for (uint32_t i = 0; i < count; i++)
    bench_must(EVP_EncryptInit_ex(context, NULL, NULL, NULL, job[i].nonce) == 1 &&
                   EVP_EncryptUpdate(context, job[i].destination, &size, job[i].source, (int)job[i].size) == 1 &&
                   EVP_EncryptFinal_ex(context, job[i].tag, &size) == 1 &&
                   EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_GET_TAG, KDP_AEAD_TAG_SIZE, job[i].tag) == 1,
               "OpenSSL does not seal");
}

static uint32_t evp_open(EVP_CIPHER_CTX *context, kdp_aead_job *job, uint32_t count) {
  uint8_t none[KDP_AEAD_TAG_SIZE];
  uint32_t opened = 0;
  int size;
  for (uint32_t i = 0; i < count; i++)
    opened += EVP_DecryptInit_ex(context, NULL, NULL, NULL, job[i].nonce) == 1 &&
              EVP_DecryptUpdate(context, job[i].destination, &size, job[i].source, (int)job[i].size) == 1 &&
              EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_SET_TAG, KDP_AEAD_TAG_SIZE, job[i].tag) == 1 &&
              EVP_DecryptFinal_ex(context, none, &size) == 1;
  return opened;
}

static void evp_chacha_seal(raw_aead *raw, kdp_aead_job *job, uint32_t count) {
  evp_seal(raw->evp[CHACHA][SEAL], job, count);
}
static uint32_t evp_chacha_open(raw_aead *raw, kdp_aead_job *job, uint32_t count) {
  return evp_open(raw->evp[CHACHA][OPEN], job, count);
}
static void evp_aes_seal(raw_aead *raw, kdp_aead_job *job, uint32_t count) {
  evp_seal(raw->evp[AES][SEAL], job, count);
}
static uint32_t evp_aes_open(raw_aead *raw, kdp_aead_job *job, uint32_t count) {
  return evp_open(raw->evp[AES][OPEN], job, count);
}

/* ---- libsodium ---- */

static void sodium_chacha_seal(raw_aead *raw, kdp_aead_job *job, uint32_t count) {
  for (uint32_t i = 0; i < count; i++)
    (void)crypto_aead_chacha20poly1305_ietf_encrypt_detached(job[i].destination, job[i].tag, NULL, job[i].source,
                                                             job[i].size, NULL, 0, NULL, job[i].nonce, raw->key);
}

static uint32_t sodium_chacha_open(raw_aead *raw, kdp_aead_job *job, uint32_t count) {
  uint32_t opened = 0;
  for (uint32_t i = 0; i < count; i++)
    opened += crypto_aead_chacha20poly1305_ietf_decrypt_detached(job[i].destination, NULL, job[i].source, job[i].size,
                                                                 job[i].tag, NULL, 0, job[i].nonce, raw->key) == 0;
  return opened;
}

/* ---- intel-ipsec-mb ---- */

#if HAS_IPSEC_MB
static bool has_ipsec_mb(const raw_aead *raw) {
  return raw->manager != NULL;
}

static void fill(IMB_JOB *work, const raw_aead *raw, kdp_aead_job *job, int direction, uint8_t *tag) {
  work->cipher_direction = direction == SEAL ? IMB_DIR_ENCRYPT : IMB_DIR_DECRYPT;
  work->chain_order = direction == SEAL ? IMB_ORDER_CIPHER_HASH : IMB_ORDER_HASH_CIPHER;
  work->cipher_mode = IMB_CIPHER_CHACHA20_POLY1305;
  work->hash_alg = IMB_AUTH_CHACHA20_POLY1305;
  work->enc_keys = work->dec_keys = raw->key;
  work->key_len_in_bytes = 32;
  work->src = job->source;
  work->dst = job->destination;
  work->cipher_start_src_offset_in_bytes = work->hash_start_src_offset_in_bytes = 0;
  work->msg_len_to_cipher_in_bytes = work->msg_len_to_hash_in_bytes = job->size;
  work->iv = job->nonce;
  work->iv_len_in_bytes = KDP_AEAD_NONCE_SIZE;
  work->auth_tag_output = tag;
  work->auth_tag_output_len_in_bytes = KDP_AEAD_TAG_SIZE;
  work->u.CHACHA20_POLY1305.aad = NULL;
  work->u.CHACHA20_POLY1305.aad_len_in_bytes = 0;
}

static void run_jobs(raw_aead *raw, kdp_aead_job *job, uint32_t count, int direction,
                     uint8_t (*tag)[KDP_AEAD_TAG_SIZE]) {
  uint32_t done = 0;
  for (uint32_t i = 0; i < count; i++) {
    fill(IMB_GET_NEXT_JOB(raw->manager), raw, &job[i], direction, tag ? tag[i] : job[i].tag);
    for (IMB_JOB *back = IMB_SUBMIT_JOB_NOCHECK(raw->manager); back; back = IMB_GET_COMPLETED_JOB(raw->manager))
      done += back->status == IMB_STATUS_COMPLETED;
  }
  for (IMB_JOB *back; done < count && (back = IMB_FLUSH_JOB(raw->manager));)
    done += back->status == IMB_STATUS_COMPLETED;
  bench_must(done == count, "intel-ipsec-mb lost a job");
}

static uint32_t count_equal(uint8_t (*tag)[KDP_AEAD_TAG_SIZE], const kdp_aead_job *job, uint32_t count) {
  uint32_t opened = 0;
  for (uint32_t i = 0; i < count; i++)
    opened += equal(tag[i], &job[i]);
  return opened;
}

static void jobs_seal(raw_aead *raw, kdp_aead_job *job, uint32_t count) {
  run_jobs(raw, job, count, SEAL, NULL);
}

static uint32_t jobs_open(raw_aead *raw, kdp_aead_job *job, uint32_t count) {
  uint8_t tag[KDP_AEAD_MAX_BATCH][KDP_AEAD_TAG_SIZE];
  run_jobs(raw, job, count, OPEN, tag);
  return count_equal(tag, job, count);
}

#if IMB_VERSION_NUM < IMB_VERSION(1, 4, 0)
#define HAS_BURST 1 /* later versions want session ids */
static void run_burst(raw_aead *raw, kdp_aead_job *job, uint32_t count, int direction,
                      uint8_t (*tag)[KDP_AEAD_TAG_SIZE]) {
  IMB_JOB *work[IMB_MAX_BURST_SIZE];
  while (IMB_GET_NEXT_BURST(raw->manager, count, work) < count)
    (void)IMB_FLUSH_BURST(raw->manager, count, work);
  for (uint32_t i = 0; i < count; i++)
    fill(work[i], raw, &job[i], direction, tag ? tag[i] : job[i].tag);
  uint32_t done = IMB_SUBMIT_BURST_NOCHECK(raw->manager, count, work);
  while (done < count) {
    uint32_t more = IMB_FLUSH_BURST(raw->manager, count - done, work);
    bench_must(more > 0, "intel-ipsec-mb lost a job");
    done += more;
  }
}

static void burst_seal(raw_aead *raw, kdp_aead_job *job, uint32_t count) {
  run_burst(raw, job, count, SEAL, NULL);
}

static uint32_t burst_open(raw_aead *raw, kdp_aead_job *job, uint32_t count) {
  uint8_t tag[KDP_AEAD_MAX_BATCH][KDP_AEAD_TAG_SIZE];
  run_burst(raw, job, count, OPEN, tag);
  return count_equal(tag, job, count);
}
#else
#define HAS_BURST 0
#endif

static void direct_seal(raw_aead *raw, kdp_aead_job *job, uint32_t count) {
  for (uint32_t i = 0; i < count; i++) {
    IMB_CHACHA20_POLY1305_INIT(raw->manager, raw->key, &raw->chacha, job[i].nonce, job[i].nonce, 0);
    IMB_CHACHA20_POLY1305_ENC_UPDATE(raw->manager, raw->key, &raw->chacha, job[i].destination, job[i].source,
                                     job[i].size);
    IMB_CHACHA20_POLY1305_ENC_FINALIZE(raw->manager, &raw->chacha, job[i].tag, KDP_AEAD_TAG_SIZE);
  }
}

static uint32_t direct_open(raw_aead *raw, kdp_aead_job *job, uint32_t count) {
  uint8_t tag[KDP_AEAD_TAG_SIZE];
  uint32_t opened = 0;
  for (uint32_t i = 0; i < count; i++) {
    IMB_CHACHA20_POLY1305_INIT(raw->manager, raw->key, &raw->chacha, job[i].nonce, job[i].nonce, 0);
    IMB_CHACHA20_POLY1305_DEC_UPDATE(raw->manager, raw->key, &raw->chacha, job[i].destination, job[i].source,
                                     job[i].size);
    IMB_CHACHA20_POLY1305_DEC_FINALIZE(raw->manager, &raw->chacha, tag, KDP_AEAD_TAG_SIZE);
    opened += equal(tag, &job[i]);
  }
  return opened;
}

static void gcm_seal(raw_aead *raw, kdp_aead_job *job, uint32_t count) {
  for (uint32_t i = 0; i < count; i++)
    IMB_AES256_GCM_ENC(raw->manager, &raw->gcm_key, &raw->gcm, job[i].destination, job[i].source, job[i].size,
                       job[i].nonce, job[i].nonce, 0, job[i].tag, KDP_AEAD_TAG_SIZE);
}

static uint32_t gcm_open(raw_aead *raw, kdp_aead_job *job, uint32_t count) {
  uint8_t tag[KDP_AEAD_TAG_SIZE];
  uint32_t opened = 0;
  for (uint32_t i = 0; i < count; i++) {
    IMB_AES256_GCM_DEC(raw->manager, &raw->gcm_key, &raw->gcm, job[i].destination, job[i].source, job[i].size,
                       job[i].nonce, job[i].nonce, 0, tag, KDP_AEAD_TAG_SIZE);
    opened += equal(tag, &job[i]);
  }
  return opened;
}
#endif

/* ---- Ours ---- */

#if defined(__x86_64__)
static bool has_avx512(const raw_aead *raw) {
  (void)raw;
  return kdp_chacha_avx512_available();
}

static void avx512_seal(raw_aead *raw, kdp_aead_job *job, uint32_t count) {
  for (uint32_t i = 0; i < count; i++)
    job[i].key = raw->key;
  kdp_chacha_avx512_seal(job, count);
}

static uint32_t avx512_open(raw_aead *raw, kdp_aead_job *job, uint32_t count) {
  for (uint32_t i = 0; i < count; i++)
    job[i].key = raw->key;
  return kdp_chacha_avx512_open(job, count);
}
#endif

static const raw_way all_ways[] = {
#if defined(__x86_64__)
    {"ours, AVX-512", KDP_AEAD_CHACHA20_POLY1305, avx512_seal, avx512_open, has_avx512},
#endif
#if HAS_IPSEC_MB
    {"intel-ipsec-mb, jobs", KDP_AEAD_CHACHA20_POLY1305, jobs_seal, jobs_open, has_ipsec_mb},
#if HAS_BURST
    {"intel-ipsec-mb, bursts", KDP_AEAD_CHACHA20_POLY1305, burst_seal, burst_open, has_ipsec_mb},
#endif
    {"intel-ipsec-mb, direct calls", KDP_AEAD_CHACHA20_POLY1305, direct_seal, direct_open, has_ipsec_mb},
    {"intel-ipsec-mb, direct calls", KDP_AEAD_AES_256_GCM, gcm_seal, gcm_open, has_ipsec_mb},
#endif
    {"OpenSSL, EVP", KDP_AEAD_CHACHA20_POLY1305, evp_chacha_seal, evp_chacha_open, always},
    {"OpenSSL, EVP", KDP_AEAD_AES_256_GCM, evp_aes_seal, evp_aes_open, always},
    {"libsodium", KDP_AEAD_CHACHA20_POLY1305, sodium_chacha_seal, sodium_chacha_open, always},
};

uint32_t raw_ways(const raw_aead *raw, kdp_aead_algorithm algorithm, const raw_way *way[RAW_WAYS_MOST]) {
  uint32_t count = 0;
  for (size_t i = 0; i < sizeof all_ways / sizeof *all_ways; i++)
    if (all_ways[i].algorithm == algorithm && all_ways[i].usable(raw)) way[count++] = &all_ways[i];
  return count;
}

raw_aead *raw_aead_make(const uint8_t key[32]) {
  raw_aead *raw = aligned_alloc(64, (sizeof *raw + 63) / 64 * 64);
  bench_must(raw != NULL && sodium_init() >= 0, "no memory");
  memset(raw, 0, sizeof *raw);
  memcpy(raw->key, key, 32);
  for (int cipher = 0; cipher < CIPHERS; cipher++)
    for (int direction = 0; direction < DIRECTIONS; direction++) {
      EVP_CIPHER_CTX *context = raw->evp[cipher][direction] = EVP_CIPHER_CTX_new();
      bench_must(context && EVP_CipherInit_ex(context, cipher == CHACHA ? EVP_chacha20_poly1305() : EVP_aes_256_gcm(),
                                              NULL, key, NULL, direction == SEAL) == 1,
                 "OpenSSL lacks a cipher");
    }
#if HAS_IPSEC_MB
  raw->manager = alloc_mb_mgr(0);
  if (raw->manager) {
    IMB_ARCH architecture = IMB_ARCH_NONE;
    init_mb_mgr_auto(raw->manager, &architecture);
    if (architecture < IMB_ARCH_SSE) {
      free_mb_mgr(raw->manager);
      raw->manager = NULL;
    } else {
      IMB_AES256_GCM_PRE(raw->manager, raw->key, &raw->gcm_key);
    }
  }
#endif
  return raw;
}

void raw_aead_end(raw_aead *raw) {
  for (int cipher = 0; cipher < CIPHERS; cipher++)
    for (int direction = 0; direction < DIRECTIONS; direction++)
      EVP_CIPHER_CTX_free(raw->evp[cipher][direction]);
#if HAS_IPSEC_MB
  if (raw->manager) free_mb_mgr(raw->manager);
#endif
  free(raw);
}
