#include "wireguard/peer.h"

#include "core/wipe.h"

void kdp_wg_peer_start(kdp_wg_peer *peer, const uint8_t public_key[KDP_KEY_SIZE]) {
  uint8_t key[KDP_KEY_SIZE];
  memcpy(key, public_key, sizeof key);
  kdp_wipe(peer, sizeof *peer);
  memcpy(peer->public_key, key, sizeof key);
  for (int i = 0; i < KDP_WG_TIMER_COUNT; i++)
    peer->timer[i] = KDP_NEVER;
  peer->heap_index = KDP_WG_NOT_IN_HEAP;
  kdp_wg_cookie_start(&peer->cookie, key);
}

void kdp_wg_peer_set_path(kdp_wg_peer *peer, const kdp_path *path) {
  bool moved = path->remote.family != peer->path.remote.family ||
               memcmp(path->remote.bytes, peer->path.remote.bytes, sizeof path->remote.bytes) != 0;
  peer->path = *path;
  peer->path_call = 0;
  if (moved) {
    peer->path_mtu = 0;
    peer->path_mtu_ask = 0;
  }
}

uint32_t kdp_wg_peer_inside_limit(const kdp_wg_peer *peer, uint64_t boot) {
  enum { UDP_HEADER = 8, IPV4_HEADER = 20, IPV6_HEADER = 40 };
  if (peer->path_mtu == 0 || boot >= peer->path_mtu_until) return UINT32_MAX;
  uint32_t around =
      (peer->path.remote.family == KDP_FAMILY_IPV6 ? IPV6_HEADER : IPV4_HEADER) + UDP_HEADER + KDP_WIREGUARD_OVERHEAD;
  return peer->path_mtu > around ? peer->path_mtu - around : 0;
}
