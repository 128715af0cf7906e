/* A way out that is slower than what comes in: the sockets' buffers fill for real, and the worker waits. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "support/rig.h"

/* An interface behind which nobody answers: what is sent waits in the neighbour's queue, and with it, in the account
   of its socket. */
static const char *const make_slow_network =
    "ip link set lo up && ip link add name slow0 type veth peer name slow1 && ip addr add 10.9.0.1/24 dev slow0 && "
    "ip link set slow0 up && ip link set slow1 up && "
    "echo 1000000000 > /proc/sys/net/ipv4/neigh/slow0/unres_qlen_bytes && "
    "echo 1000 > /proc/sys/net/ipv4/neigh/slow0/mcast_solicit";

static int enter_slow_network(void) {
  int home = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
  bool there = home >= 0 && unshare(CLONE_NEWNET) == 0;
  if (there && system(make_slow_network) == 0) return home;
  if (there) assert_int_equal(setns(home, CLONE_NEWNET), 0);
  if (home >= 0) close(home);
  return -1;
}

/* Until the worker takes no more; returns how many it could be given. */
static uint32_t fill(rig *r, const uint8_t *frame, size_t size) {
  uint32_t count = 0;
  for (int idle = 0; count < 5000 && idle < 20;) {
    if (send(r->frames, frame, size, MSG_NOSIGNAL) == (ssize_t)size) {
      count++;
      idle = 0;
    } else {
      assert_int_equal(errno, EAGAIN);
      usleep(10000);
      idle++;
    }
  }
  return count;
}

static void is_waited_for_without_spinning(void **state, size_t (*make)(rig *r, uint8_t *frame)) {
  static uint8_t frame[RIG_FRAME];
  int home = enter_slow_network();
  if (home < 0) skip();
  rig r;
  rig_open(&r, false, (kdp_worker_config){.backend = rig_backend(state)});
  r.engine.path.remote = (kdp_address){.family = KDP_FAMILY_IPV4, .port = 9, .bytes = {10, 9, 0, 2}};
  rig_start(&r);
  uint32_t given = fill(&r, frame, make(&r, frame));
  kdp_io_statistics before, after;
  kdp_worker_statistics(r.worker, &before);
  usleep(200000);
  kdp_worker_statistics(r.worker, &after);
  assert_true(before.udp_sends > 0 && before.tun_reads < given); /* it is full */
  assert_int_equal(after.status[KDP_SEND_REFUSED], 0);
  assert_true(after.rounds - before.rounds <= 20);
  assert_int_equal(rig_close(&r), KDP_OK);
  assert_int_equal(setns(home, CLONE_NEWNET), 0);
  close(home);
}

static size_t many_segments(rig *r, uint8_t *frame) {
  return rig_tcp_frame(r, false, 44 * 1380, 1380, frame);
}

/* A slot each. */
static size_t one_large_packet(rig *r, uint8_t *frame) {
  enum { SIZE = 60000 };
  memset(frame, 0, KDP_VIRTIO_SIZE);
  return KDP_VIRTIO_SIZE + rig_udp_packet(r, false, 0, SIZE, frame + KDP_VIRTIO_SIZE);
}

static void a_full_socket_is_waited_for_without_spinning(void **state) {
  is_waited_for_without_spinning(state, many_segments);
}

/* What waits may take all slots before it takes half of the output's packets. */
static void large_packets_that_wait_do_not_make_the_worker_spin(void **state) {
  is_waited_for_without_spinning(state, one_large_packet);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_full_socket_is_waited_for_without_spinning),
      cmocka_unit_test(large_packets_that_wait_do_not_make_the_worker_spin),
  };
  return rig_run_with_each_backend("worker backpressure", tests, sizeof tests / sizeof tests[0]);
}
