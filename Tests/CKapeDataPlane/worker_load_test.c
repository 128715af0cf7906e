/* A flood of handshake messages as it comes through real sockets: a worker reads few datagrams in one go, and still has
   to see that it is a flood. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "kdp/wireguard.h"
#include "support/kernel_faults_calls.h"
#include "support/rig.h"
#include "wireguard/cookie.h"

enum {
  SENDERS = 20,
  MESSAGES_EACH = 15,
  MESSAGES = SENDERS * MESSAGES_EACH,
  LET_THROUGH_MOST = 200 /* on a machine that is busy with others */
};

typedef struct setting {
  kdp_command command;
  kdp_status status;
  _Atomic(bool) done;
} setting;

static void set_key(kdp_command *command, kdp_worker *worker, kdp_engine *engine, kdp_out *out, kdp_now now,
                    bool stopping) {
  (void)worker, (void)stopping;
  setting *s = command->context;
  kdp_wireguard_change change = {.fields = KDP_WIREGUARD_SET_PRIVATE_KEY};
  memset(change.private_key, 7, sizeof change.private_key);
  s->status = kdp_wireguard_apply(engine, &change, out, now);
  atomic_store(&s->done, true);
}

/* An initiation that shows nothing but that its sender knows our public key. */
static void write_initiation(uint8_t message[sizeof(kdp_wg_initiation)], rng *random) {
  uint8_t private_key[KDP_KEY_SIZE], public_key[KDP_KEY_SIZE];
  memset(private_key, 7, sizeof private_key);
  kdp_wireguard_public_key(private_key, public_key);
  kdp_wg_cookie cookie;
  kdp_wg_cookie_start(&cookie, public_key);
  rng_fill(random, message, sizeof(kdp_wg_initiation));
  kdp_store_le32(message, KDP_WG_INITIATION);
  kdp_wg_macs_write(&cookie, message, sizeof(kdp_wg_initiation), 1);
}

static int open_sender(uint16_t port) {
  int fd = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  struct sockaddr_in to = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK), .sin_port = htons(port)};
  assert_true(fd >= 0);
  assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof to), 0);
  return fd;
}

/* Cookie replies that come within two seconds, up to `most`. */
static uint32_t count_cookies(const int *sender, uint32_t most) {
  struct pollfd waited[SENDERS];
  uint32_t cookies = 0;
  for (int i = 0; i < SENDERS; i++)
    waited[i] = (struct pollfd){.fd = sender[i], .events = POLLIN};
  while (cookies < most && poll(waited, SENDERS, 2000) > 0)
    for (int i = 0; i < SENDERS; i++) {
      uint8_t answer[256];
      ssize_t size = recv(sender[i], answer, sizeof answer, 0);
      if (size != (ssize_t)sizeof(kdp_wg_cookie_reply)) continue;
      assert_int_equal(kdp_load_le32(answer), KDP_WG_COOKIE_REPLY);
      cookies++;
    }
  return cookies;
}

typedef struct flooded {
  kdp_tun tun;
  kdp_engine *engine;
  kdp_worker *worker;
  int frames, sender[SENDERS];
  setting key;
} flooded;

/* A worker with nothing but a private key, not running yet, and `count` initiations that wait in its socket. */
static void open_flooded(flooded *f, void **state, uint32_t count) {
  int pair[2];
  kernel_faults_clear();
  memset(f, 0, sizeof *f);
  assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair), 0);
  f->tun.fd = pair[0];
  f->frames = pair[1];
  kdp_host host = kdp_host_default();
  kdp_wireguard_config wireguard = {0};
  kdp_limits limits = {0};
  assert_int_equal(kdp_wireguard_create(&wireguard, &limits, &host, kdp_now_read(), &f->engine), KDP_OK);
  kdp_worker_config config = {.engine = f->engine, .tun = &f->tun, .backend = rig_backend(state)};
  assert_int_equal(kdp_worker_create(&config, &host, &f->worker), KDP_OK);
  f->key.command = (kdp_command){.run = set_key, .context = &f->key};
  kdp_worker_submit(f->worker, &f->key.command);
  rng random = {1};
  for (int i = 0; i < SENDERS; i++)
    f->sender[i] = open_sender(kdp_worker_port(f->worker));
  for (uint32_t i = 0; i < count; i++) {
    uint8_t message[sizeof(kdp_wg_initiation)];
    write_initiation(message, &random);
    assert_int_equal(send(f->sender[i % SENDERS], message, sizeof message, 0), sizeof message);
  }
}

static void close_flooded(flooded *f) {
  kdp_worker_stop(f->worker);
  assert_int_equal(kdp_worker_join(f->worker), KDP_OK);
  kdp_worker_destroy(f->worker);
  kdp_engine_destroy(f->engine);
  for (int i = 0; i < SENDERS; i++)
    close(f->sender[i]);
  close(f->tun.fd);
  close(f->frames);
}

static void a_flood_read_a_few_at_a_time_is_answered_with_cookies(void **state) {
  flooded f;
  open_flooded(&f, state, MESSAGES);
  assert_int_equal(kdp_worker_start(f.worker), KDP_OK);
  uint32_t cookies = count_cookies(f.sender, MESSAGES - LET_THROUGH_MOST);
  assert_true(atomic_load(&f.key.done));
  assert_int_equal(f.key.status, KDP_OK);
  assert_true(cookies >= MESSAGES - LET_THROUGH_MOST);
  close_flooded(&f);
}

/* The kernel takes nothing, the answers fill what room there is, and the flood goes on: there is nothing to do but to
   wait, and waiting it is. */
static void a_flood_that_cannot_be_answered_does_not_make_the_worker_spin(void **state) {
  flooded f;
  kdp_io_statistics before, after;
  open_flooded(&f, state, MESSAGES);
  faults.send = ENOBUFS; /* tried again after a millisecond */
  faults.send_times = 1 << 30;
  assert_int_equal(kdp_worker_start(f.worker), KDP_OK);
  usleep(300000);
  kdp_worker_statistics(f.worker, &before);
  usleep(200000);
  kdp_worker_statistics(f.worker, &after);
  assert_true(before.udp_reads < MESSAGES); /* it is that far */
  assert_true(after.rounds - before.rounds <= 600);
  faults.send_times = 0;
  assert_true(count_cookies(f.sender, MESSAGES - LET_THROUGH_MOST) >= MESSAGES - LET_THROUGH_MOST);
  close_flooded(&f);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_flood_read_a_few_at_a_time_is_answered_with_cookies),
      cmocka_unit_test(a_flood_that_cannot_be_answered_does_not_make_the_worker_spin),
  };
  return rig_run_with_each_backend("worker load", tests, sizeof tests / sizeof tests[0]);
}
