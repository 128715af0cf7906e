#include "offload/order.h"

#include <string.h>

#include "net/ip.h"

/* Flows are found by open addressing; there are twice as many places as packets. */
enum { PLACES = 2 * KDP_BATCH_CAPACITY, NONE = UINT16_MAX };
_Static_assert((PLACES & (PLACES - 1)) == 0, "a mask");

typedef struct flow {
  uint32_t key;
  uint32_t size;        /* of its first packet */
  uint16_t first, last; /* packets */
} flow;

typedef struct orderer {
  flow flow[KDP_BATCH_CAPACITY];
  uint32_t count;
  uint16_t place[PLACES]; /* a flow, plus one */
  uint16_t next[KDP_BATCH_CAPACITY];
} orderer;

static bool is_worth_it(const kdp_batch *batch) {
  uint32_t beginnings = 0;
  for (uint32_t i = 1; i < batch->count; i++)
    beginnings += batch->packet[i].size > batch->packet[i - 1].size;
  return beginnings >= KDP_ORDER_BEGINNINGS;
}

static uint64_t mix(uint64_t hash, const uint8_t *bytes, size_t size) {
  uint64_t word = 0;
  memcpy(&word, bytes, size);
  hash = (hash ^ word) * UINT64_C(0x9e3779b97f4a7c15);
  return hash ^ hash >> 32;
}

/* Two flows with one key are one here, whose order is kept as well. False: it cannot be told which flow it is. */
static bool key_of(const kdp_packet *packet, uint32_t *key) {
  kdp_ip ip;
  if (kdp_ip_read(packet->data, packet->size, &ip) != KDP_OK) return false;
  kdp_ip_transport transport = {.protocol = ip.protocol, .found = true, .offset = ip.header_size};
  if (!ip.plain) transport = kdp_ip_find_transport(packet->data, &ip);
  if (!transport.found || transport.fragment) return false;
  uint64_t hash = transport.protocol;
  for (uint32_t at = 0, size = ip.version == 4 ? 8 : 32; at < size; at += 8)
    hash = mix(hash, ip.source + at, 8); /* and the destination behind it */
  bool has_ports = transport.protocol == KDP_PROTOCOL_TCP || transport.protocol == KDP_PROTOCOL_UDP;
  if (has_ports && transport.offset + 4u <= ip.size) hash = mix(hash, packet->data + transport.offset, 4);
  *key = (uint32_t)hash;
  return true;
}

static void add(orderer *o, uint32_t key, uint16_t index, uint32_t size) {
  o->next[index] = NONE;
  uint32_t at = key % PLACES;
  for (; o->place[at] != 0; at = (at + 1) % PLACES) {
    flow *known = &o->flow[o->place[at] - 1];
    if (known->key != key) continue;
    o->next[known->last] = index;
    known->last = index;
    return;
  }
  o->flow[o->count] = (flow){.key = key, .size = size, .first = index, .last = index};
  o->place[at] = (uint16_t)++o->count;
}

/* There are few, and equal ones stay as they are. */
static void sort_by_size(flow *flows, uint32_t count) {
  for (uint32_t i = 1; i < count; i++) {
    flow moved = flows[i];
    uint32_t at = i;
    for (; at > 0 && flows[at - 1].size < moved.size; at--)
      flows[at] = flows[at - 1];
    flows[at] = moved;
  }
}

void kdp_order_flows(kdp_batch *batch) {
  if (!is_worth_it(batch)) return;
  orderer o;
  o.count = 0;
  memset(o.place, 0, sizeof o.place);
  for (uint32_t i = 0; i < batch->count; i++) {
    uint32_t key;
    if (!key_of(&batch->packet[i], &key)) return;
    add(&o, key, (uint16_t)i, batch->packet[i].size);
  }
  if (o.count < 2) return;
  sort_by_size(o.flow, o.count);
  kdp_packet before[KDP_BATCH_CAPACITY];
  memcpy(before, batch->packet, batch->count * sizeof *before);
  uint32_t placed = 0;
  for (uint32_t i = 0; i < o.count; i++)
    for (uint16_t at = o.flow[i].first; at != NONE; at = o.next[at])
      batch->packet[placed++] = before[at];
}
