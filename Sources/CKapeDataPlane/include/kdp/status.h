/* kdp/status.h: the one status enum. Each value is also an index into kdp_statistics.status, so that everything that
   goes wrong is counted under its own name, and says what it means on a datagram link and on a stream. */
#ifndef KDP_STATUS_H
#define KDP_STATUS_H

#include "base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Whose fault a status is. */
typedef enum kdp_fault {
  KDP_FAULT_NONE,    /* an ordinary outcome */
  KDP_FAULT_PEER,    /* the other end, or someone who pretends to be it */
  KDP_FAULT_NETWORK, /* loss, reordering, duplication, a path that changed */
  KDP_FAULT_CALLER,  /* the program that uses this library */
  KDP_FAULT_LOCAL    /* this host: memory, system calls, limits, configuration */
} kdp_fault;

/* X(name, fault, fatal on a datagram link, fatal on a stream, text). Values are appended, never reordered: they are
   counters. Fatal means that the session on that link cannot go on. On datagrams bad input never is: anyone can send
   it. */
#define KDP_STATUS_LIST(X)                                                                                             \
  X(OK, NONE, 0, 0, "done")                                                                                            \
  X(AGAIN, NONE, 0, 0, "nothing to do now; call again")                                                                \
  X(OUT_FULL, NONE, 0, 0, "the output is full; drain it and call again")                                               \
  X(POOL_EMPTY, LOCAL, 0, 0, "no packet slot is free")                                                                 \
  X(NO_MEMORY, LOCAL, 0, 0, "no memory")                                                                               \
  X(LIMIT, LOCAL, 0, 0, "a configured limit is reached")                                                               \
  X(INVALID_ARGUMENT, CALLER, 0, 0, "an argument is out of range")                                                     \
  X(UNSUPPORTED, CALLER, 0, 0, "not supported by this engine, build or kernel")                                        \
  X(NOT_FOUND, CALLER, 0, 0, "no such peer, session or ticket")                                                        \
  X(EXISTS, CALLER, 0, 0, "it exists already")                                                                         \
  X(CLOSED, NONE, 1, 1, "closed")                                                                                      \
  X(SYSTEM, LOCAL, 0, 1, "a system call failed")                                                                       \
  X(TOO_SHORT, PEER, 0, 1, "shorter than its kind of message is")                                                      \
  X(TOO_LONG, PEER, 0, 1, "longer than its kind of message may be")                                                    \
  X(TRUNCATED, NETWORK, 0, 1, "cut by the kernel: larger than the receive buffer")                                     \
  X(UNKNOWN_TYPE, PEER, 0, 1, "unknown message type")                                                                  \
  X(MALFORMED, PEER, 0, 1, "fields contradict each other")                                                             \
  X(AUTHENTICATION_FAILED, PEER, 0, 1, "the authentication tag does not match")                                        \
  X(REPLAYED, NETWORK, 0, 1, "a counter seen before, or older than the replay window")                                 \
  X(KEY_EXPIRED, PEER, 0, 1, "sealed with a key that is too old or used up")                                           \
  X(UNKNOWN_SESSION, PEER, 0, 1, "for a session or index that is not known here")                                      \
  X(UNKNOWN_PEER, PEER, 0, 1, "from a public key that is not configured")                                              \
  X(BAD_MAC1, PEER, 0, 1, "the first MAC of a handshake message does not match")                                       \
  X(BAD_MAC2, PEER, 0, 0, "under load and without a valid cookie")                                                     \
  X(BAD_COOKIE, PEER, 0, 0, "a cookie reply that answers nothing of ours, or does not open")                           \
  X(COOKIE_SENT, NONE, 0, 0, "under load: a cookie was sent in place of an answer")                                    \
  X(RATE_LIMITED, PEER, 0, 0, "over the rate allowed to its source")                                                   \
  X(STALE_TIMESTAMP, PEER, 0, 0, "an initiation not newer than the newest from that peer")                             \
  X(FLOOD, PEER, 0, 0, "initiations of one peer too soon after another")                                               \
  X(LOW_ORDER_KEY, PEER, 0, 1, "a public key of low order")                                                            \
  X(UNEXPECTED_MESSAGE, PEER, 0, 1, "a message that does not fit the state")                                           \
  X(NO_KEY, LOCAL, 0, 0, "no private key is set")                                                                      \
  X(NO_ROUTE, LOCAL, 0, 0, "no peer has the destination among its prefixes")                                           \
  X(NO_ENDPOINT, LOCAL, 0, 0, "the peer's endpoint is not known")                                                      \
  X(NOT_IP, PEER, 0, 0, "the inner packet is neither IPv4 nor IPv6, or its length is wrong")                           \
  X(WRONG_SOURCE, PEER, 0, 0, "the inner source address is not among the peer's prefixes")                             \
  X(TOO_BIG, LOCAL, 0, 0, "larger than the path lets through; an ICMP answer may have been sent")                      \
  X(STAGED_DROPPED, LOCAL, 0, 0, "dropped while it waited for a handshake")                                            \
  X(KEEPALIVE, NONE, 0, 0, "an empty packet")                                                                          \
  X(HANDSHAKE_TIMEOUT, NETWORK, 0, 1, "no answer to any initiation within the attempt time")                           \
  X(EVENTS_LOST, CALLER, 0, 0, "an event was not taken in time and was overwritten")                                   \
  X(ECN_DROPPED, NETWORK, 0, 0, "congestion experienced outside on a packet that is not ECN capable inside")           \
  X(CHECKSUM, PEER, 0, 0, "a checksum that was to be completed or verified is wrong")                                  \
  X(SEND_REFUSED, NETWORK, 0, 0, "the kernel refused to send: unreachable, refused or not permitted")                  \
  X(SEND_TOO_BIG, NETWORK, 0, 0, "the kernel refused to send: larger than the route allows")                           \
  X(INSIDE_REFUSED, LOCAL, 0, 0, "the inside (a TUN, say) refused the packet")                                         \
  X(SELF_TEST_FAILED, LOCAL, 0, 0, "a known-answer self test failed")                                                  \
  X(HANDED_OVER, NONE, 0, 0, "given to lane 0, which counts what becomes of it")                                       \
  X(HANDOVER_FULL, LOCAL, 0, 0, "no room to give it to lane 0")

typedef enum kdp_status {
#define KDP_STATUS_ENUM(name, fault, datagram, stream, text) KDP_##name,
  KDP_STATUS_LIST(KDP_STATUS_ENUM)
#undef KDP_STATUS_ENUM
      KDP_STATUS_COUNT
} kdp_status;

typedef struct kdp_status_info {
  const char *name; /* "REPLAYED" */
  const char *text; /* for people */
  kdp_fault fault;
  bool fatal_on_datagram, fatal_on_stream;
} kdp_status_info;

/* Never NULL; a value out of range gives an entry that says so. */
const kdp_status_info *kdp_status_describe(kdp_status status);

#ifdef __cplusplus
}
#endif
#endif
