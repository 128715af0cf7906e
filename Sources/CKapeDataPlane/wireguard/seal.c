/* Towards the wire. Packets go through in runs of one peer: what belongs to the peer (its session, its path, its timers
   and counters) is looked at once a run; per packet there is the look-up, the header in front, the padding behind, and
   a job for the AEAD, which seals up to 64 packets at once, in place. Counters are taken just before that, in one go
   for a run, so that lanes that seal for one session at the same time stay close to each other. */
#include "net/ip.h"
#include "wireguard/device.h"

typedef enum run_mode {
  RUN_SEAL,
  RUN_STAGE,    /* lane 0 */
  RUN_DROP,     /* lane 0 */
  RUN_HANDOVER, /* other lanes */
  RUN_BLOCKED
} run_mode;

/* Consecutive packets for one peer. */
typedef struct seal_run {
  kdp_wg_peer *peer;
  kdp_wg_key_pair *pair;
  run_mode mode;
  kdp_status status; /* RUN_DROP: why */
  uint16_t path_index;
  uint32_t inside_limit; /* what the path's MTU lets through, UINT32_MAX: not known */
  uint32_t pad_limit;    /* padding ends here */
  uint32_t packets, bytes, inside_packets, inside_bytes;
} seal_run;

/* ---- Groups ---- */

static void push_sealed(kdp_packet *packet, kdp_out *out) {
  if (out->wire.count > 0) {
    const kdp_packet *before = &out->wire.packet[out->wire.count - 1];
    if (before->size == packet->size && before->path == packet->path && before->ecn == packet->ecn)
      packet->flags |= KDP_SAME_SIZE;
  }
  out->wire.packet[out->wire.count++] = *packet;
}

/* Counters, and with them headers and nonces, for all packets of the group. True: some are beyond the last one. */
static bool number_group(kdp_wg_group *group, bool shared) {
  bool beyond = false;
  for (uint32_t i = 0; i < group->count;) {
    kdp_wg_key_pair *pair = group->entry[i].pair;
    uint32_t end = i + 1;
    while (end < group->count && group->entry[end].pair == pair)
      end++;
    uint64_t counter = kdp_wg_key_pair_take_counters(pair, end - i, shared);
    for (; i < end; i++) {
      kdp_wg_transport_write(group->entry[i].packet.data, pair->remote_index, counter);
      kdp_store_le64(group->job[i].nonce + 4, counter);
      counter++;
    }
    beyond |= counter > KDP_WG_REJECT_AFTER_MESSAGES;
  }
  return beyond;
}

static void refuse_beyond(kdp_wg_group *group) {
  for (uint32_t i = 0; i < group->count; i++)
    if (kdp_load_le64(group->entry[i].packet.data + 8) >= KDP_WG_REJECT_AFTER_MESSAGES)
      group->job[i].status = KDP_KEY_EXPIRED;
}

/* Seals what the group holds and hands it out; there is room. */
static void flush_group(kdp_wg_lane *lane, kdp_out *out) {
  const kdp_wg_device *device = kdp_wg_device_of_lane(&lane->base);
  kdp_wg_group *group = &lane->group;
  if (group->count == 0) return;
  bool beyond = number_group(group, kdp_wg_is_shared(device));
  device->aead->seal(lane->worker, group->job, group->count);
  if (beyond) refuse_beyond(group);
  for (uint32_t i = 0; i < group->count; i++) {
    kdp_packet *packet = &group->entry[i].packet;
    if (group->job[i].status == KDP_OK) {
      push_sealed(packet, out);
    } else {
      kdp_wg_lane_count(lane, group->job[i].status, 1);
      kdp_pool_release(out->pool, packet->slot);
    }
  }
  group->count = 0;
}

static bool has_room(const kdp_wg_lane *lane, const kdp_out *out) {
  return out->wire.count + lane->group.count < out->wire.capacity;
}

/* No counter is left for another packet, those in the group counted, whoever they are for. */
static bool is_used_up(const kdp_wg_lane *lane, const kdp_wg_key_pair *pair) {
  return kdp_wg_key_pair_next_counter(pair) + lane->group.count >= KDP_WG_REJECT_AFTER_MESSAGES;
}

/* Zeros behind, and a job. `packet` has KDP_WIREGUARD_HEAD and KDP_WIREGUARD_TAIL bytes of room, or for one that is not
   padded, KDP_WG_TAG_SIZE. */
static void add_to_group(kdp_wg_lane *lane, seal_run *run, const kdp_packet *packet, kdp_out *out) {
  kdp_wg_group *group = &lane->group;
  kdp_wg_key_pair *pair = run->pair;
  uint32_t size = packet->size, padded = (size + KDP_WG_PADDING - 1) & ~(uint32_t)(KDP_WG_PADDING - 1);
  if (padded > run->pad_limit) padded = size > run->pad_limit ? size : run->pad_limit;
  memset(packet->data + size, 0, padded - size);

  kdp_aead_job *job = &group->job[group->count];
  job->key = pair->keys.send;
  job->source = job->destination = packet->data;
  job->tag = packet->data + padded;
  job->aad = NULL;
  job->aad_size = 0;
  job->size = padded;
  job->status = KDP_OK;
  memset(job->nonce, 0, 4);

  group->entry[group->count].pair = pair;
  kdp_packet *sealed = &group->entry[group->count].packet;
  *sealed = (kdp_packet){
      .data = packet->data - KDP_WIREGUARD_HEAD,
      .size = padded + KDP_WIREGUARD_OVERHEAD,
      .head = (uint16_t)(packet->head - KDP_WIREGUARD_HEAD),
      .tail = (uint16_t)(packet->tail - (padded - size) - KDP_WG_TAG_SIZE),
      .path = run->path_index,
      .ecn = packet->ecn,
      .slot = packet->slot,
  };
  run->packets++;
  run->bytes += sealed->size;
  if (size > 0) {
    run->inside_packets++;
    run->inside_bytes += size;
  }
  if (++group->count == KDP_AEAD_MAX_BATCH) flush_group(lane, out);
}

/* ---- Runs ---- */

bool kdp_wg_renew_on_sending(const kdp_wg_key_pair *pair, uint64_t boot) {
  return kdp_wg_key_pair_next_counter(pair) > KDP_WG_REKEY_AFTER_MESSAGES ||
         (pair->initiator && boot - pair->birth >= KDP_WG_REKEY_AFTER_TIME);
}

/* Lane 0. */
static void timers_of_sent(kdp_wg_device *device, const seal_run *run, uint64_t boot) {
  kdp_wg_peer *peer = run->peer;
  peer->keepalive_owed = false;
  kdp_wg_timers_any_sent(device, peer, boot);
  if (run->inside_packets > 0) kdp_wg_timers_data_sent(device, peer, boot);
  if (kdp_wg_renew_on_sending(run->pair, boot)) kdp_wg_want_handshake(device, peer, boot);
}

static void end_run(kdp_wg_lane *lane, seal_run *run, kdp_now now) {
  kdp_wg_device *device = kdp_wg_device_of_lane(&lane->base);
  kdp_wg_peer *peer = run->peer;
  if (run->packets > 0) {
    kdp_wg_add_bytes(device, &peer->sent_bytes, run->bytes);
    kdp_wg_add_bytes(device, &peer->inside_sent_bytes, run->inside_bytes);
    kdp_traffic_add(&lane->statistics.wire_out, run->packets, run->bytes);
    if (kdp_wg_is_lane_0(lane))
      timers_of_sent(device, run, now.boot);
    else
      kdp_wg_note_sent(lane, peer, run->inside_packets > 0, now.boot);
  }
  run->peer = NULL;
  run->packets = run->bytes = run->inside_packets = run->inside_bytes = 0;
}

/* The peer has a session to seal with and a place in out->wire.path. */
static kdp_status begin_sealing(kdp_wg_lane *lane, seal_run *run, kdp_wg_peer *peer, kdp_out *out, kdp_now now) {
  uint16_t inside_mtu = __atomic_load_n(&kdp_wg_device_of_lane(&lane->base)->inside_mtu, __ATOMIC_RELAXED);
  if (!kdp_wg_key_pair_can_send(peer->current, now.boot)) return KDP_AGAIN;
  if (!kdp_wg_path_index(lane, peer, out, &run->path_index)) return KDP_OUT_FULL;
  run->peer = peer;
  run->pair = peer->current;
  run->inside_limit = kdp_wg_peer_inside_limit(peer, now.boot);
  run->pad_limit = inside_mtu < run->inside_limit ? inside_mtu : run->inside_limit;
  return KDP_OK;
}

enum { IPV4_MIN_MTU = 68 /* RFC 791 */, IPV6_MIN_MTU = 1280 /* RFC 8200 section 5 */ };

/* Too large for the known path, and not to be cut on the way: the sender is told. Outer datagrams may be fragmented, so
   what may be cut, and an IPv6 packet that every link has to take, goes through. */
static bool is_too_big(const kdp_packet *packet, const kdp_ip *ip, uint32_t limit) {
  uint32_t least = ip->version == 6 ? IPV6_MIN_MTU : IPV4_MIN_MTU;
  if (packet->size <= limit || packet->size <= least || (ip->version == 4 && !ip->df)) return false;
  return true;
}

static bool refuse_too_big(kdp_wg_device *device, const kdp_packet *packet, const kdp_ip *ip, uint32_t limit,
                           kdp_out *out, uint64_t boot) {
  uint32_t least = ip->version == 6 ? IPV6_MIN_MTU : IPV4_MIN_MTU;
  if (!is_too_big(packet, ip, limit)) return false;
  kdp_wg_answer_too_big(device, packet, limit > least ? limit : least, out, boot);
  return true;
}

/* With data only: what the engine sends of its own fits anywhere. Half of the actions' room is left to those that are
 * not asked for a second time. */
void kdp_wg_ask_path_mtu(kdp_wg_device *device, kdp_wg_peer *peer, kdp_out *out, uint64_t boot) {
  if (boot < peer->path_mtu_ask || out->action_count > out->action_capacity / 2) return;
  if (!kdp_wg_push_action(out, KDP_ACTION_PATH_MTU, peer)) return;
  peer->path_mtu_ask = boot + KDP_WG_PATH_MTU_TIME;
  device->mtu_asked[device->mtu_asked_next++ % KDP_WG_MTU_ASKED] = peer->number;
}

/* The oldest staged packets come out into slots of the pool, and from there on are like any other. */
static kdp_status seal_staged(kdp_wg_device *device, seal_run *run, kdp_out *out, uint64_t boot) {
  kdp_wg_lane *lane = &device->lane[0];
  kdp_wg_peer *peer = run->peer;
  while (peer->staged.count > 0) {
    kdp_packet packet;
    uint32_t size = kdp_wg_staging_oldest_size(&device->staging, &peer->staged);
    if (is_used_up(lane, run->pair)) return KDP_AGAIN;
    if (!has_room(lane, out)) return KDP_OUT_FULL;
    if (!kdp_pool_take_packet(out->pool, KDP_WIREGUARD_HEAD, size, KDP_WIREGUARD_TAIL, &packet)) return KDP_POOL_EMPTY;
    kdp_wg_staging_copy_out(&device->staging, &peer->staged, packet.data);
    kdp_ip ip;
    if (kdp_ip_read(packet.data, packet.size, &ip) == KDP_OK &&
        refuse_too_big(device, &packet, &ip, run->inside_limit, out, boot)) {
      kdp_wg_count(device, KDP_TOO_BIG, 1);
      kdp_pool_release(out->pool, packet.slot);
      continue;
    }
    packet.ecn = kdp_ip_ecn(packet.data);
    add_to_group(lane, run, &packet, out);
  }
  return KDP_OK;
}

static kdp_status seal_empty(kdp_wg_lane *lane, seal_run *run, kdp_out *out) {
  kdp_packet packet;
  if (!has_room(lane, out)) return KDP_OUT_FULL;
  if (!kdp_pool_take_packet(out->pool, KDP_WIREGUARD_HEAD, 0, KDP_WIREGUARD_TAIL, &packet)) return KDP_POOL_EMPTY;
  add_to_group(lane, run, &packet, out);
  return KDP_OK;
}

kdp_status kdp_wg_flush(kdp_wg_device *device, kdp_wg_peer *peer, kdp_out *out, kdp_now now) {
  kdp_wg_lane *lane = &device->lane[0];
  seal_run run = {0};
  if (peer->staged.count == 0 && !peer->keepalive_owed) return KDP_OK;
  kdp_status status = begin_sealing(lane, &run, peer, out, now);
  if (status == KDP_OK) {
    if (peer->staged.count > 0) kdp_wg_ask_path_mtu(device, peer, out, now.boot);
    status = seal_staged(device, &run, out, now.boot);
    if (status == KDP_OK && run.packets == 0 && peer->keepalive_owed) status = seal_empty(lane, &run, out);
    flush_group(lane, out);
    end_run(lane, &run, now);
  }
  if (status == KDP_AGAIN) {
    peer->keepalive_owed = false; /* a new session says something by itself */
    kdp_wg_want_handshake(device, peer, now.boot);
  }
  return status;
}

/* What other lanes than 0 do with packets for `peer`. */
static run_mode begin_fast_run(kdp_wg_lane *lane, seal_run *run, kdp_wg_peer *peer, kdp_out *out, kdp_now now) {
  run->peer = peer;
  run->pair = NULL;
  /* Older packets wait for room on lane 0: they go first. */
  if (__atomic_load_n(&peer->staged.count, __ATOMIC_RELAXED) > 0 || !kdp_wg_peer_has_endpoint(peer))
    return RUN_HANDOVER;
  kdp_status status = begin_sealing(lane, run, peer, out, now);
  return status == KDP_OK ? RUN_SEAL : status == KDP_OUT_FULL ? RUN_BLOCKED : RUN_HANDOVER;
}

/* What is to be done with packets for `peer`. Sets the run up. */
static run_mode begin_run(kdp_wg_lane *lane, seal_run *run, kdp_wg_peer *peer, kdp_out *out, kdp_now now) {
  if (!kdp_wg_is_lane_0(lane)) return begin_fast_run(lane, run, peer, out, now);
  kdp_wg_device *device = kdp_wg_device_of_lane(&lane->base);
  run->peer = peer;
  run->status = !device->identity.present ? KDP_NO_KEY : !kdp_wg_peer_has_endpoint(peer) ? KDP_NO_ENDPOINT : KDP_OK;
  if (run->status != KDP_OK) return RUN_DROP;
  kdp_status status = begin_sealing(lane, run, peer, out, now);
  if (status == KDP_OK) kdp_wg_ask_path_mtu(device, peer, out, now.boot);
  if (status == KDP_OK && peer->staged.count > 0) {
    /* Older packets wait for room: they go first. */
    status = seal_staged(device, run, out, now.boot);
  }
  switch (status) {
  case KDP_OK: return RUN_SEAL;
  case KDP_OUT_FULL: return RUN_BLOCKED;
  case KDP_POOL_EMPTY: kdp_wg_work_add(device, peer, KDP_WG_WORK_FLUSH); return RUN_STAGE;
  default: kdp_wg_want_handshake(device, peer, now.boot); return RUN_STAGE;
  }
}

/* ---- Packets ---- */

/* Whom the last packet went to: packets come in flows. */
typedef struct destination_cache {
  uint8_t version; /* 0: empty */
  uint8_t address[16];
  kdp_wg_peer *peer; /* NULL: nobody has it */
} destination_cache;

static kdp_wg_peer *find_peer(const kdp_wg_device *device, destination_cache *cache, const kdp_ip *ip) {
  size_t size = ip->version == 4 ? 4 : 16;
  if (cache->version != ip->version || memcmp(cache->address, ip->destination, size) != 0) {
    kdp_trie_owner *owner =
        kdp_trie_find(device->trie, ip->version == 4 ? KDP_FAMILY_IPV4 : KDP_FAMILY_IPV6, ip->destination);
    cache->version = ip->version;
    memcpy(cache->address, ip->destination, size);
    cache->peer = owner ? kdp_wg_peer_of_owner(owner) : NULL;
  }
  return cache->peer;
}

static void stage(kdp_wg_device *device, kdp_wg_peer *peer, const kdp_packet *packet) {
  kdp_wg_count(device, KDP_STAGED_DROPPED,
               kdp_wg_staging_copy_in(&device->staging, &peer->staged, packet->data, packet->size));
}

/* One packet from the inside. AGAIN: it has to wait for room and was not touched. */
static kdp_status take(kdp_wg_lane *lane, seal_run *run, destination_cache *cache, kdp_packet *packet, kdp_out *out,
                       kdp_now now) {
  kdp_wg_device *device = kdp_wg_device_of_lane(&lane->base);
  kdp_ip ip;
  kdp_status status = packet->status != KDP_OK ? packet->status : kdp_ip_read(packet->data, packet->size, &ip);
  if (status != KDP_OK) return status;
  kdp_wg_trim(packet, ip.size); /* bytes behind the packet's own end are not part of it */
  if (packet->head < KDP_WIREGUARD_HEAD || packet->tail < KDP_WG_TAG_SIZE) return KDP_INVALID_ARGUMENT;
  kdp_wg_peer *peer = find_peer(device, cache, &ip);
  if (!peer) {
    if (!kdp_wg_is_lane_0(lane)) return kdp_wg_hand_over(packet, NULL, out);
    kdp_wg_answer_unreachable(device, packet, out, now.boot);
    return KDP_NO_ROUTE;
  }
  bool used_up = run->mode == RUN_SEAL && run->pair && is_used_up(lane, run->pair);
  if (peer != run->peer || used_up) {
    if (used_up) flush_group(lane, out);
    if (run->peer) end_run(lane, run, now);
    run->mode = begin_run(lane, run, peer, out, now);
  }
  switch (run->mode) {
  case RUN_SEAL:
    if (!has_room(lane, out)) return KDP_AGAIN;
    if (packet->tail < KDP_WIREGUARD_TAIL && packet->size < run->pad_limit) return KDP_INVALID_ARGUMENT;
    if (is_too_big(packet, &ip, run->inside_limit)) {
      if (!kdp_wg_is_lane_0(lane)) return kdp_wg_hand_over(packet, NULL, out);
      (void)refuse_too_big(device, packet, &ip, run->inside_limit, out, now.boot);
      return KDP_TOO_BIG;
    }
    packet->ecn = kdp_ecn_encapsulate(ip.ecn);
    add_to_group(lane, run, packet, out);
    return KDP_OK;
  case RUN_STAGE: stage(device, peer, packet); break;
  case RUN_DROP:
    if (run->status == KDP_NO_ENDPOINT) kdp_wg_answer_unreachable(device, packet, out, now.boot);
    return run->status;
  case RUN_HANDOVER: return kdp_wg_hand_over(packet, NULL, out);
  case RUN_BLOCKED: return KDP_AGAIN;
  }
  kdp_pool_release(out->pool, packet->slot);
  return KDP_OK;
}

uint32_t kdp_wg_inside(kdp_lane *base, kdp_batch *in, kdp_out *out, kdp_now now) {
  kdp_wg_lane *lane = kdp_wg_lane_of(base);
  seal_run run = {0};
  destination_cache cache = {0};
  uint32_t taken = 0, good = 0, handed_over = 0;
  uint64_t bytes = 0;
  now = kdp_wg_begin(lane, out, now);
  for (; taken < in->count; taken++) {
    kdp_packet *packet = &in->packet[taken];
    kdp_status status = take(lane, &run, &cache, packet, out, now);
    if (status == KDP_AGAIN) break;
    packet->status = status;
    if (status == KDP_HANDED_OVER) {
      handed_over++;
      continue;
    }
    bytes += packet->size;
    if (status == KDP_OK) {
      good++;
    } else {
      kdp_wg_lane_count(lane, status, 1);
      kdp_pool_release(out->pool, packet->slot);
    }
  }
  flush_group(lane, out);
  kdp_wg_lane_count(lane, KDP_OK, good);
  kdp_wg_lane_count(lane, KDP_HANDED_OVER, handed_over);
  if (run.peer) end_run(lane, &run, now);
  kdp_traffic_add(&lane->statistics.inside_in, taken - handed_over, bytes);
  kdp_wg_end(lane, out, now);
  return taken;
}
