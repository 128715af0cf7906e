/* Two connected WireGuard devices, and packets of any size between them. */
#ifndef KDP_TEST_WIREGUARD_PAIR_H
#define KDP_TEST_WIREGUARD_PAIR_H
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "support/wireguard_node.h"

static inline void free_both(node *a, node *b) {
  node_free(a);
  node_free(b);
}

static inline kdp_now connected(node **a, node **b) {
  kdp_now now = node_time(1000);
  *a = node_make(1, NULL, NULL);
  *b = node_make(2, NULL, NULL);
  node_connect(*a, *b, now);
  return now;
}

/* Both take all addresses of both families from and for each other. */
static inline void route_everything(node *a, node *b, kdp_now now) {
  kdp_wireguard_prefix_change all[2] = {{.prefix = {.family = KDP_FAMILY_IPV4}},
                                        {.prefix = {.family = KDP_FAMILY_IPV6}}};
  for (int i = 0; i < 2; i++) {
    kdp_wireguard_peer_change peer = node_peer(i ? a : b, false, all, 2);
    kdp_wireguard_change change = {.peer = &peer, .peer_count = 1};
    assert_int_equal(node_apply(i ? b : a, &change, now), KDP_OK);
  }
}

/* An IPv6 packet of `size` bytes from fd77::1 to fd77::2. */
static inline uint32_t packet6(uint8_t *to, uint32_t size) {
  memset(to, 0, size);
  to[0] = 0x60;
  kdp_store_be16(to + 4, (uint16_t)(size - 40));
  to[6] = 59;
  to[7] = 64;
  memcpy(to + 8, (uint8_t[16]){0xfd, 0x77, [15] = 1}, 16);
  memcpy(to + 24, (uint8_t[16]){0xfd, 0x77, [15] = 2}, 16);
  return size;
}

/* An IPv4 packet of `size` bytes from a to b. */
static inline uint32_t packet4(uint8_t *to, const node *a, const node *b, uint32_t size, bool df) {
  (void)node_packet(to, a, b, size - 28);
  if (df) to[6] = 0x40;
  return size;
}

#endif
