/* The interposed calls themselves. Included by exactly the test programs that want them: a program without it runs on
   the C library's. */
#ifndef KDP_TEST_KERNEL_FAULTS_CALLS_H
#define KDP_TEST_KERNEL_FAULTS_CALLS_H
#include <errno.h>
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
#endif
