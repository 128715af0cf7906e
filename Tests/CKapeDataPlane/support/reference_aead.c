#include "support/reference_aead.h"

#include <string.h>

static void store_le64(uint8_t *at, uint64_t value) {
  for (int i = 0; i < 8; i++)
    at[i] = (uint8_t)(value >> (8 * i));
}

static void store_be64(uint8_t *at, uint64_t value) {
  for (int i = 0; i < 8; i++)
    at[i] = (uint8_t)(value >> (56 - 8 * i));
}

/* ---- ChaCha20, RFC 8439 section 2.3 ---- */

static uint32_t load_le32(const uint8_t *at) {
  return (uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}

static uint32_t rotate(uint32_t x, int bits) {
  return x << bits | x >> (32 - bits);
}

static void quarter_round(uint32_t *x, int a, int b, int c, int d) {
  x[a] += x[b], x[d] = rotate(x[d] ^ x[a], 16);
  x[c] += x[d], x[b] = rotate(x[b] ^ x[c], 12);
  x[a] += x[b], x[d] = rotate(x[d] ^ x[a], 8);
  x[c] += x[d], x[b] = rotate(x[b] ^ x[c], 7);
}

/* `input` is counter and nonce, 16 bytes. `add`: ChaCha20's final addition, which HChaCha20 leaves out. */
static void chacha_rounds(const uint8_t key[32], const uint8_t input[16], bool add, uint8_t out[64]) {
  uint32_t start[16], x[16];
  for (int i = 0; i < 4; i++)
    start[i] = load_le32((const uint8_t *)"expand 32-byte k" + 4 * i);
  for (int i = 0; i < 8; i++)
    start[4 + i] = load_le32(key + 4 * i);
  for (int i = 0; i < 4; i++)
    start[12 + i] = load_le32(input + 4 * i);
  memcpy(x, start, sizeof x);
  for (int i = 0; i < 10; i++) {
    quarter_round(x, 0, 4, 8, 12);
    quarter_round(x, 1, 5, 9, 13);
    quarter_round(x, 2, 6, 10, 14);
    quarter_round(x, 3, 7, 11, 15);
    quarter_round(x, 0, 5, 10, 15);
    quarter_round(x, 1, 6, 11, 12);
    quarter_round(x, 2, 7, 8, 13);
    quarter_round(x, 3, 4, 9, 14);
  }
  for (int i = 0; i < 16; i++) {
    uint32_t word = x[i] + (add ? start[i] : 0);
    for (int b = 0; b < 4; b++)
      out[4 * i + b] = (uint8_t)(word >> (8 * b));
  }
}

static void chacha_block(const uint8_t key[32], uint32_t counter, const uint8_t nonce[12], uint8_t out[64]) {
  uint8_t input[16];
  for (int b = 0; b < 4; b++)
    input[b] = (uint8_t)(counter >> (8 * b));
  memcpy(input + 4, nonce, 12);
  chacha_rounds(key, input, true, out);
}

/* ---- Poly1305, RFC 8439 section 2.5: numbers of 17 digits to the base 256 ---- */

typedef struct poly {
  uint32_t h[17], r[17];
} poly;

static void poly_reduce(uint32_t h[17]) {
  uint32_t carry = 0;
  for (int i = 0; i < 16; i++) {
    carry += h[i];
    h[i] = carry & 255;
    carry >>= 8;
  }
  carry += h[16];
  h[16] = carry & 3;
  carry = 5 * (carry >> 2);
  for (int i = 0; i < 16; i++) {
    carry += h[i];
    h[i] = carry & 255;
    carry >>= 8;
  }
  h[16] += carry;
}

/* Up to 16 bytes, filled up with zeros to 16 as the AEAD construction does. */
static void poly_block(poly *p, const uint8_t *bytes, size_t size) {
  uint32_t product[17];
  for (size_t i = 0; i < size; i++)
    p->h[i] += bytes[i];
  p->h[16] += 1;
  for (int i = 0; i < 17; i++) {
    uint32_t sum = 0;
    for (int j = 0; j < 17; j++)
      /* What leaves at the top comes back: 2^136 = 64 * 2^130, and 2^130 is 5. */
      sum += p->h[j] * (j <= i ? p->r[i - j] : 320 * p->r[17 + i - j]);
    product[i] = sum;
  }
  memcpy(p->h, product, sizeof product);
  poly_reduce(p->h);
}

static void poly_padded(poly *p, const uint8_t *bytes, size_t size) {
  for (size_t at = 0; at < size; at += 16)
    poly_block(p, bytes + at, size - at < 16 ? size - at : 16);
}

static void poly_finish(poly *p, const uint8_t s[16], uint8_t tag[16]) {
  uint32_t minus[17], carry = 5;
  poly_reduce(p->h);
  poly_reduce(p->h);
  for (int i = 0; i < 17; i++) { /* h + 5 - 2^130: not negative when h >= p */
    carry += p->h[i];
    minus[i] = carry & 255;
    carry >>= 8;
  }
  if (minus[16] >= 4) memcpy(p->h, minus, sizeof minus);
  carry = 0;
  for (int i = 0; i < 16; i++) {
    carry += p->h[i] + s[i];
    tag[i] = (uint8_t)carry;
    carry >>= 8;
  }
}

static void chacha_seal(const uint8_t *key, const uint8_t nonce[12], const uint8_t *aad, size_t aad_size,
                        const uint8_t *source, size_t size, uint8_t *destination, uint8_t tag[16]) {
  uint8_t block[64], lengths[16];
  chacha_block(key, 0, nonce, block);
  poly p = {0};
  for (int i = 0; i < 16; i++)
    p.r[i] = block[i] & (i % 4 == 3 ? 15 : 255) & (i % 4 == 0 && i > 0 ? 252 : 255);
  for (size_t i = 0; i < size; i++) {
    uint8_t stream[64];
    if (i % 64 == 0) chacha_block(key, (uint32_t)(1 + i / 64), nonce, stream);
    destination[i] = source[i] ^ stream[i % 64];
  }
  poly_padded(&p, aad, aad_size);
  poly_padded(&p, destination, size);
  store_le64(lengths, aad_size);
  store_le64(lengths + 8, size);
  poly_block(&p, lengths, 16);
  poly_finish(&p, block + 16, tag);
}

void reference_xchacha_seal(const uint8_t key[32], const uint8_t nonce[24], const uint8_t *aad, size_t aad_size,
                            const uint8_t *source, size_t size, uint8_t *destination) {
  uint8_t block[64], subkey[32], short_nonce[12] = {0};
  chacha_rounds(key, nonce, false, block);
  memcpy(subkey, block, 16);
  memcpy(subkey + 16, block + 48, 16);
  memcpy(short_nonce + 4, nonce + 16, 8);
  chacha_seal(subkey, short_nonce, aad, aad_size, source, size, destination, destination + size);
}

/* ---- AES, FIPS 197: the S-box from its definition ---- */

static uint8_t times(uint8_t a, uint8_t b) {
  uint8_t product = 0;
  for (; b != 0; b >>= 1) {
    if (b & 1) product ^= a;
    a = (uint8_t)(a << 1 ^ (a & 0x80 ? 0x1b : 0));
  }
  return product;
}

typedef struct aes {
  uint8_t box[256], round_key[15][16];
  int rounds;
} aes;

static void aes_start(aes *a, const uint8_t *key, size_t key_size) {
  for (int x = 0; x < 256; x++) {
    uint8_t inverse = 0;
    for (int y = 1; y < 256 && x != 0; y++)
      if (times((uint8_t)x, (uint8_t)y) == 1) inverse = (uint8_t)y;
    uint8_t s = 0x63;
    for (int i = 0; i < 5; i++)
      s ^= (uint8_t)(inverse << i | inverse >> (8 - i));
    a->box[x] = s;
  }
  int words = (int)key_size / 4;
  a->rounds = words + 6;
  uint8_t *w = a->round_key[0], constant = 1;
  memcpy(w, key, key_size);
  for (int i = words; i < 4 * (a->rounds + 1); i++) {
    uint8_t t[4];
    memcpy(t, w + 4 * (i - 1), 4);
    if (i % words == 0) {
      uint8_t first = t[0];
      for (int b = 0; b < 3; b++)
        t[b] = a->box[t[b + 1]];
      t[3] = a->box[first];
      t[0] ^= constant;
      constant = times(constant, 2);
    } else if (words > 6 && i % words == 4) {
      for (int b = 0; b < 4; b++)
        t[b] = a->box[t[b]];
    }
    for (int b = 0; b < 4; b++)
      w[4 * i + b] = w[4 * (i - words) + b] ^ t[b];
  }
}

static uint8_t doubled(uint8_t a) {
  return (uint8_t)(a << 1 ^ (a & 0x80 ? 0x1b : 0));
}

static void aes_block(const aes *a, const uint8_t in[16], uint8_t out[16]) {
  uint8_t state[16], shifted[16];
  for (int i = 0; i < 16; i++)
    state[i] = in[i] ^ a->round_key[0][i];
  for (int round = 1; round <= a->rounds; round++) {
    for (int i = 0; i < 16; i++)
      shifted[i] = a->box[state[(i + 4 * (i % 4)) % 16]];
    for (int column = 0; column < 16; column += 4)
      for (int i = 0; i < 4; i++) {
        const uint8_t *s = shifted + column;
        uint8_t next = s[(i + 1) % 4];
        uint8_t mixed = (uint8_t)(doubled(s[i]) ^ doubled(next) ^ next ^ s[(i + 2) % 4] ^ s[(i + 3) % 4]);
        state[column + i] = (round == a->rounds ? s[i] : mixed) ^ a->round_key[round][column + i];
      }
  }
  memcpy(out, state, 16);
}

/* ---- GCM, SP 800-38D: the field multiplication bit by bit ---- */

typedef struct field {
  uint64_t high, low;
} field;

static uint64_t load_be64(const uint8_t *at) {
  uint64_t value = 0;
  for (int i = 0; i < 8; i++)
    value = value << 8 | at[i];
  return value;
}

static field field_times(field x, field y) {
  field z = {0, 0};
  for (int i = 0; i < 128; i++) {
    uint64_t bit = i < 64 ? x.high >> (63 - i) & 1 : x.low >> (127 - i) & 1;
    if (bit) z.high ^= y.high, z.low ^= y.low;
    uint64_t out = y.low & 1;
    y.low = y.low >> 1 | y.high << 63;
    y.high = y.high >> 1 ^ (out ? UINT64_C(0xe1) << 56 : 0);
  }
  return z;
}

static field ghash(field y, field h, const uint8_t *bytes, size_t size) {
  for (size_t at = 0; at < size; at += 16) {
    uint8_t block[16] = {0};
    memcpy(block, bytes + at, size - at < 16 ? size - at : 16);
    y.high ^= load_be64(block);
    y.low ^= load_be64(block + 8);
    y = field_times(y, h);
  }
  return y;
}

static void gcm_seal(const uint8_t *key, size_t key_size, const uint8_t nonce[12], const uint8_t *aad, size_t aad_size,
                     const uint8_t *source, size_t size, uint8_t *destination, uint8_t tag[16]) {
  aes a;
  aes_start(&a, key, key_size);
  uint8_t zero[16] = {0}, block[16], counter[16];
  aes_block(&a, zero, block);
  field h = {load_be64(block), load_be64(block + 8)}, y = {0, 0};
  memcpy(counter, nonce, 12);
  for (size_t i = 0; i < size; i++) {
    if (i % 16 == 0) {
      uint32_t number = (uint32_t)(2 + i / 16);
      for (int b = 0; b < 4; b++)
        counter[12 + b] = (uint8_t)(number >> (24 - 8 * b));
      aes_block(&a, counter, block);
    }
    destination[i] = source[i] ^ block[i % 16];
  }
  y = ghash(y, h, aad, aad_size);
  y = ghash(y, h, destination, size);
  store_be64(block, (uint64_t)aad_size * 8);
  store_be64(block + 8, (uint64_t)size * 8);
  y = ghash(y, h, block, 16);
  memcpy(counter + 12, "\0\0\0\1", 4);
  aes_block(&a, counter, tag);
  store_be64(block, y.high);
  store_be64(block + 8, y.low);
  for (int i = 0; i < 16; i++)
    tag[i] ^= block[i];
}

/* ---- */

size_t reference_key_size(kdp_aead_algorithm algorithm) {
  static const size_t size[KDP_AEAD_ALGORITHM_COUNT] = {32, 16, 24, 32};
  return size[algorithm];
}

void reference_seal(kdp_aead_algorithm algorithm, const uint8_t *key, const uint8_t nonce[12], const uint8_t *aad,
                    size_t aad_size, const uint8_t *source, size_t size, uint8_t *destination, uint8_t tag[16]) {
  if (algorithm == KDP_AEAD_CHACHA20_POLY1305)
    chacha_seal(key, nonce, aad, aad_size, source, size, destination, tag);
  else
    gcm_seal(key, reference_key_size(algorithm), nonce, aad, aad_size, source, size, destination, tag);
}

void reference_mask(kdp_aead_algorithm algorithm, const uint8_t *key, const uint8_t sample[16], uint8_t mask[16]) {
  if (algorithm == KDP_AEAD_CHACHA20_POLY1305) {
    uint8_t block[64];
    chacha_rounds(key, sample, true, block);
    memcpy(mask, block, 16);
  } else {
    aes a;
    aes_start(&a, key, reference_key_size(algorithm));
    aes_block(&a, sample, mask);
  }
}
