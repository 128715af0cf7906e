/* GSO split: one super-packet from a TUN becomes segments, each written once, at its final place in a pool slot. */
#ifndef KDP_OFFLOAD_SPLIT_H
#define KDP_OFFLOAD_SPLIT_H
#include "kdp/batch.h"
#include "offload/virtio.h"

/* Splits `bytes` (an IP packet as read from the TUN behind `header`) into packets appended to `batch`, completing
   checksums where the header asks for it. A packet without GSO gives one packet. Segments of one super-packet lie one
   behind the other at equal strides, in one slot, so that they can leave as one segmented send without gather lists;
   each has at least room.head and room.tail bytes round it. (With their room they may need more than a slot holds: then
   the rest goes on in the next one.) PSH and FIN go on the last segment only, CWR on the first only, IPv4 ids count up.
   The header's header_size is not used: a kernel that forwards puts any length there.

   OK: all of it was appended. Otherwise nothing was:
   OUT_FULL   the batch has too little room now, but would have when empty: call again later;
   POOL_EMPTY no slot: call again later;
   TOO_BIG    more segments than the batch can ever hold, or a segment that with its room exceeds a slot: refused;
   MALFORMED  a GSO kind that does not fit the packet, a segment size of 0, a fragment, a transport header or length
              that contradicts the packet's: refused;
   CHECKSUM   the place of the checksum is outside the packet, or for GSO not the transport's own: refused;
   NOT_IP, TOO_SHORT as kdp_ip_read gives them: refused. The caller counts what is refused. */
kdp_status kdp_split_copy(const kdp_virtio *header, const uint8_t *bytes, size_t size, kdp_room room, kdp_pool *pool,
                          kdp_batch *batch) KDP_MUST_USE;
#endif
