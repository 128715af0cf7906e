/* GRO join: the table of rules row by row, order within flows, and the property that matters: whatever is joined, the
   kernel's own segmentation gives back as it was. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/bytes.h"
#include "net/tcp.h"
#include "offload/join.h"
#include "offload/split.h"
#include "support/guard.h"
#include "support/packets.h"
#include "support/rng.h"

static const kdp_join_rules ALL = {.tcp = true, .udp = true};

/* A batch of packets of its own, each in memory that ends at a trap, with copies of what they were. */
typedef struct bench {
  kdp_packet packet[KDP_BATCH_CAPACITY];
  guard memory[KDP_BATCH_CAPACITY];
  uint8_t *before[KDP_BATCH_CAPACITY];
  int flow[KDP_BATCH_CAPACITY];
  kdp_batch batch;
  kdp_join join;
} bench;

static bench *bench_make(void) {
  bench *b = calloc(1, sizeof *b);
  b->batch = (kdp_batch){.packet = b->packet, .capacity = KDP_BATCH_CAPACITY};
  memset(&b->join, 0xa5, sizeof b->join);
  return b;
}

static void bench_add(bench *b, const uint8_t *bytes, size_t size) {
  uint32_t at = b->batch.count++;
  assert_true(at < KDP_BATCH_CAPACITY);
  b->memory[at] = guard_copy(bytes, size);
  b->before[at] = malloc(size + 1);
  memcpy(b->before[at], bytes, size);
  b->packet[at] = (kdp_packet){.data = b->memory[at].bytes, .size = (uint32_t)size, .slot = KDP_NO_SLOT};
}

static void bench_add_form(bench *b, const packet_form *form) {
  static uint8_t bytes[PACKET_MOST];
  bench_add(b, bytes, packet_write(form, bytes));
}

static void bench_free(bench *b) {
  for (uint32_t i = 0; i < b->batch.count; i++) {
    guard_free(&b->memory[i]);
    free(b->before[i]);
  }
  free(b);
}

static void expect_untouched(const bench *b, uint32_t i) {
  assert_ptr_equal(b->packet[i].data, b->memory[i].bytes);
  assert_int_equal(b->packet[i].size, b->memory[i].size);
  assert_memory_equal(b->packet[i].data, b->before[i], b->packet[i].size);
}

typedef struct expansion {
  const bench *b;
  const uint16_t *member;
  uint16_t left;
} expansion;

static void expect_member(void *context, const uint8_t *segment, size_t size) {
  expansion *e = context;
  assert_true(e->left > 0);
  uint32_t index = *e->member++;
  e->left--;
  const uint8_t *wanted = e->b->before[index];
  assert_int_equal(size, e->b->packet[index].size);
  uint8_t *copy = malloc(size);
  memcpy(copy, segment, size);
  if (copy[0] >> 4 == 4 && copy[6] & 0x40) { /* the id of a datagram with DF has no meaning: RFC 6864 */
    memcpy(copy + 4, wanted + 4, 2);
    packet_fix_checksums(copy, size);
  }
  assert_memory_equal(copy, wanted, size);
  free(copy);
}

static size_t gather(const bench *b, const kdp_join_run *run, uint8_t *to) {
  size_t size = 0;
  for (uint32_t i = 0; i < run->count; i++) {
    const kdp_packet *packet = &b->packet[b->join.order[run->first + i]];
    uint32_t skip = i == 0 ? 0 : run->skip;
    assert_true(skip < packet->size);
    memcpy(to + size, packet->data + skip, packet->size - skip);
    size += packet->size - skip;
    assert_true(size <= KDP_JOIN_MAX_SIZE || run->count == 1);
  }
  return size;
}

/* Plans, and checks all that must hold of any plan. */
static void plan_and_check(bench *b, kdp_join_rules rules) {
  static uint8_t whole[PACKET_MOST * 2];
  kdp_join_plan(rules, &b->batch, &b->join);
  bool seen[KDP_BATCH_CAPACITY] = {false};
  int latest[KDP_BATCH_CAPACITY];
  memset(latest, 0xff, sizeof latest);
  uint32_t at = 0;
  assert_true(b->join.run_count <= b->batch.count);
  for (uint32_t i = 0; i < b->join.run_count; i++) {
    const kdp_join_run *run = &b->join.run[i];
    assert_int_equal(run->first, at);
    assert_in_range(run->count, 1, KDP_JOIN_MAX_MEMBERS);
    for (uint32_t j = 0; j < run->count; j++, at++) {
      uint16_t index = b->join.order[at];
      assert_true(index < b->batch.count && !seen[index]);
      seen[index] = true;
      int flow = b->flow[index];
      assert_true(latest[flow] < (int)index); /* order within the flow */
      latest[flow] = index;
      assert_int_equal(flow, b->flow[b->join.order[run->first]]);
      if (j > 0) expect_untouched(b, index);
    }
    if (run->count == 1) {
      static const kdp_virtio none;
      assert_memory_equal(&run->header, &none, sizeof none);
      expect_untouched(b, b->join.order[run->first]);
    } else {
      expansion e = {b, &b->join.order[run->first], run->count};
      size_t size = gather(b, run, whole);
      assert_int_equal(run->header.header_size, packet_headers(whole));
      assert_int_equal(run->skip, packet_headers(whole));
      kernel_segment(&run->header, whole, size, expect_member, &e);
      assert_int_equal(e.left, 0);
    }
  }
  assert_int_equal(at, b->batch.count);
}

static packet_form tcp_form(uint8_t version) {
  return (packet_form){.version = version,
                       .protocol = 6,
                       .tos = 0x0a,
                       .ttl = 63,
                       .id = 500,
                       .flow_label = 0xabcde,
                       .source = 2,
                       .destination = 7,
                       .source_port = 40000,
                       .destination_port = 443,
                       .sequence = 1000,
                       .acknowledgement = 77,
                       .window = 500,
                       .flags = KDP_TCP_ACK,
                       .tcp_options = 12,
                       .option_seed = 1,
                       .payload = 100,
                       .payload_seed = 1};
}

static packet_form udp_form(uint8_t version) {
  packet_form form = tcp_form(version);
  form.protocol = 17;
  form.tcp_options = 0;
  return form;
}

/* The packet that follows `form` in its flow. */
static packet_form follower(const packet_form *form) {
  packet_form next = *form;
  next.id++;
  next.sequence += form->payload;
  next.payload_seed++;
  return next;
}

/* ---- The table of rules ---- */

typedef struct row {
  const char *rule;
  const char *kinds; /* of "4T 6T 4U 6U": to which packets it applies */
  bool joined;       /* the second packet to the first */
  void (*change)(packet_form *first, packet_form *second);
  void (*patch)(uint8_t *first, size_t first_size, uint8_t *second, size_t second_size); /* after checksums */
} row;

#define CHANGE(name, ...)                                                                                              \
  static void name(packet_form *first, packet_form *second) {                                                          \
    (void)first, (void)second;                                                                                         \
    __VA_ARGS__;                                                                                                       \
  }
#define PATCH(name, ...)                                                                                               \
  static void name(uint8_t *first, size_t first_size, uint8_t *second, size_t second_size) {                           \
    (void)first, (void)first_size, (void)second, (void)second_size;                                                    \
    __VA_ARGS__;                                                                                                       \
  }

CHANGE(nothing, (void)0)
CHANGE(source, second->source ^= 1)
CHANGE(destination, second->destination ^= 1)
CHANGE(source_port, second->source_port ^= 1)
CHANGE(destination_port, second->destination_port ^= 1)
CHANGE(other_tos, second->tos ^= 0x20)
CHANGE(other_ecn, second->tos ^= 0x01)
CHANGE(other_ttl, second->ttl--)
CHANGE(other_label, second->flow_label ^= 0x10000)
CHANGE(df_on_second, second->df = true)
CHANGE(df_on_first, first->df = true)
CHANGE(id_same, second->id = first->id)
CHANGE(id_gap, second->id++)
CHANGE(id_wraps, first->id = 0xffff, second->id = 0)
CHANGE(df_id_same, first->df = second->df = true, second->id = first->id)
CHANGE(df_id_zero, first->df = second->df = true, second->id = first->id = 0)
CHANGE(df_id_random, first->df = second->df = true, second->id = 9)
CHANGE(ip_options, first->ip_options = second->ip_options = 4)
CHANGE(ip_options_second, second->ip_options = 4)
CHANGE(extension, first->extension_size = second->extension_size = 8)
CHANGE(extension_second, second->extension_size = 8)
CHANGE(sequence_gap, second->sequence++)
CHANGE(sequence_overlap, second->sequence--)
CHANGE(sequence_again, second->sequence = first->sequence)
CHANGE(sequence_wraps, first->sequence = UINT32_MAX - 49, second->sequence = 50)
CHANGE(other_ack, second->acknowledgement++)
CHANGE(other_window, second->window++)
CHANGE(other_urgent, second->urgent++)
CHANGE(other_options, second->option_seed++)
CHANGE(fewer_options, second->tcp_options -= 4)
CHANGE(no_options, first->tcp_options = second->tcp_options = 0)
CHANGE(most_options, first->tcp_options = second->tcp_options = 40)
CHANGE(no_ack_flag, second->flags = 0)
CHANGE(fin, second->flags |= 0x01)
CHANGE(syn, second->flags |= 0x02)
CHANGE(rst, second->flags |= 0x04)
CHANGE(psh, second->flags |= 0x08)
CHANGE(psh_on_first, first->flags |= 0x08)
CHANGE(psh_on_both, first->flags |= 0x08, second->flags |= 0x08)
CHANGE(urg, second->flags |= 0x20)
CHANGE(ece, second->flags |= 0x40)
CHANGE(cwr, second->flags |= 0x80)
CHANGE(fin_on_both, first->flags |= 0x01, second->flags |= 0x01)
CHANGE(ece_on_both, first->flags |= 0x40, second->flags |= 0x40)
CHANGE(cwr_on_first, first->flags |= 0x80)
CHANGE(shorter, second->payload--)
CHANGE(one_byte, second->payload = 1)
CHANGE(longer, second->payload++)
CHANGE(empty, second->payload = 0)
CHANGE(first_empty, first->payload = 0, second->sequence = first->sequence)
CHANGE(both_empty, first->payload = second->payload = 0, second->sequence = first->sequence)
CHANGE(most_bytes, first->payload = 33000, second->sequence = first->sequence + 33000, second->payload = 32535 - 72)
CHANGE(one_byte_too_many, first->payload = 33000, second->sequence = first->sequence + 33000,
       second->payload = 32536 - 72)
CHANGE(too_many_bytes, first->payload = 33000, second->sequence = first->sequence + 33000, second->payload = 33000)
CHANGE(no_checksum_second, second->no_checksum = true)
CHANGE(no_checksum_first, first->no_checksum = true)
CHANGE(no_checksum_both, first->no_checksum = second->no_checksum = true)
PATCH(reserved_bits, second[packet_transport(second) + 12] |= 1, packet_fix_checksums(second, second_size))
PATCH(reserved_bits_both, reserved_bits(NULL, 0, first, first_size), reserved_bits(NULL, 0, second, second_size))
PATCH(reserved_ip_flag, second[6] |= 0x80, packet_fix_checksums(second, second_size))
PATCH(wrong_first, first[first_size - 1] ^= 1)
PATCH(wrong_second, second[second_size - 1] ^= 1)
PATCH(wrong_ip_first, first[10] ^= 1)
PATCH(wrong_ip_second, second[10] ^= 1)
PATCH(ip_length_short,
      kdp_store_be16(second + (second[0] >> 4 == 4 ? 2 : 4),
                     (uint16_t)(second[0] >> 4 == 4 ? second_size - 4 : second_size - 44)),
      packet_fix_checksums(second, second_size - 4))
PATCH(udp_length_short, kdp_store_be16(second + packet_transport(second) + 4, 50),
      packet_fix_checksums(second, second_size))
PATCH(udp_length_long, kdp_store_be16(second + packet_transport(second) + 4, 500),
      packet_fix_checksums(second, second_size))
/* A checksum that is not there, on bytes whose sum makes it look right. */
static void zero_that_looks_right(uint8_t *first, size_t first_size, uint8_t *second, size_t second_size) {
  (void)first, (void)first_size;
  uint8_t *field = second + packet_transport(second) + 6, *last = second + second_size - 2; /* an even offset */
  uint32_t sum = (uint32_t)kdp_load_be16(last) + kdp_load_be16(field);
  kdp_store_be16(last, (uint16_t)(sum > 0xffff ? sum - 0xffff : sum));
  packet_fix_checksums(second, second_size);
  assert_int_equal(kdp_load_be16(field), 0xffff);
  kdp_store_be16(field, 0);
}
PATCH(data_offset_small, second[packet_transport(second) + 12] = 0x40, packet_fix_checksums(second, second_size))
PATCH(data_offset_all, second[packet_transport(second) + 12] = 0xf0, packet_fix_checksums(second, second_size))
PATCH(first_fragment, second[6] |= 0x20, packet_fix_checksums(second, second_size))
PATCH(later_fragment, second[7] = 0x10, packet_fix_checksums(second, second_size))
PATCH(not_ip, second[0] = 0x50)

static const row rows[] = {
    {"as it should be", "4T 6T 4U 6U", true, nothing, NULL},
    {"another source", "4T 6T 4U 6U", false, source, NULL},
    {"another destination", "4T 6T 4U 6U", false, destination, NULL},
    {"another source port", "4T 6T 4U 6U", false, source_port, NULL},
    {"another destination port", "4T 6T 4U 6U", false, destination_port, NULL},
    {"another TOS", "4T 6T 4U 6U", false, other_tos, NULL},
    {"another ECN", "4T 6T 4U 6U", false, other_ecn, NULL},
    {"another TTL", "4T 6T 4U 6U", false, other_ttl, NULL},
    {"another flow label", "6T 6U", false, other_label, NULL},
    {"DF on the second only", "4T 4U", false, df_on_second, NULL},
    {"DF on the first only", "4T 4U", false, df_on_first, NULL},
    {"the same id", "4T 4U", false, id_same, NULL},
    {"an id left out", "4T 4U", false, id_gap, NULL},
    {"ids wrap", "4T 4U", true, id_wraps, NULL},
    {"DF, the same id", "4T 4U", true, df_id_same, NULL},
    {"DF, no ids", "4T 4U", true, df_id_zero, NULL},
    {"DF, any ids", "4T 4U", true, df_id_random, NULL},
    {"IP options", "4T 4U", false, ip_options, NULL},
    {"IP options on the second", "4T 4U", false, ip_options_second, NULL},
    {"extension headers", "6T 6U", false, extension, NULL},
    {"extension headers on the second", "6T 6U", false, extension_second, NULL},
    {"sequence gap", "4T 6T", false, sequence_gap, NULL},
    {"sequence overlap", "4T 6T", false, sequence_overlap, NULL},
    {"sent again", "4T 6T", false, sequence_again, NULL},
    {"sequence wraps", "4T 6T", true, sequence_wraps, NULL},
    {"another acknowledgement", "4T 6T", false, other_ack, NULL},
    {"another window", "4T 6T", false, other_window, NULL},
    {"another urgent pointer", "4T 6T", false, other_urgent, NULL},
    {"other option bytes", "4T 6T", false, other_options, NULL},
    {"fewer options", "4T 6T", false, fewer_options, NULL},
    {"no options", "4T 6T", true, no_options, NULL},
    {"40 bytes of options", "4T 6T", true, most_options, NULL},
    {"no ACK", "4T 6T", false, no_ack_flag, NULL},
    {"FIN", "4T 6T", false, fin, NULL},
    {"SYN", "4T 6T", false, syn, NULL},
    {"RST", "4T 6T", false, rst, NULL},
    {"PSH on the last", "4T 6T", true, psh, NULL},
    {"PSH on the first", "4T 6T", false, psh_on_first, NULL},
    {"PSH on both", "4T 6T", false, psh_on_both, NULL},
    {"URG", "4T 6T", false, urg, NULL},
    {"ECE", "4T 6T", false, ece, NULL},
    {"CWR", "4T 6T", false, cwr, NULL},
    {"FIN on both", "4T 6T", false, fin_on_both, NULL},
    {"ECE on both", "4T 6T", false, ece_on_both, NULL},
    {"CWR on the first", "4T 6T", false, cwr_on_first, NULL},
    {"reserved bits", "4T 6T", false, nothing, reserved_bits},
    {"reserved bits on both", "4T 6T", false, nothing, reserved_bits_both},
    {"reserved IP flag", "4T 4U", false, nothing, reserved_ip_flag},
    {"a shorter last one", "4T 6T 4U 6U", true, shorter, NULL},
    {"one byte at last", "4T 6T 4U 6U", true, one_byte, NULL},
    {"a longer second", "4T 6T 4U 6U", false, longer, NULL},
    {"an empty second", "4T 6T 4U 6U", false, empty, NULL},
    {"an empty first", "4T 6T 4U 6U", false, first_empty, NULL},
    {"two empty ones", "4T 6T 4U 6U", false, both_empty, NULL},
    {"65,535 bytes", "6T", true, most_bytes, NULL},
    {"65,536 bytes", "6T", false, one_byte_too_many, NULL},
    {"more than 65,535 bytes", "4T 6T 4U 6U", false, too_many_bytes, NULL},
    {"no UDP checksum in the second", "4U 6U", false, no_checksum_second, NULL},
    {"no UDP checksum in the first", "4U 6U", false, no_checksum_first, NULL},
    {"no UDP checksum in both", "4U 6U", false, no_checksum_both, NULL},
    {"no UDP checksum where it looks right", "4U 6U", false, nothing, zero_that_looks_right},
    {"wrong checksum in the first", "4T 6T 4U 6U", false, nothing, wrong_first},
    {"wrong checksum in the second", "4T 6T 4U 6U", false, nothing, wrong_second},
    {"wrong IP checksum in the first", "4T 4U", false, nothing, wrong_ip_first},
    {"wrong IP checksum in the second", "4T 4U", false, nothing, wrong_ip_second},
    {"bytes behind the packet", "4T 6T 4U 6U", false, nothing, ip_length_short},
    {"UDP length too short", "4U 6U", false, nothing, udp_length_short},
    {"UDP length too long", "4U 6U", false, nothing, udp_length_long},
    {"data offset 4", "4T 6T", false, nothing, data_offset_small},
    {"data offset 15", "4T 6T", false, nothing, data_offset_all},
    {"a first fragment", "4T 4U", false, nothing, first_fragment},
    {"a later fragment", "4T 4U", false, nothing, later_fragment},
    {"no IP packet", "4T 6T 4U 6U", false, nothing, not_ip},
};

static void each_rule_of_the_table(void **state) {
  (void)state;
  static uint8_t first[PACKET_MOST], second[PACKET_MOST];
  static const char *kinds[] = {"4T", "6T", "4U", "6U"};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
    for (int kind = 0; kind < 4; kind++) {
      if (!strstr(rows[i].kinds, kinds[kind])) continue;
      uint8_t version = kind & 1 ? 6 : 4;
      packet_form a = kind & 2 ? udp_form(version) : tcp_form(version), b = follower(&a);
      rows[i].change(&a, &b);
      size_t a_size = packet_write(&a, first), b_size = packet_write(&b, second);
      if (rows[i].patch) rows[i].patch(first, a_size, second, b_size);
      bench *made = bench_make();
      bench_add(made, first, a_size);
      bench_add(made, second, b_size);
      plan_and_check(made, ALL);
      if (made->join.run_count != (rows[i].joined ? 1 : 2)) fail_msg("%s, %s", rows[i].rule, kinds[kind]);
      bench_free(made);
    }
}

/* ---- Runs ---- */

static void a_bulk_of_segments_becomes_one_write_and_undo_restores_it(void **state) {
  (void)state;
  for (int kind = 0; kind < 4; kind++) {
    bench *b = bench_make();
    packet_form form = kind & 1 ? tcp_form(kind & 2 ? 4 : 6) : udp_form(kind & 2 ? 4 : 6);
    form.payload = 1380;
    for (int i = 0; i < 44; i++) {
      if (i == 43) form.payload = 77, form.flags |= KDP_TCP_PSH;
      bench_add_form(b, &form);
      form = follower(&form);
    }
    plan_and_check(b, ALL);
    assert_int_equal(b->join.run_count, 1);
    const kdp_join_run *run = &b->join.run[0];
    assert_int_equal(run->count, 44);
    assert_int_equal(run->header.gso_size, 1380);
    assert_int_equal(run->header.flags, KDP_VIRTIO_NEEDS_CSUM);
    static const uint8_t types[] = {KDP_VIRTIO_GSO_UDP_L4, KDP_VIRTIO_GSO_TCPV6, KDP_VIRTIO_GSO_UDP_L4,
                                    KDP_VIRTIO_GSO_TCPV4};
    assert_int_equal(run->header.gso_type, types[kind]);
    if (kind & 1) assert_true(b->packet[0].data[run->header.csum_start + KDP_TCP_FLAGS] & KDP_TCP_PSH);
    kdp_join_undo(&b->batch, &b->join, 0);
    for (uint32_t i = 0; i < 44; i++)
      expect_untouched(b, i);
    bench_free(b);
  }
}

static void undo_of_a_single_packet_does_nothing(void **state) {
  (void)state;
  bench *b = bench_make();
  packet_form form = tcp_form(4);
  bench_add_form(b, &form);
  plan_and_check(b, ALL);
  kdp_join_undo(&b->batch, &b->join, 0);
  expect_untouched(b, 0);
  bench_free(b);
}

static void an_empty_batch_gives_no_runs(void **state) {
  (void)state;
  bench *b = bench_make();
  plan_and_check(b, ALL);
  assert_int_equal(b->join.run_count, 0);
  bench_free(b);
}

static void what_a_fallback_turned_off_is_not_joined(void **state) {
  (void)state;
  for (int off = 0; off < 4; off++) {
    bench *b = bench_make();
    packet_form tcp = tcp_form(4), udp = udp_form(6);
    udp.source = 9;
    for (int i = 0; i < 4; i++) {
      bench_add_form(b, &tcp);
      b->flow[b->batch.count - 1] = 1;
      bench_add_form(b, &udp);
      tcp = follower(&tcp), udp = follower(&udp);
    }
    plan_and_check(b, (kdp_join_rules){.tcp = off & 1, .udp = off & 2});
    assert_int_equal(b->join.run_count, (off & 1 ? 1 : 4) + (off & 2 ? 1 : 4));
    bench_free(b);
  }
}

static void interleaved_flows_each_become_one_run(void **state) {
  (void)state;
  enum { FLOWS = 64 };
  bench *b = bench_make();
  packet_form form[FLOWS];
  for (int i = 0; i < FLOWS; i++) {
    form[i] = i % 4 < 2 ? tcp_form(i % 2 ? 4 : 6) : udp_form(i % 2 ? 4 : 6);
    form[i].source = (uint8_t)i;
  }
  for (int turn = 0; turn < KDP_BATCH_CAPACITY / FLOWS; turn++)
    for (int i = 0; i < FLOWS; i++) {
      bench_add_form(b, &form[i]);
      b->flow[b->batch.count - 1] = i;
      form[i] = follower(&form[i]);
    }
  plan_and_check(b, ALL);
  assert_int_equal(b->join.run_count, FLOWS);
  bench_free(b);
}

static void no_run_has_more_members_or_bytes_than_allowed(void **state) {
  (void)state;
  for (int large = 0; large < 2; large++) {
    bench *b = bench_make();
    packet_form form = udp_form(4);
    form.payload = large ? 1000 : 10;
    for (int i = 0; i < KDP_BATCH_CAPACITY; i++) {
      bench_add_form(b, &form);
      form = follower(&form);
    }
    plan_and_check(b, ALL);
    assert_int_equal(b->join.run[0].count, large ? 65 : KDP_JOIN_MAX_MEMBERS);
    assert_int_equal(b->join.run_count, large ? 4 : 2);
    bench_free(b);
  }
}

/* Data, an acknowledgement without data, data: joining the data would overtake the acknowledgement. */
static void a_packet_that_cannot_be_joined_ends_its_flows_run(void **state) {
  (void)state;
  for (int kind = 0; kind < 6; kind++) {
    static uint8_t bytes[PACKET_MOST];
    bench *b = bench_make();
    bool udp = kind >= 4;
    packet_form form = udp ? udp_form(4) : tcp_form(kind == 3 ? 6 : 4), odd;
    bench_add_form(b, &form);
    form = follower(&form);
    bench_add_form(b, &form);
    odd = form = follower(&form);
    switch (kind) {
    case 0: odd.payload = 0; break;
    case 1: odd.ip_options = 8; break;
    case 2: odd.flags |= KDP_TCP_FIN; break;
    case 3: odd.extension_size = 8; break;
    case 4: odd.no_checksum = true; break;
    case 5: odd.payload = 0; break;
    }
    bench_add(b, bytes, packet_write(&odd, bytes));
    bench_add_form(b, &form);
    form = follower(&form);
    bench_add_form(b, &form);
    plan_and_check(b, ALL);
    assert_int_equal(b->join.run_count, 3);
    assert_int_equal(b->join.run[0].count, 2);
    assert_int_equal(b->join.run[1].count, 1);
    assert_int_equal(b->join.run[2].count, 2);
    bench_free(b);
  }
}

static void fragments_pass_untouched_and_in_order(void **state) {
  (void)state;
  static uint8_t bytes[PACKET_MOST];
  bench *b = bench_make();
  packet_form udp = udp_form(4), tcp = tcp_form(4);
  udp.payload = 1376;
  size_t size = packet_write(&udp, bytes);
  bench_add(b, bytes, size); /* 0: a whole packet */
  bytes[6] = 0x20;           /* 1: MF, offset 0; the transport checksum is that of the whole datagram */
  bytes[26] ^= 0x55;
  packet_fix_ip_checksum(bytes);
  bench_add(b, bytes, size);
  packet_form rest = udp; /* 2: the rest of it, without a transport header */
  rest.protocol = 1;
  rest.payload = 300;
  size = packet_write(&rest, bytes);
  bytes[9] = 17;
  kdp_store_be16(bytes + 6, 1384 / 8);
  packet_fix_ip_checksum(bytes);
  bench_add(b, bytes, size);
  udp = follower(&udp);
  bench_add_form(b, &udp); /* 3: would continue 0, but must not overtake the fragments */
  udp = follower(&udp);
  bench_add_form(b, &udp); /* 4: continues 3 */
  bench_add_form(b, &tcp); /* 5 */
  b->flow[5] = 1;
  tcp = follower(&tcp);
  bench_add_form(b, &tcp); /* 6 */
  b->flow[6] = 1;
  plan_and_check(b, ALL);
  static const uint16_t counts[] = {1, 1, 1, 2, 2};
  assert_int_equal(b->join.run_count, 5);
  for (int i = 0; i < 5; i++)
    assert_int_equal(b->join.run[i].count, counts[i]);
  for (uint16_t i = 0; i < 7; i++)
    assert_int_equal(b->join.order[i], i);
  bench_free(b);
}

/* A later fragment shows no ports: any flow between the two addresses might be its own, flows of others are not. */
static void a_later_fragment_ends_the_runs_of_its_addresses_only(void **state) {
  (void)state;
  static uint8_t bytes[PACKET_MOST];
  bench *b = bench_make();
  packet_form mine = udp_form(4), other = udp_form(4);
  other.source = 100;
  for (int i = 0; i < 3; i++) {
    bench_add_form(b, &mine);
    bench_add_form(b, &other);
    b->flow[b->batch.count - 1] = 1;
    mine = follower(&mine), other = follower(&other);
    if (i != 0) continue;
    packet_form fragment = mine;
    fragment.protocol = 1;
    size_t size = packet_write(&fragment, bytes);
    bytes[9] = 17, bytes[7] = 99;
    packet_fix_checksums(bytes, size);
    bench_add(b, bytes, size);
  }
  plan_and_check(b, ALL);
  assert_int_equal(b->join.run_count, 4);
  assert_int_equal(b->join.run[0].count, 1); /* mine before the fragment */
  assert_int_equal(b->join.run[1].count, 3); /* the other's */
  assert_int_equal(b->join.run[2].count, 1); /* the fragment */
  assert_int_equal(b->join.run[3].count, 2); /* mine after it */
  bench_free(b);
}

static void other_protocols_and_rubbish_stand_alone_and_in_nobodys_way(void **state) {
  (void)state;
  static uint8_t bytes[PACKET_MOST];
  bench *b = bench_make();
  packet_form tcp = tcp_form(6), other = tcp_form(6);
  other.payload = 64;
  static const uint8_t protocols[] = {1, 58, 50, 132, 59};
  for (int i = 0; i < 5; i++) {
    bench_add_form(b, &tcp);
    tcp = follower(&tcp);
    other.protocol = protocols[i];
    bench_add_form(b, &other);
    b->flow[b->batch.count - 1] = 1;
  }
  for (size_t size = 0; size < 40; size++) {
    memset(bytes, 0x45, size);
    bench_add(b, bytes, size);
    b->flow[b->batch.count - 1] = 2;
  }
  plan_and_check(b, ALL);
  assert_int_equal(b->join.run_count, 1 + 5 + 40);
  assert_int_equal(b->join.run[0].count, 5);
  bench_free(b);
}

/* ---- The property ---- */

typedef struct sender {
  packet_form next;
  int ids; /* 0 counted up, 1 DF and any, 2 DF and none */
} sender;

static sender random_sender(rng *r, int index) {
  sender s = {.ids = (int)rng_below(r, 3)};
  s.next = rng_below(r, 3) ? tcp_form(rng_below(r, 2) ? 4 : 6) : udp_form(rng_below(r, 2) ? 4 : 6);
  s.next.source = (uint8_t)index;
  s.next.df = s.ids != 0;
  s.next.id = (uint16_t)rng_next(r);
  s.next.sequence = (uint32_t)rng_next(r);
  s.next.payload = 1 + rng_below(r, 1500);
  if (s.next.protocol == 6) s.next.tcp_options = (uint8_t)(4 * rng_below(r, 11));
  return s;
}

static size_t random_packet(rng *r, sender *s, uint8_t *bytes) {
  packet_form now = s->next;
  bool tcp = now.protocol == 6;
  bool wrong = false;
  switch (rng_below(r, 40)) {
  case 0: now.payload = rng_below(r, now.payload + 1); break;
  case 1: now.payload = 1 + rng_below(r, 1500), s->next.payload = now.payload; break;
  case 2: now.flags |= KDP_TCP_PSH; break;
  case 3: now.flags = (uint8_t)rng_next(r); break;
  case 4: now.ttl--; break;
  case 5: now.tos ^= 3; break;
  case 6: now.sequence += 1 + rng_below(r, 2000); break;
  case 7: s->next.acknowledgement++; break;
  case 8: s->next.option_seed++; break;
  case 9: now.ip_options = 4; break;
  case 10: now.extension_size = 16; break;
  case 11: wrong = true; break;
  case 12: now.no_checksum = !tcp; break;
  case 13: s->next.id += 7; break;
  case 14: now.payload = 0; break;
  default: break;
  }
  size_t size = packet_write(&now, bytes);
  if (wrong) bytes[rng_below(r, 2) ? size - 1 : packet_transport(bytes) + 9] ^= 4;
  s->next = now;
  s->next.ttl = 63, s->next.tos = 0x0a, s->next.flags = KDP_TCP_ACK, s->next.ip_options = s->next.extension_size = 0;
  s->next.no_checksum = false;
  if (now.payload == 0) s->next.payload = 1 + rng_below(r, 1500);
  s->next.sequence += now.payload;
  s->next.payload_seed = rng_next(r);
  s->next.id = (uint16_t)(s->ids == 0 ? now.id + 1u : s->ids == 1 ? (unsigned)(rng_next(r) & 0xffff) : 0);
  return size;
}

static void whatever_is_joined_the_kernel_gives_back_as_it_was(void **state) {
  (void)state;
  static uint8_t bytes[PACKET_MOST];
  uint64_t packets = 0, runs = 0;
  for (uint64_t seed = 1; seed <= 400; seed++) {
    rng r = {seed};
    bench *b = bench_make();
    sender senders[12];
    int flows = 1 + (int)rng_below(&r, 12), at = 0;
    for (int i = 0; i < flows; i++)
      senders[i] = random_sender(&r, i);
    for (uint32_t count = 1 + rng_below(&r, KDP_BATCH_CAPACITY); count > 0; count--) {
      if (rng_one_in(&r, 3)) at = (int)rng_below(&r, (uint32_t)flows);
      bench_add(b, bytes, random_packet(&r, &senders[at], bytes));
      b->flow[b->batch.count - 1] = at;
    }
    plan_and_check(b, ALL);
    packets += b->batch.count;
    runs += b->join.run_count;
    for (uint32_t i = b->join.run_count; i-- > 0;)
      kdp_join_undo(&b->batch, &b->join, i);
    for (uint32_t i = 0; i < b->batch.count; i++)
      expect_untouched(b, i);
    bench_free(b);
  }
  assert_true(runs * 2 < packets); /* and not by joining nothing */
}

static void random_damage_is_survived(void **state) {
  (void)state;
  static uint8_t bytes[PACKET_MOST];
  for (uint64_t seed = 1; seed <= 200; seed++) {
    rng r = {seed << 32};
    bench *b = bench_make();
    sender s = random_sender(&r, 0);
    for (int i = 0; i < 60; i++) {
      size_t size = random_packet(&r, &s, bytes);
      for (uint32_t hits = rng_below(&r, 3); hits > 0; hits--)
        bytes[rng_below(&r, size < 80 ? (uint32_t)size : 80)] = (uint8_t)rng_next(&r);
      if (rng_one_in(&r, 3)) size = rng_below(&r, (uint32_t)size + 1);
      if (size > 20 && bytes[0] == 0x45 && rng_one_in(&r, 2)) packet_fix_ip_checksum(bytes);
      bench_add(b, bytes, size);
    }
    kdp_join_plan(ALL, &b->batch, &b->join);
    uint32_t members = 0;
    for (uint32_t i = b->join.run_count; i-- > 0;) {
      members += b->join.run[i].count;
      kdp_join_undo(&b->batch, &b->join, i);
    }
    assert_int_equal(members, 60);
    for (uint32_t i = 0; i < 60; i++)
      expect_untouched(b, i);
    bench_free(b);
  }
}

/* More flows than the flow table's chains hold when they all want one place: joined or not, never out of order. */
static void very_many_flows_keep_their_order(void **state) {
  (void)state;
  for (uint64_t seed = 1; seed <= 20; seed++) {
    rng r = {seed};
    bench *b = bench_make();
    static packet_form form[200];
    for (int i = 0; i < 200; i++) {
      form[i] = udp_form(4);
      form[i].payload = 20;
      form[i].source_port = (uint16_t)i;
    }
    while (b->batch.count < KDP_BATCH_CAPACITY) {
      int i = (int)rng_below(&r, seed % 2 ? 200 : 60);
      bench_add_form(b, &form[i]);
      b->flow[b->batch.count - 1] = i;
      form[i] = follower(&form[i]);
    }
    plan_and_check(b, ALL);
    bench_free(b);
  }
}

/* ---- Round trips with the split ---- */

static void what_was_split_is_joined_to_the_same_super_packet(void **state) {
  (void)state;
  static uint8_t packet[PACKET_MOST], whole[PACKET_MOST];
  rng r = {77};
  kdp_host host = kdp_host_default();
  kdp_pool *pool = NULL;
  assert_int_equal(kdp_pool_create(4, &host, &pool), KDP_OK);
  for (int round = 0; round < 300; round++) {
    packet_form form = rng_below(&r, 2) ? tcp_form(rng_below(&r, 2) ? 4 : 6) : udp_form(rng_below(&r, 2) ? 4 : 6);
    bool tcp = form.protocol == 6;
    form.flags = KDP_TCP_ACK | (rng_below(&r, 2) ? KDP_TCP_PSH : 0);
    form.id = (uint16_t)rng_next(&r);
    form.sequence = (uint32_t)rng_next(&r);
    form.payload_seed = rng_next(&r);
    uint16_t gso_size = (uint16_t)(1 + rng_below(&r, 1500));
    uint32_t most = gso_size * KDP_JOIN_MAX_MEMBERS < 65000 ? gso_size * KDP_JOIN_MAX_MEMBERS : 65000;
    form.payload = 1 + rng_below(&r, most);
    if (form.payload <= gso_size) form.payload = gso_size + 1u;
    size_t size = packet_write(&form, packet);
    uint8_t type = !tcp ? KDP_VIRTIO_GSO_UDP_L4 : form.version == 4 ? KDP_VIRTIO_GSO_TCPV4 : KDP_VIRTIO_GSO_TCPV6;
    kdp_virtio header = packet_make_partial(packet, size, type, gso_size);
    bench *b = bench_make();
    kdp_room room = {.head = 16, .tail = 31};
    assert_int_equal(kdp_split_copy(&header, packet, size, room, pool, &b->batch), KDP_OK);
    kdp_join_plan(ALL, &b->batch, &b->join);
    assert_int_equal(b->join.run_count, 1);
    assert_memory_equal(&b->join.run[0].header, &header, sizeof header);
    assert_int_equal(gather(b, &b->join.run[0], whole), size);
    assert_memory_equal(whole, packet, size);
    kdp_batch_release(&b->batch, pool);
    free(b);
  }
  kdp_pool_destroy(pool);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(each_rule_of_the_table),
      cmocka_unit_test(a_bulk_of_segments_becomes_one_write_and_undo_restores_it),
      cmocka_unit_test(undo_of_a_single_packet_does_nothing),
      cmocka_unit_test(an_empty_batch_gives_no_runs),
      cmocka_unit_test(what_a_fallback_turned_off_is_not_joined),
      cmocka_unit_test(interleaved_flows_each_become_one_run),
      cmocka_unit_test(no_run_has_more_members_or_bytes_than_allowed),
      cmocka_unit_test(a_packet_that_cannot_be_joined_ends_its_flows_run),
      cmocka_unit_test(fragments_pass_untouched_and_in_order),
      cmocka_unit_test(a_later_fragment_ends_the_runs_of_its_addresses_only),
      cmocka_unit_test(other_protocols_and_rubbish_stand_alone_and_in_nobodys_way),
      cmocka_unit_test(whatever_is_joined_the_kernel_gives_back_as_it_was),
      cmocka_unit_test(random_damage_is_survived),
      cmocka_unit_test(very_many_flows_keep_their_order),
      cmocka_unit_test(what_was_split_is_joined_to_the_same_super_packet),
  };
  return cmocka_run_group_tests_name("join", tests, NULL, NULL);
}
