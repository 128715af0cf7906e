/* ICMP errors that the device gives back to the inside, at a bounded rate. */
#include "net/icmp.h"
#include "wireguard/device.h"

#define ICMP_COST (KDP_SECOND / KDP_WG_ICMP_PER_SECOND)
#define ICMP_FULL (ICMP_COST * KDP_WG_ICMP_BURST)

static bool take_token(kdp_wg_device *device, uint64_t boot) {
  uint64_t credit = device->icmp_credit + (boot - device->icmp_time);
  device->icmp_credit = credit > ICMP_FULL ? ICMP_FULL : credit;
  device->icmp_time = boot;
  if (device->icmp_credit < ICMP_COST) return false;
  device->icmp_credit -= ICMP_COST;
  return true;
}

static void answer(kdp_wg_device *device, kdp_icmp_kind kind, uint16_t mtu, const kdp_packet *packet, kdp_out *out,
                   uint64_t boot) {
  kdp_packet reply;
  if (kdp_batch_room(&out->inside) == 0 || !take_token(device, boot) ||
      !kdp_pool_take_packet(out->pool, KDP_WIREGUARD_HEAD, KDP_ICMP_MAX_SIZE, 0, &reply))
    return;
  reply.size = (uint32_t)kdp_icmp_write_error(kind, mtu, packet->data, packet->size, reply.data);
  if (reply.size == 0) {
    kdp_pool_release(out->pool, reply.slot);
    return;
  }
  kdp_traffic_add(&device->lane[0].statistics.inside_out, 1, reply.size);
  kdp_batch_push(&out->inside, &reply);
}

void kdp_wg_answer_unreachable(kdp_wg_device *device, const kdp_packet *packet, kdp_out *out, uint64_t boot) {
  answer(device, KDP_ICMP_HOST_UNREACHABLE, 0, packet, out, boot);
}

void kdp_wg_answer_too_big(kdp_wg_device *device, const kdp_packet *packet, uint32_t mtu, kdp_out *out, uint64_t boot) {
  answer(device, KDP_ICMP_TOO_BIG, (uint16_t)mtu, packet, out, boot);
}
