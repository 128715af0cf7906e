/* A worker between two ends that a test holds: its TUN is a pair of local sockets, so that every frame with its virtio
   header is the test's own to write and to read, and its peer is a plain UDP socket on the loopback, so that every
   datagram is seen as it left. */
#ifndef KDP_TEST_RIG_H
#define KDP_TEST_RIG_H
#include <sys/types.h>

#include "kdp/worker.h"
#include "offload/virtio.h"
#include "support/passthrough_engine.h"
#include "support/rng.h"

enum { RIG_QUEUES = PASSTHROUGH_LANES };

typedef struct rig {
  passthrough engine;
  kdp_worker *worker;
  kdp_tun tun; /* its first queue */
  int frames;  /* the test's end of the TUN; with several queues, of the one that the functions below are about */
  kdp_tun queue[RIG_QUEUES];
  int ends[RIG_QUEUES]; /* of each queue; ends[0] is `frames` at first */
  uint32_t queues;
  int wire;       /* the test's UDP socket */
  bool ipv6;      /* underlay */
  bool connected; /* `wire` is connected to the worker */
  void *scratch;  /* the test's own */
  struct {        /* of rig_set_port and those beside it */
    uint32_t value;
    kdp_status status;
    int error;
  } call;
  rng random;
} rig;

/* `config` has what differs from the default; engine and tun are filled in, `config.queues` of them. The engine has as
   many lanes as there are threads. */
void rig_open(rig *r, bool ipv6, kdp_worker_config config);
void rig_start(rig *r);
/* From now on frames are written to and read from this queue. */
void rig_use_queue(rig *r, uint32_t queue);

/* Runs a group of tests with each backend, which `rig_backend` gives to them. Where the kernel has no io_uring for us,
   it says so and leaves it out. */
struct CMUnitTest;
int rig_run_with_each_backend(const char *name, const struct CMUnitTest *tests, size_t count);
kdp_backend rig_backend(void **state);
bool rig_has_uring(void);

/* Stops and destroys; returns what the run returned. */
kdp_status rig_close(rig *r);
/* The worker has done what was submitted, and runs on. `run` (or NULL) is called on its thread. */
void rig_sync(rig *r, void (*run)(rig *r, kdp_worker *worker));

/* What users ask of a worker, between two rounds: as the function of the same name, with errno. */
kdp_status rig_set_port(rig *r, uint16_t port);
kdp_status rig_set_up(rig *r, bool up);
kdp_status rig_set_mark(rig *r, uint32_t mark);
/* The engine asks for another port with the next packet that it sends. */
void rig_ask_for_rebind(rig *r);

/* The peer is at the next loopback address from now on, and so is `wire`. IPv4. */
void rig_move_wire(rig *r);

/* An IPv4 or IPv6 UDP packet of `size` bytes with right checksums, in flow `flow`; returns the size. */
size_t rig_udp_packet(rig *r, bool ipv6, unsigned flow, size_t size, uint8_t *packet);
/* A TCP super-packet behind its virtio header: `payload` bytes in segments of `segment`. Returns the frame's size. */
size_t rig_tcp_frame(rig *r, bool ipv6, size_t payload, uint16_t segment, uint8_t *frame);
enum { RIG_FRAME = 70000 };

void rig_write_frame(rig *r, const uint8_t *frame, size_t size);
/* A packet as one frame, behind an empty virtio header when the TUN has one. */
void rig_write_packet(rig *r, const uint8_t *packet, size_t size);
/* Size, or -1 when none comes within the time. */
ssize_t rig_read_frame(rig *r, uint8_t *frame, int milliseconds);
/* One datagram to, from the worker. */
void rig_send(rig *r, const uint8_t *datagram, size_t size);
ssize_t rig_receive(rig *r, uint8_t *datagram, size_t capacity, int milliseconds);
/* Takes events until one of `kind` comes; false when none does in two seconds. */
bool rig_event(rig *r, kdp_event_kind kind, kdp_event *event);
/* Verifies IP, TCP and UDP checksums and lengths of a packet. */
bool rig_packet_is_right(const uint8_t *packet, size_t size);

#endif
