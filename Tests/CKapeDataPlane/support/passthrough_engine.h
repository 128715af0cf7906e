/* The simplest engine: what goes in at the inside comes out on the wire with 16 bytes before and 16 behind it, to one
   remote, and the other way round. Both are checked on the way in, so that a byte out of place is noticed. No
   cipher, no state but counters: what is tested with it is whatever stands around an engine. */
#ifndef KDP_TEST_PASSTHROUGH_ENGINE_H
#define KDP_TEST_PASSTHROUGH_ENGINE_H
#include "kdp/engine.h"

enum { PASSTHROUGH_HEAD = 16, PASSTHROUGH_TAIL = 16, PASSTHROUGH_LANES = 4 };

/* What lanes other than 0 count. */
typedef struct passthrough_lane {
  kdp_lane lane; /* first */
  uint64_t sent, received, damaged, handed, quiescent;
} passthrough_lane;

typedef struct passthrough {
  kdp_engine engine; /* first */
  kdp_lane lane;
  kdp_path path;       /* where it sends to; family NONE: to whom it heard from last */
  bool learn;          /* takes the path of what it hears */
  uint8_t flags;       /* kdp_packet_flags of what it sends */
  uint8_t ecn;         /* ECN field of what it sends */
  uint16_t inside_mtu; /* 0: 1420 */
  uint32_t take_most;  /* packets taken in one call; 0: all */
  uint64_t sent, received, damaged, path_mtu_calls, links_up, links_down, quiescent;
  _Atomic(uint64_t) ticks;
  uint16_t path_mtu;
  uint8_t last_ecn;
  uint64_t deadline;
  kdp_action action; /* given once, before the next packet out, when its kind is not 0 */
  kdp_event event[16];
  uint32_t event_count;
  uint32_t lanes;      /* 0: 1 */
  uint32_t hand_every; /* lanes other than 0 hand one packet of so many over; 0: none */
  passthrough_lane other[PASSTHROUGH_LANES - 1];
} passthrough;

/* Fills in `engine` and `lane`; the rest is the caller's to set. */
void passthrough_init(passthrough *engine);
/* Is it a datagram of this engine? Sets the number it was sent with. */
bool passthrough_read(const uint8_t *datagram, size_t size, uint64_t *number);
/* Writes what goes round a packet of `size` bytes at `datagram` + 16. */
void passthrough_write(uint8_t *datagram, size_t size, uint64_t number);

#endif
