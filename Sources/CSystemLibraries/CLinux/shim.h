/* What the Glibc module of Swift leaves out: epoll, eventfd, signalfd, namespaces, netlink, TUN. Macros that Swift
   cannot import (casts, _IOR and the like) are given as constants here. */
#ifndef KAPE_CLINUX_SHIM_H
#define KAPE_CLINUX_SHIM_H

#include <linux/if_link.h>
#include <linux/if_tun.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/sockios.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/types.h>

enum {
  CLINUX_TUNGETIFF = TUNGETIFF,
  CLINUX_TUNGETDEVNETNS = _IO('T', 227), /* Linux 5.4 */
  CLINUX_EPOLLIN = EPOLLIN,
  CLINUX_EPOLLOUT = EPOLLOUT,
  CLINUX_CLONE_NEWNET = 0x40000000,
  CLINUX_EPOLLONESHOT = 1 << 30,
};

/* SO_PEERCRED's answer; the C library shows its own struct to GNU sources only. */
struct clinux_credentials {
  pid_t pid;
  uid_t uid;
  gid_t gid;
};

/* Swift does not call variadic functions. */
static inline int clinux_ioctl(int fd, unsigned long request, void *argument) {
  return ioctl(fd, request, argument);
}

/* Shown to GNU sources only, too. */
int setns(int fd, int nstype);

/* A descriptor that is readable once the process has ended (Linux 5.3). */
static inline int clinux_pidfd_open(pid_t pid) {
  return (int)syscall(434, pid, 0);
}

#endif
