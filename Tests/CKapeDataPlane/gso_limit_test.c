/* A super-packet of the kernel's, sealed, is one segmented send. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "io/tun.h"

/* How many segments TCP puts into a super-packet: (limit - MAX_TCP_HEADER - 1) / payload, for the two sizes that
   MAX_TCP_HEADER commonly has. */
static uint32_t segments(uint32_t limit, uint32_t tcp_header, uint32_t payload) {
  return (limit - tcp_header - 1) / payload;
}

static void every_super_packet_fits_one_datagram_and_wastes_little(void **state) {
  (void)state;
  const uint16_t mtus[] = {1280, 1380, 1420, 1500, 2800, 8920};
  for (size_t i = 0; i < 2 * sizeof mtus / sizeof mtus[0]; i++) {
    uint16_t mtu = mtus[i / 2], growth = i % 2 ? 32 : 47;
    kdp_gso_limit limit = kdp_gso_limit_for(mtu, growth);
    uint32_t fit = 65507u / (uint32_t)(mtu + growth);
    for (uint32_t tcp_header = 256; tcp_header <= 320; tcp_header += 64)
      for (uint32_t timestamps = 0; timestamps <= 12; timestamps += 12) {
        uint32_t four = segments(limit.ipv4, tcp_header, mtu - 40 - timestamps);
        uint32_t six = segments(limit.ipv6, tcp_header, mtu - 60 - timestamps);
        assert_in_range(four, fit - 1, fit);
        assert_in_range(six, fit - 1, fit);
      }
    assert_true(limit.ipv4 < 65536 && limit.ipv6 < 65536);
  }
}

static void small_and_odd_sizes_give_something_usable(void **state) {
  (void)state;
  for (uint32_t mtu = 576; mtu <= UINT16_MAX; mtu += 97) {
    kdp_gso_limit limit = kdp_gso_limit_for((uint16_t)mtu, 47);
    assert_true(limit.ipv4 >= 500 && limit.ipv6 >= 500);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_super_packet_fits_one_datagram_and_wastes_little),
      cmocka_unit_test(small_and_odd_sizes_give_something_usable),
  };
  return cmocka_run_group_tests_name("GSO limit", tests, NULL, NULL);
}
