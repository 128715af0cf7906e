/* Memory: a peer without a live session takes at most 1.5 KiB, one with a session at most 4 KiB, windows included, and
   64 bytes a prefix. Counted twice: what the engine asks of its host, and which pages of that are resident. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "support/rng.h"
#include "wireguard/device.h"

enum {
  PEERS = 10000,
  WITH_SESSION = 1000,
  IDLE_MOST = 1536,
  LIVE_MOST = 4096,
  PREFIX_MOST = 64,
  PREFIXES_PER_PEER = 2
};

/* A host whose memory is mapped, each block in pages of its own when it is large, so that residence can be seen; small
   blocks come from an arena of the same kind. */
typedef struct mapped_host {
  uint8_t *memory;
  size_t size, used;
  rng random;
} mapped_host;

static void *map_allocate(void *context, size_t size) {
  mapped_host *host = context;
  size_t align = size >= 65536 ? 4096 : 16;
  host->used = (host->used + align - 1) / align * align;
  if (host->size - host->used < size) return NULL;
  void *memory = host->memory + host->used;
  host->used += size;
  return memory;
}
static void map_release(void *context, void *memory, size_t size) {
  (void)context;
  /* Whole pages go back, as an allocator would give them. */
  uintptr_t begin = ((uintptr_t)memory + 4095) / 4096 * 4096, end = ((uintptr_t)memory + size) / 4096 * 4096;
  if (end > begin) assert_int_equal(madvise((void *)begin, end - begin, MADV_DONTNEED), 0);
}
static void map_random(void *context, void *bytes, size_t size) {
  rng_fill(&((mapped_host *)context)->random, bytes, size);
}

static size_t resident(const mapped_host *host) {
  static unsigned char page[65536];
  size_t pages = (host->used + 4095) / 4096, count = 0;
  assert_true(pages <= sizeof page);
  assert_int_equal(mincore(host->memory, host->used, page), 0);
  for (size_t i = 0; i < pages; i++)
    count += page[i] & 1;
  return count * 4096;
}

typedef struct device {
  mapped_host memory;
  kdp_host host;
  kdp_engine *engine;
  kdp_pool *pool;
  kdp_out_storage *storage;
} device;

static void start(device *d, uint64_t seed) {
  kdp_host plain = kdp_host_default();
  kdp_wireguard_config config = {0};
  kdp_limits limits = {0};
  *d = (device){.memory = {.size = 128 << 20, .random = {seed}}};
  d->memory.memory =
      mmap(NULL, d->memory.size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  assert_ptr_not_equal(d->memory.memory, MAP_FAILED);
  d->host = (kdp_host){.context = &d->memory, .allocate = map_allocate, .release = map_release, .random = map_random};
  assert_int_equal(kdp_pool_create(16, &plain, &d->pool), KDP_OK);
  assert_int_equal(kdp_out_create(d->pool, &plain, &d->storage), KDP_OK);
  assert_int_equal(kdp_wireguard_create(&config, &limits, &d->host, (kdp_now){KDP_SECOND, KDP_SECOND}, &d->engine),
                   KDP_OK);
}

static void stop(device *d) {
  kdp_engine_destroy(d->engine);
  kdp_out_destroy(d->storage);
  kdp_pool_destroy(d->pool);
  munmap(d->memory.memory, d->memory.size);
}

/* Ten thousand peers, each with a preshared key, two prefixes and an endpoint. */
static void add_peers(device *d) {
  static kdp_wireguard_peer_change peer[PEERS];
  static kdp_wireguard_prefix_change prefix[PEERS][PREFIXES_PER_PEER];
  for (uint32_t i = 0; i < PEERS; i++) {
    peer[i] = (kdp_wireguard_peer_change){
        .fields = KDP_WIREGUARD_PEER_SET_PRESHARED_KEY | KDP_WIREGUARD_PEER_SET_ENDPOINT,
        .preshared_key = {1},
        .endpoint = {.family = KDP_FAMILY_IPV4, .port = 51820, .bytes = {198, 51, (uint8_t)(i >> 8), (uint8_t)i}},
        .prefix = prefix[i],
        .prefix_count = PREFIXES_PER_PEER};
    kdp_store_le32(peer[i].public_key, i + 1);
    prefix[i][0].prefix =
        (kdp_prefix){.family = KDP_FAMILY_IPV4, .length = 32, .bytes = {10, 0, (uint8_t)(i >> 8), (uint8_t)i}};
    prefix[i][1].prefix = (kdp_prefix){
        .family = KDP_FAMILY_IPV6, .length = 128, .bytes = {0xfd, 0x77, [14] = (uint8_t)(i >> 8), [15] = (uint8_t)i}};
  }
  kdp_wireguard_change change = {.peer = peer, .peer_count = PEERS};
  assert_int_equal(kdp_wireguard_apply(d->engine, &change, kdp_out_of(d->storage), (kdp_now){KDP_SECOND, KDP_SECOND}),
                   KDP_OK);
}

/* Gives a thousand of the peers two sessions, as a rekey leaves them, with every word of both windows used. */
static void give_sessions(device *d) {
  kdp_wg_device *wg = kdp_wg_device_of(d->engine);
  for (uint32_t i = 0; i < WITH_SESSION; i++) {
    kdp_wg_peer *peer = wg->peers.ordered[i * (PEERS / WITH_SESSION)];
    for (int j = 0; j < 2; j++) {
      kdp_wg_session_keys keys = {{1}, {2}};
      uint32_t index = kdp_wg_index_take(&wg->indices, KDP_WG_INDEX_HANDSHAKE, peer, &wg->host);
      kdp_wg_session_add(wg, peer, &keys, true, index, 7, (kdp_now){KDP_SECOND, KDP_SECOND});
      for (uint64_t counter = 0; counter < 8192; counter += 64)
        assert_true(kdp_replay_window_commit(&peer->current->window, counter));
    }
    assert_true(peer->current && peer->previous);
  }
}

static void a_peer_holds_to_its_memory(void **state) {
  (void)state;
  device d;
  start(&d, 1);
  size_t asked = d.memory.used, touched = resident(&d.memory);
  add_peers(&d);
  size_t idle = (resident(&d.memory) - touched) / PEERS;
  size_t reserved = (d.memory.used - asked) / PEERS;
  give_sessions(&d);
  size_t live = idle + (resident(&d.memory) - touched - idle * PEERS) / WITH_SESSION;
  size_t still = (d.memory.used - asked) / PEERS;
  print_message(
      "a peer with two prefixes: idle %zu, live %zu, asked for %zu bytes; the peer itself %zu, a session %zu\n", idle,
      live, reserved, sizeof(kdp_wg_peer), sizeof(kdp_wg_key_pair));
  assert_true(idle <= IDLE_MOST + PREFIXES_PER_PEER * PREFIX_MOST);
  assert_true(live <= LIVE_MOST + PREFIXES_PER_PEER * PREFIX_MOST);
  assert_true(reserved <= LIVE_MOST + PREFIXES_PER_PEER * PREFIX_MOST);
  assert_int_equal(reserved, still); /* sessions ask for nothing more */
  stop(&d);
}

static void an_engine_without_peers_touches_little(void **state) {
  (void)state;
  device d;
  start(&d, 2);
  print_message("an engine without peers: asks for %zu, touches %zu bytes\n", d.memory.used, resident(&d.memory));
  assert_true(d.memory.used < 3 << 20);
  assert_true(resident(&d.memory) < 400 << 10);
  stop(&d);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_peer_holds_to_its_memory),
      cmocka_unit_test(an_engine_without_peers_touches_little),
  };
  return cmocka_run_group_tests_name("wireguard memory", tests, NULL, NULL);
}
