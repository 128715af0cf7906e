/* When a worker lets others run first.

   Frames that come from the TUN one by one are datagrams, mostly, and nobody slows their sender down. A scheduler lets
   a worker that always has work run for milliseconds; meanwhile whoever is to receive those packets waits for the
   processor, and its queue overflows: work for nothing. So after a round full of such frames the worker yields, and
   what it cannot take is dropped where it costs least, before the TUN.

   Never for long: it does not yield again before it has worked as long as the yields before took, so that beside
   programs that are always busy it keeps its half of a processor. */
#ifndef KDP_IO_GIVE_WAY_H
#define KDP_IO_GIVE_WAY_H
#include "kdp/base.h"

enum { KDP_GIVE_WAY_FRAMES = 32 }; /* read in one round: half of what one takes */

typedef struct kdp_give_way {
  uint64_t credit; /* ns worked and not yet given */
  uint64_t cost;   /* ns that a yield takes, as a running mean */
} kdp_give_way;

/* A round that read `frames` and worked for `worked` ns is over. True: yield now, and tell how long it took. */
bool kdp_give_way_due(kdp_give_way *state, uint32_t frames, uint64_t worked) KDP_MUST_USE;
void kdp_give_way_took(kdp_give_way *state, uint64_t ns);

#endif
