#include "fixed_key_engine.h"

#include <string.h>

enum { HEAD = 16, TAIL = KDP_AEAD_TAG_SIZE, MESSAGE_TYPE = 4, EXPANDED_MOST = 4096 };

typedef struct fixed_key_engine {
  kdp_engine engine; /* first */
  kdp_lane lane;
  kdp_host host;
  void *memory; /* where this lies in, aligned */
  kdp_path path;
  uint16_t inside_mtu;
  uint64_t counter;
  kdp_statistics statistics;
  kdp_aead_worker *worker; /* NULL: no cipher */
  const kdp_aead *aead;
  const uint8_t *key;
  kdp_aead_job job[KDP_AEAD_MAX_BATCH];
  _Alignas(64) uint8_t expanded[EXPANDED_MOST];
} fixed_key_engine;

static fixed_key_engine *engine_of(kdp_lane *lane) {
  return (fixed_key_engine *)lane->engine;
}

static void end_packet(fixed_key_engine *self, kdp_packet *packet, kdp_out *out, kdp_status status) {
  packet->status = (uint16_t)status;
  self->statistics.status[status]++;
  kdp_pool_release(out->pool, packet->slot);
}

static void set_job(fixed_key_engine *self, kdp_aead_job *job, uint8_t *text, uint32_t size, const uint8_t *counter) {
  *job = (kdp_aead_job){.key = self->key, .source = text, .destination = text, .tag = text + size, .size = size};
  memcpy(job->nonce + 4, counter, 8);
}

static void write_head(uint8_t *head, uint64_t counter) {
  static const uint8_t start[8] = {MESSAGE_TYPE, 0, 0, 0, 1, 0, 0, 0};
  memcpy(head, start, 8);
  memcpy(head + 8, &counter, 8);
}

static void push(kdp_packet *packet, kdp_out *out) {
  if (out->wire.count > 0) {
    const kdp_packet *before = &out->wire.packet[out->wire.count - 1];
    if (before->size == packet->size && before->path == packet->path) packet->flags |= KDP_SAME_SIZE;
  }
  (void)kdp_batch_push(&out->wire, packet);
}

/* Up to 64 packets with one call of the cipher; returns how many were taken. */
static uint32_t seal_some(fixed_key_engine *self, kdp_packet *packet, uint32_t count, kdp_out *out) {
  uint32_t jobs = 0, taken = 0;
  uint16_t path = kdp_batch_path(&out->wire, &self->path);
  if (path == UINT16_MAX) return 0;
  for (; taken < count && jobs < KDP_AEAD_MAX_BATCH && kdp_batch_room(&out->wire) > 0; taken++) {
    kdp_packet sealed = packet[taken];
    if (sealed.status != KDP_OK || sealed.head < HEAD || sealed.tail < TAIL) {
      end_packet(self, &packet[taken], out, sealed.status != KDP_OK ? sealed.status : KDP_INVALID_ARGUMENT);
      continue;
    }
    uint8_t *head = sealed.data - HEAD;
    write_head(head, self->counter++);
    if (self->worker)
      set_job(self, &self->job[jobs++], sealed.data, sealed.size, head + 8);
    else
      memcpy(sealed.data + sealed.size, head, TAIL);
    sealed.data = head;
    sealed.head -= HEAD;
    sealed.tail -= TAIL;
    sealed.size += HEAD + TAIL;
    sealed.path = path;
    sealed.flags = 0;
    sealed.ecn = 0;
    self->statistics.wire_out.packets++;
    self->statistics.wire_out.bytes += sealed.size;
    push(&sealed, out);
  }
  if (jobs > 0) self->aead->seal(self->worker, self->job, jobs);
  return taken;
}

static uint32_t inside(kdp_lane *lane, kdp_batch *in, kdp_out *out, kdp_now now) {
  (void)now;
  uint32_t done = 0, taken = 1;
  for (; done < in->count && taken > 0; done += taken)
    taken = seal_some(engine_of(lane), in->packet + done, in->count - done, out);
  return done;
}

static bool is_ours(const kdp_packet *packet) {
  return packet->status == KDP_OK && packet->size > HEAD + TAIL && packet->data[0] == MESSAGE_TYPE;
}

static uint32_t open_some(fixed_key_engine *self, kdp_packet *packet, uint32_t count, kdp_out *out) {
  kdp_packet *kept[KDP_AEAD_MAX_BATCH];
  uint32_t jobs = 0, taken = 0, room = kdp_batch_room(&out->inside);
  for (; taken < count && jobs < KDP_AEAD_MAX_BATCH && jobs < room; taken++) {
    kdp_packet *opened = &packet[taken];
    if (!is_ours(opened)) {
      end_packet(self, opened, out, opened->status != KDP_OK ? opened->status : KDP_MALFORMED);
      continue;
    }
    self->statistics.wire_in.packets++;
    self->statistics.wire_in.bytes += opened->size;
    set_job(self, &self->job[jobs], opened->data + HEAD, opened->size - HEAD - TAIL, opened->data + 8);
    opened->data += HEAD;
    opened->head += HEAD;
    opened->size -= HEAD + TAIL;
    kept[jobs++] = opened;
  }
  if (jobs > 0 && self->worker) (void)self->aead->open(self->worker, self->job, jobs);
  for (uint32_t i = 0; i < jobs; i++)
    if (self->job[i].status == KDP_OK)
      (void)kdp_batch_push(&out->inside, kept[i]);
    else
      end_packet(self, kept[i], out, (kdp_status)self->job[i].status);
  return taken;
}

static uint32_t outside(kdp_lane *lane, kdp_batch *in, kdp_out *out, kdp_now now) {
  (void)now;
  uint32_t done = 0, taken = 1;
  for (; done < in->count && taken > 0; done += taken)
    taken = open_some(engine_of(lane), in->packet + done, in->count - done, out);
  return done;
}

static kdp_room room(const kdp_engine *engine, const kdp_path *path) {
  (void)path;
  return (kdp_room){.head = HEAD,
                    .tail = TAIL,
                    .growth = HEAD + TAIL,
                    .full_tail = TAIL,
                    .inside_mtu = ((const fixed_key_engine *)engine)->inside_mtu,
                    .reorder_window = UINT32_MAX};
}

static kdp_lane *lane_of(kdp_engine *engine, uint32_t index) {
  return index == 0 ? &((fixed_key_engine *)engine)->lane : NULL;
}

static void set_inside_mtu(kdp_engine *engine, uint16_t bytes) {
  ((fixed_key_engine *)engine)->inside_mtu = bytes;
}

static uint64_t deadline(const kdp_lane *lane) {
  (void)lane;
  return KDP_NEVER;
}

static void tick(kdp_lane *lane, kdp_out *out, kdp_now now) {
  (void)lane, (void)out, (void)now;
}

static bool next_event(kdp_engine *engine, kdp_event *event) {
  (void)engine, (void)event;
  return false;
}

static void statistics(const kdp_engine *engine, kdp_statistics *result) {
  *result = ((const fixed_key_engine *)engine)->statistics;
}

static void destroy(kdp_engine *engine) {
  fixed_key_engine *self = (fixed_key_engine *)engine;
  kdp_host host = self->host;
  kdp_aead_worker_destroy(self->worker);
  host.release(host.context, self->memory, sizeof *self + 64);
}

static const kdp_engine_ops ops = {
    .name = "fixed key",
    .destroy = destroy,
    .room = room,
    .lane = lane_of,
    .inside = inside,
    .outside = outside,
    .set_inside_mtu = set_inside_mtu,
    .deadline = deadline,
    .tick = tick,
    .next_event = next_event,
    .statistics = statistics,
};

kdp_status bench_fixed_key_create(bench_cipher cipher, const char *aead_provider, const kdp_address *remote,
                                  uint16_t inside_mtu, const kdp_host *host, kdp_engine **engine) {
  static const uint8_t key[32] = {1, 2, 3}; /* hides nothing from anyone */
  void *memory = host->allocate(host->context, sizeof(fixed_key_engine) + 64);
  if (!memory) return KDP_NO_MEMORY;
  fixed_key_engine *self = (void *)(((uintptr_t)memory + 63) & ~(uintptr_t)63);
  memset(self, 0, sizeof *self);
  self->memory = memory;
  self->engine.ops = &ops;
  self->lane.engine = &self->engine;
  self->host = *host;
  self->path.remote = *remote;
  self->inside_mtu = inside_mtu;
  self->key = key;
  *engine = &self->engine;
  if (cipher == BENCH_NONE) return KDP_OK;
  kdp_status status = kdp_aead_worker_choose(aead_provider, host, &self->worker);
  if (status == KDP_OK) {
    self->aead =
        kdp_aead_of(self->worker, cipher == BENCH_AES_256_GCM ? KDP_AEAD_AES_256_GCM : KDP_AEAD_CHACHA20_POLY1305);
    if (self->aead->expanded_size > EXPANDED_MOST) status = KDP_UNSUPPORTED;
  }
  if (status != KDP_OK) {
    destroy(&self->engine);
    return status;
  }
  if (self->aead->expanded_size > 0) {
    self->aead->expand(self->worker, key, self->expanded);
    self->key = self->expanded;
  }
  return KDP_OK;
}

const char *bench_fixed_key_library(const kdp_engine *engine) {
  const fixed_key_engine *self = (const fixed_key_engine *)engine;
  return self->worker ? kdp_aead_worker_version(self->worker) : "none";
}
