/* A flood of handshake messages as it comes through real sockets: a worker reads few datagrams in one go, and still has
   to see that it is a flood. */
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
#include "support/rig.h"
#include "wireguard/cookie.h"

enum { SENDERS = 20, MESSAGES_EACH = 15, MESSAGES = SENDERS * MESSAGES_EACH, LET_THROUGH_MOST = 64 };

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

static void a_flood_read_a_few_at_a_time_is_answered_with_cookies(void **state) {
  int pair[2], sender[SENDERS];
  assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair), 0);
  kdp_tun tun = {.fd = pair[0]};
  kdp_host host = kdp_host_default();
  kdp_wireguard_config wireguard = {0};
  kdp_limits limits = {0};
  kdp_engine *engine;
  kdp_worker *worker;
  assert_int_equal(kdp_wireguard_create(&wireguard, &limits, &host, kdp_now_read(), &engine), KDP_OK);
  kdp_worker_config config = {.engine = engine, .tun = &tun, .backend = rig_backend(state)};
  assert_int_equal(kdp_worker_create(&config, &host, &worker), KDP_OK);

  setting s = {.command = {.run = set_key}};
  s.command.context = &s;
  kdp_worker_submit(worker, &s.command);
  rng random = {1};
  for (int i = 0; i < SENDERS; i++)
    sender[i] = open_sender(kdp_worker_port(worker));
  for (int i = 0; i < MESSAGES; i++) {
    uint8_t message[sizeof(kdp_wg_initiation)];
    write_initiation(message, &random);
    assert_int_equal(send(sender[i % SENDERS], message, sizeof message, 0), sizeof message);
  }
  assert_int_equal(kdp_worker_start(worker), KDP_OK);
  uint32_t cookies = count_cookies(sender, MESSAGES - LET_THROUGH_MOST);
  assert_true(atomic_load(&s.done));
  assert_int_equal(s.status, KDP_OK);
  assert_true(cookies >= MESSAGES - LET_THROUGH_MOST);

  kdp_worker_stop(worker);
  assert_int_equal(kdp_worker_join(worker), KDP_OK);
  kdp_worker_destroy(worker);
  kdp_engine_destroy(engine);
  for (int i = 0; i < SENDERS; i++)
    close(sender[i]);
  close(pair[0]);
  close(pair[1]);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(a_flood_read_a_few_at_a_time_is_answered_with_cookies)};
  return rig_run_with_each_backend("worker load", tests, sizeof tests / sizeof tests[0]);
}
