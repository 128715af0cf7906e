/* core [SECONDS]: engines in memory, no I/O. For each packet size and batch: ns per packet to seal (inside) and to open
   (outside) through the WireGuard engine, and for the same jobs by raw calls of the AEAD table; and the ratio raw over
   engine, measured in turns. JSON lines. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "kdp/wireguard.h"

enum { MAX_BATCH = 64, MAX_SIZE = 9000, ROOM = 64 };

static uint64_t now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static kdp_now now_both(void) {
  struct timespec boot, wall;
  clock_gettime(CLOCK_BOOTTIME, &boot);
  clock_gettime(CLOCK_REALTIME, &wall);
  return (kdp_now){(uint64_t)boot.tv_sec * 1000000000u + (uint64_t)boot.tv_nsec,
                   (uint64_t)wall.tv_sec * 1000000000u + (uint64_t)wall.tv_nsec};
}

static void must(bool good, const char *what) {
  if (good) return;
  fprintf(stderr, "core: %s\n", what);
  exit(1);
}

typedef struct side {
  kdp_engine *engine;
  kdp_lane *lane;
  kdp_pool *pool;
  kdp_out_storage *storage;
  kdp_out *out;
} side;

static kdp_path path_to(int which) {
  kdp_path path = {.link = 1,
                   .remote = {.family = KDP_FAMILY_IPV4, .port = 51820, .bytes = {192, 0, 2, (uint8_t)which}}};
  return path;
}

static void make(side *s, const kdp_host *host) {
  must(kdp_wireguard_create(&(kdp_wireguard_config){.inside_mtu = MAX_SIZE, .aead_provider = getenv("KAPE_AEAD")},
                            &(kdp_limits){0}, host, now_both(), &s->engine) == KDP_OK,
       "engine");
  s->lane = kdp_engine_lane(s->engine, 0);
  must(kdp_pool_create(64, host, &s->pool) == KDP_OK && kdp_out_create(s->pool, host, &s->storage) == KDP_OK, "pool");
  s->out = kdp_out_of(s->storage);
}

static void configure(side *s, const uint8_t private_key[32], const uint8_t peer[32], int peer_number) {
  kdp_wireguard_prefix_change prefix = {
      {.family = KDP_FAMILY_IPV4, .length = 32, .bytes = {10, 0, 0, (uint8_t)peer_number}}, false};
  kdp_wireguard_peer_change change = {.fields = KDP_WIREGUARD_PEER_SET_ENDPOINT,
                                      .endpoint = path_to(peer_number).remote,
                                      .prefix = &prefix,
                                      .prefix_count = 1};
  memcpy(change.public_key, peer, 32);
  kdp_wireguard_change device = {.fields = KDP_WIREGUARD_SET_PRIVATE_KEY, .peer = &change, .peer_count = 1};
  memcpy(device.private_key, private_key, 32);
  must(kdp_wireguard_apply(s->engine, &device, s->out, now_both()) == KDP_OK, "configuration");
}

/* Carries what is in from->out.wire to the other side. */
static void carry(side *from, side *to, int from_number) {
  kdp_packet packet[KDP_BATCH_CAPACITY];
  kdp_path path = path_to(from_number);
  kdp_batch batch = {
      .packet = packet, .capacity = KDP_BATCH_CAPACITY, .path = &path, .path_count = 1, .path_capacity = 1};
  for (uint32_t i = 0; i < from->out->wire.count; i++) {
    const kdp_packet *sent = &from->out->wire.packet[i];
    must(kdp_pool_take_packet(to->pool, ROOM, sent->size, ROOM, &packet[i]), "pool");
    memcpy(packet[i].data, sent->data, sent->size);
    batch.count++;
  }
  kdp_batch_release(&from->out->wire, from->pool);
  must(kdp_engine_outside(to->lane, &batch, to->out, now_both()) == batch.count, "outside");
}

static uint32_t make_batch(side *s, kdp_packet *packet, uint32_t count, uint32_t size) {
  for (uint32_t i = 0; i < count; i++) {
    must(kdp_pool_take_packet(s->pool, KDP_WIREGUARD_HEAD, size, KDP_WIREGUARD_TAIL, &packet[i]), "pool");
    uint8_t *ip = packet[i].data;
    memset(ip, 0, 20);
    ip[0] = 0x45;
    ip[2] = (uint8_t)(size >> 8);
    ip[3] = (uint8_t)size;
    ip[8] = 64;
    ip[9] = 253; /* for experiments, RFC 3692 */
    memcpy(ip + 12, (uint8_t[]){10, 0, 0, 1, 10, 0, 0, 2}, 8);
  }
  return count;
}

typedef struct figures {
  double seal, open, raw_seal, raw_open;
} figures;

static figures measure(side *a, side *b, const kdp_aead *aead, kdp_aead_worker *worker, uint32_t size, uint32_t count,
                       double seconds) {
  static uint8_t raw[MAX_BATCH][MAX_SIZE + ROOM] __attribute__((aligned(64)));
  static const uint8_t key[32] = {1};
  kdp_packet packet[MAX_BATCH], copy[MAX_BATCH];
  kdp_aead_job job[MAX_BATCH];
  kdp_path path = path_to(1);
  uint32_t padded = (size + 15) & ~15u;
  uint64_t spent[4] = {0}, packets = 0, nonce = 0;
  uint64_t end = now_ns() + (uint64_t)(seconds * 1e9);
  while (now_ns() < end) {
    for (int round = 0; round < 16; round++) {
      kdp_batch in = {.packet = packet, .count = make_batch(a, packet, count, size), .capacity = MAX_BATCH};
      kdp_now now = now_both();
      uint64_t t0 = now_ns();
      uint32_t taken = kdp_engine_inside(a->lane, &in, a->out, now);
      uint64_t t1 = now_ns();
      must(taken == count && a->out->wire.count == count, "sealed packets");
      for (uint32_t i = 0; i < count; i++) {
        const kdp_packet *sent = &a->out->wire.packet[i];
        must(kdp_pool_take_packet(b->pool, ROOM, sent->size, ROOM, &copy[i]), "pool");
        memcpy(copy[i].data, sent->data, sent->size);
      }
      kdp_batch_release(&a->out->wire, a->pool);
      kdp_batch wire = {
          .packet = copy, .count = count, .capacity = MAX_BATCH, .path = &path, .path_count = 1, .path_capacity = 1};
      uint64_t t2 = now_ns();
      taken = kdp_engine_outside(b->lane, &wire, b->out, now);
      uint64_t t3 = now_ns();
      must(taken == count && b->out->inside.count == count, "opened packets");
      kdp_batch_release(&b->out->inside, b->pool);
      kdp_batch_release(&b->out->wire, b->pool);
      for (uint32_t i = 0; i < count; i++) {
        job[i] =
            (kdp_aead_job){.key = key, .source = raw[i], .destination = raw[i], .tag = raw[i] + padded, .size = padded};
        nonce++;
        memcpy(job[i].nonce + 4, &nonce, 8);
      }
      uint64_t t4 = now_ns();
      aead->seal(worker, job, count);
      uint64_t t5 = now_ns();
      must(aead->open(worker, job, count) == count, "raw opening");
      uint64_t t6 = now_ns();
      spent[0] += t1 - t0;
      spent[1] += t3 - t2;
      spent[2] += t5 - t4;
      spent[3] += t6 - t5;
      packets += count;
    }
  }
  double n = (double)packets;
  return (figures){(double)spent[0] / n, (double)spent[1] / n, (double)spent[2] / n, (double)spent[3] / n};
}

int main(int argc, char **argv) {
  double seconds = argc > 1 ? atof(argv[1]) : 0.3;
  kdp_host host = kdp_host_default();
  side a = {0}, b = {0};
  uint8_t private_a[32], private_b[32], public_a[32], public_b[32];
  host.random(host.context, private_a, 32);
  host.random(host.context, private_b, 32);
  kdp_wireguard_public_key(private_a, public_a);
  kdp_wireguard_public_key(private_b, public_b);
  make(&a, &host);
  make(&b, &host);
  configure(&a, private_a, public_b, 2);
  configure(&b, private_b, public_a, 1);
  kdp_packet first;
  kdp_batch batch = {.packet = &first, .count = make_batch(&a, &first, 1, 64), .capacity = 1};
  must(kdp_engine_inside(a.lane, &batch, a.out, now_both()) == 1, "first packet");
  carry(&a, &b, 1); /* initiation */
  carry(&b, &a, 2); /* response */
  carry(&a, &b, 1); /* the packet that waited */
  must(b.out->inside.count == 1, "handshake");
  kdp_batch_release(&b.out->inside, b.pool);
  kdp_aead_worker *worker;
  must(kdp_aead_worker_choose(getenv("KAPE_AEAD"), &host, &worker) == KDP_OK, "AEAD");
  const kdp_aead *aead = kdp_aead_of(worker, KDP_AEAD_CHACHA20_POLY1305);
  static const uint32_t sizes[] = {64, 256, 512, 1420, 9000}, batches[] = {1, 8, 64};
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
    for (size_t j = 0; j < sizeof batches / sizeof *batches; j++) {
      uint32_t count = batches[j];
      if ((uint64_t)sizes[i] * count > 60000 * 6) continue;
      figures f = measure(&a, &b, aead, worker, sizes[i], count, seconds);
      printf("{\"provider\": \"%s\", \"size\": %u, \"batch\": %u, \"seal_ns\": %.1f, \"open_ns\": %.1f, "
             "\"raw_seal_ns\": %.1f, "
             "\"raw_open_ns\": %.1f, \"raw_over_engine\": %.3f}\n",
             kdp_aead_provider_name(kdp_aead_worker_provider(worker)), sizes[i], count, f.seal, f.open, f.raw_seal,
             f.raw_open, (f.raw_seal + f.raw_open) / (f.seal + f.open));
      fflush(stdout);
    }
  kdp_aead_worker_destroy(worker);
  kdp_out_destroy(a.storage);
  kdp_out_destroy(b.storage);
  kdp_engine_destroy(a.engine);
  kdp_engine_destroy(b.engine);
  kdp_pool_destroy(a.pool);
  kdp_pool_destroy(b.pool);
  return 0;
}
