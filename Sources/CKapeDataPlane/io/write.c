#define _GNU_SOURCE /* struct mmsghdr, struct in6_pktinfo */
#include "io/write.h"

static void plan_singles(kdp_join *join, const kdp_batch *batch) {
  for (uint32_t i = 0; i < batch->count; i++) {
    join->run[i] = (kdp_join_run){.first = (uint16_t)i, .count = 1};
    join->order[i] = (uint16_t)i;
  }
  join->run_count = batch->count;
}

void kdp_write_plan_make(kdp_write_plan *plan, const kdp_batch *batch, kdp_join_rules rules, bool vnet_header) {
  kdp_join *join = &plan->join;
  if (vnet_header && (rules.tcp || rules.udp)) {
    kdp_join_plan(rules, batch, join);
  } else {
    plan_singles(join, batch);
  }
  uint32_t used = 0;
  for (uint32_t i = 0; i < join->run_count; i++) {
    kdp_join_run *run = &join->run[i];
    plan->item[i].first = (uint16_t)used;
    plan->item[i].error = KDP_WRITE_NOT_TRIED;
    if (vnet_header) plan->iov[used++] = (struct iovec){&run->header, KDP_VIRTIO_SIZE};
    for (uint32_t member = 0; member < run->count; member++) {
      const kdp_packet *packet = &batch->packet[join->order[run->first + member]];
      uint32_t skip = member ? run->skip : 0;
      plan->iov[used++] = (struct iovec){packet->data + skip, packet->size - skip};
    }
    plan->item[i].count = (uint16_t)(used - plan->item[i].first);
  }
  plan->packet_count = batch->count;
}
