/* kdp/netlink.h: the part of rtnetlink(7) that a tunnel needs: links, addresses, routes, policy rules, and word of
   their changes. Linux. A small codec in place of a library, because a tunnel process pays for every library it maps.

   Calls block until the kernel has answered, 5 s at most. A handle is used by one thread at a time. Decoding is
   bounded: whatever arrives, nothing past its end is read. */
#ifndef KDP_NETLINK_H
#define KDP_NETLINK_H

#include "base.h"
#include "status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct kdp_netlink kdp_netlink;

/* What the kernel said. `code` is an errno, 0: none; `text` its extended acknowledgement, often empty. */
typedef struct kdp_netlink_error {
  int code;
  char text[160];
} kdp_netlink_error;

/* Groups of changes to be told about. */
enum kdp_netlink_changes {
  KDP_NETLINK_LINK_CHANGES = 1 << 0,
  KDP_NETLINK_ADDRESS_CHANGES = 1 << 1,
  KDP_NETLINK_ROUTE_CHANGES = 1 << 2
};

/* Opens a handle. `changes` 0: for requests; else only for kdp_netlink_read_changes, and its descriptor never blocks.
   SYSTEM (errno) or NO_MEMORY. */
kdp_status kdp_netlink_open(uint32_t changes, kdp_netlink **netlink) KDP_MUST_USE KDP_NONNULL;
void kdp_netlink_close(kdp_netlink *netlink); /* NULL is allowed */
int kdp_netlink_fd(const kdp_netlink *netlink) KDP_NONNULL;

/* ---- What is talked about. Zero is "not given" unless a field says otherwise. ---- */

typedef struct kdp_netlink_link {
  uint32_t index, mtu;
  bool up;      /* IFF_UP: wanted */
  bool running; /* IFF_LOWER_UP and IFF_RUNNING: working */
  char name[16];
  char kind[16]; /* "tun", "wireguard", "veth", …; "" for a physical one */
} kdp_netlink_link;

typedef struct kdp_netlink_address {
  uint32_t index;
  kdp_prefix prefix; /* with its host bits: the address itself */
  uint8_t scope;     /* RT_SCOPE_* */
} kdp_netlink_address;

typedef struct kdp_netlink_route {
  kdp_prefix destination;
  uint8_t type, protocol, scope; /* RTN_*, RTPROT_*, RT_SCOPE_* as told; adding makes a unicast route, RTPROT_BOOT */
  uint32_t table;                /* 0: main */
  uint32_t index;                /* interface, 0: none */
  uint32_t metric, mtu;
  kdp_address gateway, source; /* port 0; KDP_FAMILY_NONE: none */
} kdp_netlink_route;

typedef struct kdp_netlink_rule {
  uint8_t family;
  bool invert; /* `not` */
  uint32_t priority, table;
  uint32_t mark, mask;     /* mask 0: not asked */
  int32_t suppress_prefix; /* suppress_prefixlength; -1: none */
  uint8_t action;          /* FR_ACT_*; adding takes 0 as "look up table" */
} kdp_netlink_rule;

typedef enum kdp_netlink_kind {
  KDP_NETLINK_OTHER, /* a message about something else */
  KDP_NETLINK_LINK,
  KDP_NETLINK_ADDRESS,
  KDP_NETLINK_ROUTE,
  KDP_NETLINK_RULE,
  KDP_NETLINK_DONE,
  KDP_NETLINK_FAILED /* an acknowledgement, with or without an error */
} kdp_netlink_kind;

/* One message; the member that `kind` names is set, the others are zero. */
typedef struct kdp_netlink_record {
  kdp_netlink_kind kind;
  bool gone; /* it was removed */
  uint32_t sequence;
  kdp_netlink_link link;
  kdp_netlink_address address;
  kdp_netlink_route route;
  kdp_netlink_rule rule;
  kdp_netlink_error error;
} kdp_netlink_record;

/* Decodes the message at the front of `bytes` and returns the bytes it takes; 0: it is cut off or contradicts itself.
 */
size_t kdp_netlink_decode(const void *bytes, size_t size, kdp_netlink_record *record) KDP_NONNULL;

/* Shown each record; false ends the listing early. */
typedef bool (*kdp_netlink_visit)(void *context, const kdp_netlink_record *record);

/* ---- Requests. SYSTEM: the kernel refused, `error` says why. ---- */

kdp_status kdp_netlink_find_link(kdp_netlink *netlink, const char *name, kdp_netlink_link *link,
                                 kdp_netlink_error *error) KDP_MUST_USE KDP_NONNULL;
kdp_status kdp_netlink_link_at(kdp_netlink *netlink, uint32_t index, kdp_netlink_link *link,
                               kdp_netlink_error *error) KDP_MUST_USE KDP_NONNULL;
/* `mtu` 0 leaves it. */
kdp_status kdp_netlink_set_link(kdp_netlink *netlink, uint32_t index, bool up, uint32_t mtu,
                                kdp_netlink_error *error) KDP_MUST_USE KDP_NONNULL;
kdp_status kdp_netlink_delete_link(kdp_netlink *netlink, uint32_t index,
                                   kdp_netlink_error *error) KDP_MUST_USE KDP_NONNULL;

kdp_status kdp_netlink_add_address(kdp_netlink *netlink, const kdp_netlink_address *address,
                                   kdp_netlink_error *error) KDP_MUST_USE KDP_NONNULL;
kdp_status kdp_netlink_delete_address(kdp_netlink *netlink, const kdp_netlink_address *address,
                                      kdp_netlink_error *error) KDP_MUST_USE KDP_NONNULL;

kdp_status kdp_netlink_add_route(kdp_netlink *netlink, const kdp_netlink_route *route,
                                 kdp_netlink_error *error) KDP_MUST_USE KDP_NONNULL;
kdp_status kdp_netlink_delete_route(kdp_netlink *netlink, const kdp_netlink_route *route,
                                    kdp_netlink_error *error) KDP_MUST_USE KDP_NONNULL;
/* The route that a packet with this destination and mark would take. */
kdp_status kdp_netlink_route_to(kdp_netlink *netlink, const kdp_address *destination, uint32_t mark,
                                kdp_netlink_route *route, kdp_netlink_error *error) KDP_MUST_USE KDP_NONNULL;

kdp_status kdp_netlink_add_rule(kdp_netlink *netlink, const kdp_netlink_rule *rule,
                                kdp_netlink_error *error) KDP_MUST_USE KDP_NONNULL;
kdp_status kdp_netlink_delete_rule(kdp_netlink *netlink, const kdp_netlink_rule *rule,
                                   kdp_netlink_error *error) KDP_MUST_USE KDP_NONNULL;

/* Lists. `index` and `table` 0: all (where the kernel does not choose, this code does). AGAIN: something changed
   meanwhile; start over. */
kdp_status kdp_netlink_list_links(kdp_netlink *netlink, kdp_netlink_visit visit, void *context,
                                  kdp_netlink_error *error) KDP_MUST_USE __attribute__((nonnull(1, 2, 4)));
kdp_status kdp_netlink_list_addresses(kdp_netlink *netlink, kdp_family family, uint32_t index, kdp_netlink_visit visit,
                                      void *context, kdp_netlink_error *error) KDP_MUST_USE
    __attribute__((nonnull(1, 4, 6)));
kdp_status kdp_netlink_list_routes(kdp_netlink *netlink, kdp_family family, uint32_t table, uint32_t index,
                                   kdp_netlink_visit visit, void *context, kdp_netlink_error *error) KDP_MUST_USE
    __attribute__((nonnull(1, 5, 7)));
kdp_status kdp_netlink_list_rules(kdp_netlink *netlink, kdp_family family, kdp_netlink_visit visit, void *context,
                                  kdp_netlink_error *error) KDP_MUST_USE __attribute__((nonnull(1, 3, 5)));

/* ---- Changes ---- */

/* Shows what is waiting. OK: all of it was shown; LIMIT: some were lost (the kernel's queue ran over), look at
   everything anew; SYSTEM: the socket failed. */
kdp_status kdp_netlink_read_changes(kdp_netlink *netlink, kdp_netlink_visit visit, void *context) KDP_MUST_USE
    __attribute__((nonnull(1, 2)));

#ifdef __cplusplus
}
#endif
#endif
