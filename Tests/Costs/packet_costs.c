/* What packets cost, laid out to be counted by callgrind. The script `run` beside this file calls it and reads the
   counts; by itself it prints nothing.

     packet_costs seal|open SIZE BATCH CALLS  calls of an engine in memory; counted are the functions inside_counted and
                                              outside_counted
     packet_costs stream SEGMENT FRAMES       super-packets of 44 segments through two workers, one at a time; the
                                              first worker's thread is the second of the process, the other's the third
     packet_costs copy SEGMENT FRAMES         the payload of as many super-packets, copied once; counted is copy_counted
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "net/checksum.h"
#include "support/rig.h"
#include "support/wireguard_node.h"
#include "support/worker_pair.h"

enum { SEGMENTS = 44, MAX_BATCH = 64, UDP_AND_IP = 28, LARGEST_SEGMENT = 1368 };

/* Their names are what callgrind is told to begin and end counting at. */
__attribute__((noinline)) static uint32_t inside_counted(node *n, kdp_batch *batch, kdp_now now) {
  return kdp_engine_inside(n->lane, batch, n->out, now);
}
__attribute__((noinline)) static uint32_t outside_counted(node *n, kdp_batch *batch, kdp_now now) {
  return kdp_engine_outside(n->lane, batch, n->out, now);
}
__attribute__((noinline)) static uint64_t copy_counted(uint8_t *to, const uint8_t *from, size_t size) {
  return kdp_checksum_copy_add(0, to, from, size);
}

static void seal_and_open(uint32_t size, uint32_t count, uint32_t calls) {
  kdp_wireguard_config config = {.aead_provider = "openssl"};
  node *a = node_make(1, &config, NULL), *b = node_make(2, &config, NULL);
  kdp_now now = node_time(1000);
  node_add_peer(a, b, true, now);
  node_add_peer(b, a, true, now);
  node_connect(a, b, now);
  kdp_path path = node_path(b, a);
  for (uint32_t call = 0; call < calls; call++) {
    kdp_packet packet[MAX_BATCH], arrived[MAX_BATCH];
    kdp_batch in = {.packet = packet, .count = count, .capacity = MAX_BATCH};
    for (uint32_t i = 0; i < count; i++) {
      assert_true(kdp_pool_take_packet(a->pool, KDP_WIREGUARD_HEAD, size, KDP_WIREGUARD_TAIL, &packet[i]));
      assert_int_equal(node_packet(packet[i].data, a, b, size - UDP_AND_IP), size);
    }
    now = node_later(now, KDP_MILLISECOND);
    assert_int_equal(inside_counted(a, &in, now), count);
    assert_int_equal(a->out->wire.count, count);

    kdp_batch wire = {.packet = arrived, .count = count, .capacity = MAX_BATCH, .path = &path, .path_count = 1};
    for (uint32_t i = 0; i < count; i++) {
      const kdp_packet *sent = &a->out->wire.packet[i];
      assert_true(kdp_pool_take_packet(b->pool, 0, sent->size, 0, &arrived[i]));
      memcpy(arrived[i].data, sent->data, sent->size);
    }
    kdp_batch_release(&a->out->wire, a->pool);
    assert_int_equal(outside_counted(b, &wire, now), count);
    assert_int_equal(b->out->inside.count, count);
    kdp_batch_release(&b->out->inside, b->pool);
    kdp_batch_release(&b->out->wire, b->pool);
  }
  node_free(a);
  node_free(b);
}

static void pump(worker_pair *pair, uint16_t segment, uint32_t segments, uint32_t frames) {
  static uint8_t frame[RIG_FRAME];
  rig packets = {.random = {1}};
  uint32_t payload = segment * segments;
  size_t size = rig_tcp_frame(&packets, false, payload, segment, frame);
  assert_int_equal(worker_pair_pump(&pair->a, &pair->b, frame, size, payload, frames, 1), (uint64_t)payload * frames);
}

static void stream(uint16_t segment, uint32_t frames) {
  static worker_pair pair;
  worker_pair_open(&pair, KDP_BACKEND_EPOLL, "openssl");
  pump(&pair, 100, 1, 1); /* what waits for the handshake is copied: the same bytes in every run */
  pump(&pair, segment, SEGMENTS, frames);
  worker_pair_close(&pair);
}

static void copy(uint16_t segment, uint32_t frames) {
  static uint8_t from[LARGEST_SEGMENT], to[LARGEST_SEGMENT];
  uint64_t sum = 0;
  for (uint32_t i = 0; i < frames * SEGMENTS; i++)
    sum += copy_counted(to, from, segment);
  assert_int_equal(sum, 0);
}

static char **argument;

static void work(void **state) {
  (void)state;
  uint32_t number[3] = {0};
  for (int i = 0; i < 3 && argument[2 + i]; i++)
    number[i] = (uint32_t)strtoul(argument[2 + i], NULL, 10);
  if (strcmp(argument[1], "seal") == 0 || strcmp(argument[1], "open") == 0)
    seal_and_open(number[0], number[1], number[2]);
  else if (strcmp(argument[1], "stream") == 0)
    stream((uint16_t)number[0], number[1]);
  else if (strcmp(argument[1], "copy") == 0)
    copy((uint16_t)number[0], number[1]);
  else
    fail_msg("packet_costs: seal, open, stream or copy, not %s", argument[1]);
}

int main(int argc, char **argv) {
  if (argc < 4) {
    fprintf(stderr, "usage: packet_costs seal|open SIZE BATCH CALLS | stream|copy SEGMENT FRAMES\n");
    return 2;
  }
  argument = argv;
  const struct CMUnitTest tests[] = {cmocka_unit_test(work)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
