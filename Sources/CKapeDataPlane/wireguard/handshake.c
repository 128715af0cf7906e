/* Handshake messages out and in: when they may leave, what they must pass before expensive work is done for them, and
   what follows from them. The cryptography is in noise.c and cookie.c. */
#include "core/wipe.h"
#include "wireguard/device.h"
#include "wireguard/tai64n.h"

/* ---- Out ---- */

static bool sent_too_lately(const kdp_wg_peer *peer, uint64_t boot) {
  return peer->handshake_sent != 0 && boot - peer->handshake_sent < KDP_WG_REKEY_TIMEOUT;
}

void kdp_wg_want_handshake(kdp_wg_device *device, kdp_wg_peer *peer, uint64_t boot) {
  if (kdp_wg_attempt_runs(peer) || device->down || !device->identity.present || !kdp_wg_peer_has_endpoint(peer)) return;
  kdp_wg_timers_attempt_begun(device, peer, boot);
  if (sent_too_lately(peer, boot))
    kdp_wg_timers_retransmit_after(device, peer, peer->handshake_sent);
  else
    kdp_wg_work_add(device, peer, KDP_WG_WORK_INITIATE);
}

/* The secret of both static keys never changes: computed when first needed, so that adding peers costs nothing. */
static kdp_status know_static_static(kdp_wg_device *device, kdp_wg_peer *peer) {
  if (peer->static_static_known) return KDP_OK;
  kdp_status status = kdp_wg_dh(peer->static_static, device->identity.private_key, peer->public_key);
  peer->static_static_known = status == KDP_OK;
  return status;
}

static void next_stamp(kdp_wg_device *device, kdp_wg_peer *peer, uint8_t stamp[KDP_WG_TIMESTAMP_SIZE], kdp_now now) {
  uint64_t time = kdp_wg_stamp_next(now.wall, peer->stamp);
  /* A little ahead is ordinary: two initiations within one step of the stamps. */
  bool back = time > now.wall && time - now.wall > KDP_SECOND;
  if (back && !device->clock_back) kdp_wg_tell_simple(device, KDP_EVENT_CLOCK_BACK, peer, KDP_OK, time - now.wall, now);
  device->clock_back = back;
  peer->stamp = time;
  if (time > device->newest_stamp) device->newest_stamp = time;
  kdp_wg_stamp_write(time, stamp);
}

/* No initiation to this peer can ever be made. */
static void give_up_at_once(kdp_wg_device *device, kdp_wg_peer *peer, kdp_status why, kdp_now now) {
  peer->timer[KDP_WG_TIMER_RETRANSMIT] = peer->timer[KDP_WG_TIMER_GIVE_UP] = KDP_NEVER;
  peer->handshake_sent = now.boot;
  kdp_wg_count(device, KDP_STAGED_DROPPED, kdp_wg_staging_drop_all(&device->staging, &peer->staged));
  kdp_wg_count(device, why, 1);
  kdp_wg_tell_simple(device, KDP_EVENT_HANDSHAKE_FAILED, peer, why, peer->attempts, now);
}

static void initiation_sent(kdp_wg_device *device, kdp_wg_peer *peer, kdp_now now) {
  peer->handshake_sent = now.boot;
  kdp_wg_add_bytes(device, &peer->sent_bytes, sizeof(kdp_wg_initiation));
  memmove(peer->initiated + 1, peer->initiated, sizeof peer->initiated - sizeof peer->initiated[0]);
  peer->initiated[0] = now.boot;
  peer->attempts++;
  peer->unanswered++;
  kdp_counter_add(&device->lane[0].statistics.handshake_tries, 1);
  kdp_traffic_add(&device->lane[0].statistics.wire_out, 1, sizeof(kdp_wg_initiation));
  kdp_wg_timers_any_sent(device, peer, now.boot);
  kdp_wg_timers_retransmit_after(device, peer, now.boot);
  kdp_event event;
  kdp_wg_event(&event, KDP_EVENT_HANDSHAKE_STARTED, peer, now);
  event.value = peer->attempts;
  event.address = peer->path.remote;
  kdp_wg_tell(device, &event);
}

kdp_status kdp_wg_send_initiation(kdp_wg_device *device, kdp_wg_peer *peer, kdp_out *out, kdp_now now) {
  if (!device->identity.present || !kdp_wg_peer_has_endpoint(peer)) {
    peer->timer[KDP_WG_TIMER_RETRANSMIT] = peer->timer[KDP_WG_TIMER_GIVE_UP] = KDP_NEVER;
    return KDP_OK;
  }
  if (sent_too_lately(peer, now.boot)) {
    kdp_wg_timers_retransmit_after(device, peer, peer->handshake_sent);
    return KDP_OK;
  }
  kdp_packet packet;
  uint16_t path_index;
  if (kdp_batch_room(&out->wire) == 0 || !kdp_wg_path_index(&device->lane[0], peer, out, &path_index))
    return KDP_OUT_FULL;
  if (!kdp_pool_take_packet(out->pool, KDP_WIREGUARD_HEAD, sizeof(kdp_wg_initiation), KDP_WIREGUARD_TAIL, &packet))
    return KDP_POOL_EMPTY;
  device->budget--;

  kdp_wg_initiation *message = (kdp_wg_initiation *)packet.data;
  uint8_t ephemeral_private[KDP_WG_KEY_SIZE], stamp[KDP_WG_TIMESTAMP_SIZE];
  kdp_status status = know_static_static(device, peer);
  if (status == KDP_OK) {
    device->host.random(device->host.context, ephemeral_private, sizeof ephemeral_private);
    next_stamp(device, peer, stamp, now);
    kdp_wg_handshake_clear(device, peer);
    status = kdp_wg_initiation_create(&device->identity, peer->public_key, peer->static_static, ephemeral_private,
                                      stamp, &peer->handshake, message);
  }
  if (status == KDP_OK) {
    peer->handshake_active = true;
    kdp_wg_change_begin(device);
    peer->handshake_index = kdp_wg_index_take(&device->indices, KDP_WG_INDEX_HANDSHAKE, peer, &device->host);
    kdp_wg_change_end(device);
    kdp_store_le32(message->sender, peer->handshake_index);
    kdp_wg_macs_write(&peer->cookie, packet.data, sizeof *message, now.boot);
    kdp_wg_keylog(device, peer, ephemeral_private);
    packet.path = path_index;
    kdp_batch_push(&out->wire, &packet);
    initiation_sent(device, peer, now);
  } else {
    kdp_pool_release(out->pool, packet.slot);
    give_up_at_once(device, peer, status, now);
  }
  kdp_wipe(ephemeral_private, sizeof ephemeral_private);
  return KDP_OK;
}

/* ---- In: load ---- */

bool kdp_wg_under_load(const kdp_wg_device *device, uint64_t boot) {
  return device->load_until != 0 && boot < device->load_until;
}

/* Every message that is read counts, whatever it turns out to be, as in the kernel's queue. */
static void count_message(kdp_wg_device *device, kdp_now now) {
  if (now.boot - device->load_window >= KDP_WG_LOAD_WINDOW) {
    device->load_window = now.boot;
    device->load_messages = 0;
  }
  if (++device->load_messages < KDP_WG_LOAD_MESSAGES) return;
  if (!kdp_wg_under_load(device, now.boot)) kdp_wg_tell_simple(device, KDP_EVENT_UNDER_LOAD, NULL, KDP_OK, 1, now);
  device->load_until = now.boot + KDP_WG_LOAD_HOLD;
}

/* What a message must show before it may cost us a multiplication, the cheapest first: who does not know our public key
   gets no answer, not even a cookie. OK, or what became of it; with COOKIE_SENT the caller has to send one. */
static kdp_status admit(kdp_wg_device *device, const kdp_packet *packet, const kdp_path *path, kdp_now now) {
  if (!device->identity.present) return KDP_NO_KEY;
  if (!kdp_wg_mac1_valid(&device->checker, packet->data, packet->size)) return KDP_BAD_MAC1;
  if (!kdp_wg_under_load(device, now.boot)) return KDP_OK;
  if (!kdp_wg_mac2_valid(&device->checker, packet->data, packet->size, &path->remote, &device->host, now.boot))
    return KDP_COOKIE_SENT;
  return kdp_wg_ratelimit_allow(&device->ratelimit, &path->remote, now.boot) ? KDP_OK : KDP_RATE_LIMITED;
}

/* Sends `size` bytes that were written in the place of the packet that they answer. */
static void answer(const kdp_packet *packet, uint32_t size, uint16_t path_index, kdp_out *out) {
  kdp_packet reply = *packet;
  kdp_wg_trim(&reply, size);
  reply.path = path_index;
  reply.ecn = 0;
  reply.flags = 0;
  reply.status = KDP_OK;
  kdp_batch_push(&out->wire, &reply);
}

static void send_cookie(kdp_wg_device *device, const kdp_packet *packet, const kdp_path *path, kdp_out *out,
                        kdp_now now) {
  kdp_wg_cookie_reply reply;
  const kdp_wg_macs *macs = (const kdp_wg_macs *)(packet->data + packet->size - sizeof(kdp_wg_macs));
  kdp_wg_cookie_reply_create(&device->checker, macs->mac1, packet->data + 4, &path->remote, &device->host, now.boot,
                             &reply);
  memcpy(packet->data, &reply, sizeof reply);
  answer(packet, sizeof reply, kdp_batch_path(&out->wire, path), out);
  kdp_traffic_add(&device->lane[0].statistics.wire_out, 1, sizeof reply);
}

/* ---- In: authenticated ---- */

void kdp_wg_authenticated(kdp_wg_device *device, kdp_wg_peer *peer, const kdp_path *path, kdp_now now) {
  if (!kdp_path_equal(path, &peer->path)) {
    bool known = kdp_wg_peer_has_endpoint(peer);
    bool moved = !kdp_address_equal(&path->remote, &peer->path.remote);
    kdp_wg_change_begin(device);
    kdp_wg_peer_set_path(peer, path);
    kdp_wg_change_end(device);
    if (moved) {
      if (known) kdp_counter_add(&device->lane[0].statistics.roams, 1);
      kdp_event event;
      kdp_wg_event(&event, KDP_EVENT_ENDPOINT_CHANGED, peer, now);
      event.address = path->remote;
      kdp_wg_tell(device, &event);
    }
  }
  peer->unanswered = 0;
  device->authenticated = now.boot;
  kdp_wg_timers_any_received(device, peer, now.boot);
}

static void count_received(kdp_wg_device *device, kdp_wg_peer *peer, uint32_t size) {
  kdp_wg_add_bytes(device, &peer->received_bytes, size);
  kdp_traffic_add(&device->lane[0].statistics.wire_in, 1, size);
}

/* Who sent an initiation, and whether it is new. */
static kdp_status receive_initiation(kdp_wg_device *device, const kdp_wg_initiation *message,
                                     kdp_wg_reception *reception, kdp_wg_peer **sender, kdp_now now) {
  kdp_status status = kdp_wg_initiation_open_static(&device->identity, message, reception);
  if (status != KDP_OK) return status;
  kdp_wg_peer *peer = kdp_wg_peer_table_find(&device->peers, reception->remote_static);
  if (!peer) return KDP_UNKNOWN_PEER;
  status = know_static_static(device, peer);
  if (status != KDP_OK) return status;
  status = kdp_wg_initiation_open_timestamp(message, peer->static_static, reception);
  if (status != KDP_OK) return status;
  if (memcmp(reception->timestamp, peer->newest_timestamp, KDP_WG_TIMESTAMP_SIZE) <= 0) return KDP_STALE_TIMESTAMP;
  if (peer->initiation_consumed != 0 &&
      now.boot - peer->initiation_consumed < KDP_SECOND / KDP_WG_INITIATIONS_PER_SECOND)
    return KDP_FLOOD;
  *sender = peer;
  return KDP_OK;
}

static void send_response(kdp_wg_device *device, kdp_wg_peer *peer, const kdp_packet *packet,
                          const kdp_wg_response *response, kdp_out *out, kdp_now now) {
  uint16_t path_index = 0;
  memcpy(packet->data, response, sizeof *response);
  /* There is room for a path: the caller saw to it. */
  (void)kdp_wg_path_index(&device->lane[0], peer, out, &path_index);
  answer(packet, sizeof *response, path_index, out);
  peer->handshake_sent = now.boot;
  kdp_wg_add_bytes(device, &peer->sent_bytes, sizeof *response);
  kdp_traffic_add(&device->lane[0].statistics.wire_out, 1, sizeof *response);
  kdp_wg_timers_any_sent(device, peer, now.boot);
}

static kdp_status answer_initiation(kdp_wg_device *device, kdp_wg_peer *peer, const kdp_packet *packet,
                                    kdp_wg_reception *reception, const kdp_path *path, kdp_out *out, kdp_now now) {
  const kdp_wg_initiation *message = (const kdp_wg_initiation *)packet->data;
  uint8_t ephemeral_private[KDP_WG_KEY_SIZE];
  kdp_wg_session_keys keys;
  kdp_wg_response response;
  uint32_t remote_index = kdp_load_le32(message->sender);
  memcpy(peer->newest_timestamp, reception->timestamp, KDP_WG_TIMESTAMP_SIZE);
  peer->initiation_consumed = now.boot;
  device->host.random(device->host.context, ephemeral_private, sizeof ephemeral_private);
  kdp_status status = kdp_wg_response_create(reception, peer->preshared_key, ephemeral_private, &response, &keys);
  if (status == KDP_OK) {
    count_received(device, peer, packet->size);
    kdp_wg_keylog(device, peer, ephemeral_private);
    kdp_wg_change_begin(device);
    kdp_wg_authenticated(device, peer, path, now);
    uint32_t local_index = kdp_wg_index_take(&device->indices, KDP_WG_INDEX_HANDSHAKE, peer, &device->host);
    kdp_wg_session_add(device, peer, &keys, false, local_index, remote_index, now);
    kdp_wg_change_end(device);
    kdp_store_le32(response.sender, local_index);
    kdp_store_le32(response.receiver, remote_index);
    kdp_wg_macs_write(&peer->cookie, (uint8_t *)&response, sizeof response, now.boot);
    send_response(device, peer, packet, &response, out, now);
  }
  kdp_wipe(ephemeral_private, sizeof ephemeral_private);
  kdp_wipe(&keys, sizeof keys);
  return status;
}

static kdp_status take_initiation(kdp_wg_device *device, const kdp_packet *packet, const kdp_path *path, kdp_out *out,
                                  kdp_now now, bool *answered) {
  kdp_wg_reception reception;
  kdp_wg_peer *peer = NULL;
  device->budget--;
  kdp_status status = receive_initiation(device, (const kdp_wg_initiation *)packet->data, &reception, &peer, now);
  if (status == KDP_OK) {
    status = answer_initiation(device, peer, packet, &reception, path, out, now);
    *answered = status == KDP_OK;
  }
  kdp_wg_reception_wipe(&reception);
  return status;
}

static kdp_status take_response(kdp_wg_device *device, const kdp_packet *packet, const kdp_path *path, kdp_now now) {
  const kdp_wg_response *message = (const kdp_wg_response *)packet->data;
  uint32_t local_index = kdp_load_le32(message->receiver);
  kdp_wg_index_entry *entry = kdp_wg_index_find(&device->indices, local_index);
  if (!entry) return KDP_UNKNOWN_SESSION;
  if (entry->kind != KDP_WG_INDEX_HANDSHAKE) return KDP_UNEXPECTED_MESSAGE;
  kdp_wg_peer *peer = entry->value;
  kdp_wg_session_keys keys;
  device->budget--;
  kdp_status status = kdp_wg_response_consume(&device->identity, &peer->handshake, peer->preshared_key, message, &keys);
  if (status == KDP_OK) {
    peer->handshake_active = false;
    count_received(device, peer, packet->size);
    kdp_wg_change_begin(device);
    kdp_wg_authenticated(device, peer, path, now);
    kdp_wg_session_add(device, peer, &keys, true, local_index, kdp_load_le32(message->sender), now);
    kdp_wg_change_end(device);
    /* The responder waits for a packet before it sends: whatever is staged, or else an empty one, at once. */
    kdp_wg_owe_keepalive(device, peer);
  }
  kdp_wipe(&keys, sizeof keys);
  return status;
}

/* Proves nothing about where the peer is: anyone may repeat it. So nothing but the cookie changes. */
static kdp_status take_cookie(kdp_wg_device *device, const kdp_packet *packet, kdp_now now) {
  const kdp_wg_cookie_reply *message = (const kdp_wg_cookie_reply *)packet->data;
  kdp_wg_index_entry *entry = kdp_wg_index_find(&device->indices, kdp_load_le32(message->receiver));
  if (!entry) return KDP_UNKNOWN_SESSION;
  kdp_wg_peer *peer =
      entry->kind == KDP_WG_INDEX_KEY_PAIR ? ((kdp_wg_key_pair *)entry->value)->peer : (kdp_wg_peer *)entry->value;
  return kdp_wg_cookie_consume(&peer->cookie, peer->public_key, message, now.boot);
}

kdp_status kdp_wg_handshake_message(kdp_wg_device *device, kdp_wg_message_type type, kdp_packet *packet,
                                    const kdp_path *path, kdp_out *out, kdp_now now) {
  bool answered = false;
  if (type != KDP_WG_COOKIE_REPLY) count_message(device, now);
  kdp_status status = type == KDP_WG_COOKIE_REPLY ? KDP_OK : admit(device, packet, path, now);
  if (status == KDP_COOKIE_SENT) {
    send_cookie(device, packet, path, out, now);
    answered = true;
  } else if (status == KDP_OK) {
    switch (type) {
    case KDP_WG_INITIATION: status = take_initiation(device, packet, path, out, now, &answered); break;
    case KDP_WG_RESPONSE: status = take_response(device, packet, path, now); break;
    case KDP_WG_COOKIE_REPLY: status = take_cookie(device, packet, now); break;
    case KDP_WG_TRANSPORT: status = KDP_UNEXPECTED_MESSAGE; break;
    }
  }
  if (!answered) kdp_pool_release(out->pool, packet->slot);
  return status;
}
