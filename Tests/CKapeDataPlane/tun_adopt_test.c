/* A worker takes over what carries IP packets, and nothing else. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include <kdp/worker.h>

static void a_socket_of_packets_is_taken_over(void **state) {
  (void)state;
  int pair[2];
  assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
  kdp_tun tun;
  assert_int_equal(kdp_tun_adopt(pair[0], 0, &tun), KDP_OK);
  assert_int_equal(tun.fd, pair[0]);
  assert_string_equal(tun.name, "");
  assert_false(tun.vnet_header || tun.tso || tun.uso);
  assert_true(fcntl(pair[0], F_GETFL) & O_NONBLOCK);
  kdp_tun_close(&tun);
  assert_int_equal(close(pair[0]), -1);
  close(pair[1]);
}

static void what_does_not_keep_packets_apart_is_refused(void **state) {
  (void)state;
  int pair[2];
  assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
  kdp_tun tun;
  errno = 0;
  assert_int_equal(kdp_tun_adopt(pair[0], 0, &tun), KDP_SYSTEM);
  assert_int_not_equal(errno, 0);
  assert_int_equal(tun.fd, -1);
  assert_false(fcntl(pair[0], F_GETFL) & O_NONBLOCK);
  close(pair[0]);
  close(pair[1]);
  assert_int_equal(pipe(pair), 0);
  assert_int_equal(kdp_tun_adopt(pair[0], 0, &tun), KDP_SYSTEM);
  assert_int_equal(errno, ENOTTY);
  close(pair[0]);
  close(pair[1]);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_socket_of_packets_is_taken_over),
      cmocka_unit_test(what_does_not_keep_packets_apart_is_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
