/* The Internet checksum (RFC 1071), summed 64 bits at a time or by vectors. Sums are in the byte order of memory; fold
   before storing. */
#ifndef KDP_NET_CHECKSUM_H
#define KDP_NET_CHECKSUM_H
#include "kdp/base.h"

/* Adds `size` bytes to a running sum. A piece of odd size may only be the last. */
uint64_t kdp_checksum_add(uint64_t sum, const void *bytes, size_t size);
/* Copies and adds in one pass. The two places do not overlap. */
uint64_t kdp_checksum_copy_add(uint64_t sum, void *destination, const void *source, size_t size);
/* To 16 bits, not complemented, in memory order (store with memcpy). 0 only when every byte added was zero. */
static inline uint16_t kdp_checksum_fold(uint64_t sum) {
  /* A number plus itself with its halves exchanged has their sum, carry brought round, in the upper half. */
  sum += sum << 32 | sum >> 32;
  uint32_t half = (uint32_t)(sum >> 32);
  half += half << 16 | half >> 16;
  return (uint16_t)(half >> 16);
}
/* Sum of the pseudo header of TCP or UDP. `header` is the IP header (IPv4 without regard to options, or IPv6), `size`
   the bytes of the transport header and payload. */
uint64_t kdp_checksum_pseudo(const uint8_t *header, uint8_t protocol, uint32_t size);
#endif
