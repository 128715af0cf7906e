#include "kdp/resolve.h"

#include <arpa/nameser.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <resolv.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "core/bytes.h"

enum { QUESTION_SIZE = 320, DATAGRAM_SIZE = 4096, STREAM_SIZE = 65535, TIMEOUT_MS = 2000, ROUNDS = 2, DNS_PORT = 53 };

static uint16_t type_of(kdp_family family) {
  return family == KDP_FAMILY_IPV4 ? ns_t_a : ns_t_aaaa;
}

typedef struct question {
  const char *name;
  kdp_family family;
  uint16_t identifier;
  uint8_t bytes[QUESTION_SIZE];
  size_t size;
} question;

static bool make_question(const char *name, kdp_family family, question *made) {
  *made = (question){.name = name, .family = family};
  int size = res_mkquery(ns_o_query, name, ns_c_in, type_of(family), NULL, 0, NULL, made->bytes, sizeof made->bytes);
  if (size <= 0) return false;
  made->size = (size_t)size;
  if (getrandom(&made->identifier, sizeof made->identifier, 0) != sizeof made->identifier) return false;
  kdp_store_be16(made->bytes, made->identifier);
  return true;
}

static int64_t now_ms(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (int64_t)time.tv_sec * 1000 + time.tv_nsec / 1000000;
}

static bool wait_for(int fd, short events, int64_t deadline) {
  for (;;) {
    int64_t left = deadline - now_ms();
    struct pollfd waited = {.fd = fd, .events = events};
    int ready = left > 0 ? poll(&waited, 1, (int)left) : 0;
    if (ready > 0) return true;
    if (ready < 0 && errno == EINTR) continue;
    if (ready == 0) errno = ETIMEDOUT;
    return false;
  }
}

/* Connected, so that answers from elsewhere and ICMP errors are the kernel's business. -1: errno says why. */
static int open_socket(const kdp_address *server, int type, uint32_t mark) {
  struct sockaddr_storage storage = {0};
  socklen_t size;
  uint16_t port = htons(server->port ? server->port : DNS_PORT);
  if (server->family == KDP_FAMILY_IPV4) {
    struct sockaddr_in *to = (struct sockaddr_in *)&storage;
    *to = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = port};
    memcpy(&to->sin_addr, server->bytes, 4);
    size = sizeof *to;
  } else {
    struct sockaddr_in6 *to = (struct sockaddr_in6 *)&storage;
    *to = (struct sockaddr_in6){.sin6_family = AF_INET6, .sin6_port = port, .sin6_scope_id = server->scope};
    memcpy(&to->sin6_addr, server->bytes, 16);
    size = sizeof *to;
  }
  int fd = socket(storage.ss_family, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) return -1;
  if ((mark && setsockopt(fd, SOL_SOCKET, SO_MARK, &mark, sizeof mark) < 0) ||
      (connect(fd, (struct sockaddr *)&storage, size) < 0 && errno != EINPROGRESS)) {
    int code = errno;
    close(fd);
    errno = code;
    return -1;
  }
  return fd;
}

static bool transfer(int fd, void *bytes, size_t size, bool sending, int64_t deadline) {
  uint8_t *at = bytes;
  while (size > 0) {
    if (!wait_for(fd, sending ? POLLOUT : POLLIN, deadline)) return false;
    ssize_t done = sending ? send(fd, at, size, MSG_NOSIGNAL) : recv(fd, at, size, 0);
    if (done == 0) errno = ECONNRESET;
    if (done < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (done <= 0) return false;
    at += done;
    size -= (size_t)done;
  }
  return true;
}

/* RFC 1035 section 4.2.2: two bytes of length before each message. */
static bool ask_stream(const question *asked, const kdp_address *server, const kdp_resolve_config *config,
                       int64_t deadline, kdp_resolve_answer *answer) {
  uint8_t message[STREAM_SIZE];
  int fd = open_socket(server, SOCK_STREAM, config->fwmark);
  if (fd < 0) return false;
  kdp_store_be16(message, (uint16_t)asked->size);
  memcpy(message + 2, asked->bytes, asked->size);
  bool done = transfer(fd, message, asked->size + 2, true, deadline) && transfer(fd, message, 2, false, deadline);
  size_t size = kdp_load_be16(message);
  done = done && transfer(fd, message, size, false, deadline);
  int code = errno;
  close(fd);
  errno = code;
  bool cut = false;
  if (done && !kdp_resolve_read(message, size, asked->identifier, asked->name, asked->family, answer, &cut)) {
    errno = EBADMSG;
    return false;
  }
  return done;
}

static bool ask(const question *asked, const kdp_address *server, const kdp_resolve_config *config,
                kdp_resolve_answer *answer) {
  uint8_t message[DATAGRAM_SIZE];
  int64_t deadline = now_ms() + (config->timeout_ms ? config->timeout_ms : TIMEOUT_MS);
  int fd = open_socket(server, SOCK_DGRAM, config->fwmark);
  if (fd < 0) return false;
  bool answered = false, cut = false;
  if (send(fd, asked->bytes, asked->size, MSG_NOSIGNAL) == (ssize_t)asked->size) {
    while (!answered && wait_for(fd, POLLIN, deadline)) {
      ssize_t size = recv(fd, message, sizeof message, 0);
      if (size < 0 && (errno == EINTR || errno == EAGAIN)) continue;
      if (size < 0) break;
      answered = kdp_resolve_read(message, (size_t)size, asked->identifier, asked->name, asked->family, answer, &cut);
    }
  }
  int code = errno;
  close(fd);
  errno = code;
  return answered && cut ? ask_stream(asked, server, config, deadline, answer) : answered;
}

static bool is_final(int response) {
  return response == ns_r_noerror || response == ns_r_nxdomain;
}

/* True: a server said what there is, or that there is none. */
static bool ask_all(const question *asked, const kdp_resolve_config *config, uint32_t rounds,
                    kdp_resolve_answer *answer) {
  for (uint32_t i = 0; i < rounds * config->server_count; i++) {
    if (!ask(asked, &config->server[i % config->server_count], config, answer)) {
      answer->code = errno;
    } else if (is_final(answer->response)) {
      return true;
    }
  }
  return false;
}

kdp_status kdp_resolve(const char *name, const kdp_resolve_config *config, kdp_resolve_answer *answer) {
  question asked;
  uint32_t rounds = config->rounds ? config->rounds : ROUNDS;
  *answer = (kdp_resolve_answer){.response = -1};
  if (config->server_count == 0 || rounds > 100) return KDP_INVALID_ARGUMENT;
  if (!make_question(name, KDP_FAMILY_IPV4, &asked)) return KDP_INVALID_ARGUMENT;
  bool told = ask_all(&asked, config, rounds, answer);
  /* A name that does not exist has no address of the other kind either. */
  if (told && answer->response == ns_r_nxdomain) return KDP_NOT_FOUND;
  if (!make_question(name, KDP_FAMILY_IPV6, &asked)) return KDP_INVALID_ARGUMENT;
  /* Some servers never answer this question: with an IPv4 address in hand, once round is enough. */
  told = ask_all(&asked, config, answer->count ? 1 : rounds, answer) && told;
  if (answer->count) return KDP_OK;
  return told ? KDP_NOT_FOUND : KDP_SYSTEM;
}
