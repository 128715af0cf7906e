#include "support/rig.h"

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/bytes.h"
#include "kdp/socket_address.h"
#include "net/checksum.h"

enum { BUFFER = 8 << 20 };

static void set_buffers(int fd) {
  int size = BUFFER;
  if (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &size, sizeof size) != 0)
    (void)setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof size);
  if (setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &size, sizeof size) != 0)
    (void)setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof size);
}

static uint16_t bind_wire(rig *r) {
  r->wire = socket(r->ipv6 ? AF_INET6 : AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  assert_true(r->wire >= 0);
  set_buffers(r->wire);
  struct sockaddr_in6 six = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
  struct sockaddr_in four = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  socklen_t size = r->ipv6 ? sizeof six : sizeof four;
  struct sockaddr *address = r->ipv6 ? (struct sockaddr *)&six : (struct sockaddr *)&four;
  assert_int_equal(bind(r->wire, address, size), 0);
  assert_int_equal(getsockname(r->wire, address, &size), 0);
  return ntohs(r->ipv6 ? six.sin6_port : four.sin_port);
}

void rig_open(rig *r, bool ipv6, kdp_worker_config config) {
  memset(r, 0, sizeof *r);
  r->ipv6 = ipv6;
  r->random.state = 42;
  passthrough_init(&r->engine);
  r->engine.lanes = config.threads;
  r->queues = config.queues ? config.queues : 1;
  bool header = !(config.fallbacks & KDP_FALLBACK_NO_VNET_HEADER);
  for (uint32_t i = 0; i < r->queues; i++) {
    int pair[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair), 0);
    set_buffers(pair[0]);
    set_buffers(pair[1]);
    r->queue[i] = (kdp_tun){.fd = pair[0], .vnet_header = header, .tso = header, .uso = header};
    r->ends[i] = pair[1];
  }
  r->tun = r->queue[0];
  r->frames = r->ends[0];
  uint16_t port = bind_wire(r);
  kdp_address remote = {.family = ipv6 ? KDP_FAMILY_IPV6 : KDP_FAMILY_IPV4, .port = port};
  if (ipv6) {
    remote.bytes[15] = 1;
  } else {
    memcpy(remote.bytes, (uint8_t[]){127, 0, 0, 1}, 4);
  }
  r->engine.path.remote = remote;
  config.engine = &r->engine.engine;
  config.tun = r->queue;
  kdp_host host = kdp_host_default();
  kdp_status status = kdp_worker_create(&config, &host, &r->worker);
  if (status != KDP_OK) fail_msg("worker: %s, %s", kdp_status_describe(status)->name, strerror(errno));
}

bool rig_has_uring(void) {
  rig r;
  rig_open(&r, false, (kdp_worker_config){.backend = KDP_BACKEND_EPOLL});
  kdp_host host = kdp_host_default();
  kdp_worker_config config = {.engine = &r.engine.engine, .tun = &r.tun, .backend = KDP_BACKEND_URING};
  kdp_worker *worker = NULL;
  bool has_it = kdp_worker_create(&config, &host, &worker) == KDP_OK && kdp_worker_backend(worker) == KDP_BACKEND_URING;
  kdp_worker_destroy(worker);
  kdp_worker_destroy(r.worker);
  close(r.tun.fd), close(r.frames), close(r.wire);
  return has_it;
}

static kdp_backend current_backend;

static int set_state(void **state) {
  *state = &current_backend;
  return 0;
}

kdp_backend rig_backend(void **state) {
  return *(const kdp_backend *)*state;
}

int rig_run_with_each_backend(const char *name, const struct CMUnitTest *tests, size_t count) {
  char full_name[100];
  current_backend = KDP_BACKEND_EPOLL;
  snprintf(full_name, sizeof full_name, "%s over epoll", name);
  int failed = _cmocka_run_group_tests(full_name, tests, count, set_state, NULL);
  if (!rig_has_uring()) {
    printf("%s: skipped over io_uring: this kernel does not give it to us\n", name);
    return failed;
  }
  current_backend = KDP_BACKEND_URING;
  snprintf(full_name, sizeof full_name, "%s over io_uring", name);
  return failed + _cmocka_run_group_tests(full_name, tests, count, set_state, NULL);
}

void rig_use_queue(rig *r, uint32_t queue) {
  r->frames = r->ends[queue];
}

void rig_start(rig *r) {
  assert_int_equal(kdp_worker_start(r->worker), KDP_OK);
}

kdp_status rig_close(rig *r) {
  kdp_worker_stop(r->worker);
  kdp_status status = kdp_worker_join(r->worker);
  kdp_worker_destroy(r->worker);
  if (r->queues == 1) r->ends[0] = r->frames; /* a test may have closed it */
  for (uint32_t i = 0; i < r->queues; i++) {
    close(r->queue[i].fd);
    if (r->ends[i] >= 0) close(r->ends[i]);
  }
  close(r->wire);
  return status;
}

typedef struct sync_command {
  kdp_command command;
  rig *r;
  void (*run)(rig *r, kdp_worker *worker);
  sem_t done;
} sync_command;

static void run_sync(kdp_command *command, kdp_worker *worker, kdp_engine *engine, kdp_out *out, kdp_now now,
                     bool stopping) {
  (void)engine, (void)out, (void)now, (void)stopping;
  sync_command *sync = command->context;
  if (sync->run) sync->run(sync->r, worker);
  sem_post(&sync->done);
}

void rig_sync(rig *r, void (*run)(rig *r, kdp_worker *worker)) {
  sync_command sync = {.command = {.run = run_sync}, .r = r, .run = run};
  sync.command.context = &sync;
  sem_init(&sync.done, 0, 0);
  kdp_worker_submit(r->worker, &sync.command);
  while (sem_wait(&sync.done) != 0 && errno == EINTR)
    ;
  sem_destroy(&sync.done);
}

static kdp_status call(rig *r, uint32_t value, void (*run)(rig *r, kdp_worker *worker)) {
  r->call.value = value;
  rig_sync(r, run);
  errno = r->call.error;
  return r->call.status;
}

static void set_port(rig *r, kdp_worker *worker) {
  r->call.status = kdp_worker_set_port(worker, (uint16_t)r->call.value);
  r->call.error = errno;
}

kdp_status rig_set_port(rig *r, uint16_t port) {
  return call(r, port, set_port);
}

static void set_up(rig *r, kdp_worker *worker) {
  r->call.status = kdp_worker_set_up(worker, r->call.value != 0);
  r->call.error = errno;
}

kdp_status rig_set_up(rig *r, bool up) {
  return call(r, up, set_up);
}

static void set_mark(rig *r, kdp_worker *worker) {
  r->call.status = kdp_worker_set_fwmark(worker, r->call.value);
  r->call.error = errno;
}

kdp_status rig_set_mark(rig *r, uint32_t mark) {
  return call(r, mark, set_mark);
}

static void ask_for_rebind(rig *r, kdp_worker *worker) {
  (void)worker;
  r->engine.action = (kdp_action){.kind = KDP_ACTION_REBIND, .packet.slot = KDP_NO_SLOT};
}

void rig_ask_for_rebind(rig *r) {
  rig_sync(r, ask_for_rebind);
}

static void move_peer(rig *r, kdp_worker *worker) {
  r->engine.path.remote.bytes[3]++;
  (void)kdp_worker_set_fwmark(worker, kdp_worker_fwmark(worker)); /* all threads take part, and so see the new path */
}

void rig_move_wire(rig *r) {
  rig_sync(r, move_peer);
  kdp_socket_address name;
  socklen_t size = kdp_socket_address_write(&r->engine.path.remote, &name);
  int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  assert_true(fd >= 0);
  set_buffers(fd);
  assert_int_equal(bind(fd, &name.any, size), 0);
  assert_int_equal(dup2(fd, r->wire), r->wire);
  close(fd);
  r->connected = false;
}

/* ---- Packets ---- */

static size_t write_ip(rig *r, bool ipv6, unsigned flow, uint8_t protocol, size_t size, uint8_t *packet) {
  if (ipv6) {
    memset(packet, 0, 40);
    packet[0] = 0x60;
    kdp_store_be16(packet + 4, (uint16_t)(size - 40));
    packet[6] = protocol;
    packet[7] = 64;
    packet[8] = packet[24] = 0xfd;
    packet[23] = 1;
    packet[39] = 2;
    packet[38] = (uint8_t)flow;
    return 40;
  }
  memset(packet, 0, 20);
  packet[0] = 0x45;
  kdp_store_be16(packet + 2, (uint16_t)size);
  kdp_store_be16(packet + 4, (uint16_t)rng_next(&r->random));
  packet[6] = 0x40;
  packet[8] = 64;
  packet[9] = protocol;
  memcpy(packet + 12, (uint8_t[]){10, 1, 0, 1, 10, 1, (uint8_t)flow, 2}, 8);
  uint16_t sum = (uint16_t)~kdp_checksum_fold(kdp_checksum_add(0, packet, 20));
  memcpy(packet + 10, &sum, 2);
  return 20;
}

size_t rig_udp_packet(rig *r, bool ipv6, unsigned flow, size_t size, uint8_t *packet) {
  size_t least = ipv6 ? 48 : 28;
  if (size < least) size = least;
  rng_fill(&r->random, packet, size);
  size_t at = write_ip(r, ipv6, flow, 17, size, packet);
  kdp_store_be16(packet + at, 1000);
  kdp_store_be16(packet + at + 2, 2000);
  kdp_store_be16(packet + at + 4, (uint16_t)(size - at));
  memset(packet + at + 6, 0, 2);
  uint64_t sum = kdp_checksum_pseudo(packet, 17, (uint32_t)(size - at));
  uint16_t check = (uint16_t)~kdp_checksum_fold(kdp_checksum_add(sum, packet + at, size - at));
  if (check == 0) check = 0xffff;
  memcpy(packet + at + 6, &check, 2);
  return size;
}

size_t rig_tcp_frame(rig *r, bool ipv6, size_t payload, uint16_t segment, uint8_t *frame) {
  size_t ip = ipv6 ? 40 : 20, size = ip + 20 + payload;
  uint8_t *packet = frame + KDP_VIRTIO_SIZE;
  rng_fill(&r->random, packet, size);
  write_ip(r, ipv6, 0, 6, size, packet);
  uint8_t *tcp = packet + ip;
  kdp_store_be16(tcp, 1000);
  kdp_store_be16(tcp + 2, 2000);
  tcp[12] = 0x50;
  tcp[13] = 0x18;
  memset(tcp + 16, 0, 4);
  /* As the kernel does for a sender's checksum that is still to be made: the pseudo header's sum. */
  uint16_t pseudo = kdp_checksum_fold(kdp_checksum_pseudo(packet, 6, (uint32_t)(20 + payload)));
  memcpy(tcp + 16, &pseudo, 2);
  kdp_virtio header = {.flags = KDP_VIRTIO_NEEDS_CSUM,
                       .gso_type = ipv6 ? KDP_VIRTIO_GSO_TCPV6 : KDP_VIRTIO_GSO_TCPV4,
                       .header_size = (uint16_t)(ip + 20),
                       .gso_size = segment,
                       .csum_start = (uint16_t)ip,
                       .csum_offset = 16};
  memcpy(frame, &header, sizeof header);
  return KDP_VIRTIO_SIZE + size;
}

bool rig_packet_is_right(const uint8_t *packet, size_t size) {
  if (size < 20) return false;
  bool ipv6 = packet[0] >> 4 == 6;
  size_t at = ipv6 ? 40 : 20;
  uint8_t protocol = ipv6 ? packet[6] : packet[9];
  if (size < at + 8) return false;
  if (ipv6 ? kdp_load_be16(packet + 4) + 40u != size : kdp_load_be16(packet + 2) != size) return false;
  if (!ipv6 && kdp_checksum_fold(kdp_checksum_add(0, packet, 20)) != 0xffff) return false;
  uint64_t sum = kdp_checksum_pseudo(packet, protocol, (uint32_t)(size - at));
  return kdp_checksum_fold(kdp_checksum_add(sum, packet + at, size - at)) == 0xffff;
}

/* ---- The two ends ---- */

static bool wait_for(int fd, short events, int milliseconds) {
  struct pollfd one = {.fd = fd, .events = events};
  int result;
  do {
    result = poll(&one, 1, milliseconds);
  } while (result < 0 && errno == EINTR);
  return result == 1;
}

void rig_write_frame(rig *r, const uint8_t *frame, size_t size) {
  for (;;) {
    ssize_t written = send(r->frames, frame, size, MSG_NOSIGNAL);
    if (written == (ssize_t)size) return;
    if (written < 0 && errno == EAGAIN && wait_for(r->frames, POLLOUT, 5000)) continue;
    fail_msg("frame: %s", strerror(errno));
  }
}

void rig_write_packet(rig *r, const uint8_t *packet, size_t size) {
  uint8_t frame[RIG_FRAME] = {0};
  size_t header = r->tun.vnet_header ? KDP_VIRTIO_SIZE : 0;
  memcpy(frame + header, packet, size);
  rig_write_frame(r, frame, header + size);
}

ssize_t rig_read_frame(rig *r, uint8_t *frame, int milliseconds) {
  if (!wait_for(r->frames, POLLIN, milliseconds)) return -1;
  return recv(r->frames, frame, RIG_FRAME, 0);
}

void rig_send(rig *r, const uint8_t *datagram, size_t size) {
  if (!r->connected) {
    uint16_t port = htons(kdp_worker_port(r->worker));
    struct sockaddr_in6 six = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT, .sin6_port = port};
    struct sockaddr_in four = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK), .sin_port = port};
    int result = r->ipv6 ? connect(r->wire, (struct sockaddr *)&six, sizeof six)
                         : connect(r->wire, (struct sockaddr *)&four, sizeof four);
    assert_int_equal(result, 0);
    r->connected = true;
  }
  ssize_t sent = send(r->wire, datagram, size, 0);
  if (sent != (ssize_t)size) fail_msg("datagram of %zu: %s", size, strerror(errno));
}

ssize_t rig_receive(rig *r, uint8_t *datagram, size_t capacity, int milliseconds) {
  if (!wait_for(r->wire, POLLIN, milliseconds)) return -1;
  return recv(r->wire, datagram, capacity, 0);
}

bool rig_event(rig *r, kdp_event_kind kind, kdp_event *event) {
  for (;;) {
    while (kdp_worker_next_event(r->worker, event))
      if (event->kind == kind) return true;
    if (!wait_for(kdp_worker_event_fd(r->worker), POLLIN, 2000)) return false;
  }
}
