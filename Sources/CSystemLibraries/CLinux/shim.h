/* What the Glibc module of Swift leaves out: epoll, eventfd, signalfd, namespaces, netlink, TUN. Macros that Swift
   cannot import (casts, _IOR and the like) are given as constants here. */
#ifndef KAPE_CLINUX_SHIM_H
#define KAPE_CLINUX_SHIM_H

#include <errno.h>
#include <fcntl.h>
#include <linux/if_link.h>
#include <linux/if_tun.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/sockios.h>
#include <malloc.h>
#include <spawn.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/types.h>

enum {
  CLINUX_TUNGETIFF = TUNGETIFF,
  CLINUX_TUNSETOFFLOAD = TUNSETOFFLOAD,
  CLINUX_TUNGETVNETHDRSZ = TUNGETVNETHDRSZ,
  CLINUX_IFF_VNET_HDR = IFF_VNET_HDR,
  CLINUX_TUNGETDEVNETNS = _IO('T', 227), /* Linux 5.4 */
  CLINUX_F_SETSIG = 10,
  CLINUX_F_SETLEASE = 1024,
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

static inline int clinux_accept(int fd) {
  extern int accept4(int, struct sockaddr *, socklen_t *, int);
  return accept4(fd, 0, 0, SOCK_CLOEXEC | SOCK_NONBLOCK);
}

/* What the C library shows to GNU sources only, which the Glibc module is not. */
int setns(int fd, int nstype);

/* A descriptor that is readable once the process has ended (Linux 5.3). */
static inline int clinux_pidfd_open(pid_t pid) {
  return (int)syscall(434, pid, 0);
}

static inline int clinux_pipe(int ends[2]) {
  extern int pipe2(int[2], int);
  return pipe2(ends, O_CLOEXEC);
}

enum { CLINUX_POSIX_SPAWN_SETSID = 0x80 };
static inline int clinux_spawn_actions_close_from(posix_spawn_file_actions_t *actions, int first) {
  extern int posix_spawn_file_actions_addclosefrom_np(posix_spawn_file_actions_t *, int);
  return posix_spawn_file_actions_addclosefrom_np(actions, first);
}
static inline int clinux_spawn_actions_change_folder(posix_spawn_file_actions_t *actions, const char *path) {
  extern int posix_spawn_file_actions_addchdir_np(posix_spawn_file_actions_t *, const char *);
  return posix_spawn_file_actions_addchdir_np(actions, path);
}

/* What the C library shows to GNU sources only, and raw calls that are variadic. */
static inline int clinux_fexecve(int fd, char *const arguments[], char *const environment[]) {
  extern int fexecve(int, char *const[], char *const[]);
  return fexecve(fd, arguments, environment);
}
static inline int clinux_prctl(int option, unsigned long value) {
  extern int prctl(int, ...);
  return prctl(option, value, 0UL, 0UL, 0UL);
}
static inline int clinux_set_user(uid_t user) {
  extern int setresuid(uid_t, uid_t, uid_t);
  return setresuid(user, user, user);
}
static inline int clinux_set_group(gid_t group) {
  extern int setresgid(gid_t, gid_t, gid_t);
  return setresgid(group, group, group);
}
static inline int clinux_set_groups(size_t count, const gid_t *groups) {
  extern int setgroups(size_t, const gid_t *);
  return setgroups(count, groups);
}
/* Gives up every capability of the calling thread (capset(2), version 3). */
static inline int clinux_drop_capabilities(void) {
  struct {
    unsigned version;
    int pid;
  } header = {0x20080522, 0};
  struct {
    unsigned effective, permitted, inheritable;
  } sets[2] = {{0, 0, 0}, {0, 0, 0}};
  return (int)syscall(SYS_capset, &header, sets);
}
enum {
  CLINUX_PR_SET_NO_NEW_PRIVS = 38,
  CLINUX_PR_CAPBSET_READ = 23,
  CLINUX_PR_CAPBSET_DROP = 24,
  CLINUX_PR_SET_NAME = 15
};

/* Descriptors with bytes of a stream socket (SCM_RIGHTS, unix(7)); the cmsg(3) macros do not reach Swift. */
enum { CLINUX_MOST_DESCRIPTORS = 8 };

static inline ssize_t clinux_send(int fd, const void *bytes, size_t size, const int *descriptors, size_t count) {
  union {
    struct cmsghdr header;
    char space[CMSG_SPACE(sizeof(int) * CLINUX_MOST_DESCRIPTORS)];
  } control;
  struct iovec part = {(void *)bytes, size};
  struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
  if (count > CLINUX_MOST_DESCRIPTORS) {
    errno = EINVAL;
    return -1;
  }
  if (count > 0) {
    memset(&control, 0, sizeof control);
    message.msg_control = &control;
    message.msg_controllen = CMSG_SPACE(sizeof(int) * count);
    struct cmsghdr *first = CMSG_FIRSTHDR(&message);
    first->cmsg_level = SOL_SOCKET;
    first->cmsg_type = SCM_RIGHTS;
    first->cmsg_len = CMSG_LEN(sizeof(int) * count);
    memcpy(CMSG_DATA(first), descriptors, sizeof(int) * count);
  }
  return sendmsg(fd, &message, MSG_NOSIGNAL);
}

/* `descriptors` has room for CLINUX_MOST_DESCRIPTORS; they are closed in other programs. `*count` -1: there were more,
   and none is left open. */
static inline ssize_t clinux_receive(int fd, void *bytes, size_t size, int *descriptors, int *count) {
  extern int close(int);
  union {
    struct cmsghdr header;
    char space[CMSG_SPACE(sizeof(int) * CLINUX_MOST_DESCRIPTORS)];
  } control;
  struct iovec part = {bytes, size};
  struct msghdr message = {
      .msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
  *count = 0;
  ssize_t received = recvmsg(fd, &message, MSG_CMSG_CLOEXEC);
  if (received < 0) return received;
  for (struct cmsghdr *each = CMSG_FIRSTHDR(&message); each; each = CMSG_NXTHDR(&message, each)) {
    if (each->cmsg_level != SOL_SOCKET || each->cmsg_type != SCM_RIGHTS) continue;
    size_t bytes_of_them = each->cmsg_len - CMSG_LEN(0);
    memcpy(descriptors + *count, CMSG_DATA(each), bytes_of_them);
    *count += (int)(bytes_of_them / sizeof(int));
  }
  if (message.msg_flags & MSG_CTRUNC) {
    for (int i = 0; i < *count; i++)
      close(descriptors[i]);
    *count = -1;
  }
  return received;
}

#endif
