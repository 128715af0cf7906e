/* clients config COUNT ADDRESS: prints the [Peer] sections by which a server knows COUNT clients: key, preshared key,
   two prefixes, and an endpoint at ADDRESS.
   clients run COUNT SERVER_KEY SERVER PORT: the first COUNT of them, alive: each an engine with a socket of its own.
   They begin one after the other, a handshake a millisecond, so that no server thinks itself under attack. Prints one
   JSON line when all have a session (or after 60 s), then answers the server until it reads the end of its input, and
   prints how many packets came through the tunnels.
   Keys follow from the number of a client, so that both agree; they protect nothing. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <unistd.h>

#include "side.h"

enum { FIRST_PORT = 10000, PORTS = 40000, EVENTS = 64, DATAGRAM = 2048, KEY_TEXT = 45, INPUT = UINT32_MAX };

static void derive(uint32_t number, const char *use, uint8_t key[KDP_KEY_SIZE]) {
  char text[64];
  int size = snprintf(text, sizeof text, "kape benchmark client %u: %s", number, use);
  unsigned length = KDP_KEY_SIZE;
  bench_must(EVP_Digest(text, (size_t)size, key, &length, EVP_sha256(), NULL) == 1, "no SHA-256");
}

static uint16_t port_of(uint32_t number) {
  return (uint16_t)(FIRST_PORT + number % PORTS);
}

static void base64(const uint8_t key[KDP_KEY_SIZE], char text[KEY_TEXT]) {
  EVP_EncodeBlock((unsigned char *)text, key, KDP_KEY_SIZE);
}

static int print_config(uint32_t count, const char *address) {
  for (uint32_t i = 0; i < count; i++) {
    uint8_t key[KDP_KEY_SIZE], public_key[KDP_KEY_SIZE], preshared[KDP_KEY_SIZE];
    char public_text[KEY_TEXT], preshared_text[KEY_TEXT];
    derive(i, "private key", key);
    kdp_wireguard_public_key(key, public_key);
    derive(i, "preshared key", preshared);
    base64(public_key, public_text);
    base64(preshared, preshared_text);
    printf("[Peer]\nPublicKey = %s\nPresharedKey = %s\nAllowedIPs = 10.%u.%u.%u/32, fd00:77::%x:%x/128\n"
           "Endpoint = %s:%u\n",
           public_text, preshared_text, 128 + (i >> 16), i >> 8 & 255, i & 255, i >> 16, i & 65535, address,
           port_of(i));
  }
  return 0;
}

/* ---- Alive ---- */

typedef struct clients {
  side *client;
  int *socket;
  uint32_t count, begun;
  kdp_path server;
  uint8_t server_key[KDP_KEY_SIZE];
  uint64_t delivered;
  int epoll;
} clients;

/* Sends what the output holds; what came out of the tunnel is counted and dropped. */
static void carry_out(clients *all, uint32_t i) {
  side *s = &all->client[i];
  for (uint32_t p = 0; p < s->out->wire.count; p++)
    (void)!send(all->socket[i], s->out->wire.packet[p].data, s->out->wire.packet[p].size, MSG_DONTWAIT);
  all->delivered += s->out->inside.count;
  side_drain(s);
}

static void begin(clients *all, kdp_now now) {
  uint32_t i = all->begun++;
  side_send(&all->client[i], (uint8_t[]){10, (uint8_t)(128 + (i >> 16)), (uint8_t)(i >> 8), (uint8_t)i},
            (uint8_t[]){10, 77, 0, 2}, now);
  carry_out(all, i);
}

static void receive(clients *all, uint32_t i) {
  uint8_t bytes[DATAGRAM];
  for (int most = 0; most < 16; most++) {
    ssize_t got = recv(all->socket[i], bytes, sizeof bytes, MSG_DONTWAIT);
    if (got <= 0) break;
    side_receive(&all->client[i], bytes, (uint32_t)got, &all->server, bench_now());
    carry_out(all, i);
  }
}

static void tick(clients *all, kdp_now now) {
  for (uint32_t i = 0; i < all->begun; i++)
    if (kdp_engine_deadline(all->client[i].lane) <= now.boot) {
      kdp_engine_tick(all->client[i].lane, all->client[i].out, now);
      carry_out(all, i);
    }
}

static uint32_t count_live(const clients *all) {
  uint32_t live = 0;
  kdp_wireguard_peer_info info;
  for (uint32_t i = 0; i < all->begun; i++)
    live += kdp_wireguard_find_peer(all->client[i].engine, all->server_key, &info) == KDP_OK && info.has_session;
  return live;
}

static void open_socket(clients *all, uint32_t i, const struct sockaddr_in *server) {
  struct sockaddr_in own = {.sin_family = AF_INET, .sin_port = htons(port_of(i))};
  struct epoll_event event = {.events = EPOLLIN, .data.u32 = i};
  int s = all->socket[i] = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  bench_must(s >= 0 && bind(s, (const void *)&own, sizeof own) == 0 &&
                 connect(s, (const void *)server, sizeof *server) == 0 &&
                 epoll_ctl(all->epoll, EPOLL_CTL_ADD, s, &event) == 0,
             "a client's socket cannot be made (ports from 10000 on, descriptors)");
}

static void make_clients(clients *all, const struct sockaddr_in *server, const kdp_host *host) {
  kdp_prefix everything = {.family = KDP_FAMILY_IPV4};
  kdp_now now = bench_now();
  for (uint32_t i = 0; i < all->count; i++) {
    uint8_t key[KDP_KEY_SIZE], preshared[KDP_KEY_SIZE];
    derive(i, "private key", key);
    derive(i, "preshared key", preshared);
    side_make(&all->client[i], key, 1, 1, 0, i ? &all->client[0] : NULL, host, now);
    side_add_peer(&all->client[i], all->server_key, preshared, &all->server.remote, &everything, 1, now);
    side_drain(&all->client[i]);
    open_socket(all, i, server);
  }
}

/* Whether the input still is open. */
static bool go_round(clients *all) {
  struct epoll_event event[EVENTS];
  int ready = epoll_wait(all->epoll, event, EVENTS, 1);
  for (int e = 0; e < ready; e++) {
    char byte;
    if (event[e].data.u32 != INPUT)
      receive(all, event[e].data.u32);
    else if (read(STDIN_FILENO, &byte, 1) <= 0)
      return false;
  }
  return true;
}

static int run(clients *all, const struct sockaddr_in *server) {
  struct rlimit files = {all->count + 64, all->count + 64};
  (void)setrlimit(RLIMIT_NOFILE, &files);
  kdp_host host = kdp_host_default();
  struct epoll_event input = {.events = EPOLLIN, .data.u32 = INPUT};
  all->epoll = epoll_create1(EPOLL_CLOEXEC);
  all->client = calloc(all->count, sizeof *all->client);
  all->socket = calloc(all->count, sizeof *all->socket);
  bench_must(all->client && all->socket && epoll_ctl(all->epoll, EPOLL_CTL_ADD, STDIN_FILENO, &input) == 0,
             "no memory, or the input is no pipe");
  make_clients(all, server, &host);
  uint64_t start = bench_now_ns(), begun_at = 0, looked = 0;
  bool told = false;
  while (go_round(all)) {
    uint64_t now = bench_now_ns();
    if (all->begun < all->count && now - begun_at >= KDP_MILLISECOND) {
      begun_at = now;
      begin(all, bench_now());
    }
    if (now - looked < 20 * KDP_MILLISECOND) continue;
    looked = now;
    tick(all, bench_now());
    if (told || all->begun < all->count) continue;
    uint32_t live = count_live(all);
    if (live < all->count && now - start < 60 * KDP_SECOND) continue;
    told = true;
    printf("{\"live\": %u, \"seconds\": %.3f}\n", live, (double)(now - start) / 1e9);
    fflush(stdout);
  }
  printf("{\"delivered\": %llu}\n", (unsigned long long)all->delivered);
  return 0;
}

int main(int count, char **argument) {
  uint32_t wanted = count > 2 ? (uint32_t)atoi(argument[2]) : 0;
  if (count == 4 && strcmp(argument[1], "config") == 0) return print_config(wanted, argument[3]);
  struct sockaddr_in server = {.sin_family = AF_INET};
  clients all = {.count = wanted, .server = {.link = 1, .remote = {.family = KDP_FAMILY_IPV4}}};
  uint8_t key[KDP_KEY_SIZE + 1];
  if (count != 6 || strcmp(argument[1], "run") != 0 || wanted < 1 || wanted > PORTS ||
      strlen(argument[3]) != KEY_TEXT - 1 || EVP_DecodeBlock(key, (const void *)argument[3], KEY_TEXT - 1) < 0 ||
      inet_pton(AF_INET, argument[4], &server.sin_addr) != 1) {
    fprintf(stderr, "usage: clients config COUNT ADDRESS | clients run COUNT SERVER_KEY SERVER PORT\n");
    return 2;
  }
  memcpy(all.server_key, key, KDP_KEY_SIZE);
  memcpy(all.server.remote.bytes, &server.sin_addr, 4);
  all.server.remote.port = (uint16_t)atoi(argument[5]);
  server.sin_port = htons(all.server.remote.port);
  return run(&all, &server);
}
