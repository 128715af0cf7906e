/* Three devices and the network between them, driven by a script of events in virtual time: inner packets good and
   bad, loss, reordering, repetition, damage, roaming, hours that pass, wall clocks that jump, configuration changes,
   full outputs and empty pools. Whatever happens: what is delivered was sent by a device that may send it, unchanged
   and no more often than it was sent; every deadline is met; no slot and no byte is kept. */
#include "net/ip.h"
#include "support/wireguard_end.h"
#include "wireguard/cookie.h"

enum { ENDS = 3, FLYING = 96, SENT = 512, MOST_STEPS = 150, MOST_INNER = 1600 };

typedef struct datagram {
  uint8_t *bytes;
  uint32_t size;
  uint8_t from, to, ecn;
} datagram;

typedef struct sent_packet {
  uint64_t print; /* of the packet without what ECN changes */
  uint32_t size;
  uint8_t from;
  uint32_t times; /* it may still be delivered */
} sent_packet;

static struct {
  end end[ENDS];
  datagram flying[FLYING];
  uint32_t flying_count;
  sent_packet sent[SENT];
  uint32_t sent_count;
  uint32_t serial;
  kdp_now now;

  bool prefixes_moved;
  bool cramped; /* outputs or pools have little room */
} w;

static uint64_t print_of(const uint8_t *bytes, uint32_t size) {
  uint64_t hash = UINT64_C(0xcbf29ce484222325) ^ size;
  bool v4 = size >= 20 && bytes[0] >> 4 == 4;
  for (uint32_t i = 0; i < size; i++) {
    uint8_t byte = bytes[i];
    if (i == 1) byte &= v4 ? 0xfc : 0xcf; /* ECN */
    if (v4 && (i == 10 || i == 11)) byte = 0;
    hash = (hash ^ byte) * UINT64_C(0x100000001b3);
  }
  return hash;
}

/* ---- What comes out ---- */

static void take_sent(end *e, const kdp_packet *packet, const kdp_path *path) {
  uint8_t to = path->remote.bytes[3];
  if (path->remote.family != KDP_FAMILY_IPV4 || to < 1 || to > ENDS || w.flying_count == FLYING) return;
  w.flying[w.flying_count++] = (datagram){.bytes = exact_copy(packet->data, packet->size),
                                          .size = packet->size,
                                          .from = (uint8_t)(e->number - 1),
                                          .to = (uint8_t)(to - 1),
                                          .ecn = packet->ecn};
}

static bool is_from(const kdp_ip *ip, uint8_t index) {
  uint8_t number = (uint8_t)(index + 1);
  if (ip->version == 4) return ip->source[0] == 10 && ip->source[1] == number;
  return ip->source[0] == 0xfd && ip->source[1] == 0x77 && ip->source[2] == 0 && ip->source[3] == number;
}

static bool is_icmp_error(const uint8_t *bytes, const kdp_ip *ip) {
  return (ip->protocol == KDP_PROTOCOL_ICMP && bytes[20] == 3) ||
         (ip->protocol == KDP_PROTOCOL_ICMPV6 && bytes[40] < 3);
}

static void take_delivered(end *e, const kdp_packet *packet) {
  kdp_ip ip;
  CHECK(kdp_ip_read(packet->data, packet->size, &ip) == KDP_OK && ip.size == packet->size);
  uint64_t print = print_of(packet->data, packet->size);
  for (uint32_t i = 0; i < w.sent_count; i++) {
    sent_packet *sent = &w.sent[i];
    if (sent->print != print || sent->size != packet->size || sent->times == 0) continue;
    if (sent->from == e->number - 1) continue;
    if (!w.prefixes_moved && !is_from(&ip, sent->from)) continue;
    sent->times--;
    return;
  }
  /* Else it is the device's own answer to what its inside gave it. */
  CHECK(is_icmp_error(packet->data, &ip));
}

/* ---- What goes in ---- */

static void remember(const uint8_t *bytes, uint32_t size, uint8_t from) {
  kdp_ip ip;
  /* What is delivered ends where the IP packet ends. */
  if (kdp_ip_read(bytes, size, &ip) != KDP_OK || w.sent_count == SENT) return;
  w.sent[w.sent_count++] = (sent_packet){.print = print_of(bytes, ip.size), .size = ip.size, .from = from, .times = 1};
}

static uint32_t write_inner(script *s, uint8_t from, uint8_t to, uint8_t *bytes) {
  uint8_t kind = script_u8(s);
  uint32_t payload = script_u8(s) * (kind & 1 ? 6u : 1u), head = kind & 2 ? 48 : 28, size = head + payload;
  memset(bytes, 0, head);
  if (kind & 2) {
    bytes[0] = 0x60;
    bytes[1] = (uint8_t)(kind & 0x30);
    kdp_store_be16(bytes + 4, (uint16_t)(8 + payload));
    bytes[6] = 17;
    memcpy(bytes + 8, (uint8_t[]){0xfd, 0x77, 0, (uint8_t)(from + 1)}, 4);
    memcpy(bytes + 24, (uint8_t[]){0xfd, 0x77, 0, (uint8_t)(to + 1)}, 4);
  } else {
    bytes[0] = 0x45;
    bytes[1] = kind >> 4 & 3;
    kdp_store_be16(bytes + 2, (uint16_t)size);
    bytes[6] = kind & 4 ? 0x40 : 0;
    bytes[9] = 17;
    memcpy(bytes + 12, (uint8_t[]){10, (uint8_t)(from + 1), 0, 9, 10, (uint8_t)(to + 1), 0, 9}, 8);
  }
  for (uint32_t i = 0; i < payload; i++)
    bytes[head + i] = (uint8_t)(i * 31 + w.serial);
  kdp_store_be32(bytes + head - 8, ++w.serial);                     /* no two are alike */
  if (kind & 8) bytes[kind & 2 ? 11 : 13] = 1 + (kind >> 6) % ENDS; /* another's address as source, perhaps */
  if (kind >= 0xf0) bytes[script_u8(s) % size] ^= script_u8(s);
  return size;
}

static void send_inner(script *s) {
  uint8_t which = script_u8(s), from = which % ENDS, to = which / 4 % ENDS;
  uint32_t count = 1 + (which >> 6) * 5u;
  end *e = &w.end[from];
  kdp_packet packet[16];
  kdp_batch batch = {.packet = packet, .capacity = 16};
  for (uint32_t i = 0; i < count; i++) {
    uint8_t bytes[MOST_INNER];
    uint32_t size;
    if (which % 16 == 15) { /* any bytes */
      size_t got;
      const uint8_t *given = script_bytes(s, script_u8(s), &got);
      memcpy(bytes, given, got);
      size = (uint32_t)got;
    } else {
      size = write_inner(s, from, to, bytes);
    }
    if (!end_carve(e, bytes, size, &packet[batch.count])) break;
    batch.count++;
    remember(bytes, size, from);
  }
  end_give(e, &batch, true, w.now);
}

static void drop(uint32_t index) {
  free(w.flying[index].bytes);
  w.flying_count--;
  memmove(&w.flying[index], &w.flying[index + 1], (w.flying_count - index) * sizeof w.flying[0]);
}

/* Gives datagrams that are under way to the device they are for, as one read: `keep` leaves them to come again. */
static void deliver(script *s, uint32_t first, uint32_t most, bool keep) {
  if (first >= w.flying_count) return;
  uint8_t form = keep ? script_u8(s) : 0, to = w.flying[first].to;
  end *e = &w.end[to];
  kdp_packet packet[32];
  kdp_path path[2];
  kdp_batch batch = {.packet = packet, .capacity = 32, .path = path, .path_count = 2, .path_capacity = 2};
  for (uint32_t i = 0; i < 2; i++) {
    path[i] = (kdp_path){.ifindex = 2, .remote = w.end[w.flying[first].from].address, .local = w.end[to].address};
    if (i == 1) path[i].remote.port = 1000; /* it has moved, or someone pretends so */
  }
  uint32_t at = first;
  while (batch.count < most && batch.count < 32 && at < w.flying_count) {
    datagram *d = &w.flying[at];
    if (d->to != to || d->from != w.flying[first].from) {
      at++;
      continue;
    }
    uint32_t size = d->size;
    uint8_t *bytes = exact_copy(d->bytes, size);
    if (form % 8 == 1) bytes[script_u16(s) % size] ^= script_u8(s);
    if (form % 8 == 2) size = script_u16(s) % size;
    if (!end_carve(e, bytes, size, &packet[batch.count])) {
      free(bytes);
      break;
    }
    free(bytes);
    packet[batch.count].path = form % 8 == 3;
    packet[batch.count].ecn = form % 8 == 4 ? 3 : d->ecn;
    if (form % 8 == 5) packet[batch.count].status = KDP_TRUNCATED;
    batch.count++;
    if (keep)
      at++;
    else
      drop(at);
    if (at == first && w.flying_count <= first) break;
  }
  if (batch.count == 0) return;
  end_give(e, &batch, false, w.now);
}

static void exchange(script *s) {
  for (int i = 0; i < 60 && w.flying_count > 0; i++)
    deliver(s, 0, 16, false);
}

/* The same handshake message again and again in one round: load. */
static void flood(script *s) {
  if (w.flying_count == 0) return;
  uint32_t index = script_u8(s) % w.flying_count;
  for (int i = 0; i < 36 && index < w.flying_count; i++) {
    uint32_t before = w.flying_count;
    deliver(s, index, 1, true);
    while (w.flying_count > before + 4)
      drop(w.flying_count - 1);
  }
}

/* Bytes that look like a message, with a first MAC that is right. */
static void forge(script *s) {
  static const uint32_t sizes[4] = {148, 92, 64, 48};
  uint8_t which = script_u8(s), to = which % ENDS, type = which / 4 % 4;
  uint8_t bytes[148];
  script_copy(s, bytes, sizes[type]);
  kdp_store_le32(bytes, type + 1u);
  if (type < 2) {
    kdp_wg_cookie cookie;
    kdp_wg_cookie_start(&cookie, w.end[to].public_key);
    kdp_wg_macs_write(&cookie, bytes, sizes[type], w.now.boot);
  }
  if (w.flying_count == FLYING) return;
  w.flying[w.flying_count++] =
      (datagram){.bytes = exact_copy(bytes, sizes[type]), .size = sizes[type], .from = (to + 1) % ENDS, .to = to};
}

/* ---- Time ---- */

static void run_timers(end *e) {
  uint32_t rounds = 0;
  while (kdp_engine_deadline(e->lane) <= w.now.boot) {
    if (++rounds == 200) {
      CHECK(w.cramped); /* with room, nothing is left for ever */
      return;
    }
    kdp_engine_tick(e->lane, e->out, w.now);
    end_drain(e);
  }
}

static void pass_time(script *s) {
  static const uint64_t step[16] = {1,     5,     20,    333,    1000,   5000,   5334,   10000,
                                    15000, 25000, 90000, 120000, 165000, 180001, 540000, 12 * 3600000};
  uint8_t which = script_u8(s);
  uint64_t boot = step[which % 16] * KDP_MILLISECOND + script_u8(s) * KDP_MILLISECOND;
  w.now.boot += boot;
  w.now.wall += which & 0x40 ? 0 : boot;
  if (which & 0x20) w.now.wall += (uint64_t)(int64_t)(int8_t)script_u8(s) * 1000 * KDP_SECOND; /* either way */
  if (which & 0x10) return; /* nobody was woken: the next call finds it late */
  for (int i = 0; i < ENDS; i++)
    run_timers(&w.end[i]);
}

/* ---- Configuration ---- */

static void configure(script *s) {
  uint8_t which = script_u8(s), at = which % ENDS, other = (at + 1 + which / 4 % (ENDS - 1)) % ENDS;
  end *e = &w.end[at];
  const end *o = &w.end[other];
  uint8_t what = script_u8(s);
  kdp_wireguard_prefix_change prefix[3] = {
      {.prefix = {.family = KDP_FAMILY_IPV4, .length = 16, .bytes = {10, o->number}}},
      {.prefix = {.family = KDP_FAMILY_IPV6, .length = 32, .bytes = {0xfd, 0x77, 0, o->number}}},
      {.prefix = {.family = KDP_FAMILY_IPV4, .length = script_u8(s) % 33, .bytes = {10, script_u8(s) % 4, 0, 9}}}};
  kdp_wireguard_peer_change peer = {.prefix = prefix, .prefix_count = 2};
  kdp_wireguard_change change = {.peer = &peer, .peer_count = 1};
  memcpy(peer.public_key, o->public_key, 32);
  switch (what % 12) {
  case 0: peer.fields = KDP_WIREGUARD_PEER_REMOVE; break;
  case 1:
    peer.fields = KDP_WIREGUARD_PEER_SET_PRESHARED_KEY;
    memset(peer.preshared_key, what & 0x40 ? 7 : 0, 32);
    break;
  case 2:
    peer.fields = KDP_WIREGUARD_PEER_SET_KEEPALIVE;
    peer.keepalive_seconds = script_u8(s) % 30;
    break;
  case 3:
    peer.fields = KDP_WIREGUARD_PEER_REPLACE_PREFIXES;
    peer.prefix_count = 3;
    w.prefixes_moved = true;
    break;
  case 4:
    prefix[0] = prefix[2];
    prefix[0].remove = what & 0x80;
    peer.prefix_count = 1;
    w.prefixes_moved = true;
    break;
  case 5:
    change.fields = KDP_WIREGUARD_SET_PRIVATE_KEY;
    if (what & 0x40) memcpy(change.private_key, e->private_key, 32);
    change.peer_count = 0;
    break;
  case 6: change.fields = KDP_WIREGUARD_REPLACE_PEERS; break;
  case 7:
    change.fields = KDP_WIREGUARD_SET_FIXED_PORT;
    change.fixed_port = what & 0x40;
    break;
  case 8: memset(peer.public_key, what & 0x40 ? 0 : what, 32); break; /* low order, or nobody's */
  case 9:
    peer.fields = KDP_WIREGUARD_PEER_UPDATE_ONLY | KDP_WIREGUARD_PEER_SET_ENDPOINT;
    peer.endpoint = o->address;
    peer.endpoint.port = (uint16_t)(1 + script_u8(s));
    break;
  case 10: prefix[1].prefix.length = 129; break;
  default:
    peer.fields = KDP_WIREGUARD_PEER_SET_ENDPOINT;
    peer.endpoint = o->address;
    break;
  }
  kdp_status status = end_apply(e, &change, w.now);
  CHECK(status == KDP_OK || status == KDP_INVALID_ARGUMENT || status == KDP_LOW_ORDER_KEY || status == KDP_LIMIT);
}

static void inspect(script *s) {
  end *e = &w.end[script_u8(s) % ENDS];
  kdp_wireguard_device_info device;
  kdp_wireguard_peer_info peer, again;
  kdp_wireguard_device(e->engine, &device);
  uint64_t cursor = 0;
  uint32_t peers = 0;
  while (kdp_wireguard_next_peer(e->engine, &cursor, &peer)) {
    kdp_prefix prefix[4];
    uint32_t first = 0, listed;
    while ((listed = kdp_wireguard_prefixes(e->engine, peer.peer, first, prefix, 4)) > 0)
      first += listed;
    CHECK(first == peer.prefix_count);
    CHECK(kdp_wireguard_find_peer(e->engine, peer.public_key, &again) == KDP_OK && again.peer == peer.peer);
    CHECK(!peer.has_session || device.has_private_key);
    peers++;
  }
  CHECK(peers == device.peer_count);
}

static void change_surroundings(script *s) {
  uint8_t which = script_u8(s);
  end *e = &w.end[which % ENDS];
  kdp_path path = {.remote = w.end[(which + 1) % ENDS].address};
  switch (which / 4 % 6) {
  case 0: kdp_engine_network_changed(e->lane, e->out, w.now); break;
  case 1: kdp_engine_path_mtu(e->lane, &path, script_u16(s), w.now); break;
  case 2: kdp_engine_set_inside_mtu(e->engine, script_u16(s) % 2000); break;
  case 3: kdp_engine_link_down(e->lane, 0, 5, e->out, w.now); break;
  case 4: kdp_lane_quiescent(e->lane, w.now); break;
  default: kdp_engine_tick(e->lane, e->out, w.now); break;
  }
  end_drain(e);
}

/* The next step meets a full output or a pool that others have emptied. */
static void with_little_room(script *s, void (*step)(script *)) {
  uint8_t which = script_u8(s), wire = script_u8(s) % 8, inside = script_u8(s) % 8;
  uint32_t capacity[ENDS][2];
  kdp_slot slots[ENDS][END_SLOTS];
  int taken[ENDS] = {0};
  for (int i = 0; i < ENDS; i++) {
    end *e = &w.end[i];
    capacity[i][0] = e->out->wire.capacity;
    capacity[i][1] = e->out->inside.capacity;
    if (which & 1) e->out->wire.capacity = wire;
    if (which & 2) e->out->inside.capacity = inside;
    if (which & 4)
      while (kdp_pool_free_count(e->pool) > (which >> 4) % 3u)
        if (kdp_pool_take_slot(e->pool, &slots[i][taken[i]]) != NULL) taken[i]++;
  }
  w.cramped = true;
  step(s);
  w.cramped = false;
  for (int i = 0; i < ENDS; i++) {
    end *e = &w.end[i];
    e->out->wire.capacity = capacity[i][0];
    e->out->inside.capacity = capacity[i][1];
    while (taken[i] > 0)
      kdp_pool_release(e->pool, slots[i][--taken[i]]);
  }
}

/* ---- */

static void start(script *s) {
  uint8_t options = script_u8(s);
  kdp_wireguard_config config = {.inside_mtu = options & 1 ? 1280 : 0, .fixed_port = options & 2};
  kdp_limits limits = {.peers = 4, .staged_packets = options & 4 ? 3 : 0, .handshakes_per_call = options & 8 ? 1 : 0};
  memset(&w, 0, sizeof w);
  w.now = (kdp_now){.boot = 1000 * KDP_SECOND, .wall = UINT64_C(1700000000) * KDP_SECOND};
  for (int i = 0; i < ENDS; i++) {
    w.end[i].sent = take_sent;
    w.end[i].delivered = take_delivered;
    end_make(&w.end[i], (uint8_t)(i + 1), &config, &limits, w.now);
    end_set_private_key(&w.end[i], w.end[i].private_key, w.now);
  }
  for (int i = 0; i < ENDS; i++)
    for (int j = 0; j < ENDS; j++) {
      if (i == j || (options & 16 && j == 2 && i == 1)) continue;
      const end *o = &w.end[j];
      kdp_wireguard_prefix_change prefix[2] = {
          {.prefix = {.family = KDP_FAMILY_IPV4, .length = 16, .bytes = {10, o->number}}},
          {.prefix = {.family = KDP_FAMILY_IPV6, .length = 32, .bytes = {0xfd, 0x77, 0, o->number}}}};
      kdp_wireguard_peer_change peer = {.fields = i < j || options & 32 ? KDP_WIREGUARD_PEER_SET_ENDPOINT : 0,
                                        .endpoint = o->address,
                                        .prefix = prefix,
                                        .prefix_count = 2};
      memcpy(peer.public_key, o->public_key, 32);
      kdp_wireguard_change change = {.peer = &peer, .peer_count = 1};
      CHECK(end_apply(&w.end[i], &change, w.now) == KDP_OK);
    }
}

static void step(script *s) {
  uint8_t which = script_u8(s);
  uint32_t any = w.flying_count > 0 ? (uint32_t)which / 16 % w.flying_count : 0;
  switch (which % 16) {
  case 0:
  case 1:
  case 2: send_inner(s); break;
  case 3: deliver(s, any, 1, false); break;
  case 4: deliver(s, any, 8, false); break;
  case 5: deliver(s, script_u8(s), 1 + which / 16, true); break;
  case 6:
    if (w.flying_count > 0) drop(any);
    break;
  case 7:
  case 8:
  case 9: exchange(s); break;
  case 10:
  case 11: pass_time(s); break;
  case 12: configure(s); break;
  case 13: change_surroundings(s); break;
  case 14:
    if (which & 0x10)
      flood(s);
    else
      forge(s);
    break;
  default: inspect(s); break;
  }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
  script s = {bytes, bytes + size};
  start(&s);
  for (int i = 0; i < MOST_STEPS && script_left(&s) > 0; i++) {
    uint8_t how = script_u8(&s);
    if (how % 16 == 15)
      with_little_room(&s, step);
    else
      step(&s);
    if (how & 0x10)
      for (int e = 0; e < ENDS; e++)
        kdp_lane_quiescent(w.end[e].lane, w.now);
  }
  for (int i = 0; i < ENDS; i++)
    run_timers(&w.end[i]);
  while (w.flying_count > 0)
    drop(w.flying_count - 1);
  for (int i = 0; i < ENDS; i++)
    end_free(&w.end[i]);
  return 0;
}
