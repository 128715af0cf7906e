/* fixed_key INTERFACE none|chacha20-poly1305|aes-256-gcm PORT REMOTE REMOTE_PORT MTU
   Runs the engine of fixed_key_engine.h between a TUN and UDP until SIGTERM, on the product's own worker. The interface
   is brought up by whoever starts it. Prints one line when it is ready. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fixed_key_engine.h"
#include "kdp/worker.h"

static void fail(const char *what, const char *why) {
  fprintf(stderr, "fixed_key: %s: %s\n", what, why);
  exit(1);
}

typedef struct mtu_command {
  kdp_command command; /* first */
  uint16_t mtu;
} mtu_command;

/* The kernel's super-packets are limited to one segmented send, as the product does it. */
static void set_mtu(kdp_command *command, kdp_worker *worker, kdp_engine *engine, kdp_out *out, kdp_now now,
                    bool stopping) {
  (void)engine, (void)out, (void)now;
  if (!stopping) kdp_worker_set_inside_mtu(worker, ((mtu_command *)command)->mtu);
}

static bool cipher_of(const char *name, bench_cipher *cipher) {
  static const char *const names[] = {"none", "chacha20-poly1305", "aes-256-gcm"};
  for (int i = 0; i < 3; i++)
    if (strcmp(name, names[i]) == 0) {
      *cipher = (bench_cipher)i;
      return true;
    }
  return false;
}

static kdp_backend backend_of(const char *name) {
  return name && strcmp(name, "io_uring") == 0 ? KDP_BACKEND_URING : KDP_BACKEND_AUTO;
}

int main(int count, char **argument) {
  bench_cipher cipher;
  kdp_address remote = {.family = KDP_FAMILY_IPV4};
  if (count != 7 || !cipher_of(argument[2], &cipher) || inet_pton(AF_INET, argument[4], remote.bytes) != 1) {
    fprintf(stderr, "usage: fixed_key INTERFACE none|chacha20-poly1305|aes-256-gcm PORT REMOTE REMOTE_PORT MTU\n");
    return 2;
  }
  remote.port = (uint16_t)atoi(argument[5]);
  uint16_t mtu = (uint16_t)atoi(argument[6]);
  sigset_t ending;
  sigemptyset(&ending);
  sigaddset(&ending, SIGTERM);
  sigaddset(&ending, SIGINT);
  pthread_sigmask(SIG_BLOCK, &ending, NULL);

  kdp_host host = kdp_host_default();
  kdp_engine *engine;
  kdp_status status = bench_fixed_key_create(cipher, getenv("KAPE_AEAD"), &remote, mtu, &host, &engine);
  if (status != KDP_OK) fail("engine", kdp_status_describe(status)->text);
  kdp_tun tun;
  if (kdp_tun_open(argument[1], 0, &tun) != KDP_OK) fail(argument[1], strerror(errno));
  kdp_worker_config config = {.engine = engine,
                              .tun = &tun,
                              .backend = backend_of(getenv("KAPE_BACKEND")),
                              .listen_port = (uint16_t)atoi(argument[3])};
  kdp_worker *worker;
  status = kdp_worker_create(&config, &host, &worker);
  if (status != KDP_OK || kdp_worker_start(worker) != KDP_OK) fail("worker", strerror(errno));
  mtu_command command = {.command.run = set_mtu, .mtu = mtu};
  kdp_worker_submit(worker, &command.command);
  printf("%s\n", bench_fixed_key_library(engine));
  fflush(stdout);
  int signal;
  sigwait(&ending, &signal);
  kdp_worker_stop(worker);
  (void)kdp_worker_join(worker);
  kdp_worker_destroy(worker);
  kdp_tun_close(&tun);
  kdp_engine_destroy(engine);
  return 0;
}
