#define _GNU_SOURCE
#include "support/worker_pair.h"

#include <errno.h>
#include <poll.h>
#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "support/rig.h"

enum { PRIVATE_A = 1, PRIVATE_B = 2, IP_AND_TCP = 40 };

typedef struct call {
  kdp_command command;
  worker_end *end;
  void (*run)(worker_end *end, kdp_out *out, kdp_now now, void *context);
  void *context;
  sem_t done;
} call;

static void run_call(kdp_command *command, kdp_worker *worker, kdp_engine *engine, kdp_out *out, kdp_now now,
                     bool stopping) {
  (void)worker, (void)engine, (void)stopping;
  call *c = command->context;
  c->run(c->end, out, now, c->context);
  sem_post(&c->done);
}

void worker_end_call(worker_end *end, void (*run)(worker_end *end, kdp_out *out, kdp_now now, void *context),
                     void *context) {
  call c = {.command = {.run = run_call}, .end = end, .run = run, .context = context};
  c.command.context = &c;
  sem_init(&c.done, 0, 0);
  kdp_worker_submit(end->worker, &c.command);
  while (sem_wait(&c.done) != 0 && errno == EINTR)
    ;
  sem_destroy(&c.done);
}

typedef struct settings {
  uint8_t own, other;
  uint16_t other_port;
  kdp_status status;
} settings;

static void configure(worker_end *end, kdp_out *out, kdp_now now, void *context) {
  settings *s = context;
  uint8_t other_private[KDP_KEY_SIZE];
  memset(other_private, s->other, sizeof other_private);
  kdp_wireguard_prefix_change prefix = {.prefix = {.family = KDP_FAMILY_IPV4}};
  kdp_wireguard_peer_change peer = {
      .fields = KDP_WIREGUARD_PEER_SET_ENDPOINT,
      .endpoint = {.family = KDP_FAMILY_IPV4, .port = s->other_port, .bytes = {127, 0, 0, 1}},
      .prefix = &prefix,
      .prefix_count = 1};
  kdp_wireguard_public_key(other_private, peer.public_key);
  kdp_wireguard_change change = {.fields = KDP_WIREGUARD_SET_PRIVATE_KEY, .peer = &peer, .peer_count = 1};
  memset(change.private_key, s->own, sizeof change.private_key);
  s->status = kdp_wireguard_apply(end->engine, &change, out, now);
}

static void set_up(worker_end *end, uint8_t own, uint8_t other, const worker_end *other_end) {
  settings s = {own, other, kdp_worker_port(other_end->worker), KDP_OK};
  worker_end_call(end, configure, &s);
  assert_int_equal(s.status, KDP_OK);
}

static void open_queue(worker_end *end, uint32_t queue) {
  int pair[2], size = 4 << 20;
  assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair), 0);
  for (int i = 0; i < 2; i++) {
    setsockopt(pair[i], SOL_SOCKET, SO_SNDBUFFORCE, &size, sizeof size);
    setsockopt(pair[i], SOL_SOCKET, SO_RCVBUFFORCE, &size, sizeof size);
  }
  end->tun[queue] = (kdp_tun){.fd = pair[0], .vnet_header = true, .tso = true, .uso = true};
  end->frames[queue] = pair[1];
}

static void open_end(worker_end *end, const char *aead_provider, kdp_worker_config config) {
  memset(end, 0, sizeof *end);
  end->queues = config.queues ? config.queues : 1;
  for (uint32_t i = 0; i < end->queues; i++)
    open_queue(end, i);
  kdp_host host = kdp_host_default();
  kdp_wireguard_config wireguard = {.inside_mtu = 1420, .aead_provider = aead_provider};
  kdp_limits limits = {.lanes = config.threads};
  assert_int_equal(kdp_wireguard_create(&wireguard, &limits, &host, kdp_now_read(), &end->engine), KDP_OK);
  config.engine = end->engine;
  config.tun = end->tun;
  assert_int_equal(kdp_worker_create(&config, &host, &end->worker), KDP_OK);
  assert_int_equal(kdp_worker_start(end->worker), KDP_OK);
}

static void close_end(worker_end *end) {
  kdp_worker_stop(end->worker);
  assert_int_equal(kdp_worker_join(end->worker), KDP_OK);
  kdp_worker_destroy(end->worker);
  kdp_engine_destroy(end->engine);
  for (uint32_t i = 0; i < end->queues; i++)
    close(end->tun[i].fd), close(end->frames[i]);
}

static void open_pair(worker_pair *pair, const char *aead_provider, kdp_worker_config config) {
  open_end(&pair->a, aead_provider, config);
  open_end(&pair->b, aead_provider, config);
  set_up(&pair->b, PRIVATE_B, PRIVATE_A, &pair->a);
  set_up(&pair->a, PRIVATE_A, PRIVATE_B, &pair->b);
}

void worker_pair_open(worker_pair *pair, kdp_backend backend, const char *aead_provider) {
  open_pair(pair, aead_provider, (kdp_worker_config){.backend = backend});
}

void worker_pair_open_threads(worker_pair *pair, kdp_backend backend, uint32_t threads, uint32_t queues) {
  open_pair(pair, NULL, (kdp_worker_config){.backend = backend, .threads = threads, .queues = queues});
}

void worker_pair_close(worker_pair *pair) {
  close_end(&pair->a);
  close_end(&pair->b);
}

static bool readable(const worker_end *end, int milliseconds) {
  struct pollfd one[WORKER_PAIR_QUEUES];
  for (uint32_t i = 0; i < end->queues; i++)
    one[i] = (struct pollfd){.fd = end->frames[i], .events = POLLIN};
  return poll(one, end->queues, milliseconds) > 0;
}

uint64_t worker_pair_pump(worker_end *from, worker_end *to, const uint8_t *frame, size_t size, uint32_t payload,
                          uint32_t count, uint32_t in_flight) {
  static _Thread_local uint8_t got[RIG_FRAME];
  uint64_t in = 0, out = 0, all = (uint64_t)count * payload;
  while (out < all) {
    while (in < all && in - out < (uint64_t)in_flight * payload) {
      int frames = from->frames[in / payload % from->queues];
      if (send(frames, frame, size, MSG_NOSIGNAL) != (ssize_t)size) break;
      in += payload;
    }
    if (!readable(to, 5000)) return out;
    for (uint32_t i = 0; i < to->queues; i++)
      for (ssize_t received; (received = recv(to->frames[i], got, sizeof got, 0)) > 0;)
        out += (uint64_t)received - KDP_VIRTIO_SIZE - IP_AND_TCP;
  }
  return out;
}
