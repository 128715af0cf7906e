#include "support/packets.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/rng.h"

static unsigned get16(const uint8_t *at) {
  return (unsigned)at[0] << 8 | at[1];
}
static void put16(uint8_t *at, unsigned value) {
  at[0] = (uint8_t)(value >> 8);
  at[1] = (uint8_t)value;
}
static void put32(uint8_t *at, uint32_t value) {
  put16(at, value >> 16);
  put16(at + 2, value & 0xffff);
}
static uint32_t get32(const uint8_t *at) {
  return (uint32_t)get16(at) << 16 | get16(at + 2);
}

uint16_t packet_sum(const uint8_t *bytes, size_t size, uint32_t start) {
  uint32_t sum = start;
  for (size_t i = 0; i < size; i++) {
    sum += i % 2 ? bytes[i] : (uint32_t)bytes[i] << 8;
    if (sum > 0xffff) sum -= 0xffff;
  }
  return (uint16_t)sum;
}

size_t packet_transport(const uint8_t *packet) {
  if (packet[0] >> 4 == 4) return (packet[0] & 15u) * 4;
  if (packet[6] == 60) return 40 + 8 + 8u * packet[41];
  return 40;
}

uint8_t packet_protocol(const uint8_t *packet) {
  if (packet[0] >> 4 == 4) return packet[9];
  return packet[6] == 60 ? packet[40] : packet[6];
}

size_t packet_headers(const uint8_t *packet) {
  size_t at = packet_transport(packet);
  return packet_protocol(packet) == 6 ? at + (packet[at + 12] >> 4) * 4u : at + 8;
}

static size_t checksum_offset(const uint8_t *packet) {
  return packet_transport(packet) + (packet_protocol(packet) == 6 ? 16 : 6);
}

static uint16_t pseudo_sum(const uint8_t *packet, size_t transport_size) {
  uint8_t pseudo[40] = {0};
  if (packet[0] >> 4 == 4)
    memcpy(pseudo, packet + 12, 8);
  else
    memcpy(pseudo, packet + 8, 32);
  put32(pseudo + 32, (uint32_t)transport_size);
  pseudo[39] = packet_protocol(packet);
  return packet_sum(pseudo, 40, 0);
}

static uint16_t transport_sum(const uint8_t *packet, size_t size) {
  size_t at = packet_transport(packet);
  return packet_sum(packet + at, size - at, pseudo_sum(packet, size - at));
}

static bool is_tcp_or_udp(const uint8_t *packet) {
  return packet_protocol(packet) == 6 || packet_protocol(packet) == 17;
}

bool packet_checksums_right(const uint8_t *packet, size_t size) {
  if (packet[0] >> 4 == 4 && packet_sum(packet, (packet[0] & 15u) * 4, 0) != 0xffff) return false;
  if (!is_tcp_or_udp(packet)) return true;
  return transport_sum(packet, size) == 0xffff;
}

void packet_fix_ip_checksum(uint8_t *packet) {
  put16(packet + 10, 0);
  put16(packet + 10, (uint16_t)~packet_sum(packet, 20, 0));
}

void packet_fix_checksums(uint8_t *packet, size_t size) {
  if (packet[0] >> 4 == 4) {
    put16(packet + 10, 0);
    put16(packet + 10, (uint16_t)~packet_sum(packet, (packet[0] & 15u) * 4, 0));
  }
  if (!is_tcp_or_udp(packet)) return;
  uint8_t *field = packet + checksum_offset(packet);
  put16(field, 0);
  uint16_t checksum = (uint16_t)~transport_sum(packet, size);
  put16(field, checksum ? checksum : 0xffff);
}

kdp_virtio packet_make_partial(uint8_t *packet, size_t size, uint8_t gso_type, uint16_t gso_size) {
  size_t at = packet_transport(packet), field = checksum_offset(packet);
  put16(packet + field, pseudo_sum(packet, size - at));
  return (kdp_virtio){.flags = KDP_VIRTIO_NEEDS_CSUM,
                      .gso_type = gso_type,
                      .header_size = (uint16_t)packet_headers(packet),
                      .gso_size = gso_size,
                      .csum_start = (uint16_t)at,
                      .csum_offset = (uint16_t)(field - at)};
}

static size_t write_ip(const packet_form *form, size_t rest, uint8_t *to) {
  if (form->version == 4) {
    size_t header = 20u + form->ip_options;
    memset(to, 1, header); /* options: NOP */
    memset(to, 0, 20);
    to[0] = (uint8_t)(0x40 | header / 4);
    to[1] = form->tos;
    put16(to + 2, (unsigned)(header + rest));
    put16(to + 4, form->id);
    to[6] = form->df ? 0x40 : 0;
    to[8] = form->ttl;
    to[9] = form->protocol;
    memcpy(to + 12, (uint8_t[]){10, 77, 0, form->source, 198, 51, 100, form->destination}, 8);
    return header;
  }
  memset(to, 0, 40u + form->extension_size);
  put32(to, UINT32_C(6) << 28 | (uint32_t)form->tos << 20 | (form->flow_label & 0xfffff));
  put16(to + 4, (unsigned)(rest + form->extension_size));
  to[6] = form->extension_size ? 60 : form->protocol;
  to[7] = form->ttl;
  memcpy(to + 8, (uint8_t[]){0xfd, 0x77}, 2), to[23] = form->source;
  memcpy(to + 24, (uint8_t[]){0x20, 0x01, 0x0d, 0xb8}, 4), to[39] = form->destination;
  if (form->extension_size) {
    to[40] = form->protocol, to[41] = (uint8_t)(form->extension_size / 8 - 1);
    to[42] = 1, to[43] = (uint8_t)(form->extension_size - 4); /* PadN */
  }
  return 40u + form->extension_size;
}

size_t packet_write(const packet_form *form, uint8_t *to) {
  size_t header = form->protocol == 6 ? 20u + form->tcp_options : form->protocol == 17 ? 8 : 0;
  size_t at = write_ip(form, header + form->payload, to), size = at + header + form->payload;
  uint8_t *transport = to + at;
  memset(transport, 0, header);
  if (header) {
    put16(transport, form->source_port);
    put16(transport + 2, form->destination_port);
  }
  if (form->protocol == 6) {
    put32(transport + 4, form->sequence);
    put32(transport + 8, form->acknowledgement);
    transport[12] = (uint8_t)(header / 4 << 4);
    transport[13] = form->flags;
    put16(transport + 14, form->window);
    put16(transport + 18, form->urgent);
    rng options = {form->option_seed};
    rng_fill(&options, transport + 20, form->tcp_options);
  } else if (form->protocol == 17) {
    put16(transport + 4, (unsigned)(8 + form->payload));
  }
  rng payload = {form->payload_seed};
  rng_fill(&payload, transport + header, form->payload);
  packet_fix_checksums(to, size);
  if (form->protocol == 17 && form->no_checksum) put16(transport + 6, 0);
  return size;
}

static void complete_checksum(const kdp_virtio *header, uint8_t *packet, size_t size) {
  size_t field = (size_t)header->csum_start + header->csum_offset;
  assert_true(field + 2 <= size);
  uint16_t checksum = (uint16_t)~packet_sum(packet + header->csum_start, size - header->csum_start, 0);
  put16(packet + field, checksum ? checksum : 0xffff);
}

void kernel_segment(const kdp_virtio *header, const uint8_t *packet, size_t size, packet_give *give, void *context) {
  uint8_t *copy = malloc(size);
  memcpy(copy, packet, size);
  bool partial = header->flags & KDP_VIRTIO_NEEDS_CSUM;
  uint8_t kind = header->gso_type & 0x7f;
  if (kind == KDP_VIRTIO_GSO_NONE) {
    if (partial) complete_checksum(header, copy, size);
    give(context, copy, size);
    free(copy);
    return;
  }
  size_t transport = packet_transport(packet), headers = packet_headers(packet);
  bool ipv4 = packet[0] >> 4 == 4, tcp = kind != KDP_VIRTIO_GSO_UDP_L4;
  assert_true(partial && header->gso_size > 0);
  assert_int_equal(header->csum_start, transport);
  assert_int_equal(header->csum_offset, tcp ? 16 : 6);
  assert_int_equal(packet_protocol(packet), tcp ? 6 : 17);
  if (tcp) assert_int_equal(kind, ipv4 ? KDP_VIRTIO_GSO_TCPV4 : KDP_VIRTIO_GSO_TCPV6);
  /* Lengths and the pseudo header's sum of the whole must be right: the kernel makes the segments' from them. */
  assert_int_equal(ipv4 ? get16(packet + 2) : get16(packet + 4) + 40u, size);
  assert_int_equal(get16(packet + checksum_offset(packet)), pseudo_sum(packet, size - transport));
  if (!tcp) assert_int_equal(get16(packet + transport + 4), size - transport);
  if (ipv4) assert_int_equal(packet_sum(packet, (packet[0] & 15u) * 4, 0), 0xffff);
  size_t payload = size - headers, count = payload ? (payload + header->gso_size - 1) / header->gso_size : 1;
  for (size_t i = 0; i < count; i++) {
    size_t done = i * header->gso_size, part = payload - done < header->gso_size ? payload - done : header->gso_size;
    memcpy(copy, packet, headers);
    memcpy(copy + headers, packet + headers + done, part);
    size_t segment = headers + part;
    if (ipv4) {
      put16(copy + 2, (unsigned)segment);
      put16(copy + 4, (get16(packet + 4) + (unsigned)i) & 0xffff);
    } else {
      put16(copy + 4, (unsigned)(segment - 40));
    }
    if (tcp) {
      put32(copy + transport + 4, get32(packet + transport + 4) + (uint32_t)done);
      if (i > 0) copy[transport + 13] &= 0x7f;
      if (i + 1 < count) copy[transport + 13] &= 0xf6;
    } else {
      put16(copy + transport + 4, (unsigned)(segment - transport));
    }
    packet_fix_checksums(copy, segment);
    give(context, copy, segment);
  }
  free(copy);
}
