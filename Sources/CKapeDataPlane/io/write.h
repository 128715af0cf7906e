/* Planning of TUN writes: the joined runs of a batch as gather lists behind virtio headers. */
#ifndef KDP_IO_WRITE_H
#define KDP_IO_WRITE_H
#include <sys/uio.h>

#include "offload/join.h"

enum { KDP_WRITE_NOT_TRIED = -1 };

typedef struct kdp_write_plan {
  uint32_t packet_count; /* packets of the batch that the plan covers, a prefix */
  kdp_join join;
  /* Of each run: its gather list, and what became of it: 0, an errno or KDP_WRITE_NOT_TRIED. */
  struct {
    uint16_t first, count;
    int32_t error;
  } item[KDP_BATCH_CAPACITY];
  struct iovec iov[2 * KDP_BATCH_CAPACITY];
} kdp_write_plan;

/* Plans all packets of the batch; see kdp_join_plan for what happens to first members. Without `vnet_header` every
   packet is written as it is. */
void kdp_write_plan_make(kdp_write_plan *plan, const kdp_batch *batch, kdp_join_rules rules, bool vnet_header);

#endif
