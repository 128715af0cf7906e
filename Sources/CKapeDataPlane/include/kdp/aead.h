/* kdp/aead.h: one table of functions over batches. Each job has its own key, nonce, additional data and tag, in place
   or from a source to a destination; the tag is wherever the protocol has it. Providers: intel-ipsec-mb (x86-64, when
   the build has its header and the machine its library), OpenSSL's libcrypto (everywhere), and on machines with AVX-512
   our own ChaCha20-Poly1305 for batches, with one of those behind it. */
#ifndef KDP_AEAD_H
#define KDP_AEAD_H

#include "base.h"
#include "status.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { KDP_AEAD_NONCE_SIZE = 12, KDP_AEAD_TAG_SIZE = 16, KDP_AEAD_MAX_BATCH = 64, KDP_AEAD_MASK_SIZE = 16 };

typedef enum kdp_aead_algorithm {
  KDP_AEAD_CHACHA20_POLY1305, /* RFC 8439 */
  KDP_AEAD_AES_128_GCM,       /* NIST SP 800-38D */
  KDP_AEAD_AES_192_GCM,
  KDP_AEAD_AES_256_GCM,
  KDP_AEAD_ALGORITHM_COUNT
} kdp_aead_algorithm;

typedef enum kdp_aead_provider {
  KDP_AEAD_OPENSSL,
  KDP_AEAD_IPSEC_MB,
  KDP_AEAD_AVX512,
  KDP_AEAD_PROVIDER_COUNT
} kdp_aead_provider;

/* One packet's work. `source` and `destination` are equal or do not overlap. `size` is the text without tag, 0 to
   65,535, as is `aad_size`; where a size is 0 its pointer may be anything. On open, a job whose tag does not match gets
   KDP_AUTHENTICATION_FAILED and its destination is not to be used (it is wiped). INVALID_ARGUMENT: a size is out of
   range; SYSTEM: the library behind the provider failed; in both cases nothing was sealed or opened. */
typedef struct kdp_aead_job {
  const uint8_t *key; /* the expanded key (kdp_aead_expand); where expanded_size is 0, the raw key itself */
  const uint8_t *source;
  uint8_t *destination;
  uint8_t *tag; /* 16 bytes, written by seal, read by open */
  const uint8_t *aad;
  uint32_t size, aad_size;
  uint8_t nonce[KDP_AEAD_NONCE_SIZE];
  uint32_t status; /* kdp_status */
} kdp_aead_job;

/* Usage limits of one key, as data; UINT64_MAX: the protocol's own counter ends first. A key must go once any of them
   is reached. */
typedef struct kdp_aead_limits {
  uint64_t seal_packets; /* packets sealed, each of at most packet_bytes of text (RFC 8446 section 5.5) */
  uint64_t seal_blocks;  /* packets sealed plus 16-byte blocks of their text, whatever their size
                            (draft-irtf-cfrg-aead-limits section 5.1.1) */
  uint64_t failed_opens; /* packets that did not open (RFC 9147 section 4.5.3) */
  uint64_t packet_bytes;
} kdp_aead_limits;

/* A worker's state with a provider: contexts, managers. Not thread safe; one a lane. */
typedef struct kdp_aead_worker kdp_aead_worker;

/* The table: what one provider does for one algorithm. Batches may have any length; up to KDP_AEAD_MAX_BATCH is handled
   in one piece. None of the functions allocates, locks or makes a system call. Consecutive jobs with the same key are
   cheaper with OpenSSL, which keeps one expanded key for sealing and one for opening. */
typedef struct kdp_aead {
  const char *name; /* "ChaCha20-Poly1305" */
  kdp_aead_algorithm algorithm;
  uint16_t key_size;
  uint16_t expanded_size; /* 0: jobs take the raw key; else bytes, to be aligned to 64 */
  kdp_aead_limits limits;
  /* Fills `expanded` (64-byte aligned, expanded_size bytes) from a raw key. NULL where expanded_size is 0. */
  void (*expand)(kdp_aead_worker *, const uint8_t *key, uint8_t *expanded);
  void (*seal)(kdp_aead_worker *, kdp_aead_job *job, uint32_t count);
  /* Returns how many opened. */
  uint32_t (*open)(kdp_aead_worker *, kdp_aead_job *job, uint32_t count);
  /* The record-number mask of RFC 9147 section 4.2.3 for a batch: `key` is a raw sn_key, sample[i] points to 16 bytes
     of ciphertext, mask[i] gets 16 bytes (AES-ECB of the sample, or the first 16 bytes of the ChaCha20 block). */
  void (*mask)(kdp_aead_worker *, const uint8_t *key, const uint8_t *const *sample, uint8_t (*mask)[KDP_AEAD_MASK_SIZE],
               uint32_t count);
} kdp_aead;

/* Opens a provider and runs its known-answer self test over every algorithm. UNSUPPORTED: not in this build or not on
 * this machine. */
kdp_status kdp_aead_worker_create(kdp_aead_provider provider, const kdp_host *host,
                                  kdp_aead_worker **worker) KDP_MUST_USE KDP_NONNULL;
/* The best provider that passes its self test. `name` overrides the choice ("openssl", "ipsec-mb",
   "avx512"); NULL or "": choose.
   An unknown or unusable name is an error (UNSUPPORTED), never a silent change of mind. Programs pass
   getenv("KAPE_AEAD"). */
kdp_status kdp_aead_worker_choose(const char *name, const kdp_host *host, kdp_aead_worker **worker) KDP_MUST_USE
    __attribute__((nonnull(2, 3)));
void kdp_aead_worker_destroy(kdp_aead_worker *worker); /* NULL is allowed; wipes */

/* Wipes the keys that the worker remembers from jobs before. For whoever gives a key up that is not to be found in
   memory any more; the next job sets its key anew. */
void kdp_aead_worker_forget(kdp_aead_worker *worker) KDP_NONNULL;

const kdp_aead *kdp_aead_of(const kdp_aead_worker *worker, kdp_aead_algorithm algorithm) KDP_NONNULL;
kdp_aead_provider kdp_aead_worker_provider(const kdp_aead_worker *worker) KDP_NONNULL;
const char *kdp_aead_provider_name(kdp_aead_provider provider); /* "openssl", "ipsec-mb", "avx512" */
/* Version of the library behind it, for people: "OpenSSL 3.0.19", "intel-ipsec-mb 1.3.0", "AVX-512, with
   intel-ipsec-mb 1.3.0". Lives as long as the worker.
 */
const char *kdp_aead_worker_version(const kdp_aead_worker *worker) KDP_NONNULL;

/* XChaCha20-Poly1305 (draft-irtf-cfrg-xchacha-03), single: WireGuard's cookies. seal: destination has size + 16 bytes;
   open: `size` includes the tag, destination has size - 16 bytes. */
enum { KDP_XCHACHA_NONCE_SIZE = 24 };
void kdp_xchacha_seal(const uint8_t key[32], const uint8_t nonce[24], const uint8_t *aad, size_t aad_size,
                      const uint8_t *source, size_t size, uint8_t *destination);
kdp_status kdp_xchacha_open(const uint8_t key[32], const uint8_t nonce[24], const uint8_t *aad, size_t aad_size,
                            const uint8_t *source, size_t size, uint8_t *destination) KDP_MUST_USE;

#ifdef __cplusplus
}
#endif
#endif
