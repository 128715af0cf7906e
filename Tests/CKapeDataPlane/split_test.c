/* GSO split against a segmenter written after the kernel's rules, and against what no kernel should send. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/bytes.h"
#include "net/tcp.h"
#include "offload/split.h"
#include "support/guard.h"
#include "support/packets.h"
#include "support/rng.h"

static const kdp_room ROOM = {.head = 16, .tail = 31};

typedef struct bench {
  kdp_pool *pool;
  kdp_packet packet[KDP_BATCH_CAPACITY];
  kdp_batch batch;
} bench;

static bench *bench_of(uint32_t slots) {
  bench *b = calloc(1, sizeof *b);
  kdp_host host = kdp_host_default();
  assert_int_equal(kdp_pool_create(slots, &host, &b->pool), KDP_OK);
  b->batch = (kdp_batch){.packet = b->packet, .capacity = KDP_BATCH_CAPACITY};
  return b;
}

static void bench_free(bench *b) {
  uint32_t slots = kdp_pool_slot_count(b->pool);
  kdp_batch_release(&b->batch, b->pool);
  assert_true(kdp_pool_free_count(b->pool) >= slots - 1); /* the slot that is carved from stays open */
  kdp_pool_destroy(b->pool);
  free(b);
}

/* Splits a copy that ends at a trap. */
static kdp_status split(bench *b, const kdp_virtio *header, const uint8_t *bytes, size_t size) {
  guard copy = guard_copy(bytes, size);
  kdp_status status = kdp_split_copy(header, copy.bytes, size, ROOM, b->pool, &b->batch);
  guard_free(&copy);
  return status;
}

typedef struct expectation {
  const bench *b;
  uint32_t at;
} expectation;

static void expect_segment(void *context, const uint8_t *segment, size_t size) {
  expectation *e = context;
  assert_true(e->at < e->b->batch.count);
  const kdp_packet *packet = &e->b->packet[e->at++];
  assert_int_equal(packet->size, size);
  assert_true(packet->head >= ROOM.head && packet->tail >= ROOM.tail);
  assert_memory_equal(packet->data, segment, size);
  assert_true(packet_checksums_right(packet->data, size));
}

/* Everything that was made, from packet `from` on, is what the kernel would make. */
static void expect_as_kernel(const bench *b, uint32_t from, const kdp_virtio *header, const uint8_t *bytes,
                             size_t size) {
  expectation e = {b, from};
  kernel_segment(header, bytes, size, expect_segment, &e);
  assert_int_equal(e.at, b->batch.count);
}

static packet_form form_of(uint8_t version, uint8_t protocol, uint32_t payload) {
  return (packet_form){.version = version,
                       .protocol = protocol,
                       .ttl = 64,
                       .source = 2,
                       .destination = 7,
                       .source_port = 40000,
                       .destination_port = 443,
                       .sequence = 1000,
                       .acknowledgement = 77,
                       .window = 500,
                       .flags = KDP_TCP_ACK,
                       .payload = payload,
                       .payload_seed = payload};
}

static uint8_t gso_type_of(const packet_form *form) {
  if (form->protocol == 17) return KDP_VIRTIO_GSO_UDP_L4;
  return form->version == 4 ? KDP_VIRTIO_GSO_TCPV4 : KDP_VIRTIO_GSO_TCPV6;
}

static void a_packet_without_offloads_is_copied_as_it_is(void **state) {
  (void)state;
  static uint8_t packet[PACKET_MOST];
  static const uint8_t protocols[] = {6, 17, 1, 58, 50};
  for (size_t i = 0; i < 10; i++) {
    bench *b = bench_of(2);
    packet_form form = form_of(i < 5 ? 4 : 6, protocols[i % 5], 777);
    size_t size = packet_write(&form, packet);
    packet[size - 1] ^= 1; /* a wrong checksum is not ours to mend */
    assert_int_equal(split(b, &(kdp_virtio){0}, packet, size), KDP_OK);
    assert_int_equal(b->batch.count, 1);
    assert_int_equal(b->packet[0].size, size);
    assert_memory_equal(b->packet[0].data, packet, size);
    bench_free(b);
  }
}

static void padding_behind_the_packet_is_left_behind(void **state) {
  (void)state;
  static uint8_t packet[PACKET_MOST], whole[PACKET_MOST];
  bench *b = bench_of(2);
  packet_form form = form_of(4, 17, 101);
  size_t size = packet_write(&form, packet);
  memcpy(whole, packet, size);
  memset(packet + size, 0xee, 20);
  kdp_virtio header = packet_make_partial(packet, size, 0, 0);
  assert_int_equal(split(b, &header, packet, size + 20), KDP_OK);
  assert_int_equal(b->packet[0].size, size);
  assert_memory_equal(b->packet[0].data, whole, size);
  bench_free(b);
}

static void a_checksum_asked_for_is_completed(void **state) {
  (void)state;
  static uint8_t packet[PACKET_MOST], whole[PACKET_MOST];
  for (uint32_t payload = 0; payload < 300; payload++)
    for (int kind = 0; kind < 4; kind++) {
      bench *b = bench_of(1);
      packet_form form = form_of(kind & 1 ? 4 : 6, kind & 2 ? 6 : 17, payload);
      size_t size = packet_write(&form, packet);
      memcpy(whole, packet, size);
      kdp_virtio header = packet_make_partial(packet, size, 0, 0);
      assert_int_equal(split(b, &header, packet, size), KDP_OK);
      assert_int_equal(b->packet[0].size, size);
      assert_memory_equal(b->packet[0].data, whole, size);
      bench_free(b);
    }
}

/* UDP says "no checksum" by zero; a sum that comes out as zero is sent as 0xffff. */
static void a_udp_checksum_of_zero_is_sent_as_all_ones(void **state) {
  (void)state;
  static uint8_t packet[PACKET_MOST];
  for (int gso = 0; gso < 2; gso++)
    for (uint8_t version = 4; version <= 6; version += 2) {
      bench *b = bench_of(1);
      packet_form form = form_of(version, 17, 10);
      size_t size = packet_write(&form, packet), field = packet_transport(packet) + 6;
      /* make the payload's last word take up what is missing */
      uint16_t checksum = kdp_load_be16(packet + field), last = kdp_load_be16(packet + size - 2);
      uint32_t wanted = (uint32_t)last + checksum;
      kdp_store_be16(packet + size - 2, (uint16_t)(wanted > 0xffff ? wanted - 0xffff : wanted));
      packet_fix_checksums(packet, size);
      assert_int_equal(kdp_load_be16(packet + field), 0xffff);
      kdp_virtio header = packet_make_partial(packet, size, gso ? KDP_VIRTIO_GSO_UDP_L4 : 0, 10);
      assert_int_equal(split(b, &header, packet, size), KDP_OK);
      assert_int_equal(kdp_load_be16(b->packet[0].data + field), 0xffff);
      bench_free(b);
    }
}

static void flags_ids_and_sequence_numbers_of_segments(void **state) {
  (void)state;
  static uint8_t packet[PACKET_MOST];
  bench *b = bench_of(2);
  packet_form form = form_of(4, 6, 2500);
  form.flags = KDP_TCP_ACK | KDP_TCP_PSH | KDP_TCP_FIN | KDP_TCP_CWR;
  form.id = 0xfffe;
  form.sequence = UINT32_MAX - 999;
  size_t size = packet_write(&form, packet);
  kdp_virtio header = packet_make_partial(packet, size, KDP_VIRTIO_GSO_TCPV4 | KDP_VIRTIO_GSO_ECN, 1000);
  assert_int_equal(split(b, &header, packet, size), KDP_OK);
  assert_int_equal(b->batch.count, 3);
  static const uint8_t flags[] = {KDP_TCP_ACK | KDP_TCP_CWR, KDP_TCP_ACK, KDP_TCP_ACK | KDP_TCP_PSH | KDP_TCP_FIN};
  static const uint16_t ids[] = {0xfffe, 0xffff, 0x0000};
  static const uint32_t sequences[] = {UINT32_MAX - 999, 0, 1000};
  static const uint32_t sizes[] = {1040, 1040, 540};
  for (int i = 0; i < 3; i++) {
    const uint8_t *segment = b->packet[i].data;
    assert_int_equal(b->packet[i].size, sizes[i]);
    assert_int_equal(kdp_load_be16(segment + 2), sizes[i]);
    assert_int_equal(kdp_load_be16(segment + 4), ids[i]);
    assert_int_equal(segment[20 + KDP_TCP_FLAGS], flags[i]);
    assert_int_equal(kdp_load_be32(segment + 20 + KDP_TCP_SEQUENCE), sequences[i]);
    assert_true(packet_checksums_right(segment, sizes[i]));
  }
  bench_free(b);
}

static packet_form random_form(rng *r) {
  packet_form form = form_of(rng_below(r, 2) ? 4 : 6, rng_below(r, 3) ? 6 : 17, 0);
  form.tos = (uint8_t)rng_next(r);
  form.id = (uint16_t)rng_next(r);
  form.df = rng_below(r, 2);
  form.flow_label = (uint32_t)rng_next(r);
  if (rng_one_in(r, 4)) form.ip_options = (uint8_t)(4 * rng_below(r, 11));
  if (rng_one_in(r, 4)) form.extension_size = (uint8_t)(8 * (1 + rng_below(r, 20)));
  if (form.protocol == 6) form.tcp_options = (uint8_t)(4 * rng_below(r, 11));
  form.option_seed = rng_next(r);
  form.payload_seed = rng_next(r);
  form.sequence = (uint32_t)rng_next(r);
  form.acknowledgement = (uint32_t)rng_next(r);
  form.window = (uint16_t)rng_next(r);
  form.flags = (uint8_t)rng_next(r);
  form.urgent = (uint16_t)rng_next(r);
  return form;
}

static void random_super_packets_are_cut_as_the_kernel_cuts_them(void **state) {
  (void)state;
  static uint8_t packet[PACKET_MOST];
  rng r = {65536};
  for (int round = 0; round < 1500; round++) {
    packet_form form = random_form(&r);
    uint16_t gso_size = (uint16_t)(1 + rng_below(&r, rng_one_in(&r, 4) ? 65000 : 1500));
    uint32_t most = 65535 - 40 - form.extension_size - 60 - form.ip_options;
    uint64_t payload = (uint64_t)gso_size * rng_below(&r, 65) + rng_below(&r, gso_size);
    form.payload = (uint32_t)(payload > most ? most : payload);
    if (form.payload > (uint64_t)gso_size * KDP_BATCH_CAPACITY) form.payload = gso_size * KDP_BATCH_CAPACITY;
    size_t size = packet_write(&form, packet);
    uint8_t type = gso_type_of(&form);
    if (form.protocol == 6 && rng_below(&r, 2)) type |= KDP_VIRTIO_GSO_ECN;
    kdp_virtio header = packet_make_partial(packet, size, type, gso_size);
    header.header_size = (uint16_t)rng_next(&r); /* only a hint, and a kernel that forwards gives a wrong one */
    bench *b = bench_of(4);
    uint32_t before = rng_below(&r, 3);
    for (uint32_t i = 0; i < before; i++)
      assert_true(kdp_pool_take_packet(b->pool, 0, 3000 * (i + 1), 0, &b->packet[b->batch.count++]));
    kdp_status status = split(b, &header, packet, size);
    if (status == KDP_OUT_FULL) {
      assert_int_equal(b->batch.count, before);
      kdp_batch_release(&b->batch, b->pool);
      before = 0;
      status = split(b, &header, packet, size);
    }
    assert_int_equal(status, KDP_OK);
    expect_as_kernel(b, before, &header, packet, size);
    bench_free(b);
  }
}

static void the_largest_super_packet_is_split_whole(void **state) {
  (void)state;
  static uint8_t packet[PACKET_MOST];
  for (int kind = 0; kind < 4; kind++) {
    packet_form form = form_of(kind & 1 ? 4 : 6, kind & 2 ? 6 : 17, 0);
    form.tcp_options = kind & 2 ? 12 : 0;
    form.payload = 65535u - (form.version == 4 ? 20 : 40) - (form.protocol == 6 ? 32 : 8);
    size_t size = packet_write(&form, packet);
    assert_int_equal(size, 65535);
    static const uint16_t gso_sizes[] = {65535, 32768, 1448, 1368, 536, 257};
    for (size_t i = 0; i < sizeof gso_sizes / sizeof *gso_sizes; i++) {
      bench *b = bench_of(4);
      kdp_virtio header = packet_make_partial(packet, size, gso_type_of(&form), gso_sizes[i]);
      assert_int_equal(split(b, &header, packet, size), KDP_OK);
      expect_as_kernel(b, 0, &header, packet, size);
      bench_free(b);
    }
  }
}

static void segments_lie_in_one_slot_at_equal_strides_with_their_room(void **state) {
  (void)state;
  static uint8_t packet[PACKET_MOST];
  bench *b = bench_of(3);
  /* something small is carved already, so that not all of it fits behind it */
  assert_true(kdp_pool_take_packet(b->pool, 16, 20000, 16, &b->packet[b->batch.count++]));
  packet_form form = form_of(4, 6, 44 * 1380 + 100);
  size_t size = packet_write(&form, packet);
  kdp_virtio header = packet_make_partial(packet, size, KDP_VIRTIO_GSO_TCPV4, 1380);
  assert_int_equal(split(b, &header, packet, size), KDP_OK);
  assert_int_equal(b->batch.count, 46);
  ptrdiff_t stride = b->packet[2].data - b->packet[1].data;
  assert_int_equal(stride, (16 + 1420 + 31 + 15) / 16 * 16);
  for (uint32_t i = 1; i < 46; i++) {
    assert_int_equal(b->packet[i].slot, b->packet[1].slot);
    assert_ptr_equal(b->packet[i].data, b->packet[1].data + (ptrdiff_t)(i - 1) * stride);
    memset(b->packet[i].data - ROOM.head, 0xa5, ROOM.head); /* the room is nobody else's */
    memset(b->packet[i].data + b->packet[i].size, 0xa5, ROOM.tail);
  }
  expect_as_kernel(b, 1, &header, packet, size);
  bench_free(b);
}

/* What an engine pads no further is carved end to end, so that, sealed, it is one piece. */
static void full_segments_lie_end_to_end(void **state) {
  (void)state;
  static uint8_t packet[PACKET_MOST];
  const kdp_room room = {.head = 16, .tail = 31, .inside_mtu = 1420, .full_tail = 16};
  bench *b = bench_of(3);
  packet_form form = form_of(4, 6, 45 * 1380 - 1);
  size_t size = packet_write(&form, packet);
  kdp_virtio header = packet_make_partial(packet, size, KDP_VIRTIO_GSO_TCPV4, 1380);
  assert_int_equal(kdp_split_copy(&header, packet, size, room, b->pool, &b->batch), KDP_OK);
  assert_int_equal(b->batch.count, 45);
  for (uint32_t i = 0; i < 45; i++) {
    assert_int_equal(b->packet[i].slot, b->packet[0].slot);
    assert_int_equal(b->packet[i].tail, i < 44 ? 16 : 31);
    if (i) assert_ptr_equal(b->packet[i].data - 16, b->packet[i - 1].data + 1420 + 16);
    memset(b->packet[i].data - 16, 0xa5, 16);
    memset(b->packet[i].data + b->packet[i].size, 0xa5, b->packet[i].tail);
  }
  expectation e = {b, 0};
  for (uint32_t i = 0; i < 44; i++)
    b->packet[i].tail = ROOM.tail; /* looked at above */
  kernel_segment(&header, packet, size, expect_segment, &e);
  assert_int_equal(e.at, 45);
  /* The next super-packet begins where alignment has it, though this one ended anywhere. */
  header = packet_make_partial(packet, packet_write(&form, packet), KDP_VIRTIO_GSO_TCPV4, 1380);
  assert_int_equal(kdp_split_copy(&header, packet, size, room, b->pool, &b->batch), KDP_OK);
  assert_int_equal((uintptr_t)(b->packet[45].data - 16) % 16, 0);
  bench_free(b);
}

static void when_batch_or_pool_are_short_nothing_is_appended_and_nothing_leaks(void **state) {
  (void)state;
  static uint8_t packet[PACKET_MOST];
  packet_form form = form_of(6, 6, 60000);
  size_t size = packet_write(&form, packet);
  kdp_virtio header = packet_make_partial(packet, size, KDP_VIRTIO_GSO_TCPV6, 400); /* 150 segments, two slots */
  bench *b = bench_of(2);
  b->batch.count = b->batch.capacity - 149;
  for (uint32_t i = 0; i < b->batch.count; i++)
    b->packet[i].slot = KDP_NO_SLOT;
  uint32_t count = b->batch.count;
  assert_int_equal(split(b, &header, packet, size), KDP_OUT_FULL);
  assert_int_equal(b->batch.count, count);
  assert_int_equal(kdp_pool_free_count(b->pool), 2);
  b->batch.count--;
  assert_int_equal(split(b, &header, packet, size), KDP_OK);
  assert_int_equal(b->batch.count, b->batch.capacity);
  kdp_batch_release(&b->batch, b->pool);

  kdp_slot slot;
  assert_non_null(kdp_pool_take_slot(b->pool, &slot));
  assert_int_equal(split(b, &header, packet, size), KDP_POOL_EMPTY);
  assert_int_equal(b->batch.count, 0);
  kdp_pool_release(b->pool, slot);
  assert_int_equal(split(b, &header, packet, size), KDP_OK);
  expect_as_kernel(b, 0, &header, packet, size);
  bench_free(b);

  b = bench_of(1);
  assert_non_null(kdp_pool_take_slot(b->pool, &slot));
  header.gso_size = 20000;
  assert_int_equal(split(b, &header, packet, size), KDP_POOL_EMPTY);
  header = (kdp_virtio){0};
  assert_int_equal(split(b, &header, packet, size), KDP_POOL_EMPTY);
  b->batch.capacity = 1, b->batch.count = 1;
  b->packet[0].slot = KDP_NO_SLOT;
  assert_int_equal(split(b, &header, packet, size), KDP_OUT_FULL);
  kdp_pool_release(b->pool, slot);
  bench_free(b);
}

static void what_can_never_fit_is_refused_at_once(void **state) {
  (void)state;
  static uint8_t packet[PACKET_MOST];
  packet_form form = form_of(4, 17, KDP_BATCH_CAPACITY + 1);
  size_t size = packet_write(&form, packet);
  kdp_virtio header = packet_make_partial(packet, size, KDP_VIRTIO_GSO_UDP_L4, 1);
  bench *b = bench_of(2);
  assert_int_equal(split(b, &header, packet, size), KDP_TOO_BIG);
  form.payload--;
  size = packet_write(&form, packet);
  header = packet_make_partial(packet, size, KDP_VIRTIO_GSO_UDP_L4, 1);
  assert_int_equal(split(b, &header, packet, size), KDP_OK);
  expect_as_kernel(b, 0, &header, packet, size);
  kdp_batch_release(&b->batch, b->pool);
  /* room that no slot has */
  form.payload = 60000;
  size = packet_write(&form, packet);
  kdp_room room = {.head = 5000, .tail = 5000};
  assert_int_equal(kdp_split_copy(&(kdp_virtio){0}, packet, size, room, b->pool, &b->batch), KDP_TOO_BIG);
  header = packet_make_partial(packet, size, KDP_VIRTIO_GSO_UDP_L4, 60000);
  assert_int_equal(kdp_split_copy(&header, packet, size, room, b->pool, &b->batch), KDP_TOO_BIG);
  assert_int_equal(b->batch.count, 0);
  bench_free(b);
}

typedef struct flaw {
  const char *what;
  uint8_t version, protocol;
  kdp_status status;
  void (*make)(kdp_virtio *header, uint8_t *packet, size_t *size);
} flaw;

#define FLAW(name) static void name(kdp_virtio *header, uint8_t *packet, size_t *size)
#define UNUSED (void)header, (void)packet, (void)size
FLAW(no_gso_size) {
  UNUSED;
  header->gso_size = 0;
}
FLAW(other_family) {
  UNUSED;
  header->gso_type ^= KDP_VIRTIO_GSO_TCPV4 ^ KDP_VIRTIO_GSO_TCPV6;
}
FLAW(other_transport) {
  UNUSED;
  header->gso_type = header->gso_type == KDP_VIRTIO_GSO_UDP_L4 ? KDP_VIRTIO_GSO_TCPV4 : KDP_VIRTIO_GSO_UDP_L4;
}
FLAW(unknown_kind) {
  UNUSED;
  header->gso_type = 3;
}
FLAW(ecn_alone) {
  UNUSED;
  header->gso_type = KDP_VIRTIO_GSO_ECN;
}
FLAW(checksum_start_far_off) {
  UNUSED;
  header->csum_start = 0xffff;
}
FLAW(checksum_start_beside) {
  UNUSED;
  header->csum_start += 2;
}
FLAW(checksum_offset_beside) {
  UNUSED;
  header->csum_offset = 0xffff;
}
FLAW(checksum_ends_past_the_packet) {
  UNUSED;
  header->gso_type = 0;
  header->csum_start = (uint16_t)(*size - 7);
  header->csum_offset = 6;
}
FLAW(checksum_inside_the_ip_header) {
  UNUSED;
  header->gso_type = 0;
  header->csum_start = 10;
  header->csum_offset = 0;
}
FLAW(checksum_start_wraps) {
  UNUSED;
  header->gso_type = 0;
  header->csum_start = 0xffff;
  header->csum_offset = 0xffff;
}
FLAW(data_offset_too_small) {
  UNUSED;
  packet[packet_transport(packet) + KDP_TCP_DATA_OFFSET] = 0x40;
}
FLAW(data_offset_past_the_end) {
  UNUSED;
  packet[packet_transport(packet) + KDP_TCP_DATA_OFFSET] = 0xf0;
  *size = packet_transport(packet) + 56;
  kdp_store_be16(packet + (packet[0] >> 4 == 4 ? 2 : 4), (uint16_t)(packet[0] >> 4 == 4 ? *size : *size - 40));
}
FLAW(transport_cut) {
  UNUSED;
  *size = packet_transport(packet) + 7;
  kdp_store_be16(packet + (packet[0] >> 4 == 4 ? 2 : 4), (uint16_t)(packet[0] >> 4 == 4 ? *size : *size - 40));
}
FLAW(udp_length_too_long) {
  UNUSED;
  kdp_store_be16(packet + packet_transport(packet) + 4, 0xffff);
}
FLAW(udp_length_zero) {
  UNUSED;
  kdp_store_be16(packet + packet_transport(packet) + 4, 0);
}
FLAW(first_fragment) {
  UNUSED;
  packet[6] = 0x20;
}
FLAW(later_fragment) {
  UNUSED;
  packet[7] = 0x10;
}
FLAW(extension_past_the_end) {
  UNUSED;
  packet[6] = 60;
  packet[41] = 255;
}
FLAW(ipv6_fragment) {
  UNUSED;
  packet[6] = 44;
  packet[40] = KDP_TCP_ACK;
  packet[43] = 1;
}
FLAW(cut_in_the_ip_header) {
  UNUSED;
  *size = 19;
}
FLAW(longer_than_it_is) {
  UNUSED;
  *size -= 1;
}
FLAW(nothing) {
  UNUSED;
  *size = 0;
}
FLAW(no_version) {
  UNUSED;
  packet[0] = 0;
}

static void headers_that_contradict_the_packet_are_refused(void **state) {
  (void)state;
  static const flaw flaws[] = {
      {"gso_size 0", 4, 6, KDP_MALFORMED, no_gso_size},
      {"gso_size 0, UDP", 6, 17, KDP_MALFORMED, no_gso_size},
      {"TCPV6 on IPv4", 4, 6, KDP_MALFORMED, other_family},
      {"TCPV4 on IPv6", 6, 6, KDP_MALFORMED, other_family},
      {"UDP_L4 on TCP", 4, 6, KDP_MALFORMED, other_transport},
      {"TCPV4 on UDP", 4, 17, KDP_MALFORMED, other_transport},
      {"UFO", 4, 17, KDP_MALFORMED, unknown_kind},
      {"ECN alone", 4, 6, KDP_MALFORMED, ecn_alone},
      {"csum_start far off", 4, 6, KDP_CHECKSUM, checksum_start_far_off},
      {"csum_start beside", 6, 17, KDP_CHECKSUM, checksum_start_beside},
      {"csum_offset beside", 4, 17, KDP_CHECKSUM, checksum_offset_beside},
      {"csum field past the end", 4, 17, KDP_CHECKSUM, checksum_ends_past_the_packet},
      {"csum inside the IP header", 4, 17, KDP_CHECKSUM, checksum_inside_the_ip_header},
      {"csum inside the IPv6 header", 6, 17, KDP_CHECKSUM, checksum_inside_the_ip_header},
      {"csum field wraps", 4, 17, KDP_CHECKSUM, checksum_start_wraps},
      {"data offset 4", 4, 6, KDP_MALFORMED, data_offset_too_small},
      {"data offset past the end", 4, 6, KDP_MALFORMED, data_offset_past_the_end},
      {"data offset past the end, IPv6", 6, 6, KDP_MALFORMED, data_offset_past_the_end},
      {"7 bytes of TCP", 4, 6, KDP_MALFORMED, transport_cut},
      {"7 bytes of UDP", 6, 17, KDP_MALFORMED, transport_cut},
      {"UDP length too long", 4, 17, KDP_MALFORMED, udp_length_too_long},
      {"UDP length zero", 6, 17, KDP_MALFORMED, udp_length_zero},
      {"first fragment", 4, 6, KDP_MALFORMED, first_fragment},
      {"later fragment", 4, 17, KDP_MALFORMED, later_fragment},
      {"extension header past the end", 6, 6, KDP_MALFORMED, extension_past_the_end},
      {"IPv6 fragment", 6, 17, KDP_MALFORMED, ipv6_fragment},
      {"cut in the IP header", 4, 6, KDP_TOO_SHORT, cut_in_the_ip_header},
      {"cut in the IPv6 header", 6, 6, KDP_TOO_SHORT, cut_in_the_ip_header},
      {"shorter than its length", 4, 6, KDP_NOT_IP, longer_than_it_is},
      {"shorter than its length, IPv6", 6, 6, KDP_NOT_IP, longer_than_it_is},
      {"nothing", 4, 6, KDP_TOO_SHORT, nothing},
      {"no version", 4, 6, KDP_NOT_IP, no_version},
  };
  static uint8_t packet[PACKET_MOST];
  for (size_t i = 0; i < sizeof flaws / sizeof *flaws; i++) {
    bench *b = bench_of(1);
    packet_form form = form_of(flaws[i].version, flaws[i].protocol, 500);
    size_t size = packet_write(&form, packet);
    kdp_virtio header = packet_make_partial(packet, size, gso_type_of(&form), 100);
    assert_int_equal(split(b, &header, packet, size), KDP_OK); /* without the flaw it is accepted */
    kdp_batch_release(&b->batch, b->pool);
    flaws[i].make(&header, packet, &size);
    kdp_status status = split(b, &header, packet, size);
    if (status != flaws[i].status) fail_msg("%s: %s", flaws[i].what, kdp_status_describe(status)->name);
    assert_int_equal(b->batch.count, 0);
    bench_free(b);
  }
}

/* RFC 8200 section 8.1: with a routing header the pseudo header has the final destination, which only the kernel's own
   sum knows cheaply. */
static void behind_a_routing_header_the_kernels_pseudo_header_sum_is_kept(void **state) {
  (void)state;
  static uint8_t packet[PACKET_MOST];
  packet_form form = form_of(6, 6, 950);
  form.extension_size = 24;
  size_t size = packet_write(&form, packet);
  kdp_virtio header = packet_make_partial(packet, size, KDP_VIRTIO_GSO_TCPV6, 300);
  static const uint8_t final[16] = {0x20, 0x01, 0x0d, 0xb8, 0, 99, [15] = 1};
  uint8_t pseudo[40] = {0};
  memcpy(pseudo, packet + 8, 16);
  memcpy(pseudo + 16, final, 16);
  pseudo[39] = 6;
  kdp_store_be32(pseudo + 32, (uint32_t)size - 64);
  kdp_store_be16(packet + 64 + KDP_TCP_CHECKSUM, packet_sum(pseudo, 40, 0));
  packet[6] = 43;
  packet[41] = 2, packet[42] = 2, packet[43] = 1; /* type 2, one segment left */
  memcpy(packet + 48, final, 16);
  bench *b = bench_of(1);
  assert_int_equal(split(b, &header, packet, size), KDP_OK);
  assert_int_equal(b->batch.count, 4);
  for (uint32_t i = 0; i < 4; i++) {
    uint32_t rest = b->packet[i].size - 64;
    assert_int_equal(rest, i < 3 ? 320 : 70);
    kdp_store_be32(pseudo + 32, rest);
    assert_int_equal(packet_sum(b->packet[i].data + 64, rest, packet_sum(pseudo, 40, 0)), 0xffff);
  }
  bench_free(b);
}

static void a_super_packet_of_headers_only_is_one_segment(void **state) {
  (void)state;
  static uint8_t packet[PACKET_MOST];
  for (int kind = 0; kind < 4; kind++) {
    bench *b = bench_of(1);
    packet_form form = form_of(kind & 1 ? 4 : 6, kind & 2 ? 6 : 17, 0);
    size_t size = packet_write(&form, packet);
    kdp_virtio header = packet_make_partial(packet, size, gso_type_of(&form), 1000);
    assert_int_equal(split(b, &header, packet, size), KDP_OK);
    assert_int_equal(b->batch.count, 1);
    expect_as_kernel(b, 0, &header, packet, size);
    bench_free(b);
  }
}

static void random_damage_is_survived(void **state) {
  (void)state;
  static uint8_t packet[PACKET_MOST];
  rng r = {404};
  bench *b = bench_of(4);
  for (int round = 0; round < 20000; round++) {
    packet_form form = random_form(&r);
    form.payload = rng_below(&r, 3000);
    size_t size = packet_write(&form, packet);
    kdp_virtio header = packet_make_partial(packet, size, gso_type_of(&form), (uint16_t)(1 + rng_below(&r, 1500)));
    for (uint32_t hits = 1 + rng_below(&r, 4); hits > 0; hits--)
      switch (rng_below(&r, 4)) {
      case 0: ((uint8_t *)&header)[rng_below(&r, sizeof header)] = (uint8_t)rng_next(&r); break;
      case 1: size = rng_below(&r, (uint32_t)size + 1); break;
      default: packet[rng_below(&r, 120)] = (uint8_t)rng_next(&r); break;
      }
    uint32_t before = b->batch.count;
    kdp_status status = split(b, &header, packet, size);
    if (status == KDP_OK)
      assert_true(b->batch.count > before);
    else
      assert_int_equal(b->batch.count, before);
    if (status == KDP_OUT_FULL || status == KDP_POOL_EMPTY) kdp_batch_release(&b->batch, b->pool);
  }
  bench_free(b);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_packet_without_offloads_is_copied_as_it_is),
      cmocka_unit_test(padding_behind_the_packet_is_left_behind),
      cmocka_unit_test(a_checksum_asked_for_is_completed),
      cmocka_unit_test(a_udp_checksum_of_zero_is_sent_as_all_ones),
      cmocka_unit_test(flags_ids_and_sequence_numbers_of_segments),
      cmocka_unit_test(random_super_packets_are_cut_as_the_kernel_cuts_them),
      cmocka_unit_test(the_largest_super_packet_is_split_whole),
      cmocka_unit_test(segments_lie_in_one_slot_at_equal_strides_with_their_room),
      cmocka_unit_test(full_segments_lie_end_to_end),
      cmocka_unit_test(when_batch_or_pool_are_short_nothing_is_appended_and_nothing_leaks),
      cmocka_unit_test(what_can_never_fit_is_refused_at_once),
      cmocka_unit_test(headers_that_contradict_the_packet_are_refused),
      cmocka_unit_test(behind_a_routing_header_the_kernels_pseudo_header_sum_is_kept),
      cmocka_unit_test(a_super_packet_of_headers_only_is_one_segment),
      cmocka_unit_test(random_damage_is_survived),
  };
  return cmocka_run_group_tests_name("split", tests, NULL, NULL);
}
