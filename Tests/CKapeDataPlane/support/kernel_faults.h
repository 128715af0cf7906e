/* System calls that fail on demand: this program's own sendmmsg, writev and recvmmsg stand before the C library's, and
   completions of an io_uring are made to carry the same errors. A rule decides by what a call asks for; the error is
   one that the real kernel gives. Set before the worker runs, or while it cannot be in a call. */
#ifndef KDP_TEST_KERNEL_FAULTS_H
#define KDP_TEST_KERNEL_FAULTS_H
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct kernel_faults {
  _Atomic(int) segmented_send; /* errno of sends with UDP_SEGMENT of datagrams above `segment_largest`; 0: none */
  _Atomic(int) segment_largest;
  _Atomic(int) segments_most; /* segmented sends of more get EINVAL; 0: no limit */
  _Atomic(int) send;          /* errno of the next `send_times` messages of any kind */
  _Atomic(int) send_times;
  _Atomic(int) full_family;  /* sends to addresses of this family get EAGAIN; 0: none */
  _Atomic(int) source;       /* errno of sends with IP_PKTINFO or IPV6_PKTINFO */
  _Atomic(int) joined_write; /* errno of TUN writes whose virtio header has gso_type `joined_type` */
  _Atomic(int) joined_type;
  _Atomic(int) write; /* errno of the next `write_times` TUN writes */
  _Atomic(int) write_times;
  _Atomic(int) write_fd; /* the TUN; other descriptors are left alone */
  _Atomic(int) uring;    /* errno of making an io_uring */
  /* Seen. */
  _Atomic(int) segmented_tries, send_faults, write_faults;
} kernel_faults;

extern kernel_faults faults;
void kernel_faults_clear(void);

struct msghdr;
struct iovec;
/* What the rules say about one message: 0 or an errno. Counts only what is `tried`. */
int kernel_faults_send(const struct msghdr *message, bool tried);
/* About one write; counts. */
int kernel_faults_write(int fd, const struct iovec *iov, int count);

#endif
