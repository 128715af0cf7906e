/* What an inner packet is: checked once, then trusted by those who read further. */
#ifndef KDP_NET_IP_H
#define KDP_NET_IP_H
#include "kdp/base.h"
#include "kdp/status.h"

enum { KDP_PROTOCOL_ICMP = 1, KDP_PROTOCOL_TCP = 6, KDP_PROTOCOL_UDP = 17, KDP_PROTOCOL_ICMPV6 = 58 };
enum { KDP_IPV4_HEADER_SIZE = 20, KDP_IPV6_HEADER_SIZE = 40, KDP_UDP_HEADER_SIZE = 8, KDP_TCP_HEADER_SIZE = 20 };

typedef struct kdp_ip {
  uint8_t version;       /* 4 or 6 */
  uint8_t protocol;      /* of the transport; for IPv6 the next header field of the fixed header */
  uint8_t ecn;           /* 0 to 3 */
  bool plain;            /* IPv4 without options, IPv6 without extension headers; not a fragment */
  bool fragment;         /* any fragment but an atomic one */
  bool df;               /* IPv4 DF; IPv6: true */
  uint16_t header_size;  /* of the IP header without extension headers */
  uint32_t size;         /* the packet's own length: at most what was given (padding follows) */
  const uint8_t *source; /* 4 or 16 bytes, in the packet */
  const uint8_t *destination;
} kdp_ip;

/* OK; TOO_SHORT: less than the fixed header of its version; NOT_IP: another version, or a length field that contradicts
   the header or `size` (an IPv6 jumbogram too: its length field says 0). `bytes` may be longer than the packet
   (WireGuard pads). */
kdp_status kdp_ip_read(const uint8_t *bytes, size_t size, kdp_ip *ip) KDP_MUST_USE;

/* Where the transport header of a packet lies that kdp_ip_read accepted. */
typedef struct kdp_ip_transport {
  uint8_t protocol; /* behind all extension headers; meaningless unless `found` */
  bool found;       /* false: the headers are cut short, or it is a fragment other than the first */
  bool fragment;    /* as in kdp_ip */
  uint16_t offset;  /* bytes from the start of the packet; at most its size */
} kdp_ip_transport;
kdp_ip_transport kdp_ip_find_transport(const uint8_t *bytes, const kdp_ip *ip);

/* ECN field of an IP packet that kdp_ip_read accepted; the IPv4 header checksum is kept right. */
uint8_t kdp_ip_ecn(const uint8_t *packet);
void kdp_ip_set_ecn(uint8_t *packet, uint8_t ecn);
/* RFC 6040 section 4.2, the default mode: the inner ECN field after decapsulation, or -1: drop the packet. */
int kdp_ecn_decapsulate(uint8_t inner, uint8_t outer);
/* RFC 6040 section 4.1, normal mode: the outer field. */
static inline uint8_t kdp_ecn_encapsulate(uint8_t inner) {
  return inner & 3;
}
#endif
