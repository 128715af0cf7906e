/* What a stream through two workers with WireGuard engines may cost, by counts that do not depend on time: no
   allocation at all in steady state (the whole process: the C library's allocator and mmap, OpenSSL included), system
   calls for each 64 KiB of payload, slots touched. */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/perf_event.h>
#include <poll.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>

#include "kdp/packet.h"
#include "kdp/wireguard.h"
#include "support/rig.h"

/* ---- Allocations ---- */

static _Atomic(bool) counting;
static _Atomic(uint64_t) allocations;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || __has_feature(address_sanitizer) ||               \
    __has_feature(thread_sanitizer)
enum { COUNTED = 0 }; /* the sanitizers have an allocator of their own */
#else
enum { COUNTED = 1 };
static void note_allocation(void) {
  if (atomic_load_explicit(&counting, memory_order_relaxed))
    atomic_fetch_add_explicit(&allocations, 1, memory_order_relaxed);
}

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *memory, size_t size);
void *__libc_memalign(size_t alignment, size_t size);
void __libc_free(void *memory);

void *malloc(size_t size) {
  note_allocation();
  return __libc_malloc(size);
}
void *calloc(size_t count, size_t size) {
  note_allocation();
  return __libc_calloc(count, size);
}
void *realloc(void *memory, size_t size) {
  note_allocation();
  return __libc_realloc(memory, size);
}
void *memalign(size_t alignment, size_t size);
void *memalign(size_t alignment, size_t size) {
  note_allocation();
  return __libc_memalign(alignment, size);
}
void *aligned_alloc(size_t alignment, size_t size) {
  note_allocation();
  return __libc_memalign(alignment, size);
}
int posix_memalign(void **memory, size_t alignment, size_t size) {
  note_allocation();
  *memory = __libc_memalign(alignment, size);
  return *memory ? 0 : ENOMEM;
}
void free(void *memory) {
  if (memory) note_allocation();
  __libc_free(memory);
}
void *mmap(void *address, size_t size, int protection, int flags, int fd, off_t offset) {
  note_allocation();
  return (void *)syscall(SYS_mmap, address, size, protection, flags, fd, offset);
}
#endif

/* ---- System calls of one thread ---- */

/* In a mount namespace of this program's own; without the right to it, nothing is counted. */
static void mount_tracefs(void) {
  if (unshare(CLONE_NEWNS) != 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0) return;
  if (mount("tracefs", "/sys/kernel/tracing", "tracefs", 0, NULL) != 0) return;
}

static int tracepoint_id(void) {
  static const char *const paths[] = {"/sys/kernel/tracing/events/raw_syscalls/sys_enter/id",
                                      "/sys/kernel/debug/tracing/events/raw_syscalls/sys_enter/id"};
  for (int i = 0; i < 2; i++) {
    FILE *file = fopen(paths[i], "r");
    if (!file) continue;
    int id = -1;
    if (fscanf(file, "%d", &id) != 1) id = -1;
    fclose(file);
    return id;
  }
  return -1;
}

/* ---- Two workers ---- */

typedef struct end {
  kdp_engine *engine;
  kdp_worker *worker;
  kdp_tun tun;
  int frames, counter;
  uint16_t other_port;
} end;

enum { PRIVATE_A = 1, PRIVATE_B = 2 };

typedef struct call {
  kdp_command command;
  end *e;
  void (*run)(end *e, kdp_out *out, kdp_now now);
  _Atomic(bool) done;
} call;

static void run_call(kdp_command *command, kdp_worker *worker, kdp_engine *engine, kdp_out *out, kdp_now now,
                     bool stopping) {
  (void)worker, (void)engine, (void)stopping;
  call *c = command->context;
  c->run(c->e, out, now);
  atomic_store(&c->done, true);
}

static void on_worker(end *e, void (*run)(end *e, kdp_out *out, kdp_now now)) {
  call c = {.command = {.run = run_call}, .e = e, .run = run};
  c.command.context = &c;
  kdp_worker_submit(e->worker, &c.command);
  while (!atomic_load(&c.done))
    usleep(1000);
}

static void open_counter(end *e, kdp_out *out, kdp_now now) {
  (void)out, (void)now;
  struct perf_event_attr attribute = {.type = PERF_TYPE_TRACEPOINT, .size = sizeof attribute};
  int id = tracepoint_id();
  attribute.config = (uint64_t)id;
  e->counter = id < 0 ? -1 : (int)syscall(SYS_perf_event_open, &attribute, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
}

static uint64_t system_calls(const end *e) {
  uint64_t count = 0;
  if (e->counter < 0 || read(e->counter, &count, sizeof count) != sizeof count) return 0;
  return count;
}

static void configure(end *e, uint8_t own, uint8_t other, kdp_out *out, kdp_now now) {
  uint8_t other_private[KDP_KEY_SIZE];
  memset(other_private, other, sizeof other_private);
  kdp_wireguard_prefix_change prefix = {.prefix = {.family = KDP_FAMILY_IPV4}};
  kdp_wireguard_peer_change peer = {
      .fields = KDP_WIREGUARD_PEER_SET_ENDPOINT,
      .endpoint = {.family = KDP_FAMILY_IPV4, .port = e->other_port, .bytes = {127, 0, 0, 1}},
      .prefix = &prefix,
      .prefix_count = 1};
  kdp_wireguard_public_key(other_private, peer.public_key);
  kdp_wireguard_change change = {.fields = KDP_WIREGUARD_SET_PRIVATE_KEY, .peer = &peer, .peer_count = 1};
  memset(change.private_key, own, sizeof change.private_key);
  assert_int_equal(kdp_wireguard_apply(e->engine, &change, out, now), KDP_OK);
}

static void configure_a(end *e, kdp_out *out, kdp_now now) {
  configure(e, PRIVATE_A, PRIVATE_B, out, now);
}
static void configure_b(end *e, kdp_out *out, kdp_now now) {
  configure(e, PRIVATE_B, PRIVATE_A, out, now);
}

static void open_end(end *e, kdp_backend backend) {
  memset(e, 0, sizeof *e);
  int pair[2], size = 4 << 20;
  assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair), 0);
  for (int i = 0; i < 2; i++) {
    setsockopt(pair[i], SOL_SOCKET, SO_SNDBUFFORCE, &size, sizeof size);
    setsockopt(pair[i], SOL_SOCKET, SO_RCVBUFFORCE, &size, sizeof size);
  }
  e->tun = (kdp_tun){.fd = pair[0], .vnet_header = true, .tso = true, .uso = true};
  e->frames = pair[1];
  kdp_host host = kdp_host_default();
  kdp_wireguard_config wireguard = {.inside_mtu = 1420};
  kdp_limits limits = {0};
  assert_int_equal(kdp_wireguard_create(&wireguard, &limits, &host, kdp_now_read(), &e->engine), KDP_OK);
  kdp_worker_config config = {.engine = e->engine, .tun = &e->tun, .backend = backend};
  assert_int_equal(kdp_worker_create(&config, &host, &e->worker), KDP_OK);
  assert_int_equal(kdp_worker_start(e->worker), KDP_OK);
  on_worker(e, open_counter);
}

static void close_end(end *e) {
  kdp_worker_stop(e->worker);
  assert_int_equal(kdp_worker_join(e->worker), KDP_OK);
  kdp_worker_destroy(e->worker);
  kdp_engine_destroy(e->engine);
  if (e->counter >= 0) close(e->counter);
  close(e->tun.fd);
  close(e->frames);
}

enum { SEGMENT = 1368, FRAME_SEGMENTS = 44, PAYLOAD = SEGMENT * FRAME_SEGMENTS, IN_FLIGHT = 16 };

static bool readable(int fd, int milliseconds) {
  struct pollfd one = {.fd = fd, .events = POLLIN};
  return poll(&one, 1, milliseconds) == 1;
}

/* Payload bytes that came out of the far end, of `count` super-packets put in at the near one. */
static uint64_t pump(end *near, end *far, const uint8_t *frame, size_t size, uint32_t count) {
  static uint8_t got[RIG_FRAME];
  uint64_t in = 0, out = 0;
  while (out < (uint64_t)count * PAYLOAD) {
    while (in < (uint64_t)count * PAYLOAD && in - out < (uint64_t)IN_FLIGHT * PAYLOAD) {
      if (send(near->frames, frame, size, MSG_NOSIGNAL) != (ssize_t)size) break;
      in += PAYLOAD;
    }
    if (!readable(far->frames, 2000)) return out;
    ssize_t received;
    while ((received = recv(far->frames, got, sizeof got, 0)) > 0)
      out += (uint64_t)received - KDP_VIRTIO_SIZE - 40;
  }
  return out;
}

enum { WARM_UP = 2300, MEASURED = 22800 }; /* 10^5 packets, then 10^6 */

static void a_stream_allocates_nothing_and_calls_seldom(void **state) {
  static end a, b;
  kdp_backend backend = rig_backend(state);
  open_end(&a, backend);
  open_end(&b, backend);
  a.other_port = kdp_worker_port(b.worker);
  b.other_port = kdp_worker_port(a.worker);
  on_worker(&b, configure_b);
  on_worker(&a, configure_a);

  rig packets = {.random = {1}};
  static uint8_t frame[RIG_FRAME];
  size_t size = rig_tcp_frame(&packets, false, PAYLOAD, SEGMENT, frame);
  assert_int_equal(pump(&a, &b, frame, size, 1), PAYLOAD); /* the handshake: what waits for it fits the staging */
  uint32_t warm_up = COUNTED ? WARM_UP : 50, measured = COUNTED ? MEASURED : 200;
  assert_int_equal(pump(&a, &b, frame, size, warm_up), (uint64_t)warm_up * PAYLOAD);

  uint64_t before_a = system_calls(&a), before_b = system_calls(&b);
  atomic_store(&counting, true);
  uint64_t bytes = pump(&a, &b, frame, size, measured);
  atomic_store(&counting, false);
  double pieces = (double)bytes / 65536;
  double calls_a = (double)(system_calls(&a) - before_a) / pieces;
  double calls_b = (double)(system_calls(&b) - before_b) / pieces;
  assert_int_equal(bytes, (uint64_t)measured * PAYLOAD);
  assert_int_equal(allocations, 0);
  if (a.counter >= 0) {
    printf("  system calls for 64 KiB: sender %.2f, receiver %.2f\n", calls_a, calls_b);
    double most = backend == KDP_BACKEND_URING ? 2 : 4.2;
    assert_true(calls_a > 0 && calls_a <= most);
    assert_true(calls_b > 0 && calls_b <= most);
  } else {
    printf("  system calls are not counted: no tracepoint raw_syscalls:sys_enter here\n");
  }
  close_end(&a);
  close_end(&b);
}

int main(void) {
  mount_tracefs();
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_stream_allocates_nothing_and_calls_seldom),
  };
  return rig_run_with_each_backend("worker gates", tests, sizeof tests / sizeof tests[0]);
}
