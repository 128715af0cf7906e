/* TAI64N stamps of initiations (section 5.4.2 of the paper; https://cr.yp.to/libtai/tai64.html).

   A peer accepts an initiation only with a stamp above the newest it has seen from us. So stamps must rise whatever the
   wall clock does: the next stamp for a peer is the wall clock rounded down, or, when that is not above the last one
   used for the peer, the last one plus the smallest step. A host that keeps the newest stamp over a restart and hands
   it back (kdp_wireguard_config.newest_stamp) is safe from a clock set back in between, too. */
#ifndef KDP_WIREGUARD_TAI64N_H
#define KDP_WIREGUARD_TAI64N_H

#include "wireguard/spec.h"

/* The wall time (ns since 1970) to put into the next stamp: above `last`, which is such a time or 0. */
uint64_t kdp_wg_stamp_next(uint64_t wall, uint64_t last);

/* Wall time to wire form: 8 bytes of TAI seconds and 4 of nanoseconds, big endian. Comparing two with memcmp compares
   their times. */
void kdp_wg_stamp_write(uint64_t time, uint8_t stamp[KDP_WG_TIMESTAMP_SIZE]);

#endif
