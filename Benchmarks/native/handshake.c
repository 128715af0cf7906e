/* handshake [SECONDS [PEERS]]: handshakes of one WireGuard engine with many distinct peers, in memory, in processor
   time of one thread. `answer` is what a server does for an initiation (four multiplications, one of them of the base
   point); `initiate` and `finish` are a client's two halves. In the same turns: X25519 alone, by each library present.
   One JSON line.

   Time is virtual: 16 initiations come every 25 ms, so that the server is never under load and asks for no cookies, and
   a client begins anew when its session is older than 120 s. */
#include <openssl/evp.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "side.h"

enum { GROUP = 16, MESSAGE_ROOM = 256, INITIATION = 1, RESPONSE = 2, TRANSPORT = 4, MULTIPLICATIONS = 8 };

typedef struct message {
  uint8_t bytes[MESSAGE_ROOM];
  uint32_t size;
} message;

typedef struct spent {
  uint64_t initiate, answer, finish, openssl, sodium;
  uint64_t handshakes, multiplications;
} spent;

static uint64_t cpu_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return (uint64_t)t.tv_sec * KDP_SECOND + (uint64_t)t.tv_nsec;
}

static kdp_address server_address(void) {
  return (kdp_address){.family = KDP_FAMILY_IPV4, .port = 51820, .bytes = {192, 0, 2, 255}};
}

static kdp_path client_path(uint32_t i) {
  return (kdp_path){.link = 1,
                    .remote = {.family = KDP_FAMILY_IPV4,
                               .port = (uint16_t)(1024 + i % 60000),
                               .bytes = {198, 51, (uint8_t)(100 + i / 60000), 1}}};
}

static kdp_prefix client_prefix(uint32_t i) {
  return (kdp_prefix){
      .family = KDP_FAMILY_IPV4, .length = 32, .bytes = {10, (uint8_t)(i >> 16), (uint8_t)(i >> 8), (uint8_t)i}};
}

static const uint8_t server_inside[4] = {172, 16, 0, 1};

/* The message of `type` in the output; everything else there ends. */
static void take_message(side *s, uint8_t type, message *into) {
  bool found = false;
  for (uint32_t i = 0; i < s->out->wire.count; i++) {
    const kdp_packet *packet = &s->out->wire.packet[i];
    if (packet->data[0] != type || packet->size > MESSAGE_ROOM) continue;
    memcpy(into->bytes, packet->data, packet->size);
    into->size = packet->size;
    found = true;
  }
  side_drain(s);
  bench_must(found, "the message that should have been sent is missing");
}

/* `count` clients begin, are answered in one call, and say something. */
static void handshake(side *server, side *client, uint32_t first, uint32_t count, kdp_now now, spent *spent) {
  message message[GROUP] = {0};
  kdp_path path[GROUP], to_server = {.link = 1, .remote = server_address()};
  kdp_packet packet[GROUP];
  for (uint32_t i = 0; i < count; i++) {
    kdp_prefix inside = client_prefix(first + i);
    uint64_t begin = cpu_ns();
    side_send(&client[i], inside.bytes, server_inside, now);
    spent->initiate += cpu_ns() - begin;
    take_message(&client[i], INITIATION, &message[i]);
    path[i] = client_path(first + i);
    bench_must(kdp_pool_take_packet(server->pool, SIDE_ROOM, message[i].size, SIDE_ROOM, &packet[i]), "pool is empty");
    packet[i].path = (uint16_t)i;
    memcpy(packet[i].data, message[i].bytes, message[i].size);
  }
  kdp_batch batch = {.packet = packet,
                     .count = count,
                     .capacity = GROUP,
                     .path = path,
                     .path_count = (uint16_t)count,
                     .path_capacity = GROUP};
  uint64_t begin = cpu_ns();
  uint32_t taken = kdp_engine_outside(server->lane, &batch, server->out, now);
  spent->answer += cpu_ns() - begin;
  bench_must(taken == count && server->out->wire.count == count, "not every initiation was answered");
  for (uint32_t i = 0; i < count; i++) {
    const kdp_packet *sent = &server->out->wire.packet[i];
    bench_must(sent->data[0] == RESPONSE && sent->size <= MESSAGE_ROOM, "an answer is no response");
    memcpy(message[i].bytes, sent->data, sent->size);
    message[i].size = sent->size;
  }
  side_drain(server);
  for (uint32_t i = 0; i < count; i++) {
    begin = cpu_ns();
    side_receive(&client[i], message[i].bytes, message[i].size, &to_server, now);
    spent->finish += cpu_ns() - begin;
    take_message(&client[i], TRANSPORT, &message[i]);
    side_receive(server, message[i].bytes, message[i].size, &path[i], now);
    side_drain(server);
  }
  spent->handshakes += count;
}

typedef struct alone {
  EVP_PKEY *own, *other;
  EVP_PKEY_CTX *context;
  uint8_t private_key[32], public_key[32];
} alone;

static void alone_make(alone *a, const kdp_host *host) {
  uint8_t other[32];
  host->random(host->context, a->private_key, 32);
  host->random(host->context, other, 32);
  kdp_wireguard_public_key(other, a->public_key);
  a->own = EVP_PKEY_new_raw_private_key(EVP_PKEY_X25519, NULL, a->private_key, 32);
  a->other = EVP_PKEY_new_raw_public_key(EVP_PKEY_X25519, NULL, a->public_key, 32);
  a->context = a->own ? EVP_PKEY_CTX_new(a->own, NULL) : NULL;
  bench_must(a->other && a->context && EVP_PKEY_derive_init(a->context) == 1 &&
                 EVP_PKEY_derive_set_peer(a->context, a->other) == 1,
             "OpenSSL has no X25519");
}

static void alone_run(alone *a, spent *spent) {
  uint8_t secret[2][32];
  size_t size = 32;
  uint64_t begin = cpu_ns();
  for (int i = 0; i < MULTIPLICATIONS; i++)
    bench_must(EVP_PKEY_derive(a->context, secret[0], &size) == 1, "OpenSSL's X25519 failed");
  uint64_t middle = cpu_ns();
  for (int i = 0; i < MULTIPLICATIONS; i++)
    bench_must(crypto_scalarmult_curve25519(secret[1], a->private_key, a->public_key) == 0,
               "libsodium's X25519 failed");
  uint64_t end = cpu_ns();
  bench_must(memcmp(secret[0], secret[1], 32) == 0, "the libraries disagree");
  spent->openssl += middle - begin;
  spent->sodium += end - middle;
  spent->multiplications += MULTIPLICATIONS;
}

static void alone_end(alone *a) {
  EVP_PKEY_CTX_free(a->context);
  EVP_PKEY_free(a->own);
  EVP_PKEY_free(a->other);
}

/* Timers that came due meanwhile. */
static void tick(side *s, kdp_now now) {
  for (int calls = 0; kdp_engine_deadline(s->lane) <= now.boot && calls < 10000; calls++) {
    kdp_engine_tick(s->lane, s->out, now);
    side_drain(s);
  }
}

static kdp_now later(kdp_now now, uint64_t ns) {
  return (kdp_now){now.boot + ns, now.wall + ns};
}

static void make_all(side *server, side *client, uint32_t count, const kdp_host *host, kdp_now now) {
  uint8_t key[KDP_KEY_SIZE], preshared[KDP_KEY_SIZE];
  kdp_address at = server_address();
  kdp_prefix everything = {.family = KDP_FAMILY_IPV4};
  host->random(host->context, key, sizeof key);
  side_make(server, key, count, 1, 0, NULL, host, now);
  for (uint32_t i = 0; i < count; i++) {
    host->random(host->context, key, sizeof key);
    host->random(host->context, preshared, sizeof preshared);
    side_make(&client[i], key, 1, 1, 0, i ? &client[0] : NULL, host, now);
    side_add_peer(&client[i], server->public_key, preshared, &at, &everything, 1, now);
    kdp_prefix prefix = client_prefix(i);
    kdp_path path = client_path(i);
    side_add_peer(server, client[i].public_key, preshared, &path.remote, &prefix, 1, now);
    side_drain(server);
    side_drain(&client[i]);
  }
}

int main(int argc, char **argv) {
  double seconds = argc > 1 ? atof(argv[1]) : 3;
  uint32_t count = argc > 2 ? (uint32_t)atoi(argv[2]) : 1024;
  bench_must(count >= GROUP && count <= 100000 && seconds > 0, "usage: handshake [SECONDS [PEERS, 16 to 100000]]");
  bench_must(sodium_init() >= 0, "libsodium does not start");
  kdp_host host = kdp_host_default();
  kdp_now now = bench_now();
  side server = {0}, *client = calloc(count, sizeof *client);
  bench_must(client != NULL, "no memory");
  make_all(&server, client, count, &host, now);
  alone x25519;
  alone_make(&x25519, &host);
  spent first = {0}, spent = {0}; /* the first time round, each peer's static secret is computed: not counted */
  uint64_t end = 0;
  for (uint32_t cycle = 0; cycle < 2 || bench_now_ns() < end; cycle++) {
    if (cycle == 1) end = bench_now_ns() + (uint64_t)(seconds * 1e9);
    for (uint32_t i = 0; i < count; i += GROUP) {
      handshake(&server, &client[i], i, count - i < GROUP ? count - i : GROUP, now, cycle ? &spent : &first);
      if (cycle) alone_run(&x25519, &spent);
      now = later(now, 25 * KDP_MILLISECOND);
    }
    now = later(now, 121 * KDP_SECOND);
    tick(&server, now);
  }
  double n = (double)spent.handshakes, m = (double)spent.multiplications;
  double openssl = (double)spent.openssl / m, sodium = (double)spent.sodium / m;
  double fastest = openssl < sodium ? openssl : sodium;
  printf("{\"peers\": %u, \"handshakes\": %.0f, \"initiate_ns\": %.0f, \"answer_ns\": %.0f, \"finish_ns\": %.0f, "
         "\"answer_first_ns\": %.0f, \"x25519_openssl_ns\": %.0f, \"x25519_libsodium_ns\": %.0f, "
         "\"answered_a_second\": %.0f, \"begun_a_second\": %.0f, \"alone_a_second\": %.0f, \"ratio\": %.4f}\n",
         count, n, (double)spent.initiate / n, (double)spent.answer / n, (double)spent.finish / n,
         (double)first.answer / (double)first.handshakes, openssl, sodium, 1e9 * n / (double)spent.answer,
         1e9 * n / (double)(spent.initiate + spent.finish), 1e9 / (4 * fastest),
         4 * fastest / ((double)spent.answer / n));
  alone_end(&x25519);
  for (uint32_t i = count; i-- > 0;)
    side_end(&client[i], i > 0);
  side_end(&server, false);
  free(client);
  return 0;
}
