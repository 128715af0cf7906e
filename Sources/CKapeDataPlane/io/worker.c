/* A worker's life and what other threads may ask of it. */
#define _GNU_SOURCE /* struct mmsghdr, struct in6_pktinfo */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "core/wipe.h"
#include "io/worker_state.h"

enum { POOL_SLOTS = 48, STACK_SIZE = 256 << 10 };

kdp_now kdp_now_read(void) {
  struct timespec boot, wall;
  clock_gettime(CLOCK_BOOTTIME, &boot);
  clock_gettime(CLOCK_REALTIME, &wall);
  return (kdp_now){(uint64_t)boot.tv_sec * KDP_SECOND + (uint64_t)boot.tv_nsec,
                   (uint64_t)wall.tv_sec * KDP_SECOND + (uint64_t)wall.tv_nsec};
}

/* ---- Events ---- */

void kdp_worker_event(kdp_worker *worker, kdp_event_kind kind, kdp_status status, uint64_t value,
                      const kdp_address *address) {
  kdp_event event = {.kind = (uint16_t)kind, .status = (uint16_t)status, .boot = worker->now.boot, .value = value};
  if (address) event.address = *address;
  if (!kdp_worker_is_first(worker)) return kdp_group_hand_event(worker, &event);
  kdp_event_channel_push(&worker->events, &event);
  worker->events_pushed = true;
}

static void show_fallbacks(kdp_worker *worker) {
  atomic_store_explicit(&worker->shown_fallbacks, worker->fallbacks, memory_order_relaxed);
}

void kdp_worker_fall_back(kdp_worker *worker, uint32_t fallback, const kdp_address *scope) {
  if (worker->fallbacks & fallback) return;
  worker->fallbacks |= fallback;
  show_fallbacks(worker);
  kdp_worker_event(worker, KDP_EVENT_FALLBACK, KDP_UNSUPPORTED, fallback, scope);
}

void kdp_worker_regain(kdp_worker *worker, uint32_t fallback) {
  worker->fallbacks &= ~fallback | worker->forced_fallbacks;
  show_fallbacks(worker);
}

/* ---- Life ---- */

static void *take(const kdp_host *host, size_t size) {
  void *memory = host->allocate(host->context, size);
  if (memory) memset(memory, 0, size);
  return memory;
}

static void give_back(const kdp_host *host, void *memory, size_t size) {
  if (memory) host->release(host->context, memory, size);
}

static kdp_status open_backend(kdp_worker *worker, const kdp_backend_ops *backend) {
  worker->backend = backend;
  kdp_status status = backend->open(worker);
  if (status != KDP_OK) {
    int error = errno;
    backend->close(worker);
    errno = error;
  }
  return status;
}

static kdp_status choose_backend(kdp_worker *worker, kdp_backend wanted) {
  if (wanted == KDP_BACKEND_URING) {
    kdp_status status = open_backend(worker, &kdp_backend_uring);
    if (status != KDP_UNSUPPORTED) return status;
    kdp_worker_fall_back(worker, KDP_FALLBACK_NO_URING, NULL);
  }
  return open_backend(worker, &kdp_backend_epoll);
}

static uint32_t thread_count(const kdp_worker_config *config) {
  return config->threads > 1 ? config->threads : 1;
}

static void limit_gso(kdp_worker *worker) {
  kdp_room room = kdp_engine_room(worker->engine, NULL);
  int unused = room.tail - kdp_room_tail(&room, room.inside_mtu);
  kdp_tun_limit_gso(&worker->tun, room.inside_mtu, (uint16_t)(room.growth - unused));
}

/* One thread's, without sockets. */
static kdp_status fill(kdp_worker *worker, const kdp_worker_config *config, uint32_t number) {
  bool one_queue = config->queues <= 1;
  worker->engine = config->engine;
  worker->lane = kdp_engine_lane(config->engine, number);
  if (!worker->lane) return KDP_INVALID_ARGUMENT;
  worker->tun = config->tun[one_queue ? 0 : number];
  worker->reads_inside = !one_queue || number + 1 == thread_count(config);
  worker->receives = !one_queue || number == 0;
  worker->fallbacks = worker->forced_fallbacks = config->fallbacks;
  show_fallbacks(worker);
  worker->segments_most = KDP_SEND_SEGMENTS;
  worker->now = kdp_now_read();
  worker->up = true;

  const kdp_host *host = &worker->host;
  kdp_status status = kdp_pool_create(config->pool_slots ? config->pool_slots : POOL_SLOTS, host, &worker->pool);
  if (status != KDP_OK) return status;
  status = kdp_out_create(worker->pool, host, &worker->out_storage);
  if (status != KDP_OK) return status;
  worker->out = kdp_out_of(worker->out_storage);
  worker->inside = (kdp_batch){.packet = worker->inside_packet, .capacity = KDP_BATCH_CAPACITY};
  worker->outside = (kdp_batch){.packet = worker->outside_packet,
                                .capacity = KDP_BATCH_CAPACITY,
                                .path = worker->outside_path,
                                .path_capacity = KDP_BATCH_PATHS};
  worker->send = take(host, sizeof *worker->send);
  worker->write = take(host, sizeof *worker->write);
  worker->frame_buffer = host->allocate(host->context, KDP_FRAME_SIZE);
  if (!worker->send || !worker->write || !worker->frame_buffer) return KDP_NO_MEMORY;

  worker->wake = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  if (worker->wake < 0) return KDP_SYSTEM;
  if (kdp_worker_is_first(worker)) {
    if (!kdp_event_channel_open(&worker->events)) return KDP_SYSTEM;
  } else {
    status = kdp_handoff_create(host, &worker->membership.handoff);
    if (status != KDP_OK) return status;
  }
  return choose_backend(worker, config->fallbacks & KDP_FALLBACK_NO_URING ? KDP_BACKEND_EPOLL : config->backend);
}

static kdp_worker *take_worker(const kdp_host *host, kdp_worker *first) {
  kdp_worker *worker = take(host, sizeof *worker);
  if (!worker) return NULL;
  worker->host = *host;
  worker->wake = worker->events.fd = worker->epoll.epoll = worker->epoll.timer = -1;
  worker->udp.fd[KDP_UDP_IPV4] = worker->udp.fd[KDP_UDP_IPV6] = -1;
  worker->next_udp = worker->udp;
  worker->membership.first = first;
  return worker;
}

static kdp_status fill_others(kdp_worker *first, const kdp_worker_config *config) {
  uint32_t count = thread_count(config) - 1;
  if (count == 0) return KDP_OK;
  kdp_group *group = &first->group;
  group->other = take(&first->host, count * sizeof *group->other);
  if (!group->other) return KDP_NO_MEMORY;
  group->capacity = count;
  while (group->count < count) {
    kdp_worker *other = take_worker(&first->host, first);
    if (!other) return KDP_NO_MEMORY;
    group->other[group->count++] = other;
    kdp_status status = fill(other, config, group->count);
    if (status != KDP_OK) return status;
  }
  return KDP_OK;
}

static kdp_status make(kdp_worker *worker, const kdp_worker_config *config) {
  kdp_status status = fill(worker, config, 0);
  if (status == KDP_OK) status = fill_others(worker, config);
  if (status != KDP_OK) return status;
  kdp_udp_options options = {.port = config->listen_port,
                             .fwmark = config->fwmark,
                             .no_ipv4 = config->no_ipv4,
                             .no_ipv6 = config->no_ipv6,
                             .no_gro = (config->fallbacks & KDP_FALLBACK_NO_UDP_GRO) != 0,
                             .no_segment = (config->fallbacks & KDP_FALLBACK_NO_UDP_SEGMENT) != 0,
                             .given = config->sockets ? worker->given_sockets : NULL,
                             .shared = config->queues > 1};
  if (config->sockets) {
    for (int i = 0; i < KDP_UDP_SOCKETS; i++) {
      worker->given_sockets[i] = config->sockets[i];
      if (options.fwmark == 0) options.fwmark = kdp_udp_mark_of(config->sockets[i]);
    }
  }
  status = kdp_worker_bind(worker, &options);
  if (status == KDP_OK) limit_gso(worker);
  return status;
}

kdp_status kdp_worker_create(const kdp_worker_config *config, const kdp_host *host, kdp_worker **result) {
  if (thread_count(config) > (config->queues > 1 ? config->queues : 2)) return KDP_INVALID_ARGUMENT;
  if (config->queues > 1 && config->queues != thread_count(config)) return KDP_INVALID_ARGUMENT;
  if (config->sockets && (config->queues > 1 || config->listen_port != 0)) return KDP_INVALID_ARGUMENT;
  kdp_worker *worker = take_worker(host, NULL);
  if (!worker) return KDP_NO_MEMORY;
  kdp_status status = make(worker, config);
  if (status != KDP_OK) {
    int error = errno;
    kdp_worker_destroy(worker);
    errno = error;
    return status;
  }
  *result = worker;
  return KDP_OK;
}

static void stop_commands(kdp_worker *worker) {
  kdp_command_queue_close(&worker->commands);
  for (kdp_command *command; (command = kdp_command_queue_take(&worker->commands));)
    command->run(command, worker, worker->engine, worker->out, worker->now, true);
}

kdp_status kdp_worker_run(kdp_worker *worker) {
  kdp_status status = kdp_group_start(worker);
  if (status == KDP_OK) status = kdp_loop_run(worker);
  kdp_group_stop(worker);
  stop_commands(worker);
  if (worker->backend->finish) worker->backend->finish(worker);
  if (!kdp_worker_is_first(worker)) kdp_group_end(worker);
  return status;
}

/* What made this thread may have a niceness of its own (libdispatch gives its threads fixed ones): what the program was
   started with is what counts here. */
static void follow_program(const kdp_worker *worker) {
  errno = 0;
  int nice_of_program = getpriority(PRIO_PROCESS, (id_t)getpid());
  if (errno == 0) (void)setpriority(PRIO_PROCESS, 0, nice_of_program); /* refused: it goes on as it is */
  char name[16] = "kape-";
  memcpy(name + 5, worker->tun.name, sizeof name - 6);
  (void)pthread_setname_np(pthread_self(), name);
}

static void *run_thread(void *context) {
  kdp_worker *worker = context;
  follow_program(worker);
  worker->result = kdp_worker_run(worker);
  return NULL;
}

kdp_status kdp_worker_start(kdp_worker *worker) {
  /* All of them before the first begins: a thread that is not to be had is this call's to tell, and nobody else's. */
  kdp_status status = kdp_group_start(worker);
  if (status != KDP_OK) return status;
  pthread_attr_t attributes;
  int error = pthread_attr_init(&attributes);
  if (error == 0) {
    /* Signals are for the program's own threads. */
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    error = pthread_attr_setstacksize(&attributes, STACK_SIZE);
    if (error == 0) error = pthread_create(&worker->thread, &attributes, run_thread, worker);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
  }
  if (error != 0) {
    kdp_group_stop(worker);
    errno = error;
    return KDP_SYSTEM;
  }
  worker->thread_made = true;
  return KDP_OK;
}

void kdp_worker_read_wake(kdp_worker *worker) {
  uint64_t count;
  ssize_t size = read(worker->wake, &count, sizeof count);
  (void)size; /* only the wake-up matters */
  kdp_group_listen(worker);
}

void kdp_worker_wake(kdp_worker *worker) {
  int error = errno;
  uint64_t one = 1;
  /* Refused only when the counter is at its end, and then the worker wakes anyway. */
  ssize_t written = write(worker->wake, &one, sizeof one);
  (void)written;
  errno = error;
}

void kdp_worker_stop(kdp_worker *worker) {
  atomic_store_explicit(&worker->stop, true, memory_order_release);
  kdp_worker_wake(worker);
}

kdp_status kdp_worker_join(kdp_worker *worker) {
  if (!worker->thread_made) return KDP_INVALID_ARGUMENT;
  pthread_join(worker->thread, NULL);
  worker->thread_made = false;
  return worker->result;
}

void kdp_worker_destroy(kdp_worker *worker) {
  if (!worker) return;
  kdp_host host = worker->host;
  for (uint32_t i = 0; i < worker->group.count; i++)
    kdp_worker_destroy(worker->group.other[i]);
  give_back(&host, worker->group.other, worker->group.capacity * sizeof *worker->group.other);
  if (worker->out) stop_commands(worker);
  if (worker->backend) worker->backend->close(worker);
  kdp_udp_close(&worker->udp);
  kdp_event_channel_close(&worker->events);
  kdp_handoff_destroy(worker->membership.handoff);
  if (worker->wake >= 0) close(worker->wake);
  kdp_out_destroy(worker->out_storage);
  give_back(&host, worker->send, sizeof *worker->send);
  give_back(&host, worker->write, sizeof *worker->write);
  if (worker->frame_buffer) kdp_wipe(worker->frame_buffer, KDP_FRAME_SIZE);
  give_back(&host, worker->frame_buffer, KDP_FRAME_SIZE);
  kdp_pool_destroy(worker->pool); /* wipes; takes along what packets are still in it */
  host.release(host.context, worker, sizeof *worker);
}

/* ---- For other threads ---- */

void kdp_worker_submit(kdp_worker *worker, kdp_command *command) {
  switch (kdp_command_queue_push(&worker->commands, command)) {
  case KDP_COMMAND_QUEUED: break;
  case KDP_COMMAND_QUEUED_FIRST: kdp_worker_wake(worker); break;
  case KDP_COMMAND_REFUSED: command->run(command, worker, worker->engine, worker->out, kdp_now_read(), true); break;
  }
}

uint16_t kdp_worker_port(const kdp_worker *worker) {
  return (uint16_t)atomic_load_explicit(&worker->shown_port, memory_order_relaxed);
}

uint32_t kdp_worker_fwmark(const kdp_worker *worker) {
  return atomic_load_explicit(&worker->shown_fwmark, memory_order_relaxed);
}

kdp_backend kdp_worker_backend(const kdp_worker *worker) {
  return worker->backend->kind;
}

uint32_t kdp_worker_active_fallbacks(const kdp_worker *worker) {
  uint32_t fallbacks = atomic_load_explicit(&worker->shown_fallbacks, memory_order_relaxed);
  for (uint32_t i = 0; i < worker->group.count; i++)
    fallbacks |= atomic_load_explicit(&worker->group.other[i]->shown_fallbacks, memory_order_relaxed);
  return fallbacks;
}

int kdp_worker_event_fd(const kdp_worker *worker) {
  return worker->events.fd;
}

bool kdp_worker_next_event(kdp_worker *worker, kdp_event *event) {
  return kdp_event_channel_take(&worker->events, event);
}

static uint64_t get(const _Atomic(uint64_t) *counter) {
  return atomic_load_explicit(counter, memory_order_relaxed);
}

static void add_statistics(const kdp_worker *worker, kdp_io_statistics *sum) {
  sum->tun_reads += get(&worker->count.tun_reads);
  sum->tun_writes += get(&worker->count.tun_writes);
  sum->udp_reads += get(&worker->count.udp_reads);
  sum->udp_sends += get(&worker->count.udp_sends);
  sum->rounds += get(&worker->count.rounds);
  sum->waits += get(&worker->count.waits);
  sum->segmented_sends += get(&worker->count.segmented_sends);
  sum->joined_reads += get(&worker->count.joined_reads);
  sum->joined_writes += get(&worker->count.joined_writes);
  for (uint32_t i = 0; i < KDP_STATUS_COUNT; i++)
    sum->status[i] += get(&worker->count.status[i]);
}

void kdp_worker_statistics(const kdp_worker *worker, kdp_io_statistics *statistics) {
  *statistics = (kdp_io_statistics){0};
  add_statistics(worker, statistics);
  for (uint32_t i = 0; i < worker->group.count; i++)
    add_statistics(worker->group.other[i], statistics);
}

/* ---- For commands ---- */

kdp_status kdp_worker_set_port(kdp_worker *worker, uint16_t listen_port) {
  kdp_udp_options options = worker->udp_options;
  if (options.given && listen_port != 0) return KDP_UNSUPPORTED;
  options.port = listen_port;
  bool has_it = listen_port != 0 && listen_port == worker->udp.port;
  if (worker->up && !has_it) return kdp_worker_bind(worker, &options);
  worker->udp_options = options;
  atomic_store_explicit(&worker->shown_port, listen_port, memory_order_relaxed);
  return KDP_OK;
}

kdp_status kdp_worker_set_up(kdp_worker *worker, bool up) {
  if (up == worker->up) return KDP_OK;
  kdp_path path = {.link = worker->link};
  if (!up) {
    worker->up = false;
    kdp_worker_unbind(worker);
    kdp_engine_link_down(worker->lane, worker->link, 0, worker->out, worker->now);
    return KDP_OK;
  }
  /* A port that was chosen for us is kept over down and up when it can be, as peers know it. */
  kdp_udp_options wanted = worker->udp_options, kept = wanted;
  kept.port = kdp_worker_port(worker);
  worker->up = true;
  kdp_status status = kdp_worker_bind(worker, &kept);
  if (status != KDP_OK && wanted.port == 0) status = kdp_worker_bind(worker, &wanted);
  if (status != KDP_OK) {
    worker->up = false;
    return status;
  }
  worker->udp_options.port = wanted.port;
  kdp_engine_link_up(worker->lane, worker->link, KDP_LINK_DATAGRAM, &path, worker->out, worker->now);
  return KDP_OK;
}

void kdp_worker_set_inside_mtu(kdp_worker *worker, uint16_t bytes) {
  kdp_engine_set_inside_mtu(worker->engine, bytes);
  limit_gso(worker);
}
