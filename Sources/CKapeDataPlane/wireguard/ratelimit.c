#include "wireguard/ratelimit.h"

#include <sodium.h>

#include "core/bytes.h"

enum { COST = 1000000000 / KDP_WG_RATE_PER_SECOND, FULL = COST * KDP_WG_RATE_BURST };

void kdp_wg_ratelimit_start(kdp_wg_ratelimit *limit, const kdp_host *host) {
  limit->used = false;
  host->random(host->context, limit->hash_key, sizeof limit->hash_key);
}

static uint64_t source_of(const kdp_address *address) {
  return address->family == KDP_FAMILY_IPV4 ? kdp_load_be32(address->bytes) : kdp_load_be64(address->bytes);
}

bool kdp_wg_ratelimit_allow(kdp_wg_ratelimit *limit, const kdp_address *address, uint64_t boot) {
  uint64_t source = source_of(address);
  uint8_t input[9], hash[crypto_shorthash_BYTES];
  memcpy(input, &source, sizeof source);
  input[8] = address->family;
  crypto_shorthash(hash, input, sizeof input, limit->hash_key);
  if (!limit->used) {
    memset(limit->bucket, 0, sizeof limit->bucket);
    limit->used = true;
  }
  kdp_wg_bucket *set = limit->bucket[kdp_load_le32(hash) % KDP_WG_RATE_SETS], *unused = NULL;
  for (int i = 0; i < KDP_WG_RATE_WAYS; i++) {
    kdp_wg_bucket *bucket = &set[i];
    uint64_t credit = bucket->tokens + (boot - bucket->time);
    bool full = bucket->family == KDP_FAMILY_NONE || credit >= FULL;
    if (bucket->family == address->family && bucket->source == source) {
      bucket->tokens = full ? FULL : (uint32_t)credit;
      bucket->time = boot;
      if (bucket->tokens < COST) return false;
      bucket->tokens -= COST;
      return true;
    }
    if (full && !unused) unused = bucket;
  }
  if (!unused) return false;
  *unused = (kdp_wg_bucket){.source = source, .time = boot, .tokens = FULL - COST, .family = address->family};
  return true;
}
