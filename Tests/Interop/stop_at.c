/* Preloaded into kape: ends it with SIGKILL just before its Nth call that changes something of the system, or of its
   own record of that. STOP_AT is N, STOP_LOG a file that gets a line for each such call. Calls that only ask, and those
   of other programs, do not count. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <signal.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

static atomic_int calls;

static void point(const char *name, const char *detail) {
  const char *at = getenv("STOP_AT"), *log = getenv("STOP_LOG");
  if (!at || strcmp(program_invocation_short_name, "kape") != 0) return;
  int number = atomic_fetch_add(&calls, 1) + 1;
  if (log) {
    char line[400];
    int size = snprintf(line, sizeof line, "%d %s %.300s\n", number, name, detail);
    int fd = open(log, O_WRONLY | O_APPEND | O_CREAT, 0600);
    static ssize_t (*real)(int, const void *, size_t);
    if (!real) real = dlsym(RTLD_NEXT, "write");
    if (fd >= 0 && real(fd, line, (size_t)size) < 0) abort();
    close(fd);
  }
  if (number == atoi(at)) kill(getpid(), SIGKILL);
}

#define REAL(name)                                                                                                     \
  static typeof(name) *real;                                                                                           \
  if (!real) real = dlsym(RTLD_NEXT, #name)

ssize_t write(int fd, const void *bytes, size_t size) {
  REAL(write);
  struct stat information;
  if (fstat(fd, &information) == 0 && S_ISREG(information.st_mode)) {
    char path[200] = "", self[40];
    snprintf(self, sizeof self, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(self, path, sizeof path - 1);
    if (length > 0) {
      char text[300];
      snprintf(text, sizeof text, "%s %.*s", path, (int)(size < 60 ? size : 60), (const char *)bytes);
      for (char *at = text; *at; at++)
        if (*at == '\n') *at = ' ';
      point("write", text);
    }
  }
  return real(fd, bytes, size);
}

ssize_t sendto(int fd, const void *bytes, size_t size, int flags, const struct sockaddr *to, socklen_t to_size) {
  REAL(sendto);
  struct nlmsghdr header;
  if (to && to->sa_family == AF_NETLINK && size >= sizeof header) {
    memcpy(&header, bytes, sizeof header);
    char text[40];
    snprintf(text, sizeof text, "type %d", header.nlmsg_type);
    /* A quarter of rtnetlink's types are questions; batches of nf_tables never are. */
    if (header.nlmsg_type < RTM_BASE || (header.nlmsg_type & 3) != 2) point("netlink", text);
  }
  return real(fd, bytes, size, flags, to, to_size);
}

int socket(int family, int type, int protocol) {
  REAL(socket);
  if (family == AF_NETLINK && protocol == NETLINK_NETFILTER && getenv("NO_NFTABLES")) {
    errno = EPROTONOSUPPORT;
    return -1;
  }
  return real(family, type, protocol);
}

int rename(const char *from, const char *to) {
  REAL(rename);
  point("rename", to);
  return real(from, to);
}

int link(const char *from, const char *to) {
  REAL(link);
  point("link", to);
  return real(from, to);
}

int symlink(const char *from, const char *to) {
  REAL(symlink);
  point("symlink", to);
  return real(from, to);
}

int unlink(const char *path) {
  REAL(unlink);
  point("unlink", path);
  return real(path);
}

int rmdir(const char *path) {
  REAL(rmdir);
  point("rmdir", path);
  return real(path);
}

int mkdir(const char *path, mode_t mode) {
  REAL(mkdir);
  point("mkdir", path);
  return real(path, mode);
}

int bind(int fd, const struct sockaddr *address, socklen_t size) {
  REAL(bind);
  if (address->sa_family == AF_UNIX) point("bind", "a Unix socket");
  return real(fd, address, size);
}

int posix_spawn(pid_t *process, const char *path, const posix_spawn_file_actions_t *actions,
                const posix_spawnattr_t *attributes, char *const arguments[], char *const environment[]) {
  REAL(posix_spawn);
  point("spawn", path);
  return real(process, path, actions, attributes, arguments, environment);
}
