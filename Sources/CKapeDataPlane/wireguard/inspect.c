/* What can be asked of a device. */
#include <sodium.h>

#include "core/wipe.h"
#include "wireguard/device.h"

static const kdp_wg_device *device_of(const kdp_engine *engine) {
  return (const kdp_wg_device *)(const void *)engine;
}

void kdp_wireguard_device(const kdp_engine *engine, kdp_wireguard_device_info *info) {
  const kdp_wg_device *device = device_of(engine);
  *info = (kdp_wireguard_device_info){
      .has_private_key = device->identity.present,
      .peer_count = device->peers.count,
      .under_load = kdp_wg_under_load(device, device->lane[0].base.newest_boot),
  };
  memcpy(info->private_key, device->identity.private_key, KDP_KEY_SIZE);
  memcpy(info->public_key, device->identity.public_key, KDP_KEY_SIZE);
}

static void describe(const kdp_wg_device *device, const kdp_wg_peer *peer, kdp_wireguard_peer_info *info) {
  *info = (kdp_wireguard_peer_info){
      .peer = peer->number,
      .endpoint = peer->path.remote,
      .keepalive_seconds = (uint16_t)(peer->keepalive_interval / KDP_SECOND),
      .prefix_count = peer->prefixes.count,
      .handshake_wall = peer->handshake_wall,
      .received_bytes = __atomic_load_n(&peer->received_bytes, __ATOMIC_RELAXED),
      .sent_bytes = __atomic_load_n(&peer->sent_bytes, __ATOMIC_RELAXED),
      .inside_received_bytes = __atomic_load_n(&peer->inside_received_bytes, __ATOMIC_RELAXED),
      .inside_sent_bytes = __atomic_load_n(&peer->inside_sent_bytes, __ATOMIC_RELAXED),
      .has_session = kdp_wg_key_pair_can_send(peer->current, device->lane[0].base.newest_boot),
  };
  memcpy(info->public_key, peer->public_key, KDP_KEY_SIZE);
  memcpy(info->preshared_key, peer->preshared_key, KDP_KEY_SIZE);
}

bool kdp_wireguard_next_peer(const kdp_engine *engine, uint64_t *cursor, kdp_wireguard_peer_info *info) {
  const kdp_wg_device *device = device_of(engine);
  uint32_t at = kdp_wg_peer_table_after(&device->peers, *cursor);
  if (at >= device->peers.count) return false;
  describe(device, device->peers.ordered[at], info);
  *cursor = info->peer;
  return true;
}

kdp_status kdp_wireguard_find_peer(const kdp_engine *engine, const uint8_t public_key[KDP_KEY_SIZE],
                                   kdp_wireguard_peer_info *info) {
  const kdp_wg_device *device = device_of(engine);
  const kdp_wg_peer *peer = kdp_wg_peer_table_find(&device->peers, public_key);
  if (!peer) return KDP_NOT_FOUND;
  describe(device, peer, info);
  return KDP_OK;
}

uint32_t kdp_wireguard_prefixes(const kdp_engine *engine, uint64_t number, uint32_t first, kdp_prefix *prefix,
                                uint32_t capacity) {
  const kdp_wg_peer *peer = kdp_wg_peer_table_numbered(&device_of(engine)->peers, number);
  return peer ? kdp_trie_list(&peer->prefixes, first, prefix, capacity) : 0;
}

uint64_t kdp_wireguard_newest_stamp(const kdp_engine *engine) {
  return device_of(engine)->newest_stamp;
}

void kdp_wireguard_public_key(const uint8_t private_key[KDP_KEY_SIZE], uint8_t public_key[KDP_KEY_SIZE]) {
  crypto_scalarmult_curve25519_base(public_key, private_key);
}
