/* From the wire. Transport packets are collected into groups and opened up to 64 at once, in place; a handshake message
   in between is handled after the group before it. After opening, packets of one session and one path are a run: the
   endpoint, the timers and the counters of their peer are looked at once. */
#include "net/ip.h"
#include "wireguard/device.h"

/* Consecutive opened packets of one session along one path. */
typedef struct open_run {
  const kdp_wg_key_pair *pair; /* compared only: it may be gone already */
  kdp_wg_peer *peer;
  uint16_t path;
  uint32_t packets, data_packets, inside_packets;
  uint64_t bytes, inside_bytes;
} open_run;

/* Whose address the last packet came from. */
typedef struct source_cache {
  uint8_t version; /* 0: empty */
  uint8_t address[16];
  const kdp_wg_peer *peer;
} source_cache;

bool kdp_wg_renew_on_receiving(const kdp_wg_key_pair *current, uint64_t boot) {
  return current && current->initiator && boot - current->birth >= KDP_WG_REKEY_ON_RECEIVE_TIME &&
         kdp_wg_key_pair_can_send(current, boot);
}

static void renew_if_old(kdp_wg_device *device, kdp_wg_peer *peer, uint64_t boot) {
  if (kdp_wg_renew_on_receiving(peer->current, boot)) kdp_wg_want_handshake(device, peer, boot);
}

static void begin_run(kdp_wg_lane *lane, open_run *run, const kdp_wg_group_entry *entry, const kdp_batch *in,
                      kdp_now now) {
  kdp_wg_device *device = kdp_wg_device_of_lane(&lane->base);
  *run = (open_run){.pair = entry->pair, .peer = entry->peer, .path = entry->packet.path};
  if (!kdp_wg_is_lane_0(lane)) return; /* it opens only what changes nothing of this */
  kdp_wg_authenticated(device, run->peer, &in->path[run->path], now);
  kdp_wg_session_confirm(device, run->peer, run->pair, now);
  renew_if_old(device, run->peer, now.boot);
}

static void end_run(kdp_wg_lane *lane, open_run *run, kdp_now now) {
  kdp_wg_device *device = kdp_wg_device_of_lane(&lane->base);
  if (!run->peer) return;
  kdp_wg_add_bytes(device, &run->peer->received_bytes, run->bytes);
  kdp_wg_add_bytes(device, &run->peer->inside_received_bytes, run->inside_bytes);
  kdp_traffic_add(&lane->statistics.wire_in, run->packets, run->bytes);
  kdp_traffic_add(&lane->statistics.inside_out, run->inside_packets, run->inside_bytes);
  if (!kdp_wg_is_lane_0(lane))
    kdp_wg_note_received(lane, run->peer, run->data_packets > 0, now.boot);
  else if (run->data_packets > 0)
    kdp_wg_timers_data_received(device, run->peer, now.boot);
  run->peer = NULL;
}

static bool has_source(const kdp_wg_device *device, source_cache *cache, const kdp_ip *ip, const kdp_wg_peer *peer) {
  size_t size = ip->version == 4 ? 4 : 16;
  if (cache->version != ip->version || memcmp(cache->address, ip->source, size) != 0) {
    kdp_trie_owner *owner =
        kdp_trie_find(device->trie, ip->version == 4 ? KDP_FAMILY_IPV4 : KDP_FAMILY_IPV6, ip->source);
    cache->version = ip->version;
    memcpy(cache->address, ip->source, size);
    cache->peer = owner ? kdp_wg_peer_of_owner(owner) : NULL;
  }
  return cache->peer == peer;
}

/* An opened packet with content: is it one that this peer may send us? Cuts the padding off. */
static kdp_status accept_inner(const kdp_wg_device *device, open_run *run, source_cache *cache, kdp_packet *packet) {
  kdp_ip ip;
  if (kdp_ip_read(packet->data, packet->size, &ip) != KDP_OK) return KDP_NOT_IP;
  if (!has_source(device, cache, &ip, run->peer)) return KDP_WRONG_SOURCE;
  if (packet->ecn != 0) {
    int ecn = kdp_ecn_decapsulate(ip.ecn, packet->ecn);
    if (ecn < 0) return KDP_ECN_DROPPED;
    if (ecn != ip.ecn) kdp_ip_set_ecn(packet->data, (uint8_t)ecn);
    packet->ecn = 0;
  }
  kdp_wg_trim(packet, ip.size);
  return KDP_OK;
}

/* An authenticated packet that was not seen before. */
static kdp_status take_opened(kdp_wg_lane *lane, open_run *run, source_cache *cache, kdp_wg_group_entry *entry,
                              const kdp_batch *in, kdp_out *out, kdp_now now) {
  kdp_packet *packet = &entry->packet;
  if (!run->peer || run->pair != entry->pair || run->path != packet->path) {
    end_run(lane, run, now);
    begin_run(lane, run, entry, in, now);
  }
  run->packets++;
  run->bytes += packet->size + KDP_WIREGUARD_OVERHEAD;
  if (packet->size == 0) return KDP_KEEPALIVE;
  run->data_packets++;
  kdp_status status = accept_inner(kdp_wg_device_of_lane(&lane->base), run, cache, packet);
  if (status != KDP_OK) return status;
  run->inside_packets++;
  run->inside_bytes += packet->size;
  packet->flags = 0;
  packet->path = 0;
  out->inside.packet[out->inside.count++] = *packet;
  return KDP_OK;
}

/* A pair's window is one lane's at a time. */
static void commit_to_windows(kdp_wg_group *group, bool shared) {
  kdp_wg_key_pair *locked = NULL;
  for (uint32_t i = 0; i < group->count; i++) {
    if (group->job[i].status != KDP_OK) continue;
    if (shared && group->entry[i].pair != locked) {
      if (locked) kdp_lane_lock_give(&locked->window_lock);
      locked = group->entry[i].pair;
      kdp_lane_lock_take(&locked->window_lock);
    }
    if (!kdp_replay_window_commit(&group->entry[i].pair->window, group->entry[i].counter))
      group->job[i].status = KDP_REPLAYED;
  }
  if (locked) kdp_lane_lock_give(&locked->window_lock);
}

/* Opens what the group holds and hands it out; there is room. */
static void flush_group(kdp_wg_lane *lane, source_cache *cache, kdp_batch *in, kdp_out *out, kdp_now now) {
  const kdp_wg_device *device = kdp_wg_device_of_lane(&lane->base);
  kdp_wg_group *group = &lane->group;
  open_run run = {0};
  uint32_t good = 0;
  if (group->count == 0) return;
  (void)device->aead->open(lane->worker, group->job, group->count);
  /* Windows first: taking a packet may end a session that a later packet of the group still belongs to. */
  commit_to_windows(group, kdp_wg_is_shared(device));
  for (uint32_t i = 0; i < group->count; i++) {
    kdp_wg_group_entry *entry = &group->entry[i];
    kdp_status status = group->job[i].status;
    if (status == KDP_OK) status = take_opened(lane, &run, cache, entry, in, out, now);
    in->packet[entry->input].status = (uint16_t)status;
    if (status == KDP_OK) {
      good++;
    } else {
      kdp_wg_lane_count(lane, status, 1);
      kdp_pool_release(out->pool, entry->packet.slot);
    }
  }
  end_run(lane, &run, now);
  kdp_wg_lane_count(lane, KDP_OK, good);
  group->count = 0;
}

static void add_to_group(kdp_wg_group *group, const kdp_packet *packet, kdp_wg_key_pair *pair, uint64_t counter,
                         uint32_t input) {
  kdp_aead_job *job = &group->job[group->count];
  kdp_wg_group_entry *entry = &group->entry[group->count++];
  uint8_t *text = packet->data + KDP_WIREGUARD_HEAD;
  uint32_t size = packet->size - KDP_WIREGUARD_OVERHEAD;
  job->key = pair->keys.receive;
  job->source = job->destination = text;
  job->tag = text + size;
  job->aad = NULL;
  job->aad_size = 0;
  job->size = size;
  job->status = KDP_OK;
  memset(job->nonce, 0, 4);
  kdp_store_le64(job->nonce + 4, counter);
  *entry =
      (kdp_wg_group_entry){.packet = *packet, .pair = pair, .peer = pair->peer, .counter = counter, .input = input};
  entry->packet.data = text;
  entry->packet.size = size;
  entry->packet.head =
      (uint16_t)(packet->head > UINT16_MAX - KDP_WIREGUARD_HEAD ? UINT16_MAX : packet->head + KDP_WIREGUARD_HEAD);
  entry->packet.tail =
      (uint16_t)(packet->tail > UINT16_MAX - KDP_WG_TAG_SIZE ? UINT16_MAX : packet->tail + KDP_WG_TAG_SIZE);
}

enum { TOLD = 8 };

/* The session that a transport packet is for, remembered from the packet before. */
typedef struct session_cache {
  uint32_t index;
  kdp_wg_key_pair *pair; /* NULL: empty */
  /* Other lanes than 0: packets of `fast_pair` along `fast_path` are opened here. */
  const kdp_wg_key_pair *fast_pair;
  uint16_t fast_path;
  const kdp_wg_key_pair *told[TOLD]; /* lane 0 has been given a packet of these */
  uint32_t told_next;
} session_cache;

static kdp_wg_key_pair *find_pair(const kdp_wg_device *device, session_cache *cache, uint32_t index) {
  if (!cache->pair || cache->index != index) {
    kdp_wg_index_entry *entry = kdp_wg_index_find(&device->indices, index);
    if (!entry || entry->kind != KDP_WG_INDEX_KEY_PAIR) return NULL;
    cache->index = index;
    cache->pair = entry->value;
  }
  return cache->pair;
}

/* What can be refused before any cryptography. */
static kdp_status admit(const kdp_wg_device *device, session_cache *cache, const kdp_packet *packet, uint64_t *counter,
                        uint64_t boot) {
  kdp_wg_key_pair *pair = find_pair(device, cache, kdp_load_le32(packet->data + 4));
  if (!pair) return KDP_UNKNOWN_SESSION;
  *counter = kdp_load_le64(packet->data + 8);
  if (!kdp_wg_key_pair_can_receive(pair, boot) || *counter >= KDP_WG_REJECT_AFTER_MESSAGES) return KDP_KEY_EXPIRED;
  return kdp_replay_window_check(&pair->window, *counter) ? KDP_OK : KDP_REPLAYED;
}

static bool was_told(const session_cache *cache, const kdp_wg_key_pair *pair) {
  for (int i = 0; i < TOLD; i++)
    if (cache->told[i] == pair) return true;
  return false;
}

/* Other lanes than 0 open packets. What follows from one (the pair is confirmed, the peer is elsewhere) is lane 0's to
   see to, and one packet a call and pair is enough for that: the rest of a burst, which may be more than lane 0 could
   be given, is opened here. Not inlined, so that lane 0 carries one test of it and no more. */
__attribute__((noinline)) static kdp_status hand_over_unless_open(session_cache *cache, kdp_packet *packet,
                                                                  const kdp_batch *in, kdp_out *out) {
  const kdp_wg_key_pair *pair = cache->pair;
  const kdp_wg_peer *peer = pair->peer;
  const kdp_path *path = &in->path[packet->path];
  if (cache->fast_pair == pair && cache->fast_path == packet->path) return KDP_OK;
  if ((pair == peer->next || !kdp_path_equal(path, &peer->path)) && !was_told(cache, pair)) {
    kdp_status status = kdp_wg_hand_over(packet, path, out);
    if (status == KDP_HANDED_OVER) cache->told[cache->told_next++ % TOLD] = pair;
    if (status != KDP_HANDOVER_FULL) return status;
  }
  cache->fast_pair = pair;
  cache->fast_path = packet->path;
  return KDP_OK;
}

/* The packet's way ends here; one that is handed over has taken its slot along. */
static void refuse(kdp_wg_lane *lane, kdp_packet *packet, kdp_status status, kdp_out *out) {
  packet->status = (uint16_t)status;
  kdp_wg_lane_count(lane, status, 1);
  if (status != KDP_HANDED_OVER) kdp_pool_release(out->pool, packet->slot);
}

uint32_t kdp_wg_outside(kdp_lane *base, kdp_batch *in, kdp_out *out, kdp_now now) {
  kdp_wg_lane *lane = kdp_wg_lane_of(base);
  kdp_wg_device *device = kdp_wg_device_of_lane(base);
  kdp_wg_group *group = &lane->group;
  bool fast = !kdp_wg_is_lane_0(lane);
  session_cache sessions = {0};
  source_cache sources = {0};
  uint32_t taken = 0;
  now = kdp_wg_begin(lane, out, now);
  for (; taken < in->count; taken++) {
    kdp_packet *packet = &in->packet[taken];
    kdp_wg_message_type type;
    kdp_status status = packet->status != KDP_OK ? packet->status : kdp_wg_classify(packet->data, packet->size, &type);
    if (status == KDP_OK && packet->path >= in->path_count) status = KDP_INVALID_ARGUMENT;
    if (status != KDP_OK) {
      refuse(lane, packet, status, out);
      continue;
    }
    if (type == KDP_WG_TRANSPORT) {
      uint64_t counter;
      if (out->inside.count + group->count >= out->inside.capacity) break;
      status = admit(device, &sessions, packet, &counter, now.boot);
      if (fast && status == KDP_OK) status = hand_over_unless_open(&sessions, packet, in, out);
      if (status == KDP_AGAIN) break;
      if (status != KDP_OK) {
        refuse(lane, packet, status, out);
        continue;
      }
      add_to_group(group, packet, sessions.pair, counter, taken);
      if (group->count < KDP_AEAD_MAX_BATCH) continue;
    } else if (fast) {
      status = kdp_wg_hand_over(packet, &in->path[packet->path], out);
      if (status == KDP_AGAIN) break;
      refuse(lane, packet, status, out);
      continue;
    }
    flush_group(lane, &sources, in, out, now);
    sessions.pair = NULL;
    if (type == KDP_WG_TRANSPORT) continue;
    if (type != KDP_WG_COOKIE_REPLY &&
        (device->budget == 0 || kdp_batch_room(&out->wire) == 0 || out->wire.path_count >= out->wire.path_capacity))
      break;
    status = kdp_wg_handshake_message(device, type, packet, &in->path[packet->path], out, now);
    packet->status = (uint16_t)status;
    kdp_wg_lane_count(lane, status, 1);
  }
  flush_group(lane, &sources, in, out, now);
  kdp_wg_end(lane, out, now);
  return taken;
}
