#include <sodium.h>

#include "core/wipe.h"
#include "wireguard/device.h"

/* "NAME = base64 of a key". */
static void write_key(const kdp_host *host, const char *name, const uint8_t key[KDP_WG_KEY_SIZE]) {
  char line[96];
  size_t at = strlen(name);
  memcpy(line, name, at);
  memcpy(line + at, " = ", 3);
  at += 3;
  sodium_bin2base64(line + at, sizeof line - at, key, KDP_WG_KEY_SIZE, sodium_base64_VARIANT_ORIGINAL);
  host->keylog(host->context, line, at + strlen(line + at));
  kdp_wipe(line, sizeof line);
}

/* An ephemeral key belongs to the static keys before it, a preshared key to the ephemeral key before it. */
void kdp_wg_keylog(const kdp_wg_device *device, const kdp_wg_peer *peer,
                   const uint8_t ephemeral_private[KDP_WG_KEY_SIZE]) {
  const kdp_host *host = &device->host;
  if (!host->keylog) return;
  write_key(host, "LOCAL_STATIC_PRIVATE_KEY", device->identity.private_key);
  write_key(host, "REMOTE_STATIC_PUBLIC_KEY", peer->public_key);
  write_key(host, "LOCAL_EPHEMERAL_PRIVATE_KEY", ephemeral_private);
  if (!kdp_is_zero(peer->preshared_key, KDP_WG_KEY_SIZE)) write_key(host, "PRESHARED_KEY", peer->preshared_key);
}
