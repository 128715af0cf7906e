#include "aead/self_test.h"

#include "aead/worker.h"
#include "core/wipe.h"

/* Lengths that reach the different code paths of the libraries: no text, a small packet, a full one. */
enum { LENGTHS = 3, LONGEST = 1420, MOST_EXPANDED = 2048 };
static const uint32_t length[LENGTHS] = {0, 64, LONGEST};

/* Key, nonce and additional data are those of RFC 8439 section 2.8.2 (the key cut to size for AES), the text is
   (7 i + 3) mod 251; the answers come from libcrypto and are held
   against a plain implementation in the tests. Published vectors are there too: here it is the library and the machine
   that are tested, at sizes that matter. */
static const uint8_t raw_key[KDP_AEAD_MAX_KEY_SIZE] = {0x80, 0x81, 0x82, 0x83, 0x84, 0x85, 0x86, 0x87, 0x88, 0x89, 0x8a,
                                                       0x8b, 0x8c, 0x8d, 0x8e, 0x8f, 0x90, 0x91, 0x92, 0x93, 0x94, 0x95,
                                                       0x96, 0x97, 0x98, 0x99, 0x9a, 0x9b, 0x9c, 0x9d, 0x9e, 0x9f};
static const uint8_t nonce[KDP_AEAD_NONCE_SIZE] = {7, 0, 0, 0, 0x40, 0x41, 0x42, 0x43, 0x44, 0x45, 0x46, 0x47};
static const uint8_t aad[12] = {0x50, 0x51, 0x52, 0x53, 0xc0, 0xc1, 0xc2, 0xc3, 0xc4, 0xc5, 0xc6, 0xc7};

/* The mask is that of the nonce and the first four bytes of the additional data, taken as sample. */
static const struct answers {
  uint8_t tag[LENGTHS][KDP_AEAD_TAG_SIZE];
  uint8_t mask[KDP_AEAD_MASK_SIZE];
} answers[KDP_AEAD_ALGORITHM_COUNT] = {
    [KDP_AEAD_CHACHA20_POLY1305] =
        {
            .tag =
                {
                    {0xe6, 0x22, 0xe5, 0x64, 0x7a, 0x38, 0xd9, 0x67, 0xa7, 0xec, 0xbc, 0xb4, 0x6c, 0x7f, 0x67, 0x5c},
                    {0x59, 0x51, 0x81, 0x07, 0x50, 0x73, 0x66, 0x66, 0x30, 0xcb, 0xf1, 0x8e, 0x5a, 0xa3, 0x0a, 0xbc},
                    {0x64, 0xaf, 0xf4, 0x92, 0xe8, 0x13, 0xd1, 0x8d, 0x20, 0xab, 0xbb, 0xd6, 0x93, 0x4d, 0xf7, 0x98},
                },
            .mask = {0x64, 0x13, 0x88, 0x3f, 0x50, 0x1b, 0x90, 0xcd, 0xd5, 0x5d, 0x04, 0x34, 0xaa, 0xdb, 0x00, 0xf5},
        },
    [KDP_AEAD_AES_128_GCM] =
        {
            .tag =
                {
                    {0x2f, 0x7c, 0xe8, 0x7a, 0xbd, 0xf7, 0x3b, 0x8d, 0xce, 0x7c, 0xf1, 0x7e, 0xa3, 0x5d, 0xde, 0x1c},
                    {0x27, 0xcb, 0x0c, 0xff, 0x1e, 0x1f, 0xc1, 0x1a, 0xa8, 0xef, 0x98, 0xad, 0xe0, 0x83, 0xe6, 0x31},
                    {0xf3, 0xc2, 0xf6, 0x7b, 0x56, 0x61, 0x6b, 0x28, 0x98, 0xaf, 0xae, 0x98, 0x3f, 0x9b, 0x39, 0x6e},
                },
            .mask = {0x1e, 0x57, 0x06, 0x61, 0xbf, 0xf9, 0x64, 0x2c, 0x28, 0xa6, 0xf9, 0x36, 0x3d, 0x2b, 0x54, 0xc4},
        },
    [KDP_AEAD_AES_192_GCM] =
        {
            .tag =
                {
                    {0x75, 0x21, 0x60, 0x56, 0x69, 0x35, 0xe3, 0xb0, 0x6f, 0x92, 0xc7, 0x55, 0x88, 0x32, 0xc1, 0x6e},
                    {0x35, 0x77, 0xbb, 0xf5, 0x93, 0xbd, 0x18, 0x36, 0xd5, 0x23, 0xba, 0xd7, 0x5f, 0x14, 0xcd, 0xce},
                    {0xdc, 0x26, 0x27, 0x81, 0x8f, 0xd1, 0xdb, 0x87, 0x62, 0x0e, 0x9b, 0xa2, 0x28, 0x75, 0xed, 0x57},
                },
            .mask = {0x9a, 0x18, 0x32, 0xaa, 0x30, 0x4c, 0xbd, 0x53, 0x75, 0xef, 0xb6, 0xec, 0x5d, 0xd5, 0xe3, 0xc8},
        },
    [KDP_AEAD_AES_256_GCM] =
        {
            .tag =
                {
                    {0xfc, 0x1b, 0x3c, 0xa4, 0x79, 0xa9, 0x50, 0x91, 0x9b, 0x26, 0xcd, 0xeb, 0xc2, 0x49, 0xd0, 0xca},
                    {0xb5, 0x3a, 0xd0, 0xa0, 0x87, 0xd2, 0x65, 0xa4, 0xaf, 0xb6, 0x58, 0x9a, 0xd5, 0xae, 0x8a, 0x8b},
                    {0x97, 0xa2, 0xb3, 0x39, 0xbc, 0x10, 0x9a, 0xc3, 0x64, 0x03, 0x57, 0xfe, 0xcf, 0x43, 0xc0, 0x0e},
                },
            .mask = {0xcd, 0xcf, 0x92, 0x5a, 0x3a, 0x64, 0x83, 0x95, 0x76, 0x72, 0xf4, 0x7f, 0x4b, 0x01, 0x5d, 0x69},
        },
};

static uint8_t text_byte(uint32_t i) {
  return (uint8_t)((i * 7 + 3) % 251);
}

static bool is_text(const uint8_t *bytes, uint32_t size) {
  uint8_t difference = 0;
  for (uint32_t i = 0; i < size; i++)
    difference |= (uint8_t)(bytes[i] ^ text_byte(i));
  return difference == 0;
}

/* Enough for a provider that works on several packets at once. */
enum { JOBS = 3 * LENGTHS };

/* A batch of jobs of the lengths given by number, in place, behind one another in `text`; back again; and not with a
   tag that is off by one bit. */
static bool test_batch(kdp_aead_worker *worker, const kdp_aead *aead, const uint8_t *key, const uint8_t which[JOBS],
                       uint8_t *text) {
  kdp_aead_job job[JOBS];
  uint8_t tag[JOBS][KDP_AEAD_TAG_SIZE];
  for (int i = 0; i < JOBS; i++) {
    job[i] = (kdp_aead_job){.key = key,
                            .source = text,
                            .destination = text,
                            .tag = tag[i],
                            .aad = aad,
                            .size = length[which[i]],
                            .aad_size = sizeof aad};
    memcpy(job[i].nonce, nonce, sizeof nonce);
    for (uint32_t at = 0; at < job[i].size; at++)
      text[at] = text_byte(at);
    text += job[i].size;
  }
  aead->seal(worker, job, JOBS);
  for (int i = 0; i < JOBS; i++)
    if (job[i].status != KDP_OK || memcmp(tag[i], answers[aead->algorithm].tag[which[i]], sizeof tag[i]) != 0)
      return false;
  if (aead->open(worker, job, JOBS) != JOBS) return false;
  for (int i = 0; i < JOBS; i++)
    if (job[i].status != KDP_OK || !is_text(job[i].destination, job[i].size)) return false;
  aead->seal(worker, job, JOBS);
  for (int i = 0; i < JOBS; i++)
    tag[i][5 * i % KDP_AEAD_TAG_SIZE] ^= 0x80;
  if (aead->open(worker, job, JOBS) != 0) return false;
  for (int i = 0; i < JOBS; i++)
    if (job[i].status != KDP_AUTHENTICATION_FAILED || !kdp_is_zero(job[i].destination, job[i].size)) return false;
  return true;
}

/* All lengths together, and each among its like. */
static bool test_batches(kdp_aead_worker *worker, const kdp_aead *aead, const uint8_t *key) {
  uint8_t text[JOBS * LONGEST], which[JOBS];
  for (int kind = 0; kind <= LENGTHS; kind++) {
    for (int i = 0; i < JOBS; i++)
      which[i] = (uint8_t)(kind < LENGTHS ? kind : i % LENGTHS);
    if (!test_batch(worker, aead, key, which, text)) return false;
  }
  return true;
}

static bool test_mask(kdp_aead_worker *worker, const kdp_aead *aead) {
  uint8_t sample[KDP_AEAD_MASK_SIZE], mask[2][KDP_AEAD_MASK_SIZE];
  memcpy(sample, nonce, sizeof nonce);
  memcpy(sample + sizeof nonce, aad, sizeof sample - sizeof nonce);
  const uint8_t *const samples[2] = {sample, sample};
  aead->mask(worker, raw_key, samples, mask, 2);
  for (int i = 0; i < 2; i++)
    if (memcmp(mask[i], answers[aead->algorithm].mask, sizeof mask[i]) != 0) return false;
  return true;
}

bool kdp_aead_self_test(kdp_aead_worker *worker) {
  _Alignas(64) uint8_t expanded[MOST_EXPANDED];
  for (int i = 0; i < KDP_AEAD_ALGORITHM_COUNT; i++) {
    const kdp_aead *aead = kdp_aead_of(worker, (kdp_aead_algorithm)i);
    if (aead->expanded_size > sizeof expanded) return false;
    if (aead->expanded_size != 0) aead->expand(worker, raw_key, expanded);
    if (!test_batches(worker, aead, aead->expanded_size != 0 ? expanded : raw_key)) return false;
    if (!test_mask(worker, aead)) return false;
  }
  return true;
}
