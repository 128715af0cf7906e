/* Two hosts on one wire, in network namespaces without names that end with the test. Needs root and the `ip` command.
 */
#ifndef KDP_TEST_TWO_HOSTS_H
#define KDP_TEST_TWO_HOSTS_H
#include <stdbool.h>

enum { HOST_A, HOST_B, HOSTS };

typedef struct two_hosts {
  int home, ns[HOSTS];
} two_hosts;

/* Why a test that needs hosts and TUNs cannot run here, or NULL. */
const char *two_hosts_missing(void);
/* Underlay 10.99.0.1 and .2, fd99::1 and ::2, on `wire` of each, MTU 1500. */
void two_hosts_open(two_hosts *hosts);
void two_hosts_close(two_hosts *hosts);
/* What this thread makes from now on (sockets, threads, interfaces) is on that host. */
void on_host(const two_hosts *hosts, int host);
/* Runs a shell command on a host; the test fails when it fails. */
void on_host_run(const two_hosts *hosts, int host, const char *format, ...) __attribute__((format(printf, 3, 4)));

#endif
