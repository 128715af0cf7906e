/* ChaCha20-Poly1305 (RFC 8439) of many packets at once, for x86-64 with AVX-512 and its 52-bit multiplication.

   A library that takes one packet at a time computes sixteen blocks of key stream whether the packet needs them or not,
   and the powers of a Poly1305 key for each. Here the sixteen lanes of a register hold blocks of whatever packets come
   next, and the eight lanes of Poly1305 hold eight packets. */
#ifndef KDP_AEAD_CHACHA_AVX512_H
#define KDP_AEAD_CHACHA_AVX512_H
#include "kdp/aead.h"

/* Whether this machine has the instructions. */
bool kdp_chacha_avx512_available(void);

/* As kdp_aead.seal and kdp_aead.open; the key of a job is raw. x86-64 only. */
void kdp_chacha_avx512_seal(kdp_aead_job *job, uint32_t count);
uint32_t kdp_chacha_avx512_open(kdp_aead_job *job, uint32_t count);

#endif
