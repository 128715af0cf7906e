#include "aead/chacha_mask.h"

#include "core/bytes.h"
#include "core/wipe.h"

/* Four blocks side by side, one a lane: SSE2 or NEON registers, whatever the target has. */
typedef uint32_t lanes __attribute__((vector_size(16)));
enum { LANES = 4 };

static lanes rotated(lanes x, int bits) {
  return x << bits | x >> (32 - bits);
}

static void quarter_round(lanes *a, lanes *b, lanes *c, lanes *d) {
  *a += *b, *d = rotated(*d ^ *a, 16);
  *c += *d, *b = rotated(*b ^ *c, 12);
  *a += *b, *d = rotated(*d ^ *a, 8);
  *c += *d, *b = rotated(*b ^ *c, 7);
}

void kdp_aead_chacha_mask(kdp_aead_worker *worker, const uint8_t *key, const uint8_t *const *sample,
                          uint8_t (*mask)[KDP_AEAD_MASK_SIZE], uint32_t count) {
  (void)worker;
  static const uint32_t constant[4] = {0x61707865, 0x3320646e, 0x79622d32, 0x6b206574}; /* "expand 32-byte k" */
  lanes x[16];
  for (uint32_t done = 0; done < count; done += LANES) {
    uint32_t used = count - done < LANES ? count - done : LANES;
    for (int i = 0; i < 4; i++)
      x[i] = (lanes){constant[i], constant[i], constant[i], constant[i]};
    for (int i = 0; i < 8; i++) {
      uint32_t word = kdp_load_le32(key + 4 * i);
      x[4 + i] = (lanes){word, word, word, word};
    }
    for (int i = 0; i < 4; i++)
      for (uint32_t lane = 0; lane < LANES; lane++)
        x[12 + i][lane] = lane < used ? kdp_load_le32(sample[done + lane] + 4 * i) : 0;
    for (int round = 0; round < 20; round += 2) {
      for (int i = 0; i < 4; i++)
        quarter_round(&x[i], &x[4 + i], &x[8 + i], &x[12 + i]);
      for (int i = 0; i < 4; i++)
        quarter_round(&x[i], &x[4 + (i + 1) % 4], &x[8 + (i + 2) % 4], &x[12 + (i + 3) % 4]);
    }
    for (uint32_t lane = 0; lane < used; lane++)
      for (int i = 0; i < 4; i++)
        kdp_store_le32(mask[done + lane] + 4 * i, x[i][lane] + constant[i]);
  }
  kdp_wipe(x, sizeof x);
}
