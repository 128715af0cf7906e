/* What may be joined. The kernel cuts a super-packet again wherever it cannot pass it on whole, so two packets may only
   be joined if that gives back both as they were.

   | field                          | rule                                                                            |
   |--------------------------------|---------------------------------------------------------------------------------|
   | kind                           | TCP or UDP; IPv4 without options, IPv6 without extension headers; no fragment   |
   | addresses, ports               | the same: the flow                                                              |
   | TOS or traffic class with ECN  | the same                                                                        |
   | TTL or hop limit               | the same                                                                        |
   | flow label                     | the same                                                                        |
   | IPv4 flags (DF)                | the same                                                                        |
   | IPv4 id                        | one more than the one before, or DF set (then it has no meaning: RFC 6864)      |
   | lengths                        | IP length is the packet's; UDP length is the rest of it                         |
   | payload                        | not empty; as long as the first one's; a shorter one is the last                |
   | TCP sequence number            | where the one before ended                                                      |
   | TCP flags                      | ACK and nothing else; PSH too on the last                                       |
   | TCP acknowledgement, window    | the same                                                                        |
   | TCP urgent pointer, options    | the same bytes                                                                  |
   | UDP checksum                   | there (not zero)                                                                |
   | checksums                      | IPv4 header's and transport's right in every member                             |
   | together                       | at most 65,535 bytes, at most 128 members                                       |

   Order. Runs are written in the order of their first members, and of a flow only the latest run takes members. So a
   packet that cannot be joined to that run ends it. That goes for all packets of the flow, also those that cannot
   be joined to anything (flags, options, fragments); a later fragment, which does not show its flow, ends the runs of
   its pair of addresses.

   Checksums are verified when a second packet wants to join a first, so packets that stay alone are left to the
   kernel's own check. */
#include "offload/join.h"

#include <assert.h>
#include <string.h>

#include "core/bytes.h"
#include "net/checksum.h"
#include "net/ip.h"
#include "net/tcp.h"

/* Flows are found by open addressing; one that has no place within PROBES is not joined. There are twice as many places
   as packets in a batch. Epochs are kept by pairs of addresses; a collision ends a run early, nothing more. */
enum { FLOW_PLACES = 2 * KDP_BATCH_CAPACITY, PROBES = 16, EPOCHS = 64 };

/* A packet as far as joining is concerned. */
typedef struct candidate {
  const uint8_t *ip;
  const uint8_t *addresses; /* source and destination, behind one another */
  const uint8_t *transport; /* NULL: the flow cannot be read */
  uint32_t ports;
  uint32_t hash, pair;    /* of the flow, of its addresses: see hash_candidate */
  uint32_t sequence;      /* TCP */
  uint32_t size, payload; /* of the whole, of what is behind the headers */
  uint16_t id;            /* IPv4 */
  uint16_t header_size;   /* of all headers */
  uint8_t version, protocol;
  bool joinable; /* as far as it can be told from it alone and without its checksums */
  bool df, push;
} candidate;

/* A run that may still grow, or the sign that a flow's latest run may not. */
typedef struct growing {
  candidate head;
  uint32_t size; /* of the super-packet */
  uint32_t next_sequence;
  uint16_t next_id;
  uint16_t count, last; /* members, the latest one's index in the batch */
  uint16_t epoch;
  bool open, verified /* the head */, push;
} growing;

typedef struct planner {
  kdp_join_rules rules;
  const kdp_batch *batch;
  growing run[KDP_BATCH_CAPACITY];
  uint32_t run_count;
  uint16_t first[KDP_BATCH_CAPACITY]; /* a run's first member */
  uint16_t next[KDP_BATCH_CAPACITY];  /* a packet's successor in its run */
  uint16_t place[FLOW_PLACES];        /* a flow's latest run, plus one */
  uint16_t epoch[EPOCHS];
  growing *recent; /* the run that was looked for last and found: in bulk, the one that is wanted next too */
} planner;

static inline uint32_t load32(const uint8_t *at) {
  uint32_t value;
  memcpy(&value, at, 4);
  return value;
}

static inline uint64_t load64(const uint8_t *at) {
  uint64_t value;
  memcpy(&value, at, 8);
  return value;
}

/* Every bit counts in the low ones. */
static inline uint32_t mix(uint64_t value) {
  value = (value ^ value >> 32) * UINT64_C(0x9e3779b97f4a7c15);
  return (uint32_t)(value ^ value >> 32);
}

static void hash_candidate(candidate *c) {
  uint64_t all = load64(c->addresses);
  if (c->version == 6)
    all = all * 3 + load64(c->addresses + 8) * 5 + load64(c->addresses + 16) * 7 + load64(c->addresses + 24);
  c->pair = mix(all);
  c->hash = mix(all + ((uint64_t)c->ports << 8 | c->protocol));
}

static void read_tcp(candidate *c, uint32_t rest) {
  const uint8_t *tcp = c->transport;
  if (rest < KDP_TCP_HEADER_SIZE) return;
  uint32_t header = (tcp[KDP_TCP_DATA_OFFSET] >> 4) * 4u;
  if (header < KDP_TCP_HEADER_SIZE || header >= rest) return;
  if ((tcp[KDP_TCP_DATA_OFFSET] & 15) != 0 || (tcp[KDP_TCP_FLAGS] & ~KDP_TCP_PSH) != KDP_TCP_ACK) return;
  c->sequence = kdp_load_be32(tcp + KDP_TCP_SEQUENCE);
  c->push = tcp[KDP_TCP_FLAGS] & KDP_TCP_PSH;
  c->header_size = (uint16_t)(c->transport - c->ip + header);
  c->payload = rest - header;
  c->joinable = true;
}

static void read_udp(candidate *c, uint32_t rest) {
  const uint8_t *udp = c->transport;
  if (rest <= KDP_UDP_HEADER_SIZE || kdp_load_be16(udp + KDP_UDP_LENGTH) != rest) return;
  if (kdp_load_be16(udp + KDP_UDP_CHECKSUM) == 0) return;
  c->header_size = (uint16_t)(c->transport - c->ip + KDP_UDP_HEADER_SIZE);
  c->payload = rest - KDP_UDP_HEADER_SIZE;
  c->joinable = true;
}

/* False: neither TCP nor UDP, or of a kind that is not joined: it stands alone and is in nobody's way. */
static bool read_candidate(const kdp_join_rules *rules, const kdp_packet *packet, candidate *c) {
  kdp_ip ip;
  if (kdp_ip_read(packet->data, packet->size, &ip) != KDP_OK) return false;
  kdp_ip_transport transport = {.protocol = ip.protocol, .found = true, .offset = ip.header_size};
  if (!ip.plain) transport = kdp_ip_find_transport(packet->data, &ip);
  bool is_tcp = transport.protocol == KDP_PROTOCOL_TCP, is_udp = transport.protocol == KDP_PROTOCOL_UDP;
  if (transport.found && !(is_tcp && rules->tcp) && !(is_udp && rules->udp)) return false;
  *c = (candidate){.ip = packet->data,
                   .addresses = ip.source,
                   .size = ip.size,
                   .version = ip.version,
                   .protocol = transport.protocol,
                   .df = ip.df};
  uint32_t rest = ip.size - transport.offset;
  if (!transport.found || rest < 4) return true;
  c->transport = packet->data + transport.offset;
  c->ports = load32(c->transport);
  if (!ip.plain || ip.size != packet->size) return true;
  if (ip.version == 4) c->id = kdp_load_be16(packet->data + 4);
  if (is_tcp)
    read_tcp(c, rest);
  else
    read_udp(c, rest);
  return true;
}

static bool checksums_right(const candidate *c) {
  uint32_t ip_header = (uint32_t)(c->transport - c->ip);
  if (c->version == 4 && kdp_checksum_fold(kdp_checksum_add(0, c->ip, ip_header)) != 0xffff) return false;
  uint32_t rest = c->size - ip_header;
  uint64_t sum = kdp_checksum_pseudo(c->ip, c->protocol, rest);
  return kdp_checksum_fold(kdp_checksum_add(sum, c->transport, rest)) == 0xffff;
}

static bool same_flow(const candidate *a, const candidate *b) {
  return a->ports == b->ports && a->version == b->version && a->protocol == b->protocol &&
         memcmp(a->addresses, b->addresses, a->version == 4 ? 8 : 32) == 0;
}

/* The place of a flow's latest run: its own, a free one, or NULL. The candidate has been hashed. */
static uint16_t *place_of(planner *p, const candidate *c) {
  for (uint32_t i = 0; i < PROBES; i++) {
    uint16_t *place = &p->place[(c->hash + i) % FLOW_PLACES];
    if (*place == 0 || same_flow(&p->run[*place - 1].head, c)) return place;
  }
  return NULL;
}

static bool same_ip_fields(const candidate *a, const candidate *b) {
  if (a->version == 6) /* traffic class, flow label; hop limit */
    return load32(a->ip) == load32(b->ip) && a->ip[7] == b->ip[7];
  return a->ip[1] == b->ip[1] && a->ip[6] == b->ip[6] && a->ip[8] == b->ip[8];
}

static bool same_tcp_fields(const candidate *a, const candidate *b) {
  if (load32(a->transport + KDP_TCP_ACKNOWLEDGEMENT) != load32(b->transport + KDP_TCP_ACKNOWLEDGEMENT) ||
      memcmp(a->transport + KDP_TCP_WINDOW, b->transport + KDP_TCP_WINDOW, 2) != 0)
    return false;
  /* The same length of headers is known: what is behind the checksum is the urgent pointer and the options. */
  size_t behind = (size_t)(a->ip + a->header_size - (a->transport + KDP_TCP_URGENT));
  return memcmp(a->transport + KDP_TCP_URGENT, b->transport + KDP_TCP_URGENT, behind) == 0;
}

/* All of the table but the checksums. */
static bool continues(const planner *p, const growing *run, const candidate *c) {
  const candidate *head = &run->head;
  if (!c->joinable || run->epoch != p->epoch[head->pair % EPOCHS]) return false;
  if (run->count >= KDP_JOIN_MAX_MEMBERS || run->size + c->payload > KDP_JOIN_MAX_SIZE) return false;
  if (c->header_size != head->header_size || c->payload > head->payload || !same_ip_fields(head, c)) return false;
  if (c->version == 4 && !c->df && c->id != run->next_id) return false;
  if (c->protocol == KDP_PROTOCOL_UDP) return true;
  return c->sequence == run->next_sequence && same_tcp_fields(head, c);
}

/* Takes the packet into the run, or ends the run. */
static bool join_run(planner *p, growing *run, const candidate *c, uint16_t index) {
  if (!run->open) return false;
  run->open = false;
  if (!continues(p, run, c)) return false;
  if (!run->verified && !checksums_right(&run->head)) return false;
  run->verified = true;
  if (!checksums_right(c)) return false;
  p->next[run->last] = index;
  run->last = index;
  run->count++;
  run->size += c->payload;
  run->next_sequence += c->payload;
  run->next_id = (uint16_t)(c->id + 1);
  run->push = c->push;
  run->open = c->payload == run->head.payload && !c->push;
  return true;
}

static growing *start_run(planner *p, uint16_t index) {
  p->first[p->run_count] = index;
  growing *run = &p->run[p->run_count++];
  run->count = 1;
  run->last = index;
  run->open = false;
  return run;
}

static void open_run(planner *p, growing *run, const candidate *c) {
  run->head = *c;
  run->size = c->size;
  run->next_sequence = c->sequence + c->payload;
  run->next_id = (uint16_t)(c->id + 1);
  run->epoch = p->epoch[c->pair % EPOCHS];
  run->push = c->push;
  run->verified = false;
  run->open = !c->push;
}

static void plan_packet(planner *p, uint16_t index) {
  candidate c;
  if (!read_candidate(&p->rules, &p->batch->packet[index], &c)) {
    start_run(p, index);
    return;
  }
  if (!c.transport) {
    hash_candidate(&c);
    p->epoch[c.pair % EPOCHS]++;
    start_run(p, index);
    return;
  }
  if (p->recent && same_flow(&p->recent->head, &c) && join_run(p, p->recent, &c, index)) return;
  hash_candidate(&c);
  uint16_t *place = place_of(p, &c);
  if (place && *place != 0 && join_run(p, &p->run[*place - 1], &c, index)) {
    p->recent = &p->run[*place - 1];
    return;
  }
  growing *run = start_run(p, index);
  /* A packet that cannot be joined has ended the run before it and needs no place: the next one finds that run ended.
   */
  if (!place || !c.joinable) return;
  open_run(p, run, &c);
  *place = (uint16_t)p->run_count;
  p->recent = run;
}

static void make_over(const candidate *head, uint32_t size, bool push, kdp_join_run *run) {
  uint8_t *ip = (uint8_t *)(uintptr_t)head->ip; /* the packet's own memory, which is the caller's to change */
  uint32_t ip_header = (uint32_t)(head->transport - head->ip);
  uint8_t *transport = ip + ip_header;
  bool tcp = head->protocol == KDP_PROTOCOL_TCP;
  uint16_t field = tcp ? KDP_TCP_CHECKSUM : KDP_UDP_CHECKSUM;
  run->skip = head->header_size;
  run->header = (kdp_virtio){.flags = KDP_VIRTIO_NEEDS_CSUM,
                             .gso_type = !tcp                 ? KDP_VIRTIO_GSO_UDP_L4
                                         : head->version == 4 ? KDP_VIRTIO_GSO_TCPV4
                                                              : KDP_VIRTIO_GSO_TCPV6,
                             .header_size = head->header_size,
                             .gso_size = (uint16_t)head->payload,
                             .csum_start = (uint16_t)ip_header,
                             .csum_offset = field};
  if (head->version == 4) {
    memcpy(&run->ip_checksum, ip + 10, 2);
    kdp_store_be16(ip + 2, (uint16_t)size);
    memset(ip + 10, 0, 2);
    uint16_t checksum = (uint16_t)~kdp_checksum_fold(kdp_checksum_add(0, ip, ip_header));
    memcpy(ip + 10, &checksum, 2);
  } else {
    kdp_store_be16(ip + 4, (uint16_t)(size - ip_header));
  }
  if (tcp) {
    run->flags = transport[KDP_TCP_FLAGS];
    if (push) transport[KDP_TCP_FLAGS] |= KDP_TCP_PSH;
  } else {
    kdp_store_be16(transport + KDP_UDP_LENGTH, (uint16_t)(size - ip_header));
  }
  memcpy(&run->transport_checksum, transport + field, 2);
  uint16_t pseudo = kdp_checksum_fold(kdp_checksum_pseudo(ip, head->protocol, size - ip_header));
  memcpy(transport + field, &pseudo, 2);
}

void kdp_join_plan(kdp_join_rules rules, const kdp_batch *batch, kdp_join *join) {
  assert(batch->count <= KDP_BATCH_CAPACITY);
  planner p; /* some 25 KB, of which only the tables of flows need to start empty */
  p.rules = rules;
  p.batch = batch;
  p.run_count = 0;
  p.recent = NULL;
  memset(p.place, 0, sizeof p.place);
  memset(p.epoch, 0, sizeof p.epoch);
  for (uint32_t i = 0; i < batch->count; i++)
    plan_packet(&p, (uint16_t)i);

  uint16_t at = 0;
  for (uint32_t i = 0; i < p.run_count; i++) {
    const growing *planned = &p.run[i];
    kdp_join_run *run = &join->run[i];
    *run = (kdp_join_run){.first = at, .count = planned->count};
    uint16_t member = p.first[i];
    for (uint16_t left = planned->count; left > 0; left--) {
      join->order[at++] = member;
      if (left > 1) member = p.next[member];
    }
    if (planned->count > 1) make_over(&planned->head, planned->size, planned->push, run);
  }
  join->run_count = p.run_count;
}

void kdp_join_undo(const kdp_batch *batch, const kdp_join *join, uint32_t index) {
  const kdp_join_run *run = &join->run[index];
  if (run->count < 2) return;
  const kdp_packet *packet = &batch->packet[join->order[run->first]];
  uint8_t *ip = packet->data, *transport = ip + run->header.csum_start;
  uint32_t rest = packet->size - run->header.csum_start;
  if (ip[0] >> 4 == 4) {
    kdp_store_be16(ip + 2, (uint16_t)packet->size);
    memcpy(ip + 10, &run->ip_checksum, 2);
  } else {
    kdp_store_be16(ip + 4, (uint16_t)rest);
  }
  if (run->header.gso_type == KDP_VIRTIO_GSO_UDP_L4)
    kdp_store_be16(transport + KDP_UDP_LENGTH, (uint16_t)rest);
  else
    transport[KDP_TCP_FLAGS] = run->flags;
  memcpy(transport + run->header.csum_offset, &run->transport_checksum, 2);
}
