#include "offload/split.h"

#include <string.h>

#include "core/bytes.h"
#include "net/checksum.h"
#include "net/ip.h"
#include "net/tcp.h"

/* A super-packet that has been checked, and what its segments have in common. */
typedef struct plan {
  const uint8_t *bytes;
  kdp_ip ip;
  bool tcp;
  uint32_t transport;   /* offset of the TCP or UDP header */
  uint32_t header_size; /* of all headers */
  uint32_t payload;     /* of the whole super-packet */
  uint32_t segment_payload, segments;
  uint32_t sequence;
  uint16_t id;
  bool partial; /* the checksum field holds the sum of the pseudo header */
  /* Sums over what is the same in every segment; the fields written by write_segment count as zero. */
  uint16_t ip_sum, transport_sum;
} plan;

/* A number as it counts in a sum: in memory order. */
static inline uint64_t summand16(uint32_t value) {
  uint8_t bytes[2];
  uint16_t memory;
  kdp_store_be16(bytes, (uint16_t)value);
  memcpy(&memory, bytes, 2);
  return memory;
}

static inline uint64_t summand32(uint32_t value) {
  return summand16(value >> 16) + summand16(value & 0xffff);
}

static inline void store_sum(uint8_t *at, uint64_t sum) {
  uint16_t checksum = (uint16_t)~kdp_checksum_fold(sum);
  memcpy(at, &checksum, 2);
}

/* A sum of zero is sent as its other form: in UDP zero means that there is none (RFC 768). */
static inline void store_transport_sum(uint8_t *at, uint64_t sum) {
  uint16_t checksum = (uint16_t)~kdp_checksum_fold(sum);
  if (checksum == 0) checksum = 0xffff;
  memcpy(at, &checksum, 2);
}

/* The kind must be that of the packet. */
static bool is_kind_of(const plan *p, uint8_t kind, uint8_t protocol) {
  switch (kind) {
  case KDP_VIRTIO_GSO_TCPV4: return p->ip.version == 4 && protocol == KDP_PROTOCOL_TCP;
  case KDP_VIRTIO_GSO_TCPV6: return p->ip.version == 6 && protocol == KDP_PROTOCOL_TCP;
  case KDP_VIRTIO_GSO_UDP_L4: return protocol == KDP_PROTOCOL_UDP;
  default: return false;
  }
}

static kdp_status make_plan(const kdp_virtio *header, const uint8_t *bytes, const kdp_ip *ip, plan *p) {
  *p = (plan){.bytes = bytes, .ip = *ip};
  kdp_ip_transport transport = kdp_ip_find_transport(bytes, ip);
  uint8_t kind = header->gso_type & (uint8_t)~KDP_VIRTIO_GSO_ECN;
  if (!transport.found || transport.fragment || !is_kind_of(p, kind, transport.protocol)) return KDP_MALFORMED;
  p->tcp = transport.protocol == KDP_PROTOCOL_TCP;
  p->transport = transport.offset;
  uint32_t rest = ip->size - transport.offset;
  const uint8_t *at = bytes + transport.offset;
  uint32_t transport_header = KDP_UDP_HEADER_SIZE;
  if (p->tcp) {
    if (rest < KDP_TCP_HEADER_SIZE) return KDP_MALFORMED;
    transport_header = (at[KDP_TCP_DATA_OFFSET] >> 4) * 4u;
    if (transport_header < KDP_TCP_HEADER_SIZE || transport_header > rest) return KDP_MALFORMED;
    p->sequence = kdp_load_be32(at + KDP_TCP_SEQUENCE);
  } else if (rest < KDP_UDP_HEADER_SIZE || kdp_load_be16(at + KDP_UDP_LENGTH) != rest) {
    return KDP_MALFORMED;
  }
  p->partial = header->flags & KDP_VIRTIO_NEEDS_CSUM;
  if (p->partial) {
    uint16_t offset = p->tcp ? KDP_TCP_CHECKSUM : KDP_UDP_CHECKSUM;
    if (header->csum_start != p->transport || header->csum_offset != offset) return KDP_CHECKSUM;
  }
  if (header->gso_size == 0) return KDP_MALFORMED;
  p->header_size = p->transport + transport_header;
  p->payload = ip->size - p->header_size;
  p->segment_payload = header->gso_size < p->payload ? header->gso_size : p->payload;
  p->segments = p->payload == 0 ? 1 : (p->payload + p->segment_payload - 1) / p->segment_payload;
  return KDP_OK;
}

/* Of the pseudo header, without the length. Behind IPv6 extension headers its addresses may be others than those in
   front (a routing header's, a home address): then the kernel's own sum is taken, less the length in it. */
static uint64_t sum_pseudo_header(const plan *p) {
  if (!p->partial || p->ip.version == 4 || p->transport == KDP_IPV6_HEADER_SIZE)
    return kdp_checksum_pseudo(p->bytes, p->tcp ? KDP_PROTOCOL_TCP : KDP_PROTOCOL_UDP, 0);
  uint16_t whole;
  memcpy(&whole, p->bytes + p->transport + (p->tcp ? KDP_TCP_CHECKSUM : KDP_UDP_CHECKSUM), 2);
  return (uint64_t)whole + (uint16_t)~summand16(p->ip.size - p->transport);
}

static void sum_common_parts(plan *p) {
  uint8_t copy[60]; /* the longest IPv4 or TCP header */
  if (p->ip.version == 4) {
    p->id = kdp_load_be16(p->bytes + 4);
    memcpy(copy, p->bytes, p->ip.header_size);
    memset(copy + 2, 0, 4);  /* length, id */
    memset(copy + 10, 0, 2); /* checksum */
    p->ip_sum = kdp_checksum_fold(kdp_checksum_add(0, copy, p->ip.header_size));
  }
  uint32_t transport_header = p->header_size - p->transport;
  memcpy(copy, p->bytes + p->transport, transport_header);
  if (p->tcp) {
    memset(copy + KDP_TCP_SEQUENCE, 0, 4);
    memset(copy + KDP_TCP_DATA_OFFSET, 0, 2); /* and the flags */
    memset(copy + KDP_TCP_CHECKSUM, 0, 2);
  } else {
    memset(copy + KDP_UDP_LENGTH, 0, 4); /* and the checksum */
  }
  p->transport_sum = kdp_checksum_fold(kdp_checksum_add(sum_pseudo_header(p), copy, transport_header));
}

static void write_segment(const plan *p, uint32_t index, uint32_t payload, uint8_t *to) {
  memcpy(to, p->bytes, p->header_size);
  uint32_t size = p->header_size + payload;
  if (p->ip.version == 4) {
    uint16_t id = (uint16_t)(p->id + index);
    kdp_store_be16(to + 2, (uint16_t)size);
    kdp_store_be16(to + 4, id);
    store_sum(to + 10, p->ip_sum + summand16(size) + summand16(id));
  } else {
    kdp_store_be16(to + 4, (uint16_t)(size - KDP_IPV6_HEADER_SIZE));
  }

  uint8_t *transport = to + p->transport;
  uint32_t done = index * p->segment_payload, transport_size = size - p->transport;
  uint64_t sum = p->transport_sum + summand16(transport_size);
  if (p->tcp) {
    uint8_t flags = transport[KDP_TCP_FLAGS];
    if (index > 0) flags &= (uint8_t)~KDP_TCP_CWR;
    if (index + 1 < p->segments) flags &= (uint8_t) ~(KDP_TCP_FIN | KDP_TCP_PSH);
    uint32_t sequence = p->sequence + done;
    transport[KDP_TCP_FLAGS] = flags;
    kdp_store_be32(transport + KDP_TCP_SEQUENCE, sequence);
    sum += summand32(sequence) + summand16((uint32_t)transport[KDP_TCP_DATA_OFFSET] << 8 | flags);
  } else {
    kdp_store_be16(transport + KDP_UDP_LENGTH, (uint16_t)transport_size);
    sum += summand16(transport_size);
  }
  sum = kdp_checksum_copy_add(sum, to + p->header_size, p->bytes + p->header_size + done, payload);
  store_transport_sum(transport + (p->tcp ? KDP_TCP_CHECKSUM : KDP_UDP_CHECKSUM), sum);
}

static void give_back(kdp_pool *pool, const kdp_packet *packet, uint32_t count) {
  for (uint32_t i = 0; i < count; i++)
    kdp_pool_release(pool, packet[i].slot);
}

static kdp_status copy_segments(plan *p, kdp_room room, kdp_pool *pool, kdp_batch *batch) {
  uint64_t whole = (uint64_t)room.head + p->header_size + p->segment_payload + room.tail;
  if (whole > KDP_SLOT_SIZE || p->segments > batch->capacity) return KDP_TOO_BIG;
  if (p->segments > kdp_batch_room(batch)) return KDP_OUT_FULL;
  uint64_t together = (whole + 15) / 16 * 16 * p->segments; /* carvings are aligned to 16 */
  if (together <= KDP_SLOT_SIZE && !kdp_pool_reserve(pool, (uint32_t)together)) return KDP_POOL_EMPTY;
  sum_common_parts(p);
  kdp_packet *packet = batch->packet + batch->count;
  bool full = p->header_size + p->segment_payload == room.inside_mtu;
  for (uint32_t i = 0, left = p->payload; i < p->segments; i++) {
    uint32_t payload = left < p->segment_payload ? left : p->segment_payload;
    uint32_t segment = p->header_size + payload, tail = kdp_room_tail(&room, segment);
    if (!(full && i > 0 ? kdp_pool_take_adjacent : kdp_pool_take_packet)(pool, room.head, segment, tail, &packet[i])) {
      give_back(pool, packet, i);
      return KDP_POOL_EMPTY;
    }
    write_segment(p, i, payload, packet[i].data);
    left -= payload;
  }
  batch->count += p->segments;
  return KDP_OK;
}

static kdp_status copy_one(const kdp_virtio *header, const uint8_t *bytes, const kdp_ip *ip, kdp_room room,
                           kdp_pool *pool, kdp_batch *batch) {
  uint32_t start = header->csum_start, field = start + header->csum_offset;
  bool complete = header->flags & KDP_VIRTIO_NEEDS_CSUM;
  if (complete && (start < ip->header_size || field + 2 > ip->size)) return KDP_CHECKSUM;
  if ((uint64_t)room.head + ip->size + room.tail > KDP_SLOT_SIZE || batch->capacity == 0) return KDP_TOO_BIG;
  if (kdp_batch_room(batch) == 0) return KDP_OUT_FULL;
  kdp_packet *packet = &batch->packet[batch->count];
  if (!kdp_pool_take_packet(pool, room.head, ip->size, room.tail, packet)) return KDP_POOL_EMPTY;
  if (complete) {
    /* The field holds the sum of the pseudo header. */
    memcpy(packet->data, bytes, start);
    uint64_t sum = kdp_checksum_copy_add(0, packet->data + start, bytes + start, ip->size - start);
    store_transport_sum(packet->data + field, sum);
  } else {
    memcpy(packet->data, bytes, ip->size);
  }
  batch->count++;
  return KDP_OK;
}

kdp_status kdp_split_copy(const kdp_virtio *header, const uint8_t *bytes, size_t size, kdp_room room, kdp_pool *pool,
                          kdp_batch *batch) {
  kdp_ip ip;
  kdp_status status = kdp_ip_read(bytes, size, &ip);
  if (status != KDP_OK) return status;
  if (header->gso_type == KDP_VIRTIO_GSO_NONE) return copy_one(header, bytes, &ip, room, pool, batch);
  plan p;
  status = make_plan(header, bytes, &ip, &p);
  if (status != KDP_OK) return status;
  return copy_segments(&p, room, pool, batch);
}
