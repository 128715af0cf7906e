/* What a stream through two workers with WireGuard engines may cost, by counts that do not depend on time: no
   allocation at all in steady state (the whole process: the C library's allocator and mmap, OpenSSL included), system
   calls for each 64 KiB of payload. */
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
#include <openssl/evp.h>

#include "support/rig.h"
#include "support/worker_pair.h"

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

static void open_counter(worker_end *end, kdp_out *out, kdp_now now, void *context) {
  (void)end, (void)out, (void)now;
  int *counter = context, id = tracepoint_id();
  struct perf_event_attr attribute = {.type = PERF_TYPE_TRACEPOINT, .size = sizeof attribute, .config = (uint64_t)id};
  *counter = id < 0 ? -1 : (int)syscall(SYS_perf_event_open, &attribute, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
}

static uint64_t system_calls(int counter) {
  uint64_t count = 0;
  if (counter < 0 || read(counter, &count, sizeof count) != sizeof count) return 0;
  return count;
}

/* ---- The stream ---- */

enum { SEGMENT = 1368, FRAME_SEGMENTS = 44, PAYLOAD = SEGMENT * FRAME_SEGMENTS, IN_FLIGHT = 16 };
enum { WARM_UP = 2300, MEASURED = 43200 }; /* 10^5 packets, then up to 2 * 10^6 */

static void measure(void **state, const char *aead_provider) {
  static worker_pair pair;
  kdp_backend backend = rig_backend(state);
  int counter_a = -1, counter_b = -1;
  worker_pair_open(&pair, backend, aead_provider);
  worker_end_call(&pair.a, open_counter, &counter_a);
  worker_end_call(&pair.b, open_counter, &counter_b);

  rig packets = {.random = {1}};
  static uint8_t frame[RIG_FRAME];
  size_t size = rig_tcp_frame(&packets, false, PAYLOAD, SEGMENT, frame);
  /* The handshake first: what waits for it fits the staging. */
  assert_int_equal(worker_pair_pump(&pair.a, &pair.b, frame, size, PAYLOAD, 1, 1), PAYLOAD);
  uint32_t warm_up = COUNTED ? WARM_UP : 50, measured = COUNTED ? MEASURED : 200;
  assert_int_equal(worker_pair_pump(&pair.a, &pair.b, frame, size, PAYLOAD, warm_up, IN_FLIGHT),
                   (uint64_t)warm_up * PAYLOAD);

  uint64_t before_a = system_calls(counter_a), before_b = system_calls(counter_b);
  atomic_store(&allocations, 0);
  atomic_store(&counting, true);
  uint64_t bytes = worker_pair_pump(&pair.a, &pair.b, frame, size, PAYLOAD, measured, IN_FLIGHT);
  atomic_store(&counting, false);
  double pieces = (double)bytes / 65536;
  double calls_a = (double)(system_calls(counter_a) - before_a) / pieces;
  double calls_b = (double)(system_calls(counter_b) - before_b) / pieces;
  assert_int_equal(bytes, (uint64_t)measured * PAYLOAD);
  assert_int_equal(allocations, 0);
  if (counter_a >= 0) {
    printf("  system calls for 64 KiB: sender %.2f, receiver %.2f\n", calls_a, calls_b);
    double most = backend == KDP_BACKEND_URING ? 2 : 4.2;
    assert_true(calls_a > 0 && calls_a <= most);
    assert_true(calls_b > 0 && calls_b <= most);
    close(counter_a);
    close(counter_b);
  } else {
    printf("  system calls are not counted: no tracepoint raw_syscalls:sys_enter here\n");
  }
  worker_pair_close(&pair);
}

/* With each provider there is: what a cipher library allocates per packet would be its own doing, and ours to avoid. */
static void a_stream_allocates_nothing_and_calls_seldom(void **state) {
  kdp_host host = kdp_host_default();
  int measured = 0;
  for (int provider = 0; provider < KDP_AEAD_PROVIDER_COUNT; provider++) {
    kdp_aead_worker *worker;
    if (kdp_aead_worker_create((kdp_aead_provider)provider, &host, &worker) != KDP_OK) continue;
    kdp_aead_worker_destroy(worker);
    const char *name = kdp_aead_provider_name((kdp_aead_provider)provider);
    printf("  %s\n", name);
    measure(state, name);
    measured++;
  }
  assert_true(measured > 0);
}

/* The counter sees every one of them, also where a library makes it: else the zero above would mean nothing. */
static void allocations_are_seen(void **state) {
  (void)state;
  if (!COUNTED) return;
  /* Through pointers that the compiler does not see through: it may leave out what is given back unused. */
  void *(*volatile take)(size_t) = malloc;
  void *(*volatile take_zeroed)(size_t, size_t) = calloc;
  void *(*volatile take_more)(void *, size_t) = realloc;
  void (*volatile give_back)(void *) = free;
  void *(*volatile map)(void *, size_t, int, int, int, off_t) = mmap;
  atomic_store(&allocations, 0);
  atomic_store(&counting, true);
  void *memory = take(100);
  assert_int_equal(allocations, 1);
  memory = take_more(memory, 200);
  assert_int_equal(allocations, 2);
  give_back(memory);
  assert_int_equal(allocations, 3);
  give_back(take_zeroed(1, 100));
  assert_int_equal(allocations, 5);
  void *page = map(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  assert_int_equal(allocations, 6);
  munmap(page, 4096);
  EVP_CIPHER_CTX_free(EVP_CIPHER_CTX_new());
  assert_true(allocations >= 8);
  uint64_t before = allocations;
  char *copy = strdup("the C library's own calls");
  assert_true(allocations > before);
  atomic_store(&counting, false);
  free(copy);
}

int main(void) {
  mount_tracefs();
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(allocations_are_seen),
      cmocka_unit_test(a_stream_allocates_nothing_and_calls_seldom),
  };
  return rig_run_with_each_backend("worker gates", tests, sizeof tests / sizeof tests[0]);
}
