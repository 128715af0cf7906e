/* ICMP errors that an engine gives back to the inside. Source is the offending packet's destination (the kernel drops
   its own as martian). Per RFC 1122 section 3.2.2 and RFC 4443 section 2.4(e) none answers an ICMP error, a fragment
   but the first, a multicast or broadcast destination, or an unspecified or multicast source. */
#ifndef KDP_NET_ICMP_H
#define KDP_NET_ICMP_H
#include "kdp/base.h"

typedef enum kdp_icmp_kind {
  KDP_ICMP_HOST_UNREACHABLE, /* 3/1; ICMPv6 1/3 address unreachable */
  KDP_ICMP_TOO_BIG           /* 3/4; ICMPv6 2/0 packet too big; `mtu` counts, never below 1280 for IPv6 */
} kdp_icmp_kind;

enum { KDP_ICMP_MAX_SIZE = 1280 }; /* IPv4 answers quote up to 548 bytes and so stay within 576 */

/* Writes the answer to `offender` into `answer` (KDP_ICMP_MAX_SIZE bytes); returns its size, 0 when none may be sent.
 */
size_t kdp_icmp_write_error(kdp_icmp_kind kind, uint16_t mtu, const uint8_t *offender, size_t size, uint8_t *answer);
#endif
