/* Two devices: sessions, and the rules for their key pairs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "support/wireguard_node.h"

static void a_first_packet_leads_to_a_session_and_arrives(void **state) {
  (void)state;
  node *a = node_make(1, NULL, NULL), *b = node_make(2, NULL, NULL);
  kdp_now now = node_time(1000);
  assert_int_equal(node_add_peer(a, b, true, now), KDP_OK);
  assert_int_equal(node_add_peer(b, a, false, now), KDP_OK);
  assert_int_equal(node_send_to(a, b, 100, now), KDP_OK);
  assert_int_equal(a->sent_count, 1);
  assert_int_equal(a->sent[0].size, 148);
  assert_int_equal(node_pass(a, 0, b, now), KDP_OK);
  assert_int_equal(b->sent_count, 1);
  assert_int_equal(b->sent[0].size, 92);
  assert_int_equal(node_pass(b, 0, a, now), KDP_OK);
  assert_int_equal(a->sent_count, 2);
  assert_int_equal(a->sent[1].size, 128 + 32);
  assert_int_equal(node_pass(a, 1, b, now), KDP_OK);
  assert_int_equal(b->delivered_count, 1);
  uint8_t packet[256];
  assert_int_equal(b->delivered[0].size, node_packet(packet, a, b, 100));
  assert_memory_equal(b->delivered[0].bytes, packet, b->delivered[0].size);
  /* And back. */
  assert_int_equal(node_send_to(b, a, 1, now), KDP_OK);
  assert_int_equal(node_pass(b, 1, a, now), KDP_OK);
  assert_int_equal(a->delivered_count, 1);
  assert_int_equal(node_count_events(a, KDP_EVENT_CONNECTED, NULL), 1);
  assert_int_equal(node_count_events(b, KDP_EVENT_CONNECTED, NULL), 1);
  node_free(a);
  node_free(b);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_first_packet_leads_to_a_session_and_arrives),
  };
  return cmocka_run_group_tests_name("wireguard sessions", tests, NULL, NULL);
}
