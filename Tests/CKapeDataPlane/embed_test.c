/* The embedding example: what it promises, against a device of the tests'. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../Examples/embed.c"

#include "support/wireguard_node.h"

/* A program with one packet to send, whose network is one other device. */
typedef struct program {
  embed_host host;
  node *self, *remote; /* `self` only lends its keys and its address */
  uint8_t packet[256], answer[256];
  uint32_t size, turn, taken, answer_size;
  bool had_deadline;
} program;

static kdp_now now(embed_host *host) {
  (void)host;
  return node_time(1000);
}

static embed_event wait_for(embed_host *host, uint64_t deadline) {
  program *p = (program *)host;
  if (deadline != KDP_NEVER) p->had_deadline = true;
  if (p->turn++ == 0) return (embed_event){.kind = EMBED_PACKET, .bytes = {p->packet, p->size}};
  if (p->taken < p->remote->sent_count) {
    const kept_datagram *datagram = &p->remote->sent[p->taken++];
    return (embed_event){
        .kind = EMBED_DATAGRAM, .bytes = {datagram->bytes, datagram->size}, .path = node_path(p->self, p->remote)};
  }
  return (embed_event){.kind = p->turn == 6 ? EMBED_STOP : EMBED_DEADLINE};
}

static void send_datagram(embed_host *host, const kdp_packet *datagram, const kdp_path *path) {
  program *p = (program *)host;
  assert_true(kdp_address_equal(&path->remote, &p->remote->address));
  kdp_path from = node_path(p->remote, p->self);
  (void)node_receive(p->remote, datagram->data, datagram->size, &from, node_time(1000));
  if (p->remote->delivered_count == 1 && p->remote->sent_count == 1)
    assert_int_equal(node_send_to(p->remote, p->self, 50, node_time(1000)), KDP_OK);
}

static void deliver(embed_host *host, const kdp_packet *packet) {
  program *p = (program *)host;
  assert_in_range(packet->size, 1, sizeof p->answer);
  memcpy(p->answer, packet->data, packet->size);
  p->answer_size = packet->size;
}

static void the_example_carries_a_packet_there_and_back(void **state) {
  (void)state;
  node *self = node_make(1, NULL, NULL), *remote = node_make(2, NULL, NULL);
  assert_int_equal(node_add_peer(remote, self, false, node_time(1000)), KDP_OK);
  program p = {.host = {wait_for, send_datagram, deliver, now}, .self = self, .remote = remote};
  p.size = node_packet(p.packet, self, remote, 100);

  kdp_wireguard_prefix_change prefix = node_prefix(remote);
  kdp_wireguard_peer_change peer = node_peer(remote, true, &prefix, 1);
  kdp_wireguard_change change = {.fields = KDP_WIREGUARD_SET_PRIVATE_KEY, .peer = &peer, .peer_count = 1};
  memcpy(change.private_key, self->private_key, sizeof change.private_key);
  assert_int_equal(embed(&p.host, &change), KDP_OK);

  assert_int_equal(remote->delivered_count, 1);
  assert_int_equal(remote->delivered[0].size, p.size);
  assert_memory_equal(remote->delivered[0].bytes, p.packet, p.size);
  uint8_t expected[256];
  assert_int_equal(p.answer_size, node_packet(expected, remote, self, 50));
  assert_memory_equal(p.answer, expected, p.answer_size);
  assert_true(p.had_deadline);
  node_free(self);
  node_free(remote);
}

/* Handshake messages that come one by one are no load: each is a round of its own. */
enum { MESSAGES = 40 };

static embed_event one_by_one(embed_host *host, uint64_t deadline) {
  static const uint8_t initiation[148] = {1}; /* of the right size and type, and nothing else right */
  program *p = (program *)host;
  (void)deadline;
  kdp_path path = node_path(p->self, p->remote);
  if (p->turn++ < MESSAGES)
    return (embed_event){.kind = EMBED_DATAGRAM, .bytes = {(void *)initiation, sizeof initiation}, .path = path};
  if (p->taken < p->remote->sent_count) {
    const kept_datagram *datagram = &p->remote->sent[p->taken++];
    return (embed_event){.kind = EMBED_DATAGRAM, .bytes = {(void *)datagram->bytes, datagram->size}, .path = path};
  }
  return (embed_event){.kind = EMBED_STOP};
}

static void handshake_messages_one_by_one_are_no_load(void **state) {
  (void)state;
  node *self = node_make(1, NULL, NULL), *remote = node_make(2, NULL, NULL);
  assert_int_equal(node_add_peer(remote, self, true, node_time(1000)), KDP_OK);
  program p = {.host = {one_by_one, send_datagram, deliver, now}, .self = self, .remote = remote};
  kdp_wireguard_prefix_change prefix = node_prefix(remote);
  kdp_wireguard_peer_change peer = node_peer(remote, true, &prefix, 1);
  kdp_wireguard_change change = {.fields = KDP_WIREGUARD_SET_PRIVATE_KEY, .peer = &peer, .peer_count = 1};
  memcpy(change.private_key, self->private_key, sizeof change.private_key);
  assert_int_equal(node_send_to(remote, self, 50, node_time(1000)), KDP_OK);
  assert_int_equal(remote->sent_count, 1); /* its initiation */
  assert_int_equal(embed(&p.host, &change), KDP_OK);
  uint8_t expected[256];
  assert_int_equal(p.answer_size, node_packet(expected, remote, self, 50)); /* answered, so its packet came */
  node_free(self);
  node_free(remote);
}

static embed_event stop_at_once(embed_host *host, uint64_t deadline) {
  (void)host;
  (void)deadline;
  return (embed_event){.kind = EMBED_STOP};
}

static void what_the_configuration_brings_about_leaves_before_the_first_wait(void **state) {
  (void)state;
  node *self = node_make(1, NULL, NULL), *remote = node_make(2, NULL, NULL);
  assert_int_equal(node_add_peer(remote, self, false, node_time(1000)), KDP_OK);
  program p = {.host = {stop_at_once, send_datagram, deliver, now}, .self = self, .remote = remote};
  kdp_wireguard_prefix_change prefix = node_prefix(remote);
  kdp_wireguard_peer_change peer = node_peer(remote, true, &prefix, 1);
  peer.fields |= KDP_WIREGUARD_PEER_SET_KEEPALIVE;
  peer.keepalive_seconds = 25;
  kdp_wireguard_change change = {.fields = KDP_WIREGUARD_SET_PRIVATE_KEY, .peer = &peer, .peer_count = 1};
  memcpy(change.private_key, self->private_key, sizeof change.private_key);
  assert_int_equal(embed(&p.host, &change), KDP_OK);
  assert_int_equal(remote->sent_count, 1); /* its response */
  node_free(self);
  node_free(remote);
}

static void a_change_that_is_refused_ends_it(void **state) {
  (void)state;
  kdp_wireguard_peer_change peer = {.fields = 0};
  kdp_wireguard_change change = {.peer = &peer, .peer_count = 1};
  program p = {.host = {wait_for, send_datagram, deliver, now}};
  assert_int_equal(embed(&p.host, &change), KDP_LOW_ORDER_KEY);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_example_carries_a_packet_there_and_back),
      cmocka_unit_test(handshake_messages_one_by_one_are_no_load),
      cmocka_unit_test(what_the_configuration_brings_about_leaves_before_the_first_wait),
      cmocka_unit_test(a_change_that_is_refused_ends_it),
  };
  return cmocka_run_group_tests_name("embedding example", tests, NULL, NULL);
}
