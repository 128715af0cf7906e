/* The joining of packets: every packet is in one run, flows keep their order, a run cut as a kernel cuts it gives back
   its members as they were, and so does undoing it. */
#include "core/bytes.h"
#include "offload/join.h"
#include "support/forms.h"

enum { FLOWS = 4, MOST_PAYLOAD = 4000 };

typedef struct bench {
  kdp_packet packet[KDP_BATCH_CAPACITY];
  uint8_t *before[KDP_BATCH_CAPACITY];
  int flow[KDP_BATCH_CAPACITY]; /* -1: patched, it may belong anywhere */
  kdp_batch batch;
  kdp_join join;
} bench;

static void add(bench *b, const uint8_t *bytes, size_t size, int flow) {
  uint32_t at = b->batch.count++;
  b->before[at] = exact_copy(bytes, size);
  b->flow[at] = flow;
  b->packet[at] = (kdp_packet){.data = exact_copy(bytes, size), .size = (uint32_t)size, .slot = KDP_NO_SLOT};
}

/* The next packet of a flow, changed in one respect or none. */
static packet_form next_of(script *s, const packet_form *last) {
  packet_form form = *last;
  form.id++;
  form.sequence += last->payload;
  form.payload_seed++;
  uint8_t value;
  switch (script_u8(s) % 32) {
  case 0: form.id = script_u16(s); break;
  case 1: form.sequence += script_u8(s); break;
  case 2: form.payload = script_u16(s) % MOST_PAYLOAD; break;
  case 3: form.payload = form.payload / 2; break;
  case 4: form.flags = script_u8(s); break;
  case 5: form.flags = 0x18; break;
  case 6: form.tos ^= script_u8(s); break;
  case 7: form.ttl ^= script_u8(s); break;
  case 8: form.flow_label ^= script_u8(s); break;
  case 9: form.df = !form.df; break;
  case 10: form.window ^= script_u8(s); break;
  case 11: form.acknowledgement ^= script_u8(s); break;
  case 12: form.urgent ^= script_u8(s); break;
  case 13: form.no_checksum = !form.no_checksum; break;
  case 14: form.option_seed ^= script_u8(s); break;
  case 15: form.tcp_options = (uint8_t)(form.protocol == 6 ? script_u8(s) % 11 * 4 : 0); break;
  case 16:
    value = script_u8(s);
    if (form.version == 4) form.ip_options = (uint8_t)(value % 11 * 4);
    if (form.version == 6) form.extension_size = (uint8_t)(value % 3 * 8);
    break;
  case 17: form.flags = 0x10; break;
  default: break;
  }
  return form;
}

static void fill(bench *b, script *s) {
  static uint8_t bytes[PACKET_MOST];
  packet_form flow[FLOWS];
  for (int i = 0; i < FLOWS; i++) {
    flow[i] = read_form(s, MOST_PAYLOAD);
    flow[i].source = (uint8_t)(i / 2); /* two of each pair of addresses */
    flow[i].destination = 7;
    flow[i].source_port = (uint16_t)i;
    flow[i].option_seed = 1;
  }
  while (script_left(s) > 0 && b->batch.count < KDP_BATCH_CAPACITY) {
    uint8_t step = script_u8(s);
    int which = step % FLOWS;
    if (step >= 0xf8) { /* any bytes at all */
      size_t size;
      const uint8_t *given = script_bytes(s, script_u8(s), &size);
      memcpy(bytes, given, size);
      add(b, bytes, size, -1);
      continue;
    }
    uint32_t repeats = step & 0x40 ? 1 + step / 4 % 16 : 1;
    flow[which] = next_of(s, &flow[which]);
    for (uint32_t i = 0; i < repeats && b->batch.count < KDP_BATCH_CAPACITY; i++) {
      size_t size = packet_write(&flow[which], bytes);
      bool patched = step & 0x80 && patch(s, bytes, size);
      add(b, bytes, size, patched ? -1 : which);
      if (i + 1 < repeats) flow[which].id++, flow[which].sequence += flow[which].payload, flow[which].payload_seed++;
    }
  }
}

typedef struct expansion {
  const bench *b;
  const uint16_t *member;
  uint32_t left;
} expansion;

/* As it was, but for what carries no meaning: the id of a packet with DF (RFC 6864), the form of a checksum of zero. */
static void expect_member(void *context, const uint8_t *segment, size_t size) {
  expansion *e = context;
  CHECK(e->left > 0);
  e->left--;
  uint32_t index = *e->member++;
  CHECK(size == e->b->packet[index].size);
  uint8_t *was = exact_copy(e->b->before[index], size), *is = exact_copy(segment, size);
  CHECK(packet_checksums_right(was, size) && packet_checksums_right(is, size));
  if (is[0] >> 4 == 4 && is[6] & 0x40) memcpy(is + 4, was + 4, 2);
  packet_fix_checksums(was, size);
  packet_fix_checksums(is, size);
  CHECK(memcmp(was, is, size) == 0);
  free(was);
  free(is);
}

static void check_joined(const bench *b, const kdp_join_run *run) {
  static uint8_t whole[2 * PACKET_MOST];
  size_t size = 0;
  for (uint32_t i = 0; i < run->count; i++) {
    const kdp_packet *packet = &b->packet[b->join.order[run->first + i]];
    uint32_t skip = i == 0 ? 0 : run->skip;
    CHECK(skip < packet->size);
    memcpy(whole + size, packet->data + skip, packet->size - skip);
    size += packet->size - skip;
    CHECK(size <= KDP_JOIN_MAX_SIZE);
  }
  CHECK(run->skip == packet_headers(whole) && run->header.header_size == run->skip);
  expansion e = {b, &b->join.order[run->first], run->count};
  kernel_segment(&run->header, whole, size, expect_member, &e);
  CHECK(e.left == 0);
}

static void expect_untouched(const bench *b, uint32_t index) {
  CHECK(b->packet[index].size == 0 || memcmp(b->packet[index].data, b->before[index], b->packet[index].size) == 0);
}

static void check_plan(const bench *b) {
  static const kdp_virtio none;
  bool seen[KDP_BATCH_CAPACITY] = {false};
  int latest[FLOWS];
  memset(latest, 0xff, sizeof latest);
  uint32_t at = 0;
  CHECK(b->join.run_count <= b->batch.count);
  for (uint32_t i = 0; i < b->join.run_count; i++) {
    const kdp_join_run *run = &b->join.run[i];
    CHECK(run->first == at && run->count >= 1 && run->count <= KDP_JOIN_MAX_MEMBERS);
    for (uint32_t j = 0; j < run->count; j++, at++) {
      uint16_t index = b->join.order[at];
      CHECK(index < b->batch.count && !seen[index]);
      seen[index] = true;
      if (j > 0 || run->count == 1) expect_untouched(b, index);
      int flow = b->flow[index];
      if (flow < 0) continue;
      CHECK(latest[flow] < (int)index);
      latest[flow] = index;
    }
    if (run->count == 1)
      CHECK(memcmp(&run->header, &none, sizeof none) == 0);
    else
      check_joined(b, run);
  }
  CHECK(at == b->batch.count);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
  static bench b;
  script s = {bytes, bytes + size};
  uint8_t rules = script_u8(&s);
  b.batch = (kdp_batch){.packet = b.packet, .capacity = KDP_BATCH_CAPACITY};
  memset(&b.join, 0xa5, sizeof b.join);
  fill(&b, &s);
  kdp_join_plan((kdp_join_rules){.tcp = rules % 8 != 1, .udp = rules % 8 != 2}, &b.batch, &b.join);
  check_plan(&b);
  for (uint32_t i = 0; i < b.join.run_count; i++)
    kdp_join_undo(&b.batch, &b.join, i);
  for (uint32_t i = 0; i < b.batch.count; i++) {
    expect_untouched(&b, i);
    free(b.packet[i].data);
    free(b.before[i]);
  }
  return 0;
}
