/* For benchmarks only: the packet path in WireGuard's shape without its protocol. Header of 16 bytes in front, 16 bytes
   behind, one counter; between them nothing (`none`: the ceiling of a machine) or an AEAD of our table under one fixed
   key. No handshake, no replay window: this is no protocol and must never be in a product. */
#ifndef BENCH_FIXED_KEY_ENGINE_H
#define BENCH_FIXED_KEY_ENGINE_H

#include "kdp/aead.h"
#include "kdp/engine.h"

typedef enum bench_cipher { BENCH_NONE, BENCH_CHACHA20_POLY1305, BENCH_AES_256_GCM } bench_cipher;

/* Sends to `remote`; `aead_provider` as kdp_aead_worker_choose takes it. */
kdp_status bench_fixed_key_create(bench_cipher cipher, const char *aead_provider, const kdp_address *remote,
                                  uint16_t inside_mtu, const kdp_host *host, kdp_engine **engine) KDP_MUST_USE;
/* The library that encrypts, for people; "none". */
const char *bench_fixed_key_library(const kdp_engine *engine);

#endif
