/* A lane of a node other than 0, with a pool of its own, as a worker thread has it. What a call gives stays in `out`
   until it is drained. */
#ifndef KDP_TEST_WIREGUARD_LANE_H
#define KDP_TEST_WIREGUARD_LANE_H

#include "support/wireguard_node.h"

typedef struct side_lane {
  node *of;
  kdp_lane *lane;
  kdp_pool *pool;
  kdp_out_storage *storage;
  kdp_out *out;
} side_lane;

side_lane *side_lane_make(node *of, uint32_t index);
void side_lane_free(side_lane *l); /* aborts when a slot is missing */

/* One packet; what became of it. */
kdp_status side_lane_send(side_lane *l, const void *packet, uint32_t size, kdp_now now);
kdp_status side_lane_send_to(side_lane *l, const node *other, uint32_t payload, kdp_now now);
kdp_status side_lane_receive(side_lane *l, const void *bytes, uint32_t size, const kdp_path *path, kdp_now now);
/* A packet that `from` seals on its lane 0 now, whatever else its timers say at the same time. */
const kept_datagram *sealed_data(node *from, const node *to, uint32_t payload, kdp_now now);
/* Sealed by `from` on its lane 0 and received here along the usual path. */
kdp_status side_lane_receive_from(side_lane *l, node *from, uint32_t payload, kdp_now now);

/* Shows what is handed over to lane 0 of the node and ticks it when it is only woken; drains. Returns how many packets
   were shown. */
uint32_t side_lane_pass_on(side_lane *l, kdp_now now);
void side_lane_drain(side_lane *l);
uint32_t side_lane_wakes(const side_lane *l); /* actions without a packet */

/* a (three lanes) and b with a session that a began, and lane 1 of a. */
typedef struct lane_pair {
  node *a, *b;
  side_lane *l;
  kdp_now now;
} lane_pair;

lane_pair lane_pair_make(void);
void lane_pair_free(lane_pair *p);

#endif
