/* GSO split: one super-packet from a TUN becomes segments, each written once, at its final place in a pool slot. */
#ifndef KDP_OFFLOAD_SPLIT_H
#define KDP_OFFLOAD_SPLIT_H
#include "kdp/batch.h"
#include "offload/virtio.h"

/* Splits `bytes` (an IP packet as read from the TUN behind `header`) into packets appended to `batch`, completing
   checksums where the header asks for it. A packet without GSO gives one packet. Segments of one super-packet lie one
   behind the other at equal strides, in one slot, so that they can leave as one segmented send without gather lists;
   each has at least room.head and room.tail bytes round it. OK: all of it was appended. OUT_FULL: the batch has too
   little room, POOL_EMPTY: no slot; then nothing was appended (call again later). MALFORMED, CHECKSUM, NOT_IP,
   TOO_SHORT: refused, counted by the caller, nothing appended. PSH and FIN go on the last segment only, CWR on the
   first only, IPv4 ids count up. */
kdp_status kdp_split_copy(const kdp_virtio *header, const uint8_t *bytes, size_t size, kdp_room room, kdp_pool *pool,
                          kdp_batch *batch) KDP_MUST_USE;
#endif
