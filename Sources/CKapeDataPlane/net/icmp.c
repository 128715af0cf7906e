#include "net/icmp.h"

#include <string.h>

#include "core/bytes.h"
#include "net/checksum.h"
#include "net/ip.h"

enum { ICMP_HEADER_SIZE = 8, TIME_TO_LIVE = 64 };
/* RFC 1812 section 4.3.2.5: internetwork control. */
enum { IPV4_PRECEDENCE = 0xc0 };
/* RFC 1812 section 4.3.2.3: as much as fits into 576 bytes. RFC 4443 section 2.4(c): into the least IPv6 MTU. */
enum {
  IPV4_QUOTE = 576 - KDP_IPV4_HEADER_SIZE - ICMP_HEADER_SIZE,
  IPV6_LEAST_MTU = 1280,
  IPV6_QUOTE = IPV6_LEAST_MTU - KDP_IPV6_HEADER_SIZE - ICMP_HEADER_SIZE
};
_Static_assert(KDP_ICMP_MAX_SIZE == KDP_IPV6_HEADER_SIZE + ICMP_HEADER_SIZE + IPV6_QUOTE, "the longest answer fits");

enum { ICMPV6_ECHO_REQUEST = 128, ICMPV6_REDIRECT = 137 };

static bool is_icmp_error(const uint8_t *bytes, const kdp_ip *ip, const kdp_ip_transport *transport) {
  uint8_t own = ip->version == 4 ? KDP_PROTOCOL_ICMP : KDP_PROTOCOL_ICMPV6;
  if (transport->protocol != own) return false;
  if (transport->offset >= ip->size) return true; /* its type cannot be seen: silence is the safe side */
  uint8_t type = bytes[transport->offset];
  if (ip->version == 6) return type < ICMPV6_ECHO_REQUEST || type == ICMPV6_REDIRECT;
  switch (type) {
  case 3:  /* destination unreachable */
  case 4:  /* source quench */
  case 5:  /* redirect */
  case 11: /* time exceeded */
  case 12: /* parameter problem */ return true;
  default: return false;
  }
}

/* One host, and not this one by any name: neither zero, loopback, multicast, class E nor broadcast. */
static bool is_single_ipv4_host(const uint8_t *address) {
  return address[0] != 0 && address[0] != 127 && address[0] < 224;
}

static bool is_single_ipv6_host(const uint8_t *address) {
  static const uint8_t zero[15];
  if (address[0] == 0xff) return false;
  return memcmp(address, zero, 15) != 0 || address[15] > 1; /* neither :: nor ::1 */
}

static bool may_answer(const uint8_t *bytes, const kdp_ip *ip) {
  kdp_ip_transport transport = kdp_ip_find_transport(bytes, ip);
  if (!transport.found || is_icmp_error(bytes, ip, &transport)) return false;
  if (ip->version == 4) return is_single_ipv4_host(ip->source) && is_single_ipv4_host(ip->destination);
  return is_single_ipv6_host(ip->source) && is_single_ipv6_host(ip->destination);
}

static void store_checksum(uint8_t *at, uint64_t sum) {
  uint16_t checksum = (uint16_t)~kdp_checksum_fold(sum);
  memcpy(at, &checksum, 2);
}

static size_t write_icmp(kdp_icmp_kind kind, uint16_t mtu, const uint8_t *offender, const kdp_ip *ip, uint8_t *answer) {
  size_t quote = ip->size < IPV4_QUOTE ? ip->size : IPV4_QUOTE, size = KDP_IPV4_HEADER_SIZE + ICMP_HEADER_SIZE + quote;
  memset(answer, 0, KDP_IPV4_HEADER_SIZE + ICMP_HEADER_SIZE);
  answer[0] = 0x45;
  answer[1] = IPV4_PRECEDENCE;
  kdp_store_be16(answer + 2, (uint16_t)size);
  answer[6] = 0x40; /* DF: never fragmented, so that its id may be zero (RFC 6864) */
  answer[8] = TIME_TO_LIVE;
  answer[9] = KDP_PROTOCOL_ICMP;
  memcpy(answer + 12, ip->destination, 4);
  memcpy(answer + 16, ip->source, 4);
  store_checksum(answer + 10, kdp_checksum_add(0, answer, KDP_IPV4_HEADER_SIZE));

  uint8_t *icmp = answer + KDP_IPV4_HEADER_SIZE;
  icmp[0] = 3;
  icmp[1] = kind == KDP_ICMP_TOO_BIG ? 4 : 1;
  if (kind == KDP_ICMP_TOO_BIG) kdp_store_be16(icmp + 6, mtu);
  memcpy(icmp + ICMP_HEADER_SIZE, offender, quote);
  store_checksum(icmp + 2, kdp_checksum_add(0, icmp, ICMP_HEADER_SIZE + quote));
  return size;
}

static size_t write_icmpv6(kdp_icmp_kind kind, uint16_t mtu, const uint8_t *offender, const kdp_ip *ip,
                           uint8_t *answer) {
  size_t quote = ip->size < IPV6_QUOTE ? ip->size : IPV6_QUOTE, payload = ICMP_HEADER_SIZE + quote;
  memset(answer, 0, KDP_IPV6_HEADER_SIZE + ICMP_HEADER_SIZE);
  answer[0] = 0x60;
  kdp_store_be16(answer + 4, (uint16_t)payload);
  answer[6] = KDP_PROTOCOL_ICMPV6;
  answer[7] = TIME_TO_LIVE;
  memcpy(answer + 8, ip->destination, 16);
  memcpy(answer + 24, ip->source, 16);

  uint8_t *icmp = answer + KDP_IPV6_HEADER_SIZE;
  icmp[0] = kind == KDP_ICMP_TOO_BIG ? 2 : 1;
  icmp[1] = kind == KDP_ICMP_TOO_BIG ? 0 : 3;
  if (kind == KDP_ICMP_TOO_BIG) kdp_store_be32(icmp + 4, mtu < IPV6_LEAST_MTU ? IPV6_LEAST_MTU : mtu);
  memcpy(icmp + ICMP_HEADER_SIZE, offender, quote);
  uint64_t sum = kdp_checksum_pseudo(answer, KDP_PROTOCOL_ICMPV6, (uint32_t)payload);
  store_checksum(icmp + 2, kdp_checksum_add(sum, icmp, payload));
  return KDP_IPV6_HEADER_SIZE + payload;
}

size_t kdp_icmp_write_error(kdp_icmp_kind kind, uint16_t mtu, const uint8_t *offender, size_t size, uint8_t *answer) {
  kdp_ip ip;
  if (kdp_ip_read(offender, size, &ip) != KDP_OK || !may_answer(offender, &ip)) return 0;
  if (ip.version == 4) return write_icmp(kind, mtu, offender, &ip, answer);
  return write_icmpv6(kind, mtu, offender, &ip, answer);
}
