/* Messages to one device: any bytes; bytes that pass the first MAC; and messages of a peer with valid keys whose fields
   and inner packets come from the input, so that what lies behind the cryptography is reached too. A message that was
   changed on its way may never deliver anything, and what is delivered is what the peer sealed. */
#include "net/ip.h"
#include "support/wireguard_end.h"
#include "wireguard/cookie.h"
#include "wireguard/noise.h"
#include "wireguard/tai64n.h"

enum { MOST_MESSAGES = 40, MOST_DATAGRAM = 2048 };

/* The peer, played with the engine's own pure functions. */
typedef struct remote {
  kdp_wg_identity identity;
  kdp_wg_cookie_checker checker; /* of messages to it */
  kdp_wg_cookie cookie;          /* for messages from it */
  uint8_t static_static[32], preshared_key[32], public_key[32];
  kdp_wg_handshake handshake;
  kdp_wg_session_keys keys;
  uint32_t receiver; /* their index of the session */
  uint64_t counter;
  bool has_session, handshake_open;
  kdp_wg_initiation last_initiation; /* from the device */
  bool has_initiation;
  uint8_t last_mac1[16];
  uint32_t last_sender;
} remote;

static struct {
  end device;
  remote peer;
  kdp_aead_worker *worker;
  kdp_now now;
  /* The inner packet that the message now under way may deliver. */
  const uint8_t *inner;
  uint32_t inner_size;
  bool may_deliver;
  rng random;
} w;

static const kdp_address peer_address = {.family = KDP_FAMILY_IPV4, .port = 4000, .bytes = {192, 0, 2, 2}};

/* ---- What the device gives ---- */

static void take_response(const kdp_wg_response *message) {
  remote *peer = &w.peer;
  if (!peer->handshake_open) return;
  if (kdp_wg_response_consume(&peer->identity, &peer->handshake, peer->preshared_key, message, &peer->keys) != KDP_OK)
    return;
  peer->handshake_open = false;
  peer->has_session = true;
  peer->receiver = kdp_load_le32(message->sender);
  peer->counter = 0;
}

static void sent(end *e, const kdp_packet *packet, const kdp_path *path) {
  (void)e, (void)path;
  switch (kdp_load_le32(packet->data)) {
  case KDP_WG_INITIATION:
    memcpy(&w.peer.last_initiation, packet->data, sizeof w.peer.last_initiation);
    memcpy(w.peer.last_mac1, w.peer.last_initiation.macs.mac1, 16);
    w.peer.last_sender = kdp_load_le32(packet->data + 4);
    w.peer.has_initiation = true;
    CHECK(kdp_wg_mac1_valid(&w.peer.checker, packet->data, packet->size));
    break;
  case KDP_WG_RESPONSE: {
    kdp_wg_response message;
    memcpy(&message, packet->data, sizeof message);
    memcpy(w.peer.last_mac1, message.macs.mac1, 16);
    w.peer.last_sender = kdp_load_le32(message.sender);
    take_response(&message);
    break;
  }
  case KDP_WG_COOKIE_REPLY: {
    kdp_wg_cookie_reply message;
    memcpy(&message, packet->data, sizeof message);
    (void)kdp_wg_cookie_consume(&w.peer.cookie, w.device.public_key, &message, w.now.boot);
    break;
  }
  default: break;
  }
}

static void delivered(end *e, const kdp_packet *packet) {
  (void)e;
  kdp_ip ip;
  CHECK(w.may_deliver);
  CHECK(kdp_ip_read(packet->data, packet->size, &ip) == KDP_OK && ip.size == packet->size);
  CHECK(packet->size <= w.inner_size);
  /* Outer ECN is not set here, so not a bit changes. */
  CHECK(memcmp(packet->data, w.inner, packet->size) == 0);
  if (ip.version == 4)
    CHECK(ip.source[0] == 10 && ip.source[1] == 0 && ip.source[2] == 2);
  else
    CHECK(ip.source[0] == 0xfd && ip.source[1] == 0x77 && ip.source[2] == 0 && ip.source[3] == 2);
  w.may_deliver = false; /* once */
}

/* ---- What the peer sends ---- */

static void give(uint8_t *datagram, uint32_t size, uint8_t ecn) {
  kdp_packet packet;
  CHECK(end_carve(&w.device, datagram, size, &packet));
  packet.ecn = ecn;
  kdp_path path = {.ifindex = 2, .remote = peer_address, .local = w.device.address};
  kdp_batch batch = {.packet = &packet, .count = 1, .capacity = 1, .path = &path, .path_count = 1, .path_capacity = 1};
  end_give(&w.device, &batch, false, w.now);
}

/* Changes bytes in a message; true: it is not what it was. */
static bool damage(script *s, uint8_t *bytes, uint32_t size) {
  uint8_t count = script_u8(s), before[MOST_DATAGRAM];
  if (count < 192) return false;
  memcpy(before, bytes, size);
  for (int i = 0; i <= count % 4; i++) {
    uint32_t at = script_u16(s) % size;
    bytes[at] ^= script_u8(s);
  }
  return memcmp(before, bytes, size) != 0;
}

static void give_raw(script *s, bool fit) {
  static const uint32_t sizes[5] = {0, 148, 92, 64, 32};
  uint8_t datagram[MOST_DATAGRAM];
  size_t size;
  uint8_t type = 1 + script_u8(s) % 4;
  const uint8_t *bytes = script_bytes(s, fit ? sizes[type] - 4 : script_u16(s) % MOST_DATAGRAM, &size);
  uint32_t all = (uint32_t)size;
  if (fit) {
    memset(datagram, 0, sizeof datagram);
    kdp_store_le32(datagram, type);
    memcpy(datagram + 4, bytes, size);
    all = sizes[type];
    if (type == KDP_WG_RESPONSE && script_u8(s) % 2) kdp_store_le32(datagram + 8, w.peer.last_sender);
    if (type >= KDP_WG_COOKIE_REPLY && script_u8(s) % 2)
      kdp_store_le32(datagram + 4, type == KDP_WG_TRANSPORT ? w.peer.receiver : w.peer.last_sender);
    if (type <= KDP_WG_RESPONSE) kdp_wg_macs_write(&w.peer.cookie, datagram, all, w.now.boot);
  } else {
    memcpy(datagram, bytes, size);
  }
  give(datagram, all, script_u8(s) % 4);
}

static void give_initiation(script *s) {
  kdp_wg_initiation message;
  uint8_t ephemeral[32], stamp[12];
  rng_fill(&w.random, ephemeral, sizeof ephemeral);
  if (script_u8(s) % 8 == 0) script_copy(s, ephemeral, sizeof ephemeral);
  kdp_wg_stamp_write(w.now.wall, stamp);
  if (script_u8(s) % 4 == 0) script_copy(s, stamp, sizeof stamp);
  if (kdp_wg_initiation_create(&w.peer.identity, w.device.public_key, w.peer.static_static, ephemeral, stamp,
                               &w.peer.handshake, &message) != KDP_OK)
    return;
  w.peer.handshake_open = true;
  kdp_store_le32(message.sender, script_u32(s));
  (void)damage(s, (uint8_t *)&message, sizeof message);
  kdp_wg_macs_write(&w.peer.cookie, (uint8_t *)&message, sizeof message, w.now.boot);
  (void)damage(s, (uint8_t *)&message, sizeof message);
  uint8_t copies = script_u8(s);
  for (int i = 0; i < (copies >= 240 ? 40 : 1); i++) /* forty in one round are load */
    give((uint8_t *)&message, sizeof message, 0);
}

/* Answers the device's last initiation as a peer does. */
static void give_response(script *s) {
  kdp_wg_reception reception;
  kdp_wg_response message;
  kdp_wg_session_keys keys;
  uint8_t ephemeral[32];
  if (!w.peer.has_initiation) return;
  CHECK(kdp_wg_initiation_open_static(&w.peer.identity, &w.peer.last_initiation, &reception) == KDP_OK);
  CHECK(memcmp(reception.remote_static, w.device.public_key, 32) == 0);
  CHECK(kdp_wg_initiation_open_timestamp(&w.peer.last_initiation, w.peer.static_static, &reception) == KDP_OK);
  rng_fill(&w.random, ephemeral, sizeof ephemeral);
  if (kdp_wg_response_create(&reception, w.peer.preshared_key, ephemeral, &message, &keys) != KDP_OK) return;
  kdp_store_le32(message.sender, script_u32(s));
  memcpy(message.receiver, w.peer.last_initiation.sender, 4);
  (void)damage(s, (uint8_t *)&message, sizeof message);
  kdp_wg_macs_write(&w.peer.cookie, (uint8_t *)&message, sizeof message, w.now.boot);
  uint64_t before = w.device.before.handshakes;
  give((uint8_t *)&message, sizeof message, 0);
  if (w.device.before.handshakes == before) return;
  w.peer.keys = keys;
  w.peer.has_session = true;
  w.peer.receiver = kdp_load_le32(message.receiver);
  w.peer.counter = 0;
}

static void give_cookie(script *s) {
  kdp_wg_cookie_reply message;
  uint8_t receiver[4];
  kdp_store_le32(receiver, w.peer.last_sender);
  kdp_wg_cookie_reply_create(&w.peer.checker, w.peer.last_mac1, receiver, &w.device.address, &w.device.host, w.now.boot,
                             &message);
  (void)damage(s, (uint8_t *)&message, sizeof message);
  give((uint8_t *)&message, sizeof message, 0);
  if (script_u8(s) % 2) give((uint8_t *)&message, sizeof message, 0);
}

/* An inner packet of any bytes, or one that is right but for what the input changes in it. */
static uint32_t read_inner(script *s, uint8_t *inner) {
  size_t got;
  uint8_t kind = script_u8(s);
  uint32_t size = script_u16(s) % 1400;
  const uint8_t *bytes = script_bytes(s, size, &got);
  memset(inner, 0, size);
  if (got > 0) memcpy(inner, bytes, got);
  if (kind % 4 == 1 && size >= 20) {
    inner[0] = 0x45;
    kdp_store_be16(inner + 2, (uint16_t)(size - kind / 16 % 4));
    memcpy(inner + 12, (uint8_t[]){10, 0, 2, 1, 10, 0, 1, 1}, 8);
  } else if (kind % 4 == 2 && size >= 40) {
    inner[0] = 0x60;
    kdp_store_be16(inner + 4, (uint16_t)(size - 40 - (size >= 44 ? kind / 16 % 4 : 0)));
    memcpy(inner + 8, (uint8_t[]){0xfd, 0x77, 0, 2}, 4);
  }
  if (size > 0) (void)damage(s, inner, size);
  return size;
}

static void give_transport(script *s) {
  uint8_t datagram[MOST_DATAGRAM], inner[MOST_DATAGRAM];
  uint8_t form = script_u8(s);
  if (!w.peer.has_session) return;
  uint32_t size = form % 8 == 0 ? 0 : read_inner(s, inner);
  uint64_t counter = form % 16 == 1 ? script_u64(s) : w.peer.counter;
  uint8_t ecn = script_u8(s) % 8 == 7 ? 3 : 0;
  uint8_t text[MOST_DATAGRAM];
  kdp_wg_transport_write(datagram, w.peer.receiver, counter);
  memcpy(text, inner, size);
  kdp_aead_job job = {.key = w.peer.keys.send,
                      .source = text,
                      .destination = datagram + KDP_WIREGUARD_HEAD,
                      .tag = datagram + KDP_WIREGUARD_HEAD + size,
                      .size = size};
  kdp_store_le64(job.nonce + 4, counter);
  kdp_aead_of(w.worker, KDP_AEAD_CHACHA20_POLY1305)->seal(w.worker, &job, 1);
  bool changed = damage(s, datagram, size + KDP_WIREGUARD_OVERHEAD);
  w.inner = inner;
  w.inner_size = size;
  w.may_deliver = !changed && ecn == 0;
  if (ecn != 0) {
    /* Congestion on the way: the header changes, or the packet is dropped. Only that it is survived is checked. */
    kdp_ip ip;
    bool ip_packet = kdp_ip_read(inner, size, &ip) == KDP_OK;
    if (ip_packet && ip.ecn != 0) kdp_ip_set_ecn(inner, 3);
    w.may_deliver = !changed && ip_packet && ip.ecn != 0;
  }
  uint32_t copies = script_u8(s) % 4 == 0 ? 2 : 1;
  for (uint32_t i = 0; i < copies; i++)
    give(datagram, size + KDP_WIREGUARD_OVERHEAD, ecn); /* the second is a replay */
  w.may_deliver = false;
  if (!changed && counter == w.peer.counter) w.peer.counter++;
}

/* The device itself answers an inner packet that has no way out. */
static void answered(end *e, const kdp_packet *packet) {
  (void)e;
  CHECK(packet->size >= 28 && packet->data[9] == KDP_PROTOCOL_ICMP && packet->data[20] == 3);
}

/* A packet from the inside, so that the device begins a handshake or answers. */
static void give_inside(script *s) {
  uint8_t inner[100] = {0x45, 0, 0, 100};
  kdp_packet packet;
  memcpy(inner + 12, (uint8_t[]){10, 0, 1, 1, 10, 0, 2, 1}, 8);
  if (script_u8(s) % 4 == 0) inner[18] = script_u8(s); /* nobody's, perhaps */
  CHECK(end_carve(&w.device, inner, sizeof inner, &packet));
  kdp_batch batch = {.packet = &packet, .count = 1, .capacity = 1};
  w.device.delivered = answered;
  end_give(&w.device, &batch, true, w.now);
  w.device.delivered = delivered;
}

static void pass_time(script *s) {
  static const uint64_t step[8] = {1, 20, 1000, 5334, 10000, 121000, 180001, 600000};
  uint64_t milliseconds = step[script_u8(s) % 8];
  w.now.boot += milliseconds * KDP_MILLISECOND;
  w.now.wall += milliseconds * KDP_MILLISECOND;
  for (int i = 0; i < 64 && kdp_engine_deadline(w.device.lane) <= w.now.boot; i++) {
    kdp_engine_tick(w.device.lane, w.device.out, w.now);
    end_drain(&w.device);
  }
  CHECK(kdp_engine_deadline(w.device.lane) > w.now.boot);
}

/* ---- */

static void start(script *s) {
  static const kdp_wireguard_config config;
  static const kdp_limits limits;
  uint8_t options = script_u8(s);
  memset(&w.peer, 0, sizeof w.peer);
  w.random = (rng){99};
  w.now = (kdp_now){.boot = 1000 * KDP_SECOND, .wall = UINT64_C(1700000000) * KDP_SECOND};
  w.may_deliver = false;
  w.device.sent = sent;
  w.device.delivered = delivered;
  end_make(&w.device, 1, &config, &limits, w.now);
  end_set_private_key(&w.device, w.device.private_key, w.now);

  uint8_t key[32];
  rng_fill(&w.random, key, sizeof key);
  kdp_wg_identity_set(&w.peer.identity, key);
  memcpy(w.peer.public_key, w.peer.identity.public_key, 32);
  CHECK(kdp_wg_dh(w.peer.static_static, w.peer.identity.private_key, w.device.public_key) == KDP_OK);
  kdp_wg_cookie_checker_set(&w.peer.checker, w.peer.public_key);
  kdp_wg_cookie_start(&w.peer.cookie, w.device.public_key);

  kdp_wireguard_prefix_change prefix[2] = {
      {.prefix = {.family = KDP_FAMILY_IPV4, .length = 24, .bytes = {10, 0, 2}}},
      {.prefix = {.family = KDP_FAMILY_IPV6, .length = 32, .bytes = {0xfd, 0x77, 0, 2}}}};
  kdp_wireguard_peer_change peer = {.fields = KDP_WIREGUARD_PEER_SET_ENDPOINT | KDP_WIREGUARD_PEER_SET_KEEPALIVE,
                                    .endpoint = peer_address,
                                    .keepalive_seconds = options & 2 ? 25 : 0,
                                    .prefix = prefix,
                                    .prefix_count = 2};
  memcpy(peer.public_key, w.peer.public_key, 32);
  if (options & 1) {
    peer.fields |= KDP_WIREGUARD_PEER_SET_PRESHARED_KEY;
    rng_fill(&w.random, w.peer.preshared_key, 32);
    memcpy(peer.preshared_key, w.peer.preshared_key, 32);
  }
  kdp_wireguard_change change = {.peer = &peer, .peer_count = 1};
  CHECK(end_apply(&w.device, &change, w.now) == KDP_OK);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
  script s = {bytes, bytes + size};
  if (w.worker == NULL) {
    kdp_host host = kdp_host_default();
    CHECK(kdp_aead_worker_choose(NULL, &host, &w.worker) == KDP_OK);
  }
  start(&s);
  for (int i = 0; i < MOST_MESSAGES && script_left(&s) > 0; i++) {
    switch (script_u8(&s) % 10) {
    case 0: give_raw(&s, false); break;
    case 1: give_raw(&s, true); break;
    case 2: give_initiation(&s); break;
    case 3: give_response(&s); break;
    case 4: give_cookie(&s); break;
    case 5: give_inside(&s); break;
    case 6: pass_time(&s); break;
    default: give_transport(&s); break;
    }
    if (script_u8(&s) % 8 != 0) kdp_lane_quiescent(w.device.lane, w.now);
  }
  end_free(&w.device);
  return 0;
}
