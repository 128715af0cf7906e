/* What the providers and the choice among them share. A provider puts a kdp_aead_worker first in a struct of its own.
 */
#ifndef KDP_AEAD_WORKER_H
#define KDP_AEAD_WORKER_H
#include <string.h>

#include "kdp/aead.h"

enum { KDP_AEAD_MAX_TEXT = 65535, KDP_AEAD_MAX_KEY_SIZE = 32 };

struct kdp_aead_worker {
  const kdp_aead *table;            /* KDP_AEAD_ALGORITHM_COUNT entries */
  void (*close)(kdp_aead_worker *); /* releases what the provider holds besides this memory */
  void (*forget)(kdp_aead_worker *);
  kdp_host host;
  void *memory; /* what host.allocate gave; this struct lies in it, aligned to 64 */
  size_t memory_size;
  kdp_aead_provider provider;
  char version[48];
};

/* Zeroed memory of `size` bytes aligned to 64, its kdp_aead_worker filled but for table, close, forget and version;
   NULL: none left. */
kdp_aead_worker *kdp_aead_worker_allocate(size_t size, kdp_aead_provider provider, const kdp_host *host) KDP_MUST_USE;

/* UNSUPPORTED: not in this build or not on this machine; NO_MEMORY. */
kdp_status kdp_aead_openssl_open(const kdp_host *host, kdp_aead_worker **worker) KDP_MUST_USE;
kdp_status kdp_aead_ipsec_mb_open(const kdp_host *host, kdp_aead_worker **worker) KDP_MUST_USE;
/* `fewest`: batches of fewer packets go to the library behind it. */
kdp_status kdp_aead_avx512_open(uint32_t fewest, const kdp_host *host, kdp_aead_worker **worker) KDP_MUST_USE;
/* With fewer, most lanes would be empty, and a library is faster. */
enum { KDP_AEAD_AVX512_FEWEST = 6 };

static inline bool kdp_aead_job_fits(const kdp_aead_job *job) {
  return job->size <= KDP_AEAD_MAX_TEXT && job->aad_size <= KDP_AEAD_MAX_TEXT;
}

/* kdp_equal_secret for a tag, in a few instructions: it is run for every packet. */
static inline bool kdp_aead_tags_equal(const uint8_t *a, const uint8_t *b) {
  uint64_t left[2], right[2];
  memcpy(left, a, KDP_AEAD_TAG_SIZE);
  memcpy(right, b, KDP_AEAD_TAG_SIZE);
  uint64_t difference = (left[0] ^ right[0]) | (left[1] ^ right[1]);
  /* Keeps the compiler from turning this into an early exit. */
  __asm__ volatile("" : "+r"(difference));
  return difference == 0;
}

/* Usage limits.

   ChaCha20-Poly1305: RFC 8446 section 5.5: the record sequence number would wrap before the safety limit is reached.
   AES-GCM: RFC 8446 section 5.5: 2^24.5 records of 2^14 bytes keep a margin of about 2^-57; the same margin bounds
   blocks and packets together to 2^(1/2 * (129 - 57)) - 1 = 2^36 - 1 (draft-irtf-cfrg-aead-limits section 5.1.1,
   confidentiality limit, p = 2^-57), for protocols whose packets are smaller.
   Failed openings, for both: RFC 9147 section 4.5.3. */
#define KDP_AEAD_CHACHA20_LIMITS                                                                                       \
  { .seal_packets = UINT64_MAX, .seal_blocks = UINT64_MAX, .failed_opens = UINT64_C(1) << 36, .packet_bytes = 1 << 14 }
#define KDP_AEAD_GCM_LIMITS                                                                                            \
  {                                                                                                                    \
    .seal_packets = 23726566 /* 2^24.5 */, .seal_blocks = (UINT64_C(1) << 36) - 1, .failed_opens = UINT64_C(1) << 36,  \
    .packet_bytes = 1 << 14                                                                                            \
  }
#endif
