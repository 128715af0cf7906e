#include "wireguard/tai64n.h"

#include "core/bytes.h"

/* TAI64 label of 1970-01-01 00:00:10 TAI, as every WireGuard counts it: leap seconds are left out. */
#define TAI64_EPOCH UINT64_C(0x400000000000000a)

/* Clears the low bits of the nanoseconds within their second, as they appear on the wire. */
static uint64_t round_down(uint64_t time) {
  uint64_t second = time / KDP_SECOND, nanoseconds = time % KDP_SECOND;
  return second * KDP_SECOND + (nanoseconds & ~(KDP_WG_STAMP_STEP - 1));
}

uint64_t kdp_wg_stamp_next(uint64_t wall, uint64_t last) {
  uint64_t time = round_down(wall);
  if (time > last) return time;
  /* Rounding the sum can only reach the start of the next second, which is above `last` as well. */
  return round_down(last + KDP_WG_STAMP_STEP);
}

void kdp_wg_stamp_write(uint64_t time, uint8_t stamp[KDP_WG_TIMESTAMP_SIZE]) {
  kdp_store_be64(stamp, TAI64_EPOCH + time / KDP_SECOND);
  kdp_store_be32(stamp + 8, (uint32_t)(time % KDP_SECOND));
}
