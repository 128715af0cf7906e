/* The packet path of a worker, both directions, packet by packet. */
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include <cmocka.h>

#include "core/bytes.h"
#include "io/linux_compat.h"
#include "support/rig.h"

enum { PACKETS = 3000, WINDOW = 100, ROOM = 2048 };

typedef struct packet {
  size_t size;
  uint8_t bytes[ROOM];
} packet;

/* What went in at the inside comes out on the wire: the same bytes, once, in the order of the flow. */
static void inside_to_wire(rig *r, packet *sent, uint32_t count) {
  uint32_t next = 0;
  for (uint32_t i = 0; i < count;) {
    for (uint32_t end = i + WINDOW; i < count && i < end; i++)
      rig_write_packet(r, sent[i].bytes, sent[i].size);
    for (; next < i; next++) {
      uint8_t datagram[ROOM + 64];
      uint64_t number;
      ssize_t size = rig_receive(r, datagram, sizeof datagram, 2000);
      if (size < 0) fail_msg("packet %u of %u did not come", next, count);
      assert_true(passthrough_read(datagram, (size_t)size, &number));
      assert_int_equal(number, next);
      assert_int_equal(size, sent[next].size + PASSTHROUGH_HEAD + PASSTHROUGH_TAIL);
      assert_memory_equal(datagram + PASSTHROUGH_HEAD, sent[next].bytes, sent[next].size);
    }
  }
}

static void wire_to_inside(rig *r, const packet *sent, uint32_t count) {
  uint32_t next = 0;
  for (uint32_t i = 0; i < count;) {
    for (uint32_t end = i + WINDOW; i < count && i < end; i++) {
      uint8_t datagram[ROOM + 64];
      memcpy(datagram + PASSTHROUGH_HEAD, sent[i].bytes, sent[i].size);
      passthrough_write(datagram, sent[i].size, i);
      rig_send(r, datagram, sent[i].size + PASSTHROUGH_HEAD + PASSTHROUGH_TAIL);
    }
    while (next < i) {
      static uint8_t frame[RIG_FRAME];
      ssize_t size = rig_read_frame(r, frame, 2000);
      if (size < 0) fail_msg("packet %u of %u did not come", next, count);
      const uint8_t *bytes = frame;
      kdp_virtio header = {0};
      if (r->tun.vnet_header) {
        assert_true(size > KDP_VIRTIO_SIZE);
        memcpy(&header, frame, sizeof header);
        bytes += KDP_VIRTIO_SIZE;
        size -= KDP_VIRTIO_SIZE;
      }
      if (header.gso_type == KDP_VIRTIO_GSO_NONE) {
        assert_int_equal(size, sent[next].size);
        assert_memory_equal(bytes, sent[next].bytes, sent[next].size);
        next++;
        continue;
      }
      /* Joined: the payloads one behind the other. */
      size_t headers = header.header_size;
      for (size_t at = headers; at < (size_t)size; next++) {
        assert_true(next < i);
        size_t payload = sent[next].size - headers;
        assert_true(at + payload <= (size_t)size);
        assert_true(payload == header.gso_size || (payload < header.gso_size && at + payload == (size_t)size));
        assert_memory_equal(bytes + at, sent[next].bytes + headers, payload);
        at += payload;
      }
    }
  }
}

static packet *make_packets(rig *r, bool ipv6, uint32_t count, bool equal_sizes) {
  packet *packets = calloc(count, sizeof *packets);
  assert_non_null(packets);
  size_t size = 500;
  for (uint32_t i = 0; i < count; i++) {
    if (!equal_sizes || rng_one_in(&r->random, 40)) size = 28 + rng_below(&r->random, 1420 - 28 + 1);
    packets[i].size = rig_udp_packet(r, ipv6, 0, size, packets[i].bytes);
  }
  return packets;
}

static void both_ways(void **state, bool underlay_ipv6, bool inner_ipv6, uint32_t fallbacks) {
  rig r;
  rig_open(&r, underlay_ipv6, (kdp_worker_config){.backend = rig_backend(state), .fallbacks = fallbacks});
  rig_start(&r);
  for (int equal = 0; equal < 2; equal++) {
    packet *packets = make_packets(&r, inner_ipv6, PACKETS, equal);
    inside_to_wire(&r, packets, equal ? 0 : PACKETS);
    wire_to_inside(&r, packets, PACKETS);
    free(packets);
  }
  kdp_io_statistics statistics;
  kdp_worker_statistics(r.worker, &statistics);
  uint64_t refused = 0;
  for (int i = 1; i < KDP_STATUS_COUNT; i++)
    refused += statistics.status[i];
  assert_int_equal(refused, 0);
  assert_int_equal(rig_close(&r), KDP_OK);
  assert_int_equal(r.engine.damaged, 0);
  assert_int_equal(r.engine.sent, PACKETS);
  assert_int_equal(r.engine.received, 2 * PACKETS);
}

static void every_packet_arrives_once_and_unchanged(void **state) {
  both_ways(state, false, false, 0);
}
static void every_packet_arrives_over_ipv6(void **state) {
  both_ways(state, true, true, 0);
}
static void every_packet_arrives_without_virtio_header(void **state) {
  both_ways(state, false, true, KDP_FALLBACK_NO_VNET_HEADER);
}
static void every_packet_arrives_without_segmented_sends(void **state) {
  both_ways(state, false, false, KDP_FALLBACK_NO_UDP_SEGMENT);
}
static void every_packet_arrives_without_joined_receives(void **state) {
  both_ways(state, true, false, KDP_FALLBACK_NO_UDP_GRO);
}
static void every_packet_arrives_without_joined_writes(void **state) {
  both_ways(state, false, false, KDP_FALLBACK_NO_TUN_JOIN);
}
static void every_packet_arrives_without_any_offload(void **state) {
  both_ways(state, false, false,
            KDP_FALLBACK_NO_VNET_HEADER | KDP_FALLBACK_NO_TSO | KDP_FALLBACK_NO_USO | KDP_FALLBACK_NO_UDP_SEGMENT |
                KDP_FALLBACK_NO_UDP_GRO | KDP_FALLBACK_NO_TUN_JOIN);
}

static void a_super_packet_leaves_as_one_segmented_send(void **state) {
  for (int ipv6 = 0; ipv6 < 2; ipv6++) {
    rig r;
    rig_open(&r, ipv6, (kdp_worker_config){.backend = rig_backend(state)});
    rig_start(&r);
    uint16_t segment = ipv6 ? 1360 : 1380;
    size_t payload = 44 * (size_t)segment + 228, headers = ipv6 ? 60 : 40;
    static uint8_t frame[RIG_FRAME], datagram[RIG_FRAME];
    size_t size = rig_tcp_frame(&r, ipv6, payload, segment, frame);
    const uint8_t *packet = frame + KDP_VIRTIO_SIZE;
    uint8_t *copy = malloc(size);
    assert_non_null(copy);
    memcpy(copy, packet, size - KDP_VIRTIO_SIZE);
    rig_write_frame(&r, frame, size);
    size_t at = headers;
    for (uint64_t i = 0; i < 45; i++) {
      uint64_t number = 0;
      ssize_t got = rig_receive(&r, datagram, sizeof datagram, 2000);
      assert_true(got > 0 && passthrough_read(datagram, (size_t)got, &number));
      assert_int_equal(number, i);
      size_t inner = (size_t)got - PASSTHROUGH_HEAD - PASSTHROUGH_TAIL;
      assert_true(rig_packet_is_right(datagram + PASSTHROUGH_HEAD, inner));
      assert_int_equal(inner - headers, i < 44 ? segment : 228);
      assert_memory_equal(datagram + PASSTHROUGH_HEAD + headers, copy + at, inner - headers);
      at += inner - headers;
    }
    assert_int_equal(at, headers + payload);
    rig_sync(&r, NULL);
    kdp_io_statistics statistics;
    kdp_worker_statistics(r.worker, &statistics);
    assert_int_equal(statistics.udp_sends, 1);
    assert_int_equal(statistics.segmented_sends, 1);
    assert_int_equal(statistics.tun_reads, 1);
    rig_close(&r);
    free(copy);
  }
}

/* Two flows by turns, of two sizes: as many sends as flows, not as packets. */
static void lone_packets_of_several_flows_leave_as_one_send_a_flow(void **state) {
  enum { LONE = 32 };
  rig r;
  rig_open(&r, false, (kdp_worker_config){.backend = rig_backend(state)});
  uint8_t packet[600], datagram[RIG_FRAME];
  for (int i = 0; i < LONE; i++) /* before it runs, so that they are read in one round */
    rig_write_packet(&r, packet, rig_udp_packet(&r, false, i % 2, i % 2 ? 90 : 500, packet));
  rig_start(&r);
  for (uint64_t i = 0; i < LONE; i++) {
    uint64_t number = 0;
    ssize_t got = rig_receive(&r, datagram, sizeof datagram, 2000);
    assert_true(got > 0 && passthrough_read(datagram, (size_t)got, &number));
    assert_int_equal(number, i); /* the engine is shown them in the order in which they leave */
    assert_true(rig_packet_is_right(datagram + PASSTHROUGH_HEAD, (size_t)got - PASSTHROUGH_HEAD - PASSTHROUGH_TAIL));
  }
  rig_sync(&r, NULL);
  kdp_io_statistics statistics;
  kdp_worker_statistics(r.worker, &statistics);
  assert_int_equal(statistics.tun_reads, LONE);
  assert_in_range(statistics.udp_sends, 2, LONE / 2);
  print_message("  %d packets of two flows in turn: %u sends\n", LONE, (unsigned)statistics.udp_sends);
  assert_int_equal(rig_close(&r), KDP_OK);
}

/* A datagram larger than anything ours, an empty one and noise: counted, and the next good one is taken
   (mullvad/gotatun 145). */
static void odd_datagrams_do_not_stop_reception(void **state) {
  rig r;
  rig_open(&r, false, (kdp_worker_config){.backend = rig_backend(state)});
  rig_start(&r);
  static uint8_t zero[65507];
  const size_t sizes[] = {10000, 65507, 0, 1};
  for (int i = 0; i < 4; i++)
    rig_send(&r, zero, sizes[i]);
  /* 38 of 1,700 bytes and one of 3, which arrive joined. */
  int segment = 1700;
  assert_int_equal(setsockopt(r.wire, IPPROTO_UDP, UDP_SEGMENT, &segment, sizeof segment), 0);
  rig_send(&r, zero, 38 * 1700 + 3);
  segment = 0;
  assert_int_equal(setsockopt(r.wire, IPPROTO_UDP, UDP_SEGMENT, &segment, sizeof segment), 0);
  packet good;
  good.size = rig_udp_packet(&r, false, 0, 333, good.bytes);
  wire_to_inside(&r, &good, 1);
  kdp_io_statistics statistics;
  kdp_worker_statistics(r.worker, &statistics);
  assert_int_equal(statistics.joined_reads, 1);
  assert_int_equal(rig_close(&r), KDP_OK);
  assert_int_equal(r.engine.damaged, 4 + 39);
}

/* An engine that takes little at a time gets the rest again, and nothing is lost or turned round. */
static void an_engine_may_take_a_few_packets_at_a_time(void **state) {
  rig r;
  rig_open(&r, false, (kdp_worker_config){.backend = rig_backend(state)});
  r.engine.take_most = 3;
  rig_start(&r);
  packet *packets = make_packets(&r, false, 500, false);
  inside_to_wire(&r, packets, 500);
  wire_to_inside(&r, packets, 500);
  free(packets);
  assert_int_equal(rig_close(&r), KDP_OK);
}

static void what_is_no_ip_packet_is_counted_and_dropped(void **state) {
  rig r;
  rig_open(&r, false, (kdp_worker_config){.backend = rig_backend(state)});
  rig_start(&r);
  uint8_t junk[100];
  memset(junk, 0xff, sizeof junk);
  rig_write_packet(&r, junk, sizeof junk);
  rig_write_frame(&r, junk, 4); /* not even a virtio header */
  packet good;
  good.size = rig_udp_packet(&r, false, 0, 333, good.bytes);
  inside_to_wire(&r, &good, 1);
  kdp_io_statistics statistics;
  kdp_worker_statistics(r.worker, &statistics);
  assert_int_equal(statistics.status[KDP_NOT_IP] + statistics.status[KDP_MALFORMED], 1);
  assert_int_equal(statistics.status[KDP_TOO_SHORT], 1);
  rig_close(&r);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_packet_arrives_once_and_unchanged),
      cmocka_unit_test(every_packet_arrives_over_ipv6),
      cmocka_unit_test(every_packet_arrives_without_virtio_header),
      cmocka_unit_test(every_packet_arrives_without_segmented_sends),
      cmocka_unit_test(every_packet_arrives_without_joined_receives),
      cmocka_unit_test(every_packet_arrives_without_joined_writes),
      cmocka_unit_test(every_packet_arrives_without_any_offload),
      cmocka_unit_test(a_super_packet_leaves_as_one_segmented_send),
      cmocka_unit_test(lone_packets_of_several_flows_leave_as_one_send_a_flow),
      cmocka_unit_test(odd_datagrams_do_not_stop_reception),
      cmocka_unit_test(an_engine_may_take_a_few_packets_at_a_time),
      cmocka_unit_test(what_is_no_ip_packet_is_counted_and_dropped),
  };
  return rig_run_with_each_backend("worker path", tests, sizeof tests / sizeof tests[0]);
}
