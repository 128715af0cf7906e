/* The interposed calls themselves. Included by exactly the test programs that want them: a program without it runs on
   the C library's. */
#ifndef KDP_TEST_KERNEL_FAULTS_CALLS_H
#define KDP_TEST_KERNEL_FAULTS_CALLS_H
#include <dlfcn.h>
#include <errno.h>
#include <liburing.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "support/kernel_faults.h"

int sendmmsg(int fd, struct mmsghdr *message, unsigned int count, int flags) {
  int error = count > 0 ? kernel_faults_send(&message[0].msg_hdr, true) : 0;
  if (error) {
    errno = error;
    return -1;
  }
  /* As the kernel does: what goes well is done and told; the next call meets the error. */
  unsigned int good = 1;
  while (good < count && kernel_faults_send(&message[good].msg_hdr, false) == 0)
    kernel_faults_send(&message[good++].msg_hdr, true);
  return (int)syscall(SYS_sendmmsg, fd, message, good < count ? good : count, flags);
}

ssize_t writev(int fd, const struct iovec *iov, int count) {
  int error = kernel_faults_write(fd, iov, count);
  if (error) {
    errno = error;
    return -1;
  }
  return syscall(SYS_writev, fd, iov, count);
}

/* For an io_uring the request is exchanged before the kernel sees it, for one that does nothing and completes with the
   error (IORING_NOP_INJECT_RESULT, Linux 6.10): from there on all is the kernel's own, chains included. */
static inline void kernel_faults_exchange(struct io_uring *ring) {
  unsigned mask = *ring->sq.kring_mask;
  bool chained_to_failure = false;
  for (unsigned at = ring->sq.sqe_head; at != ring->sq.sqe_tail; at++) {
    struct io_uring_sqe *sqe = &ring->sq.sqes[at & mask];
    bool links = (sqe->flags & IOSQE_IO_LINK) != 0;
    int error = 0;
    if (!chained_to_failure) {
      if (sqe->opcode == IORING_OP_SENDMSG)
        error = kernel_faults_send((const struct msghdr *)(uintptr_t)sqe->addr, true);
      if (sqe->opcode == IORING_OP_WRITEV)
        error = kernel_faults_write(sqe->fd, (const struct iovec *)(uintptr_t)sqe->addr, (int)sqe->len);
    }
    if (error) {
      uint64_t data = sqe->user_data;
      unsigned char flags = sqe->flags;
      memset(sqe, 0, sizeof *sqe);
      sqe->opcode = IORING_OP_NOP;
      sqe->rw_flags = 1;
      sqe->len = (unsigned)-error;
      sqe->flags = flags;
      sqe->user_data = data;
    }
    chained_to_failure = links && (chained_to_failure || error);
  }
}

int io_uring_submit_and_wait(struct io_uring *ring, unsigned count) {
  int (*next)(struct io_uring *, unsigned);
  *(void **)&next = dlsym(RTLD_NEXT, "io_uring_submit_and_wait");
  kernel_faults_exchange(ring);
  return next(ring, count);
}

int io_uring_submit_and_get_events(struct io_uring *ring) {
  int (*next)(struct io_uring *);
  *(void **)&next = dlsym(RTLD_NEXT, "io_uring_submit_and_get_events");
  kernel_faults_exchange(ring);
  return next(ring);
}

int io_uring_queue_init_params(unsigned entries, struct io_uring *ring, struct io_uring_params *parameters) {
  int (*next)(unsigned, struct io_uring *, struct io_uring_params *);
  *(void **)&next = dlsym(RTLD_NEXT, "io_uring_queue_init_params");
  return faults.uring ? -faults.uring : next(entries, ring, parameters);
}
#endif
