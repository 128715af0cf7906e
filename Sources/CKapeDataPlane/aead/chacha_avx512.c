#include "aead/chacha_avx512.h"

bool kdp_chacha_avx512_available(void) {
#if defined(__x86_64__)
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
         __builtin_cpu_supports("avx512ifma") && __builtin_cpu_supports("avx512vbmi2");
#else
  return false;
#endif
}

#if defined(__x86_64__)
#include <immintrin.h>

#include "aead/worker.h"
#include "core/bytes.h"
#include "core/wipe.h"

#define VECTOR __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx512ifma,avx512vbmi2")))
#define INLINE static inline __attribute__((always_inline)) VECTOR

enum { LANES = 16, BLOCK = 64, POLY_LANES = 8, POLY_KEY = 32 };

/* ---- ChaCha20 ---- */

/* Sixteen blocks, each with a key, counter and nonce of its own: word by word, a lane for each block. */
typedef struct chacha_state {
  __m512i key[8], counter, nonce[3];
  const uint8_t *key_of_all; /* the one that is in every lane, or NULL */
} chacha_state;

INLINE void set_key(chacha_state *state, __mmask16 lanes, const uint8_t *key) {
  if (state->key_of_all == key) return;
  for (int i = 0; i < 8; i++)
    state->key[i] = _mm512_mask_set1_epi32(state->key[i], lanes, (int)kdp_load_le32(key + 4 * i));
  state->key_of_all = lanes == 0xffff ? key : NULL;
}

/* `count` lanes from `first` on get the blocks of `job` from number `block` on. */
INLINE void set_lanes(chacha_state *state, const kdp_aead_job *job, uint32_t first, uint32_t count, uint32_t block) {
  const __m512i number = _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
  __mmask16 lanes = (__mmask16)(((1u << count) - 1) << first);
  /* What later segments do not overwrite may as well be the same. */
  set_key(state, first == 0 ? 0xffff : lanes, job->key);
  state->counter = _mm512_mask_add_epi32(state->counter, lanes, _mm512_set1_epi32((int)(block - first)), number);
  for (int i = 0; i < 3; i++)
    state->nonce[i] = _mm512_mask_set1_epi32(state->nonce[i], lanes, (int)kdp_load_le32(job->nonce + 4 * i));
}

#define QUARTERS(a, b, c, d, left)                                                                                     \
  x[a] = _mm512_add_epi32(x[a], x[b]);                                                                                 \
  x[d] = _mm512_rol_epi32(_mm512_xor_si512(x[d], x[a]), left)
#define ROUND(a0, b0, c0, d0, a1, b1, c1, d1, a2, b2, c2, d2, a3, b3, c3, d3)                                          \
  QUARTERS(a0, b0, c0, d0, 16);                                                                                        \
  QUARTERS(a1, b1, c1, d1, 16);                                                                                        \
  QUARTERS(a2, b2, c2, d2, 16);                                                                                        \
  QUARTERS(a3, b3, c3, d3, 16);                                                                                        \
  QUARTERS(c0, d0, a0, b0, 12);                                                                                        \
  QUARTERS(c1, d1, a1, b1, 12);                                                                                        \
  QUARTERS(c2, d2, a2, b2, 12);                                                                                        \
  QUARTERS(c3, d3, a3, b3, 12);                                                                                        \
  QUARTERS(a0, b0, c0, d0, 8);                                                                                         \
  QUARTERS(a1, b1, c1, d1, 8);                                                                                         \
  QUARTERS(a2, b2, c2, d2, 8);                                                                                         \
  QUARTERS(a3, b3, c3, d3, 8);                                                                                         \
  QUARTERS(c0, d0, a0, b0, 7);                                                                                         \
  QUARTERS(c1, d1, a1, b1, 7);                                                                                         \
  QUARTERS(c2, d2, a2, b2, 7);                                                                                         \
  QUARTERS(c3, d3, a3, b3, 7)

/* The sixteen blocks of key stream of a state. */
VECTOR static void key_stream(const chacha_state *state, __m512i block[LANES]) {
  __m512i s[16] = {_mm512_set1_epi32(0x61707865),
                   _mm512_set1_epi32(0x3320646e),
                   _mm512_set1_epi32(0x79622d32),
                   _mm512_set1_epi32(0x6b206574),
                   state->key[0],
                   state->key[1],
                   state->key[2],
                   state->key[3],
                   state->key[4],
                   state->key[5],
                   state->key[6],
                   state->key[7],
                   state->counter,
                   state->nonce[0],
                   state->nonce[1],
                   state->nonce[2]};
  __m512i x[16];
  for (int i = 0; i < 16; i++)
    x[i] = s[i];
  for (int i = 0; i < 10; i++) {
    ROUND(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    ROUND(0, 5, 10, 15, 1, 6, 11, 12, 2, 7, 8, 13, 3, 4, 9, 14);
  }
  for (int i = 0; i < 16; i++)
    x[i] = _mm512_add_epi32(x[i], s[i]);

  /* From a word of each block a register to a block a register: four words of a block are brought together ... */
  __m512i quad[4][4];
  for (int g = 0; g < 4; g++) {
    __m512i low01 = _mm512_unpacklo_epi32(x[4 * g], x[4 * g + 1]);
    __m512i high01 = _mm512_unpackhi_epi32(x[4 * g], x[4 * g + 1]);
    __m512i low23 = _mm512_unpacklo_epi32(x[4 * g + 2], x[4 * g + 3]);
    __m512i high23 = _mm512_unpackhi_epi32(x[4 * g + 2], x[4 * g + 3]);
    quad[g][0] = _mm512_unpacklo_epi64(low01, low23);
    quad[g][1] = _mm512_unpackhi_epi64(low01, low23);
    quad[g][2] = _mm512_unpacklo_epi64(high01, high23);
    quad[g][3] = _mm512_unpackhi_epi64(high01, high23);
  }
  /* ... and then the four quarters of each. */
  for (int k = 0; k < 4; k++) {
    __m512i front01 = _mm512_shuffle_i32x4(quad[0][k], quad[1][k], 0x44);
    __m512i back01 = _mm512_shuffle_i32x4(quad[0][k], quad[1][k], 0xee);
    __m512i front23 = _mm512_shuffle_i32x4(quad[2][k], quad[3][k], 0x44);
    __m512i back23 = _mm512_shuffle_i32x4(quad[2][k], quad[3][k], 0xee);
    block[k] = _mm512_shuffle_i32x4(front01, front23, 0x88);
    block[4 + k] = _mm512_shuffle_i32x4(front01, front23, 0xdd);
    block[8 + k] = _mm512_shuffle_i32x4(back01, back23, 0x88);
    block[12 + k] = _mm512_shuffle_i32x4(back01, back23, 0xdd);
  }
}

/* Block 0 of each job's key stream begins with its Poly1305 key (RFC 8439 section 2.6). */
VECTOR static void make_poly_keys(kdp_aead_job *const *job, uint32_t count, uint8_t (*key)[POLY_KEY]) {
  chacha_state state = {0};
  __m512i block[LANES];
  for (uint32_t done = 0; done < count; done += LANES) {
    uint32_t part = count - done < LANES ? count - done : LANES;
    for (uint32_t i = 0; i < part; i++)
      set_lanes(&state, job[done + i], i, 1, 0);
    key_stream(&state, block);
    for (uint32_t i = 0; i < part; i++)
      _mm256_storeu_si256((__m256i *)key[done + i], _mm512_castsi512_si256(block[i]));
  }
  kdp_wipe(block, sizeof block);
  kdp_wipe(&state, sizeof state);
}

/* Blocks of text of one job in one pass. */
typedef struct segment {
  const kdp_aead_job *job;
  uint32_t at; /* in the text */
  uint32_t blocks;
} segment;

INLINE void add_key_stream(const segment *segment, const __m512i *block) {
  const uint8_t *source = segment->job->source + segment->at;
  uint8_t *destination = segment->job->destination + segment->at;
  uint32_t left = segment->job->size - segment->at;
  for (uint32_t i = 0; i < segment->blocks; i++) {
    if (left >= BLOCK) {
      _mm512_storeu_si512(destination, _mm512_xor_si512(_mm512_loadu_si512(source), block[i]));
      source += BLOCK;
      destination += BLOCK;
      left -= BLOCK;
    } else {
      __mmask64 bytes = (UINT64_C(1) << left) - 1;
      __m512i text = _mm512_maskz_loadu_epi8(bytes, source);
      _mm512_mask_storeu_epi8(destination, bytes, _mm512_xor_si512(text, block[i]));
    }
  }
}

/* Every job's text: encrypted or decrypted. */
VECTOR static void crypt_texts(kdp_aead_job *const *job, uint32_t count) {
  chacha_state state = {0};
  __m512i block[LANES];
  segment segment[LANES];
  uint32_t at = 0;
  for (uint32_t next = 0; next < count;) {
    uint32_t lanes = 0, segments = 0;
    while (lanes < LANES && next < count) {
      uint32_t wanted = (job[next]->size - at + BLOCK - 1) / BLOCK;
      uint32_t blocks = wanted < LANES - lanes ? wanted : LANES - lanes;
      if (blocks > 0) {
        segment[segments].job = job[next];
        segment[segments].at = at;
        segment[segments++].blocks = blocks;
        set_lanes(&state, job[next], lanes, blocks, 1 + at / BLOCK);
        lanes += blocks;
      }
      if (blocks == wanted) {
        next++;
        at = 0;
      } else {
        at += blocks * BLOCK;
      }
    }
    if (lanes == 0) break;
    key_stream(&state, block);
    for (uint32_t i = 0, lane = 0; i < segments; lane += segment[i++].blocks)
      add_key_stream(&segment[i], block + lane);
  }
  kdp_wipe(block, sizeof block);
  kdp_wipe(&state, sizeof state);
}

/* ---- Poly1305 ---- */

/* Numbers modulo 2^130 - 5 of eight packets, a lane each, in limbs of 44, 44 and 42 bits. */
typedef struct number {
  __m512i limb[3];
} number;

/* What a number is multiplied by: its limbs, and the upper two times 20, since 2^132 is 20. */
typedef struct factor {
  __m512i limb[3], times20[2];
} factor;

enum { POWERS = 4 };

typedef struct poly {
  number h;
  factor r[POWERS]; /* the key, its square, ... */
} poly;

/* Sums of products before they are carried. A product of two limbs comes in two halves of 52 bits. */
typedef struct sums {
  __m512i low[3], high[3];
} sums;

#define LIMB UINT64_C(0xfffffffffff)
#define TOP_LIMB UINT64_C(0x3ffffffffff)

INLINE void add_product(sums *sum, const number *a, const factor *b) {
  const __m512i column[3][3] = {{b->limb[0], b->limb[1], b->limb[2]},
                                {b->times20[1], b->limb[0], b->limb[1]},
                                {b->times20[0], b->times20[1], b->limb[0]}};
  for (int i = 0; i < 3; i++)
    for (int k = 0; k < 3; k++) {
      sum->low[k] = _mm512_madd52lo_epu64(sum->low[k], a->limb[i], column[i][k]);
      sum->high[k] = _mm512_madd52hi_epu64(sum->high[k], a->limb[i], column[i][k]);
    }
}

/* Limbs little longer than they should be: an addition and a multiplication may follow. Of four products at most the
   sums stay below 2^59. */
INLINE number carry(const sums *sum) {
  const __m512i limb = _mm512_set1_epi64((long long)LIMB), top_limb = _mm512_set1_epi64((long long)TOP_LIMB);
  /* The upper half of a product weighs 2^52: 2^8 of the next limb, 2^10 above the top one. */
  __m512i over = _mm512_add_epi64(_mm512_srli_epi64(sum->low[0], 44), _mm512_slli_epi64(sum->high[0], 8));
  __m512i h0 = _mm512_and_si512(sum->low[0], limb);
  __m512i h1 = _mm512_add_epi64(sum->low[1], over);
  over = _mm512_add_epi64(_mm512_srli_epi64(h1, 44), _mm512_slli_epi64(sum->high[1], 8));
  h1 = _mm512_and_si512(h1, limb);
  __m512i h2 = _mm512_add_epi64(sum->low[2], over);
  over = _mm512_add_epi64(_mm512_srli_epi64(h2, 42), _mm512_slli_epi64(sum->high[2], 10));
  h2 = _mm512_and_si512(h2, top_limb);
  h0 = _mm512_add_epi64(h0, _mm512_add_epi64(over, _mm512_slli_epi64(over, 2)));
  h1 = _mm512_add_epi64(h1, _mm512_srli_epi64(h0, 44));
  return (number){{_mm512_and_si512(h0, limb), h1, h2}};
}

INLINE factor factor_of(const number *n) {
  factor f = {.limb = {n->limb[0], n->limb[1], n->limb[2]}};
  for (int i = 0; i < 2; i++)
    f.times20[i] = _mm512_add_epi64(_mm512_slli_epi64(n->limb[i + 1], 4), _mm512_slli_epi64(n->limb[i + 1], 2));
  return f;
}

VECTOR static void poly_start(poly *p, const uint8_t (*key)[POLY_KEY], uint32_t count, uint32_t powers) {
  uint64_t r[3][POLY_LANES] = {{0}};
  for (uint32_t i = 0; i < count; i++) {
    uint64_t low = kdp_load_le64(key[i]) & UINT64_C(0x0ffffffc0fffffff);
    uint64_t high = kdp_load_le64(key[i] + 8) & UINT64_C(0x0ffffffc0ffffffc);
    r[0][i] = low & LIMB;
    r[1][i] = (low >> 44 | high << 20) & LIMB;
    r[2][i] = high >> 24;
  }
  number power;
  for (int i = 0; i < 3; i++) {
    p->h.limb[i] = _mm512_setzero_si512();
    power.limb[i] = _mm512_loadu_si512(r[i]);
  }
  p->r[0] = factor_of(&power);
  for (uint32_t i = 1; i < powers; i++) {
    sums sum = {0};
    add_product(&sum, &power, &p->r[0]);
    power = carry(&sum);
    p->r[i] = factor_of(&power);
  }
  kdp_wipe(r, sizeof r);
}

/* A block of sixteen bytes as a number, with the bit that says that it is whole. */
INLINE number block_number(__m512i low, __m512i high) {
  const __m512i limb = _mm512_set1_epi64((long long)LIMB), whole = _mm512_set1_epi64(INT64_C(1) << 40);
  return (number){{_mm512_and_si512(low, limb), _mm512_and_si512(_mm512_shrdi_epi64(low, high, 44), limb),
                   _mm512_or_si512(_mm512_srli_epi64(high, 24), whole)}};
}

INLINE void add_number(number *a, const number *b) {
  for (int i = 0; i < 3; i++)
    a->limb[i] = _mm512_add_epi64(a->limb[i], b->limb[i]);
}

/* h = (h + block) r in each lane of `active`. */
INLINE void poly_block(poly *p, __mmask8 active, __m512i low, __m512i high) {
  number block = block_number(low, high);
  add_number(&block, &p->h);
  sums sum = {0};
  add_product(&sum, &block, &p->r[0]);
  number h = carry(&sum);
  for (int i = 0; i < 3; i++)
    p->h.limb[i] = _mm512_mask_mov_epi64(p->h.limb[i], active, h.limb[i]);
}

/* Four blocks of each lane at once: h = (h + b0) r^4 + b1 r^3 + b2 r^2 + b3 r, carried once. */
INLINE void poly_four(poly *p, const __m512i word[2 * POWERS]) {
  sums sum = {0};
  for (int i = 0; i < POWERS; i++) {
    number block = block_number(word[2 * i], word[2 * i + 1]);
    if (i == 0) add_number(&block, &p->h);
    add_product(&sum, &block, &p->r[POWERS - 1 - i]);
  }
  p->h = carry(&sum);
}

/* Eight rows of eight words become eight columns. */
INLINE void turn(__m512i x[POLY_LANES]) {
  __m512i pair[POLY_LANES];
  for (int i = 0; i < 4; i++) {
    pair[i] = _mm512_unpacklo_epi64(x[2 * i], x[2 * i + 1]);
    pair[4 + i] = _mm512_unpackhi_epi64(x[2 * i], x[2 * i + 1]);
  }
  for (int odd = 0; odd < 2; odd++) {
    const __m512i *p = pair + 4 * odd;
    __m512i front01 = _mm512_shuffle_i64x2(p[0], p[1], 0x44), back01 = _mm512_shuffle_i64x2(p[0], p[1], 0xee);
    __m512i front23 = _mm512_shuffle_i64x2(p[2], p[3], 0x44), back23 = _mm512_shuffle_i64x2(p[2], p[3], 0xee);
    x[odd] = _mm512_shuffle_i64x2(front01, front23, 0x88);
    x[2 + odd] = _mm512_shuffle_i64x2(front01, front23, 0xdd);
    x[4 + odd] = _mm512_shuffle_i64x2(back01, back23, 0x88);
    x[6 + odd] = _mm512_shuffle_i64x2(back01, back23, 0xdd);
  }
}

typedef struct bytes {
  const uint8_t *at;
  uint32_t size;
} bytes;

/* Sizes from which the powers of the keys pay. */
enum { POWERS_FROM = 256 };

/* Each lane's bytes, filled up with zeros to whole blocks (RFC 8439 section 2.8). Up to `four`, all lanes have bytes
   and the powers are there. */
VECTOR static void poly_bytes(poly *state, const bytes lane[POLY_LANES], uint32_t four) {
  poly p = *state;
  __m512i x[POLY_LANES];
  uint32_t at = 0, most = 0;
  for (; at + BLOCK <= four; at += BLOCK) {
    for (int i = 0; i < POLY_LANES; i++)
      x[i] = _mm512_loadu_si512(lane[i].at + at);
    turn(x);
    poly_four(&p, x);
  }
  for (int i = 0; i < POLY_LANES; i++)
    if (lane[i].size > most) most = lane[i].size;
  for (; at < most; at += BLOCK) {
    __mmask8 active[POWERS] = {0};
    for (int i = 0; i < POLY_LANES; i++) {
      uint32_t left = at < lane[i].size ? lane[i].size - at : 0;
      __mmask64 valid = left >= BLOCK ? ~UINT64_C(0) : (UINT64_C(1) << left) - 1;
      x[i] = _mm512_maskz_loadu_epi8(valid, lane[i].at + (left > 0 ? at : 0));
      for (uint32_t b = 0; b < POWERS; b++)
        active[b] |= (__mmask8)((left > 16 * b) << i);
    }
    turn(x);
    for (int i = 0; i < POWERS && active[i] != 0; i++)
      poly_block(&p, active[i], x[2 * i], x[2 * i + 1]);
  }
  state->h = p.h;
  kdp_wipe(&p, sizeof p);
}

/* The accumulator of a lane reduced, plus the second half of its key. */
static void poly_finish(uint64_t h0, uint64_t h1, uint64_t h2, const uint8_t *pad, uint8_t *tag) {
  for (int i = 0; i < 2; i++) {
    h1 += h0 >> 44, h0 &= LIMB;
    h2 += h1 >> 44, h1 &= LIMB;
    h0 += 5 * (h2 >> 42), h2 &= TOP_LIMB;
  }
  h1 += h0 >> 44, h0 &= LIMB;
  /* Less 2^130 - 5, unless that is below zero. */
  uint64_t g0 = h0 + 5, g1 = h1 + (g0 >> 44), g2 = h2 + (g1 >> 44);
  uint64_t reduced = 0 - (g2 >> 42);
  h0 = (h0 & ~reduced) | (g0 & LIMB & reduced);
  h1 = (h1 & ~reduced) | (g1 & LIMB & reduced);
  h2 = (h2 & ~reduced) | (g2 & TOP_LIMB & reduced);
  uint64_t low = h0 | h1 << 44, high = h1 >> 20 | h2 << 24;
  uint64_t sum = low + kdp_load_le64(pad);
  high += kdp_load_le64(pad + 8) + (sum < low);
  kdp_store_le64(tag, sum);
  kdp_store_le64(tag + 8, high);
}

/* Tags over the ciphertexts: the destinations of what was sealed, the sources of what is to be opened. */
VECTOR static void make_tags(kdp_aead_job *const *job, uint32_t count, bool sealed, const uint8_t (*key)[POLY_KEY],
                             uint8_t (*tag)[KDP_AEAD_TAG_SIZE]) {
  static const uint8_t nothing[1];
  uint64_t h[3][POLY_LANES];
  poly p;
  for (uint32_t done = 0, part; done < count; done += part) {
    part = count - done < POLY_LANES ? count - done : POLY_LANES;
    bytes aad[POLY_LANES], text[POLY_LANES];
    uint64_t sizes[2][POLY_LANES];
    uint32_t least = UINT32_MAX;
    for (uint32_t i = 0; i < POLY_LANES; i++) {
      /* Lanes without a packet repeat the first one's work. */
      const kdp_aead_job *j = job[done + (i < part ? i : 0)];
      aad[i] = j->aad_size ? (bytes){j->aad, j->aad_size} : (bytes){nothing, 0};
      text[i] = j->size ? (bytes){sealed ? j->destination : j->source, j->size} : (bytes){nothing, 0};
      sizes[0][i] = j->aad_size;
      sizes[1][i] = j->size;
      if (j->size < least) least = j->size;
    }
    uint32_t four = least >= POWERS_FROM ? least : 0;
    poly_start(&p, key + done, part, four > 0 ? POWERS : 1);
    poly_bytes(&p, aad, 0);
    poly_bytes(&p, text, four);
    poly_block(&p, 0xff, _mm512_loadu_si512(sizes[0]), _mm512_loadu_si512(sizes[1]));
    for (int i = 0; i < 3; i++)
      _mm512_storeu_si512(h[i], p.h.limb[i]);
    for (uint32_t i = 0; i < part; i++)
      poly_finish(h[0][i], h[1][i], h[2][i], key[done + i] + 16, tag[done + i]);
  }
  kdp_wipe(h, sizeof h);
  kdp_wipe(&p, sizeof p);
}

/* ---- Both ---- */

/* Jobs of a batch that can be done; the others are told. */
static uint32_t choose(kdp_aead_job *job, uint32_t count, kdp_aead_job **chosen) {
  uint32_t fitting = 0;
  for (uint32_t i = 0; i < count; i++) {
    if (kdp_aead_job_fits(&job[i]))
      chosen[fitting++] = &job[i];
    else
      job[i].status = KDP_INVALID_ARGUMENT;
  }
  return fitting;
}

static uint32_t part_of(uint32_t count) {
  return count < KDP_AEAD_MAX_BATCH ? count : KDP_AEAD_MAX_BATCH;
}

void kdp_chacha_avx512_seal(kdp_aead_job *job, uint32_t count) {
  kdp_aead_job *chosen[KDP_AEAD_MAX_BATCH];
  uint8_t key[KDP_AEAD_MAX_BATCH][POLY_KEY], tag[KDP_AEAD_MAX_BATCH][KDP_AEAD_TAG_SIZE];
  for (uint32_t part; count > 0; job += part, count -= part) {
    part = part_of(count);
    uint32_t fitting = choose(job, part, chosen);
    make_poly_keys(chosen, fitting, key);
    crypt_texts(chosen, fitting);
    make_tags(chosen, fitting, true, key, tag);
    for (uint32_t i = 0; i < fitting; i++) {
      memcpy(chosen[i]->tag, tag[i], sizeof tag[i]);
      chosen[i]->status = KDP_OK;
    }
    kdp_wipe(key, fitting * sizeof key[0]);
  }
}

uint32_t kdp_chacha_avx512_open(kdp_aead_job *job, uint32_t count) {
  kdp_aead_job *chosen[KDP_AEAD_MAX_BATCH];
  uint8_t key[KDP_AEAD_MAX_BATCH][POLY_KEY], tag[KDP_AEAD_MAX_BATCH][KDP_AEAD_TAG_SIZE];
  uint32_t opened = 0;
  for (uint32_t part; count > 0; job += part, count -= part) {
    part = part_of(count);
    uint32_t fitting = choose(job, part, chosen), good = 0;
    make_poly_keys(chosen, fitting, key);
    make_tags(chosen, fitting, false, key, tag);
    for (uint32_t i = 0; i < fitting; i++) {
      kdp_aead_job *j = chosen[i];
      if (kdp_aead_tags_equal(tag[i], j->tag)) {
        j->status = KDP_OK;
        chosen[good++] = j;
      } else {
        j->status = KDP_AUTHENTICATION_FAILED;
        kdp_wipe(j->destination, j->size);
      }
    }
    crypt_texts(chosen, good);
    opened += good;
    kdp_wipe(key, fitting * sizeof key[0]);
    kdp_wipe(tag, fitting * sizeof tag[0]);
  }
  return opened;
}

#endif
