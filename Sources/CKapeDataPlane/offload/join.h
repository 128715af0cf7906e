/* GRO join: runs of opened packets become super-packets, written to a TUN behind one virtio header, without moving a
   byte of payload: a joined write is a gather list (the first packet with its header made over, then the payloads of
   the others). */
#ifndef KDP_OFFLOAD_JOIN_H
#define KDP_OFFLOAD_JOIN_H
#include "kdp/batch.h"
#include "offload/virtio.h"

enum { KDP_JOIN_MAX_MEMBERS = 128, KDP_JOIN_MAX_SIZE = 65535 };

/* What may be joined; all on by default except where a fallback says otherwise. */
typedef struct kdp_join_rules {
  bool tcp, udp;
} kdp_join_rules;

/* One write: packets order[first..first + count) of the batch in this order, the first whole, of the others only what
   follows `skip` bytes of headers. count 1: the packet as it is, header GSO_NONE. */
typedef struct kdp_join_run {
  kdp_virtio header;
  uint16_t first; /* index into `order` of the first member */
  uint16_t count; /* members */
  uint16_t skip;  /* header bytes left out of members after the first */
  /* For kdp_join_undo: what was in the first member's headers, in memory order. */
  uint16_t ip_checksum, transport_checksum;
  uint8_t flags;
} kdp_join_run;

typedef struct kdp_join {
  kdp_join_run run[KDP_BATCH_CAPACITY];
  uint16_t order[KDP_BATCH_CAPACITY]; /* packet indices, grouped by run */
  uint32_t run_count;
} kdp_join;

/* Plans the writes for all packets of `batch` (opened inner packets; padding already cut off; at most
   KDP_BATCH_CAPACITY). The first member's headers are made over in place for runs of two and more (lengths, checksum
   prepared for completion, PSH); no packet's `data` or `size` changes. Order within a flow never changes, when the runs
   are written in their order; packets of different flows may be interleaved in the batch. What may not be joined is a
   run of one, untouched. */
void kdp_join_plan(kdp_join_rules rules, const kdp_batch *batch, kdp_join *join);

/* When the kernel refuses a joined write: restores the first member's headers as they were, so that the members can be
   written singly, each behind a header of zeros. */
void kdp_join_undo(const kdp_batch *batch, const kdp_join *join, uint32_t run);
#endif
