#include "net/ip.h"

#include "core/bytes.h"

/* Next header values of IPv6 that have the form of an extension header (IANA's list, RFC 7045 section 4). ESP is one
   too, but nothing behind it can be read: it is treated as a transport that is not plain. */
enum {
  HOP_BY_HOP = 0,
  ROUTING = 43,
  FRAGMENT = 44,
  ESP = 50,
  AUTHENTICATION = 51,
  DESTINATION_OPTIONS = 60,
  MOBILITY = 135,
  HIP = 139,
  SHIM6 = 140,
  EXPERIMENT_1 = 253,
  EXPERIMENT_2 = 254
};

enum { MORE_FRAGMENTS = 0x2000, DONT_FRAGMENT = 0x4000, OFFSET_MASK = 0x1fff };

static bool is_extension(uint8_t next) {
  switch (next) {
  case HOP_BY_HOP:
  case ROUTING:
  case FRAGMENT:
  case AUTHENTICATION:
  case DESTINATION_OPTIONS:
  case MOBILITY:
  case HIP:
  case SHIM6:
  case EXPERIMENT_1:
  case EXPERIMENT_2: return true;
  default: return false;
  }
}

/* Walks the extension headers as far as they lie in the packet. */
static kdp_ip_transport walk_extensions(const uint8_t *bytes, const kdp_ip *ip) {
  kdp_ip_transport transport = {.protocol = ip->protocol, .offset = KDP_IPV6_HEADER_SIZE};
  uint32_t at = KDP_IPV6_HEADER_SIZE;
  while (is_extension(transport.protocol)) {
    if (ip->size - at < 8) return transport;
    const uint8_t *header = bytes + at;
    uint32_t length = 8 + 8u * header[1];
    if (transport.protocol == AUTHENTICATION) length = 8 + 4u * header[1];
    if (transport.protocol == FRAGMENT) {
      length = 8;
      uint16_t field = kdp_load_be16(header + 2);
      bool first = (field & 0xfff8) == 0;
      if (!first || (field & 1)) transport.fragment = true;
      if (!first) return transport;
    }
    if (ip->size - at < length) return transport;
    at += length;
    transport.protocol = header[0];
    transport.offset = (uint16_t)at;
  }
  transport.found = true;
  return transport;
}

kdp_ip_transport kdp_ip_find_transport(const uint8_t *bytes, const kdp_ip *ip) {
  if (ip->version == 6) return walk_extensions(bytes, ip);
  bool first = !ip->fragment || (kdp_load_be16(bytes + 6) & OFFSET_MASK) == 0;
  return (kdp_ip_transport){
      .protocol = ip->protocol, .found = first, .fragment = ip->fragment, .offset = ip->header_size};
}

static kdp_status read_ipv4(const uint8_t *bytes, size_t size, kdp_ip *ip) {
  if (size < KDP_IPV4_HEADER_SIZE) return KDP_TOO_SHORT;
  unsigned header_size = (bytes[0] & 15u) * 4;
  uint32_t total = kdp_load_be16(bytes + 2);
  if (header_size < KDP_IPV4_HEADER_SIZE || total < header_size || total > size) return KDP_NOT_IP;
  uint16_t field = kdp_load_be16(bytes + 6);
  bool fragment = (field & (MORE_FRAGMENTS | OFFSET_MASK)) != 0;
  *ip = (kdp_ip){.version = 4,
                 .protocol = bytes[9],
                 .ecn = bytes[1] & 3,
                 .plain = header_size == KDP_IPV4_HEADER_SIZE && !fragment,
                 .fragment = fragment,
                 .df = (field & DONT_FRAGMENT) != 0,
                 .header_size = (uint16_t)header_size,
                 .size = total,
                 .source = bytes + 12,
                 .destination = bytes + 16};
  return KDP_OK;
}

static kdp_status read_ipv6(const uint8_t *bytes, size_t size, kdp_ip *ip) {
  if (size < KDP_IPV6_HEADER_SIZE) return KDP_TOO_SHORT;
  uint32_t payload = kdp_load_be16(bytes + 4);
  uint8_t next = bytes[6];
  if (payload > size - KDP_IPV6_HEADER_SIZE || (payload == 0 && next == HOP_BY_HOP)) return KDP_NOT_IP;
  if (payload + KDP_IPV6_HEADER_SIZE > UINT16_MAX) return KDP_NOT_IP; /* no tunnel packet is that long */
  bool extended = is_extension(next);
  *ip = (kdp_ip){.version = 6,
                 .protocol = next,
                 .ecn = (bytes[1] >> 4) & 3,
                 .plain = !extended && next != ESP,
                 .df = true,
                 .header_size = KDP_IPV6_HEADER_SIZE,
                 .size = payload + KDP_IPV6_HEADER_SIZE,
                 .source = bytes + 8,
                 .destination = bytes + 24};
  if (extended) ip->fragment = walk_extensions(bytes, ip).fragment;
  return KDP_OK;
}

kdp_status kdp_ip_read(const uint8_t *bytes, size_t size, kdp_ip *ip) {
  if (size == 0) return KDP_TOO_SHORT;
  switch (bytes[0] >> 4) {
  case 4: return read_ipv4(bytes, size, ip);
  case 6: return read_ipv6(bytes, size, ip);
  default: return KDP_NOT_IP;
  }
}

uint8_t kdp_ip_ecn(const uint8_t *packet) {
  return packet[0] >> 4 == 4 ? packet[1] & 3 : (packet[1] >> 4) & 3;
}

void kdp_ip_set_ecn(uint8_t *packet, uint8_t ecn) {
  if (packet[0] >> 4 != 4) {
    packet[1] = (uint8_t)((packet[1] & 0xcf) | (ecn & 3) << 4);
    return;
  }
  uint8_t before = packet[1], after = (uint8_t)((before & 0xfc) | (ecn & 3));
  if (before == after) return;
  packet[1] = after;
  /* RFC 1624 equation 3, with the bytes that did not change left out. */
  uint32_t sum = (uint16_t)~kdp_load_be16(packet + 10) + (uint32_t)(uint16_t)~before + after;
  sum = (sum & 0xffff) + (sum >> 16);
  sum = (sum & 0xffff) + (sum >> 16);
  kdp_store_be16(packet + 10, (uint16_t)~sum);
}

enum { NOT_ECT = 0, ECT1 = 1, ECT0 = 2, CE = 3, DROP = -1 };

int kdp_ecn_decapsulate(uint8_t inner, uint8_t outer) {
  /* RFC 6040 figure 4: [inner][outer]. */
  static const int8_t egress[4][4] = {
      [NOT_ECT] = {[NOT_ECT] = NOT_ECT, [ECT0] = NOT_ECT, [ECT1] = NOT_ECT, [CE] = DROP},
      [ECT0] = {[NOT_ECT] = ECT0, [ECT0] = ECT0, [ECT1] = ECT1, [CE] = CE},
      [ECT1] = {[NOT_ECT] = ECT1, [ECT0] = ECT1, [ECT1] = ECT1, [CE] = CE},
      [CE] = {[NOT_ECT] = CE, [ECT0] = CE, [ECT1] = CE, [CE] = CE},
  };
  return egress[inner & 3][outer & 3];
}
