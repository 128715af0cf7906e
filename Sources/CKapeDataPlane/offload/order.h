/* Packets of several flows that came in by turns, put so that those of one size lie together: only what is equal in
   size and lies together leaves as one segmented send. */
#ifndef KDP_OFFLOAD_ORDER_H
#define KDP_OFFLOAD_ORDER_H
#include "kdp/batch.h"

/* Sizes that grow from one packet to the next, in a batch, below which nothing is moved: each begins a send. */
enum { KDP_ORDER_BEGINNINGS = 4 };

/* Orders the packets of `batch` (IP packets, at most KDP_BATCH_CAPACITY) by flow, the flows by the size of their first
   packet, the largest first. Order within a flow never changes. A batch in which little would be won, or that holds a
   fragment (which does not show its flow), stays as it is. */
void kdp_order_flows(kdp_batch *batch);

#endif
