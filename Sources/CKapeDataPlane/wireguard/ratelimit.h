/* A token bucket per source of handshake messages under load: per IPv4 address, per IPv6 /64, so that one host with a
   network of addresses is still one source. The table is of fixed size. A source that has been quiet until its bucket
   is full again is as good as unknown, so its place is free; a set that is full of busy sources refuses further ones.
 */
#ifndef KDP_WIREGUARD_RATELIMIT_H
#define KDP_WIREGUARD_RATELIMIT_H

#include "kdp/base.h"
#include "wireguard/tuning.h"

typedef struct kdp_wg_bucket {
  uint64_t source; /* IPv4: the address with a bit above it; IPv6: the first 64 bits */
  uint64_t time;   /* when `tokens` was right, ns of the boot clock */
  uint32_t tokens; /* ns of credit; a message costs 1 s / RATE_PER_SECOND */
  uint8_t family;  /* KDP_FAMILY_NONE: free */
} kdp_wg_bucket;

typedef struct kdp_wg_ratelimit {
  uint8_t hash_key[16];
  bool used; /* the table holds anything: it is not touched before the first load */
  kdp_wg_bucket bucket[KDP_WG_RATE_SETS][KDP_WG_RATE_WAYS];
} kdp_wg_ratelimit;

/* Leaves the table itself untouched. */
void kdp_wg_ratelimit_start(kdp_wg_ratelimit *limit, const kdp_host *host);
/* Takes a token of `source`; false: none left. */
bool kdp_wg_ratelimit_allow(kdp_wg_ratelimit *limit, const kdp_address *source, uint64_t boot) KDP_MUST_USE;

#endif
