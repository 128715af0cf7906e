/* kdp/embed.h: an engine as one object for a program with packets and a socket of its own. It holds what a caller of
   engine.h keeps besides the engine (a pool, the output's arrays, what waits to be consumed, the round) and leaves two
   things to do: hand in what there is, and carry out what comes next.

     for (;;) {
       wait(kdp_embed_deadline(tunnel));
       ... kdp_embed_inside(tunnel, packet, size) ... kdp_embed_outside(tunnel, datagram, size, &path, ecn) ...
       while (kdp_embed_next(tunnel, now, &output)) ...
     }

   Any engine, datagrams, lane 0; no system call, no callback, no allocation after kdp_embed_create. One thread at a
   time. Between any two calls the engine itself may be called, too, with kdp_embed_lane and kdp_embed_out: to change
   its configuration, to say that the network has changed, to answer an action. */
#ifndef KDP_EMBED_H
#define KDP_EMBED_H

#include "engine.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct kdp_embed kdp_embed;

/* The engine is the tunnel's from now on, unless this fails. Memory: about 50 KB, and 32 slots of 68 KiB, of which only
   those count that a burst has ever used. NO_MEMORY. */
kdp_status kdp_embed_create(kdp_engine *engine, const kdp_host *host, kdp_embed **tunnel) KDP_MUST_USE KDP_NONNULL;
void kdp_embed_destroy(kdp_embed *tunnel); /* the engine, too; wipes; NULL is allowed */

kdp_engine *kdp_embed_engine(kdp_embed *tunnel) KDP_NONNULL;
kdp_lane *kdp_embed_lane(kdp_embed *tunnel) KDP_NONNULL;
/* For calls of the engine that may produce output; kdp_embed_next gives it out. */
kdp_out *kdp_embed_out(kdp_embed *tunnel) KDP_NONNULL;

/* Hands in an IP packet, or a datagram with its path and its outer ECN field (0 where it is not known). Copied, so the
   bytes are the caller's again, and consumed by the next kdp_embed_next: what is handed in together is sealed or opened
   together, up to 256 at a time, which is faster than one by one. OUT_FULL: not taken; take the output first, then hand
   it in again. TOO_LONG (over 65,535 bytes): never to be taken. */
kdp_status kdp_embed_inside(kdp_embed *tunnel, const void *packet, size_t size) KDP_NONNULL;
kdp_status kdp_embed_outside(kdp_embed *tunnel, const void *datagram, size_t size, const kdp_path *path,
                             uint8_t ecn) KDP_NONNULL;
/* True: the next packet or datagram would not be taken. */
bool kdp_embed_is_full(const kdp_embed *tunnel) KDP_NONNULL;

typedef enum kdp_embed_kind {
  KDP_EMBED_SEND = 1, /* `packet` is a datagram for `path`: send it, with its ECN field and as its flags say */
  KDP_EMBED_DELIVER,  /* `packet` is an IP packet for the inside */
  KDP_EMBED_ACTION,   /* do `action`, or let it be: without REBIND, RESOLVE and PATH_MTU a tunnel works, too */
  KDP_EMBED_EVENT     /* something has happened: `event` */
} kdp_embed_kind;

/* What is set depends on the kind. Bytes of a packet may be changed in place, and are gone with the next call of
   kdp_embed_next. */
typedef struct kdp_embed_output {
  kdp_embed_kind kind;
  kdp_packet packet;
  kdp_path path;
  kdp_action action;
  kdp_event event;
} kdp_embed_output;

/* The next thing to do, in the order in which it is to be done. False: that was all; the round is over. What has been
   handed in is consumed on the way and timers that are due run, once a round, so that a round ends whatever happens. */
bool kdp_embed_next(kdp_embed *tunnel, kdp_now now, kdp_embed_output *output) KDP_MUST_USE KDP_NONNULL;

/* When kdp_embed_next is to be called at the latest: ns of the boot clock, 0 when something waits already, KDP_NEVER.
 */
uint64_t kdp_embed_deadline(const kdp_embed *tunnel) KDP_NONNULL;
/* The same as milliseconds from now on, as poll(2) takes them: rounded up, -1 for KDP_NEVER. */
int kdp_embed_timeout(const kdp_embed *tunnel, kdp_now now) KDP_NONNULL;

#ifdef __cplusplus
}
#endif
#endif
