/* A peer: its keys and sessions, where it is, its timers and counters. What the data path touches comes first. */
#ifndef KDP_WIREGUARD_PEER_H
#define KDP_WIREGUARD_PEER_H

#include "kdp/wireguard.h"
#include "net/prefix_trie.h"
#include "wireguard/cookie.h"
#include "wireguard/deadline_heap.h"
#include "wireguard/key_pair.h"
#include "wireguard/notes.h"
#include "wireguard/staging.h"

/* Timers of a peer, in the order in which they run when several are due: see timers.c. */
typedef enum kdp_wg_timer {
  KDP_WG_TIMER_WIPE,                 /* no new session for 3 x REJECT_AFTER_TIME: wipe all keys */
  KDP_WG_TIMER_SESSION_END,          /* the current session reaches REJECT_AFTER_TIME: tell */
  KDP_WG_TIMER_GIVE_UP,              /* REKEY_ATTEMPT_TIME of an attempt is over; it runs as long as there is one */
  KDP_WG_TIMER_RETRANSMIT,           /* no answer to an initiation */
  KDP_WG_TIMER_NEW_HANDSHAKE,        /* data was sent and nothing came back */
  KDP_WG_TIMER_KEEPALIVE,            /* data came and nothing was sent back */
  KDP_WG_TIMER_PERSISTENT_KEEPALIVE, /* nothing was sent or received for the configured time */
  KDP_WG_TIMER_NOTES,                /* other lanes had packets of this peer: look at their notes again */
  KDP_WG_TIMER_COUNT
} kdp_wg_timer;

/* What a peer waits for the engine to do for it (work.c). */
enum kdp_wg_work {
  KDP_WG_WORK_INITIATE = 1 << 0, /* send an initiation */
  KDP_WG_WORK_FLUSH = 1 << 1     /* seal what is staged; an empty packet when keepalive_owed and nothing is */
};

/* Links of a list of peers; a peer is in a list as often as it has such links. */
typedef struct kdp_wg_link {
  struct kdp_wg_peer *before, *after;
} kdp_wg_link;

struct kdp_wg_peer {
  /* Data path. Lanes other than 0 read of a peer its sessions, its path and its path MTU, which lane 0 changes behind
     the gate, and the number of its staged packets; they write its notes and add to its counts of bytes. */
  kdp_trie_owner prefixes; /* what the tries hand out: first, so that it is the peer */
  kdp_wg_key_pair *current, *previous, *next;
  kdp_path path;                                     /* endpoint, and our side of it; remote.family NONE: not known */
  uint64_t timer[KDP_WG_TIMER_COUNT];                /* boot time, KDP_NEVER: off */
  uint64_t keepalive_interval;                       /* ns, 0: off */
  uint64_t received_bytes, sent_bytes;               /* whole messages */
  uint64_t inside_received_bytes, inside_sent_bytes; /* inner packets */
  uint64_t path_mtu_until;                           /* when path_mtu is forgotten */
  uint64_t path_mtu_ask;                             /* when it is asked for (again), with the next data; 0: now */
  uint64_t path_call;                                /* number of the engine call in which path_index was given out */
  uint16_t path_index;                               /* of `path` in that call's out->wire.path */
  uint16_t path_mtu;                                 /* 0: not known */
  uint32_t heap_index;
  kdp_wg_staged staged;
  uint8_t work; /* kdp_wg_work */
  bool keepalive_owed;
  bool connected;           /* a session is up, as events tell it */
  bool handshake_active;    /* an initiation waits for its answer: `handshake` is valid */
  kdp_wg_link work_link[2]; /* of the lists for initiations and for flushes */
  kdp_wg_notes notes;

  /* Control. */
  uint64_t number;                         /* as in events */
  uint32_t attempts;                       /* initiations of this attempt */
  uint32_t unanswered;                     /* initiations in a row without an authenticated packet */
  uint64_t initiated[KDP_WG_REBIND_AFTER]; /* boot times of the newest initiations, newest first */
  uint64_t handshake_sent;                 /* boot time of the newest initiation or response, 0: none */
  uint64_t initiation_consumed;            /* boot time of the newest initiation answered, 0: none */
  uint64_t resolved;                       /* boot time of the newest RESOLVE, 0: none */
  uint64_t handshake_wall;                 /* wall time of the newest completed handshake */
  uint64_t stamp;                          /* newest wall time put into a stamp, or what stamps must stay above */
  uint8_t newest_timestamp[KDP_WG_TIMESTAMP_SIZE]; /* newest received */
  uint32_t handshake_index;                        /* local index while handshake_active */
  kdp_wg_handshake handshake;
  kdp_wg_cookie cookie;
  bool static_static_known;
  uint8_t static_static[KDP_WG_KEY_SIZE]; /* computed with the first handshake */
  uint8_t public_key[KDP_WG_KEY_SIZE];
  uint8_t preshared_key[KDP_WG_KEY_SIZE];

  /* While a configuration is applied (configure.c). */
  bool live;    /* exists as far as anyone outside can tell */
  bool present; /* exists at this point of the change */
  bool listed;  /* the change names it as one to be there */
  bool is_pending;
  struct kdp_wg_peer *chain;   /* of its bucket in the table by key */
  struct kdp_wg_peer *pending; /* of the peers that the change made or removed */
};

static_assert(offsetof(kdp_wg_peer, prefixes) == 0, "the tries' owner is the peer");

static inline kdp_wg_peer *kdp_wg_peer_of_owner(kdp_trie_owner *owner) {
  return (kdp_wg_peer *)(void *)owner;
}

/* Everything but its key is as for a peer just added; no table knows it. */
void kdp_wg_peer_start(kdp_wg_peer *peer, const uint8_t public_key[KDP_KEY_SIZE]);

/* A new place; what was known of the path is forgotten when the address differs. */
void kdp_wg_peer_set_path(kdp_wg_peer *peer, const kdp_path *path);
static inline bool kdp_wg_peer_has_endpoint(const kdp_wg_peer *peer) {
  return peer->path.remote.family != KDP_FAMILY_NONE;
}
/* Largest inner packet that the known path MTU takes sealed, UINT32_MAX: not known. */
uint32_t kdp_wg_peer_inside_limit(const kdp_wg_peer *peer, uint64_t boot);

#endif
