/* kdp/time.h: time is handed in; nothing in an engine reads a clock. */
#ifndef KDP_TIME_H
#define KDP_TIME_H

#include "base.h"

/* `boot` (CLOCK_BOOTTIME, ns) drives every timer: it goes on during suspend. `wall` (CLOCK_REALTIME, ns since 1970)
   serves only what carries it on the wire: TAI64N, X.509, tokens, packet stamps. `boot` never goes back; an engine
   clamps it if it does. */
typedef struct kdp_now {
  uint64_t boot, wall;
} kdp_now;

#define KDP_NEVER UINT64_MAX
#define KDP_MICROSECOND UINT64_C(1000)
#define KDP_MILLISECOND UINT64_C(1000000)
#define KDP_SECOND UINT64_C(1000000000)

#endif
