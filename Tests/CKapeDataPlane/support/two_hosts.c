#define _GNU_SOURCE
#include "support/two_hosts.h"

#include <fcntl.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

static int this_namespace(void) {
  return open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
}

const char *two_hosts_missing(void) {
  if (access("/dev/net/tun", R_OK | W_OK) != 0) return "/dev/net/tun is missing";
  if (geteuid() != 0) return "root is needed";
  return NULL;
}

void on_host(const two_hosts *hosts, int host) {
  assert_int_equal(setns(hosts->ns[host], CLONE_NEWNET), 0);
}

void on_host_run(const two_hosts *hosts, int host, const char *format, ...) {
  char command[512];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(command, sizeof command, format, arguments);
  va_end(arguments);
  int before = this_namespace();
  on_host(hosts, host);
  int result = system(command);
  assert_int_equal(setns(before, CLONE_NEWNET), 0);
  close(before);
  if (result != 0) fail_msg("%s: %d", command, result);
}

void two_hosts_open(two_hosts *hosts) {
  hosts->home = this_namespace();
  for (int i = 0; i < HOSTS; i++) {
    assert_int_equal(unshare(CLONE_NEWNET), 0);
    hosts->ns[i] = this_namespace();
  }
  on_host_run(hosts, HOST_A,
              "ip link add wire type veth peer name other && ip link set other netns /proc/%d/fd/%d && "
              "ip addr add 10.99.0.1/24 dev wire && ip addr add fd99::1/64 dev wire nodad && ip link set wire up && "
              "ip link set lo up",
              getpid(), hosts->ns[HOST_B]);
  on_host_run(hosts, HOST_B,
              "ip link set other name wire && ip addr add 10.99.0.2/24 dev wire && "
              "ip addr add fd99::2/64 dev wire nodad && ip link set wire up && ip link set lo up");
}

void two_hosts_close(two_hosts *hosts) {
  assert_int_equal(setns(hosts->home, CLONE_NEWNET), 0);
  for (int i = 0; i < HOSTS; i++)
    close(hosts->ns[i]);
  close(hosts->home);
}
