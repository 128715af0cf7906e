#include "echo_engine.h"

#include <string.h>

#include "core/bytes.h"
#include "core/event_queue.h"
#include "core/wipe.h"
#include "net/ip.h"
#include "net/replay_window.h"

enum { HELLO = 1, WELCOME, PROBE, ECHO, DATA, WINDOW_WORDS = 4, DEFAULT_MTU = 1400 };

#define HELLO_EVERY KDP_SECOND
#define PROBE_AFTER (10 * KDP_SECOND) /* of silence */
#define LOST_AFTER (25 * KDP_SECOND)
#define POOL_RETRY (10 * KDP_MILLISECOND)

typedef struct echo_engine {
  kdp_engine engine; /* first, so that a kdp_engine * is an echo_engine * */
  kdp_lane lane;
  kdp_host host;
  echo_config config;
  kdp_event_queue events;
  kdp_statistics statistics;
  uint16_t inside_mtu;
  bool up;
  kdp_path path; /* where the other side was heard last */
  uint32_t session;
  uint64_t stamp;   /* client: of the newest HELLO sent; server: of the newest one welcomed */
  uint64_t counter; /* next to send */
  kdp_replay_window window;
  uint64_t word[WINDOW_WORDS];
  uint64_t attempts, hello_at, probe_at, lost_at; /* KDP_NEVER: not running */
} echo_engine;

static echo_engine *echo_of(kdp_lane *lane) {
  return (echo_engine *)lane->engine;
}

/* ---- Counting and telling ---- */

static void count(echo_engine *echo, kdp_status status) {
  echo->statistics.status[status]++;
}

/* A packet that ends here: its slot goes back. */
static void end(echo_engine *echo, kdp_packet *packet, kdp_out *out, kdp_status status) {
  packet->status = (uint16_t)status;
  count(echo, status);
  kdp_pool_release(out->pool, packet->slot);
}

static void tell(echo_engine *echo, kdp_event_kind kind, kdp_status status, uint64_t value, kdp_now now) {
  kdp_event event = {.kind = (uint16_t)kind,
                     .status = (uint16_t)status,
                     .boot = now.boot,
                     .peer = 1,
                     .value = value,
                     .address = echo->path.remote};
  if (!kdp_event_queue_push(&echo->events, &event)) count(echo, KDP_EVENTS_LOST);
}

/* ---- Messages ---- */

static uint64_t tag_of(const echo_engine *echo, const uint8_t *bytes, size_t size) {
  uint64_t tag = echo->config.key;
  for (size_t i = 0; i < size; i++)
    tag = (tag ^ bytes[i]) * UINT64_C(0x100000001b3);
  return tag ^ tag >> 32;
}

/* Puts the header in front of the packet and the tag behind it, in place. */
static void seal(echo_engine *echo, kdp_packet *packet, uint8_t type, uint32_t session, uint64_t counter) {
  uint8_t *head = packet->data - ECHO_HEAD;
  memset(head, 0, 4);
  head[0] = type;
  kdp_store_be32(head + 4, session);
  kdp_store_be64(head + 8, counter);
  kdp_store_le64(packet->data + packet->size, tag_of(echo, head, ECHO_HEAD + packet->size));
  packet->data = head;
  packet->size += ECHO_HEAD + ECHO_TAIL;
  packet->head -= ECHO_HEAD;
  packet->tail -= ECHO_TAIL;
}

static void push(echo_engine *echo, kdp_out *out, kdp_packet *packet) {
  kdp_batch_push(&out->wire, packet);
  echo->statistics.wire_out.packets++;
  echo->statistics.wire_out.bytes += packet->size;
}

/* Room for one more packet to `path` in `out`? The index of the path, or UINT16_MAX. */
static uint16_t wire_room(kdp_out *out, const kdp_path *path) {
  return kdp_batch_room(&out->wire) ? kdp_batch_path(&out->wire, path) : UINT16_MAX;
}

/* A packet of the engine's own, without content. */
static kdp_status send_message(echo_engine *echo, kdp_out *out, uint8_t type, uint64_t counter) {
  uint16_t path = wire_room(out, &echo->path);
  if (path == UINT16_MAX) return KDP_OUT_FULL;
  kdp_packet packet;
  if (!kdp_pool_take_packet(out->pool, ECHO_HEAD, 0, ECHO_TAIL, &packet)) {
    count(echo, KDP_POOL_EMPTY);
    return KDP_POOL_EMPTY;
  }
  packet.path = path;
  seal(echo, &packet, type, type == HELLO ? 0 : echo->session, counter);
  push(echo, out, &packet);
  return KDP_OK;
}

/* ---- The session ---- */

static void start_session(echo_engine *echo, uint32_t session, kdp_now now) {
  bool again = echo->up;
  echo->up = true;
  echo->session = session;
  echo->counter = 0;
  kdp_replay_window_start(&echo->window, echo->word, WINDOW_WORDS);
  echo->hello_at = KDP_NEVER;
  echo->probe_at = now.boot + PROBE_AFTER;
  echo->lost_at = now.boot + LOST_AFTER;
  echo->attempts = 0;
  echo->statistics.handshakes++;
  echo->statistics.key_changes++;
  tell(echo, again ? KDP_EVENT_REKEYED : KDP_EVENT_CONNECTED, KDP_OK, 0, now);
}

static void end_session(echo_engine *echo, kdp_now now) {
  echo->up = false;
  echo->probe_at = echo->lost_at = KDP_NEVER;
  tell(echo, KDP_EVENT_DISCONNECTED, KDP_HANDSHAKE_TIMEOUT, 0, now);
  if (!echo->config.server) echo->hello_at = now.boot;
}

/* Something of this session arrived: the other side lives, and this is where. */
static void heard(echo_engine *echo, const kdp_path *path, kdp_now now) {
  echo->probe_at = now.boot + PROBE_AFTER;
  echo->lost_at = now.boot + LOST_AFTER;
  if (!kdp_address_equal(&echo->path.remote, &path->remote)) {
    echo->path = *path;
    echo->statistics.roams++;
    tell(echo, KDP_EVENT_ENDPOINT_CHANGED, KDP_OK, 0, now);
  }
  echo->path = *path;
}

/* ---- Inside ---- */

static uint32_t inside(kdp_lane *lane, kdp_batch *in, kdp_out *out, kdp_now now) {
  (void)now;
  echo_engine *echo = echo_of(lane);
  uint32_t done = 0;
  for (; done < in->count; done++) {
    kdp_packet *packet = &in->packet[done];
    uint32_t size = packet->size;
    kdp_status refusal = KDP_OK;
    kdp_ip ip;
    if (!echo->up)
      refusal = KDP_NO_ENDPOINT;
    else if (kdp_ip_read(packet->data, size, &ip) != KDP_OK || ip.size != size)
      refusal = KDP_NOT_IP;
    else if (size > echo->inside_mtu)
      refusal = KDP_TOO_BIG;
    else if (packet->head < ECHO_HEAD || packet->tail < ECHO_TAIL)
      refusal = KDP_INVALID_ARGUMENT;
    uint16_t path = 0;
    if (refusal == KDP_OK) {
      path = wire_room(out, &echo->path);
      if (path == UINT16_MAX) break; /* short: the caller drains and comes again */
    }
    echo->statistics.inside_in.packets++;
    echo->statistics.inside_in.bytes += size;
    if (refusal != KDP_OK) {
      end(echo, packet, out, refusal);
      continue;
    }
    packet->path = path;
    packet->ecn = kdp_ecn_encapsulate(kdp_ip_ecn(packet->data));
    packet->flags = 0;
    packet->status = KDP_OK;
    count(echo, KDP_OK);
    seal(echo, packet, DATA, echo->session, echo->counter++);
    push(echo, out, packet); /* the use of its slot goes with it */
  }
  return done;
}

/* ---- Outside ---- */

/* What a datagram is: OK, or why it is dropped. Nothing is changed yet. */
static kdp_status inspect(const echo_engine *echo, const kdp_packet *packet) {
  if (packet->size < ECHO_HEAD + ECHO_TAIL) return KDP_TOO_SHORT;
  uint8_t type = packet->data[0];
  if (type < HELLO || type > DATA) return KDP_UNKNOWN_TYPE;
  if (type == DATA ? packet->size < ECHO_HEAD + 20 + ECHO_TAIL : packet->size != ECHO_HEAD + ECHO_TAIL)
    return KDP_MALFORMED;
  uint32_t signed_size = packet->size - ECHO_TAIL;
  if (tag_of(echo, packet->data, signed_size) != kdp_load_le64(packet->data + signed_size))
    return KDP_AUTHENTICATION_FAILED;
  uint64_t counter = kdp_load_be64(packet->data + 8);
  if (type == HELLO) {
    if (!echo->config.server) return KDP_UNEXPECTED_MESSAGE;
    return counter < echo->stamp ? KDP_STALE_TIMESTAMP : KDP_OK;
  }
  if (type == WELCOME) return echo->hello_at == KDP_NEVER || counter != echo->stamp ? KDP_UNEXPECTED_MESSAGE : KDP_OK;
  if (!echo->up || kdp_load_be32(packet->data + 4) != echo->session) return KDP_UNKNOWN_SESSION;
  return kdp_replay_window_check(&echo->window, counter) ? KDP_OK : KDP_REPLAYED;
}

/* HELLO: a newer one begins a session; the newest again means that our WELCOME was lost. */
static void welcome(echo_engine *echo, const kdp_path *path, uint64_t stamp, kdp_out *out, kdp_now now) {
  echo->path = *path;
  if (stamp > echo->stamp || !echo->up) {
    uint32_t session;
    echo->host.random(echo->host.context, &session, sizeof session);
    echo->stamp = stamp;
    start_session(echo, session, now);
  }
  (void)!send_message(echo, out, WELCOME, stamp); /* not sent: the client says hello again */
}

static void open_data(echo_engine *echo, kdp_packet *packet, kdp_out *out) {
  uint8_t *bytes = packet->data + ECHO_HEAD;
  kdp_ip ip;
  if (kdp_ip_read(bytes, packet->size - ECHO_HEAD - ECHO_TAIL, &ip) != KDP_OK) {
    end(echo, packet, out, KDP_NOT_IP);
    return;
  }
  uint8_t inner = kdp_ip_ecn(bytes);
  int ecn = kdp_ecn_decapsulate(inner, packet->ecn);
  if (ecn < 0) {
    end(echo, packet, out, KDP_ECN_DROPPED);
    return;
  }
  if (ecn != inner) kdp_ip_set_ecn(bytes, (uint8_t)ecn);
  packet->data += ECHO_HEAD;
  packet->head += ECHO_HEAD;
  packet->size -= ECHO_HEAD + ECHO_TAIL;
  packet->tail += ECHO_TAIL;
  packet->status = KDP_OK;
  count(echo, KDP_OK);
  kdp_batch_push(&out->inside, packet);
  echo->statistics.inside_out.packets++;
  echo->statistics.inside_out.bytes += packet->size;
}

static uint32_t outside(kdp_lane *lane, kdp_batch *in, kdp_out *out, kdp_now now) {
  echo_engine *echo = echo_of(lane);
  uint32_t done = 0;
  for (; done < in->count; done++) {
    kdp_packet *packet = &in->packet[done];
    const kdp_path *path = &in->path[packet->path];
    kdp_status status = inspect(echo, packet);
    if (status != KDP_OK) {
      end(echo, packet, out, status);
      continue;
    }
    uint8_t type = packet->data[0];
    uint64_t counter = kdp_load_be64(packet->data + 8);
    /* Room first: what is consumed cannot be taken back. */
    if (type == DATA && kdp_batch_room(&out->inside) == 0) break;
    if ((type == HELLO || type == PROBE) && wire_room(out, path) == UINT16_MAX) break;
    echo->statistics.wire_in.packets++;
    echo->statistics.wire_in.bytes += packet->size;
    if (type >= PROBE) {
      (void)!kdp_replay_window_commit(&echo->window, counter);
      heard(echo, path, now);
    }
    if (type == DATA) {
      open_data(echo, packet, out);
      continue;
    }
    if (type == HELLO) welcome(echo, path, counter, out, now);
    if (type == WELCOME) start_session(echo, kdp_load_be32(packet->data + 4), now);
    if (type == PROBE) (void)!send_message(echo, out, ECHO, echo->counter++);
    end(echo, packet, out, type == PROBE || type == ECHO ? KDP_KEEPALIVE : KDP_OK);
  }
  return done;
}

/* ---- Time ---- */

static uint64_t earlier(uint64_t a, uint64_t b) {
  return a < b ? a : b;
}

static uint64_t deadline(const kdp_lane *lane) {
  const echo_engine *echo = (const echo_engine *)lane->engine;
  return earlier(echo->hello_at, earlier(echo->probe_at, echo->lost_at));
}

static void say_hello(echo_engine *echo, kdp_out *out, kdp_now now) {
  if (echo->attempts == 0) echo->stamp = now.wall > echo->stamp ? now.wall : echo->stamp + 1;
  kdp_status status = send_message(echo, out, HELLO, echo->stamp);
  if (status == KDP_OUT_FULL) return; /* still due: the caller drains and ticks again */
  echo->hello_at = now.boot + (status == KDP_OK ? HELLO_EVERY : POOL_RETRY);
  if (status != KDP_OK) return;
  echo->attempts++;
  echo->statistics.handshake_tries++;
  tell(echo, KDP_EVENT_HANDSHAKE_STARTED, KDP_OK, echo->attempts, now);
}

static void tick(kdp_lane *lane, kdp_out *out, kdp_now now) {
  echo_engine *echo = echo_of(lane);
  if (now.boot >= echo->lost_at) end_session(echo, now);
  if (now.boot >= echo->probe_at) {
    kdp_status status = send_message(echo, out, PROBE, echo->counter);
    if (status == KDP_OK) echo->counter++;
    if (status != KDP_OUT_FULL) echo->probe_at = now.boot + (status == KDP_OK ? PROBE_AFTER : POOL_RETRY);
  }
  if (now.boot >= echo->hello_at) say_hello(echo, out, now);
}

static void network_changed(kdp_lane *lane, kdp_out *out, kdp_now now) {
  echo_engine *echo = echo_of(lane);
  (void)out;
  if (echo->up) echo->probe_at = now.boot; /* due at once: the caller looks at the deadline after every call */
}

/* ---- The rest of the contract ---- */

static void destroy(kdp_engine *engine) {
  kdp_host host = ((echo_engine *)engine)->host;
  kdp_wipe(engine, sizeof(echo_engine));
  host.release(host.context, engine, sizeof(echo_engine));
}

static kdp_room room(const kdp_engine *engine, const kdp_path *path) {
  (void)path;
  return (kdp_room){.head = ECHO_HEAD,
                    .tail = ECHO_TAIL,
                    .growth = ECHO_HEAD + ECHO_TAIL,
                    .inside_mtu = ((const echo_engine *)engine)->inside_mtu,
                    .reorder_window = (WINDOW_WORDS - 1) * 64};
}

static kdp_lane *lane_of(kdp_engine *engine, uint32_t index) {
  return index == 0 ? &((echo_engine *)engine)->lane : NULL;
}

static void set_inside_mtu(kdp_engine *engine, uint16_t bytes) {
  ((echo_engine *)engine)->inside_mtu = bytes;
}

static bool next_event(kdp_engine *engine, kdp_event *event) {
  return kdp_event_queue_take(&((echo_engine *)engine)->events, event);
}

static void statistics(const kdp_engine *engine, kdp_statistics *copy) {
  *copy = ((const echo_engine *)engine)->statistics;
}

/* What this protocol has no use for stays NULL: stream, links, path MTU, tickets. */
static const kdp_engine_ops OPS = {
    .name = "echo",
    .destroy = destroy,
    .room = room,
    .lane = lane_of,
    .inside = inside,
    .outside = outside,
    .network_changed = network_changed,
    .set_inside_mtu = set_inside_mtu,
    .deadline = deadline,
    .tick = tick,
    .next_event = next_event,
    .statistics = statistics,
};

kdp_status echo_create(const echo_config *config, const kdp_limits *limits, const kdp_host *host, kdp_now now,
                       kdp_engine **engine) {
  if (limits->lanes > 1) return KDP_UNSUPPORTED; /* its window is too small to spread a session */
  echo_engine *echo = host->allocate(host->context, sizeof *echo);
  if (!echo) return KDP_NO_MEMORY;
  memset(echo, 0, sizeof *echo);
  echo->engine.ops = &OPS;
  echo->lane = (kdp_lane){.engine = &echo->engine, .newest_boot = now.boot};
  echo->host = *host;
  echo->config = *config;
  echo->inside_mtu = DEFAULT_MTU;
  echo->path.remote = config->remote;
  echo->probe_at = echo->lost_at = KDP_NEVER;
  echo->hello_at = config->server ? KDP_NEVER : now.boot;
  *engine = &echo->engine;
  return KDP_OK;
}
