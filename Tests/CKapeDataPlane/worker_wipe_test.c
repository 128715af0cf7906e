/* What a worker gives back to its host holds nothing of the packets that went through it. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "support/rig.h"

static const uint8_t secret[16] = {0xc0, 0xff, 0xee, 1, 2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37};

static void *allocate(void *context, size_t size) {
  (void)context;
  return malloc(size);
}

/* Counts what is found of the secret. */
static void release(void *context, void *memory, size_t size) {
  const uint8_t *bytes = memory;
  for (size_t at = 0; at + sizeof secret <= size; at++)
    if (bytes[at] == secret[0] && memcmp(bytes + at, secret, sizeof secret) == 0) ++*(uint32_t *)context;
  free(memory);
}

static uint64_t dropped;
static void note_dropped(rig *r, kdp_worker *worker) {
  (void)worker;
  dropped = r->engine.damaged;
}

static void memory_that_is_given_back_holds_no_packet(void **state) {
  uint32_t found = 0;
  kdp_host host = kdp_host_default();
  host.context = &found;
  host.allocate = allocate;
  host.release = release;
  rig r = {.wire = -1};
  int pair[2];
  passthrough_init(&r.engine);
  assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair), 0);
  r.tun = (kdp_tun){.fd = pair[0]};
  r.frames = pair[1];
  kdp_worker_config config = {.engine = &r.engine.engine, .tun = &r.tun, .backend = rig_backend(state)};
  assert_int_equal(kdp_worker_create(&config, &host, &r.worker), KDP_OK);
  rig_start(&r);
  uint8_t packet[600];
  for (int i = 0; i < 100; i++) { /* the engine has no path and drops them */
    size_t size = rig_udp_packet(&r, false, 0, 500, packet);
    memcpy(packet + 100, secret, sizeof secret);
    rig_write_packet(&r, packet, size);
  }
  dropped = 0;
  for (int i = 0; i < 200 && dropped < 100; i++) {
    usleep(10000);
    rig_sync(&r, note_dropped);
  }
  assert_int_equal(dropped, 100);
  kdp_worker_stop(r.worker);
  assert_int_equal(kdp_worker_join(r.worker), KDP_OK);
  kdp_worker_destroy(r.worker);
  assert_int_equal(found, 0);
  close(pair[0]);
  close(pair[1]);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(memory_that_is_given_back_holds_no_packet),
  };
  return rig_run_with_each_backend("worker wipe", tests, sizeof tests / sizeof tests[0]);
}
