/* A WireGuard engine in memory with its pool and its output, for benchmarks without I/O. Sides may share a pool and an
   output, as a thousand clients in one process do. */
#ifndef BENCH_SIDE_H
#define BENCH_SIDE_H

#include "kdp/wireguard.h"

enum { SIDE_ROOM = 64, SIDE_POOL_SLOTS = 64 };

typedef struct side {
  kdp_engine *engine;
  kdp_lane *lane;
  kdp_pool *pool;
  kdp_out_storage *storage;
  kdp_out *out;
  uint8_t private_key[KDP_KEY_SIZE], public_key[KDP_KEY_SIZE];
} side;

uint64_t bench_now_ns(void); /* CLOCK_MONOTONIC */
kdp_now bench_now(void);     /* both clocks of an engine */
/* Ends the program with a message that says what is wrong. */
void bench_must(bool good, const char *what);

/* A device with `private_key` and its lane 0; `peers` is the most it may have. Pool and output are those of `shared`,
   or its own. */
void side_make(side *s, const uint8_t private_key[KDP_KEY_SIZE], uint32_t peers, uint32_t lanes, uint16_t inside_mtu,
               const side *shared, const kdp_host *host, kdp_now now);
/* Another lane of the engine of `of`, for another thread. It has no keys; it ends before `of`. */
void side_make_lane(side *s, const side *of, uint32_t index, const kdp_host *host);
void side_end(side *s, bool shared);
/* Adds a peer; `preshared_key` may be NULL. */
void side_add_peer(side *s, const uint8_t public_key[KDP_KEY_SIZE], const uint8_t *preshared_key,
                   const kdp_address *endpoint, const kdp_prefix *prefix, uint32_t prefix_count, kdp_now now);
/* Copies a datagram into the pool and shows it to the engine as having come along `path`. */
void side_receive(side *s, const uint8_t *bytes, uint32_t size, const kdp_path *path, kdp_now now);
/* An IPv4 packet of an experimental protocol (RFC 3692) from `source` to `destination`, with the engine's room. */
void side_packet(side *s, uint32_t size, const uint8_t source[4], const uint8_t destination[4], kdp_packet *packet);
/* Gives the engine one such packet of 64 bytes. */
void side_send(side *s, const uint8_t source[4], const uint8_t destination[4], kdp_now now);
/* Everything in the output ends. */
void side_drain(side *s);

#endif
