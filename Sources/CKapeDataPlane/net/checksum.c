#include "net/checksum.h"

#include <string.h>

#if defined(__x86_64__)
#include <immintrin.h>
#define HAVE_AVX2 1
#else
#define HAVE_AVX2 0
#endif

/* Below this a vector's start and end cost more than they save. */
enum { VECTOR_LEAST = 128 };

/* Ones' complement addition of 64 bits. Any two numbers that are equal modulo 2^16 - 1, and both zero or both not, fold
   to the same checksum, so words of any width may be added at any even offset. */
static inline uint64_t add_carry(uint64_t sum, uint64_t value) {
  sum += value;
  return sum + (sum < value);
}

/* The last 0 to 7 bytes, as if a zero followed. Each piece is added for itself: putting them together in memory would
   wait for the stores. */
static inline uint64_t load_tail(const uint8_t *at, size_t size) {
  uint64_t sum = 0;
  if (size & 4) {
    uint32_t word;
    memcpy(&word, at, 4);
    sum = word;
    at += 4;
  }
  if (size & 2) {
    uint16_t word;
    memcpy(&word, at, 2);
    sum += word;
    at += 2;
  }
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
  if (size & 1) sum += *at;
#else
  if (size & 1) sum += (uint64_t)*at << 8;
#endif
  return sum;
}

static inline void copy_tail(uint8_t *to, const uint8_t *at, size_t size) {
  if (size & 4) {
    memcpy(to, at, 4);
    to += 4, at += 4;
  }
  if (size & 2) {
    memcpy(to, at, 2);
    to += 2, at += 2;
  }
  if (size & 1) *to = *at;
}

/* Two chains, so that one addition does not wait for the other. `copy` is a constant where this is inlined. */
static inline __attribute__((always_inline)) uint64_t add_words(uint64_t sum, bool copy, uint8_t *to, const uint8_t *at,
                                                                size_t size) {
  uint64_t second = 0;
  for (; size >= 16; size -= 16, at += 16) {
    uint64_t word[2];
    memcpy(word, at, 16);
    if (copy) {
      memcpy(to, word, 16);
      to += 16;
    }
    sum = add_carry(sum, word[0]);
    second = add_carry(second, word[1]);
  }
  if (size >= 8) {
    uint64_t word;
    memcpy(&word, at, 8);
    if (copy) {
      memcpy(to, &word, 8);
      to += 8;
    }
    sum = add_carry(sum, word);
    size -= 8, at += 8;
  }
  if (copy) copy_tail(to, at, size);
  sum = add_carry(sum, load_tail(at, size));
  return add_carry(sum, second);
}

#if HAVE_AVX2
/* 32-bit words are added into 64-bit lanes, where no size_t of memory is enough to overflow them: the even words by
   mask, the odd ones by shift. Takes whole vectors of 32 bytes off the front. */
static inline __attribute__((always_inline, target("avx2"))) uint64_t add_vectors(bool copy, uint8_t *to,
                                                                                  const uint8_t *at, size_t vectors) {
  const __m256i even = _mm256_set1_epi64x(0xffffffff);
  __m256i a = _mm256_setzero_si256(), b = a, c = a, d = a;
  for (; vectors >= 2; vectors -= 2, at += 64) {
    __m256i x = _mm256_loadu_si256((const __m256i *)(const void *)at);
    __m256i y = _mm256_loadu_si256((const __m256i *)(const void *)(at + 32));
    if (copy) {
      _mm256_storeu_si256((__m256i *)(void *)to, x);
      _mm256_storeu_si256((__m256i *)(void *)(to + 32), y);
      to += 64;
    }
    a = _mm256_add_epi64(a, _mm256_and_si256(x, even));
    b = _mm256_add_epi64(b, _mm256_srli_epi64(x, 32));
    c = _mm256_add_epi64(c, _mm256_and_si256(y, even));
    d = _mm256_add_epi64(d, _mm256_srli_epi64(y, 32));
  }
  if (vectors) {
    __m256i x = _mm256_loadu_si256((const __m256i *)(const void *)at);
    if (copy) _mm256_storeu_si256((__m256i *)(void *)to, x);
    a = _mm256_add_epi64(a, _mm256_and_si256(x, even));
    b = _mm256_add_epi64(b, _mm256_srli_epi64(x, 32));
  }
  a = _mm256_add_epi64(_mm256_add_epi64(a, b), _mm256_add_epi64(c, d));
  __m128i half = _mm_add_epi64(_mm256_castsi256_si128(a), _mm256_extracti128_si256(a, 1));
  return (uint64_t)_mm_cvtsi128_si64(half) + (uint64_t)_mm_extract_epi64(half, 1);
}

static __attribute__((target("avx2"), noinline)) uint64_t add_avx2(uint64_t sum, const uint8_t *at, size_t size) {
  size_t whole = size & ~(size_t)31;
  sum = add_carry(sum, add_vectors(false, NULL, at, whole / 32));
  return add_words(sum, false, NULL, at + whole, size - whole);
}

static __attribute__((target("avx2"), noinline)) uint64_t copy_add_avx2(uint64_t sum, uint8_t *to, const uint8_t *at,
                                                                        size_t size) {
  size_t whole = size & ~(size_t)31;
  sum = add_carry(sum, add_vectors(true, to, at, whole / 32));
  return add_words(sum, true, to + whole, at + whole, size - whole);
}

static inline bool has_avx2(void) {
  return __builtin_cpu_supports("avx2") != 0;
}
#endif

uint64_t kdp_checksum_add(uint64_t sum, const void *bytes, size_t size) {
#if HAVE_AVX2
  if (size >= VECTOR_LEAST && has_avx2()) return add_avx2(sum, bytes, size);
#endif
  return add_words(sum, false, NULL, bytes, size);
}

uint64_t kdp_checksum_copy_add(uint64_t sum, void *destination, const void *source, size_t size) {
#if HAVE_AVX2
  if (size >= VECTOR_LEAST && has_avx2()) return copy_add_avx2(sum, destination, source, size);
#endif
  return add_words(sum, true, destination, source, size);
}

uint64_t kdp_checksum_pseudo(const uint8_t *header, uint8_t protocol, uint32_t size) {
  const uint8_t rest[8] = {
      (uint8_t)(size >> 24), (uint8_t)(size >> 16), (uint8_t)(size >> 8), (uint8_t)size, 0, 0, 0, protocol};
  uint64_t sum;
  memcpy(&sum, rest, 8);
  if (header[0] >> 4 == 4) {
    uint64_t addresses;
    memcpy(&addresses, header + 12, 8);
    return add_carry(sum, addresses);
  }
  uint64_t addresses[4];
  memcpy(addresses, header + 8, 32);
  for (int i = 0; i < 4; i++)
    sum = add_carry(sum, addresses[i]);
  return sum;
}
