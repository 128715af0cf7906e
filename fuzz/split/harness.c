/* The splitting of super-packets: what a kernel would cut must come out as the tests' model of the kernel cuts it; of
   anything else nothing may be taken that was not there, and a refusal leaves batch and pool as they were. */
#include "offload/split.h"
#include "support/forms.h"

enum { MOST_PACKETS = 160, SLOTS = 3 };

typedef struct bench {
  kdp_pool *pool;
  kdp_packet packet[MOST_PACKETS];
  kdp_batch batch;
  kdp_room room;
} bench;

static unsigned get16(const uint8_t *at) {
  return (unsigned)at[0] << 8 | at[1];
}

/* Whether a kernel gives out such a super-packet: see kernel_segment. The packet is one of packet_write's, not patched.
 */
static bool kernel_gives(const kdp_virtio *header, const uint8_t *packet) {
  uint8_t protocol = packet_protocol(packet), version = packet[0] >> 4;
  if (!(header->flags & KDP_VIRTIO_NEEDS_CSUM) || header->gso_size == 0) return false;
  if (header->csum_start != packet_transport(packet)) return false;
  switch (header->gso_type & ~KDP_VIRTIO_GSO_ECN) {
  case KDP_VIRTIO_GSO_TCPV4: return version == 4 && protocol == 6 && header->csum_offset == 16;
  case KDP_VIRTIO_GSO_TCPV6: return version == 6 && protocol == 6 && header->csum_offset == 16;
  case KDP_VIRTIO_GSO_UDP_L4: return protocol == 17 && header->csum_offset == 6;
  default: return false;
  }
}

typedef struct comparison {
  const bench *b;
  uint32_t next;
} comparison;

static void compare(void *context, const uint8_t *segment, size_t size) {
  comparison *c = context;
  CHECK(c->next < c->b->batch.count);
  const kdp_packet *packet = &c->b->packet[c->next++];
  CHECK(packet->size == size && memcmp(packet->data, segment, size) == 0);
}

/* Each packet has its room, in its slot, and nobody else's. */
static void check_places(const bench *b, uint32_t first) {
  for (uint32_t i = first; i < b->batch.count; i++) {
    const kdp_packet *packet = &b->packet[i];
    CHECK(packet->head >= b->room.head && packet->tail >= b->room.tail && packet->slot < SLOTS);
    const uint8_t *slot = kdp_pool_slot_data(b->pool, packet->slot);
    CHECK(packet->data - packet->head >= slot);
    CHECK(packet->data + packet->size + packet->tail <= slot + KDP_SLOT_SIZE);
    if (i == first || b->packet[i - 1].slot != packet->slot) continue;
    const kdp_packet *before = &b->packet[i - 1];
    CHECK(before->data + before->size + b->room.tail <= packet->data - b->room.head);
    if (i > first + 1 && b->packet[i - 2].slot == packet->slot)
      CHECK(packet->data - before->data == before->data - b->packet[i - 2].data);
  }
}

static kdp_virtio read_header(script *s, uint8_t *packet, size_t size, bool whole) {
  uint8_t kind = script_u8(s);
  static const uint8_t types[4] = {KDP_VIRTIO_GSO_NONE, KDP_VIRTIO_GSO_TCPV4, KDP_VIRTIO_GSO_TCPV6,
                                   KDP_VIRTIO_GSO_UDP_L4};
  kdp_virtio header = {.gso_type = types[kind % 4], .gso_size = script_u16(s)};
  uint8_t protocol = whole ? packet_protocol(packet) : 0;
  if (kind & 4 && (protocol == 6 || protocol == 17)) { /* the type that fits */
    header.gso_type = protocol == 17 ? KDP_VIRTIO_GSO_UDP_L4 : types[packet[0] >> 4 == 4 ? 1 : 2];
    if (kind & 8) header.gso_type |= KDP_VIRTIO_GSO_ECN;
    header.gso_size = (uint16_t)(header.gso_size % 2000 + 1);
  }
  if (kind & 16 && (protocol == 6 || protocol == 17))
    header = packet_make_partial(packet, size, header.gso_type, header.gso_size);
  if (kind & 32) {
    header.flags = script_u8(s);
    header.csum_start = script_u8(s);
    header.csum_offset = script_u8(s) % 32;
    header.header_size = script_u16(s);
  }
  if (kind & 64) header.gso_type = script_u8(s);
  return header;
}

static void split_one(bench *b, const kdp_virtio *header, const uint8_t *packet, size_t size, bool whole) {
  uint32_t before = b->batch.count, free_before = kdp_pool_free_count(b->pool);
  kdp_status status = kdp_split_copy(header, packet, size, b->room, b->pool, &b->batch);
  if (status != KDP_OK) {
    CHECK(b->batch.count == before);
    /* A slot that was opened for carving may stay open. */
    CHECK(kdp_pool_free_count(b->pool) + 1 >= free_before);
    CHECK(status == KDP_OUT_FULL || status == KDP_POOL_EMPTY || status == KDP_MALFORMED || status == KDP_CHECKSUM ||
          status == KDP_NOT_IP || status == KDP_TOO_SHORT || status == KDP_TOO_BIG);
    CHECK(!whole || !kernel_gives(header, packet) || status == KDP_OUT_FULL || status == KDP_POOL_EMPTY ||
          status == KDP_TOO_BIG);
    return;
  }
  CHECK(b->batch.count > before && b->batch.count <= b->batch.capacity);
  check_places(b, before);
  if (whole && kernel_gives(header, packet)) {
    comparison c = {b, before};
    kernel_segment(header, packet, size, compare, &c);
    CHECK(c.next == b->batch.count);
  }
  if (header->gso_type == KDP_VIRTIO_GSO_NONE) CHECK(b->batch.count == before + 1);
  /* A segment is an IP packet of its own size. */
  for (uint32_t i = before; i < b->batch.count; i++) {
    const uint8_t *data = b->packet[i].data;
    CHECK(b->packet[i].size == (data[0] >> 4 == 4 ? get16(data + 2) : 40 + get16(data + 4)));
  }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
  static uint8_t made[PACKET_MOST];
  script s = {bytes, bytes + size};
  bench b = {.room = {.head = script_u8(&s), .tail = script_u8(&s)}};
  if (script_u8(&s) % 16 == 0) b.room.head = script_u16(&s);
  uint8_t capacity = script_u8(&s);
  b.batch = (kdp_batch){.packet = b.packet, .capacity = capacity % 4 ? MOST_PACKETS : capacity / 4};
  kdp_host host = kdp_host_default();
  CHECK(kdp_pool_create(SLOTS, &host, &b.pool) == KDP_OK);
  for (int i = 0; i < 4 && script_left(&s) > 0; i++) {
    bool whole = script_u8(&s) % 4 != 0;
    size_t packet_size;
    if (whole) {
      packet_form form = read_form(&s, 65535 - 40 - 40 - 60);
      packet_size = packet_write(&form, made);
    } else {
      const uint8_t *given = script_bytes(&s, script_u16(&s), &packet_size);
      memcpy(made, given, packet_size);
    }
    kdp_virtio header = read_header(&s, made, packet_size, whole);
    bool patched = patch(&s, made, packet_size);
    uint8_t *packet = exact_copy(made, packet_size);
    split_one(&b, &header, packet, packet_size, whole && !patched);
    free(packet);
    if (script_u8(&s) % 4 == 0) kdp_batch_release(&b.batch, b.pool);
  }
  for (uint32_t i = 0; i < b.batch.count; i++) /* all of what was given is there to be written */
    memset(b.packet[i].data - b.packet[i].head, 0x5a, b.packet[i].head + b.packet[i].size + (size_t)b.room.tail);
  kdp_batch_release(&b.batch, b.pool);
  CHECK(kdp_pool_reserve(b.pool, KDP_SLOT_SIZE)); /* the slot that was open is free now, if nobody uses it */
  CHECK(kdp_pool_free_count(b.pool) + 1 == SLOTS);
  kdp_pool_destroy(b.pool);
  return 0;
}
