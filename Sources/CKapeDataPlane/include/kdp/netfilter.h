/* kdp/netfilter.h: the nftables rules that keep others from injecting into a full tunnel. Linux.

   They are spoken to the kernel directly (nfnetlink): three kinds of rules do not justify mapping libnftables and the
   libraries behind it into every tunnel process, and one batch is atomic either way. The rules are, per family, in a
   table of ours:

     prerouting, raw:     packets to the tunnel's addresses that come in by another interface, and not from this host,
                          are dropped
     postrouting, mangle: the mark of the tunnel's own UDP packets is kept in their connection
     prerouting, mangle:  answers to them get it back, so that reverse path checks look at the underlay */
#ifndef KDP_NETFILTER_H
#define KDP_NETFILTER_H

#include "netlink.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct kdp_netfilter_guard {
  const char *table;         /* of ours alone: it is made, and deleted with all that is in it. At most 31 bytes */
  const char *interface;     /* the tunnel's; at most 15 bytes */
  uint8_t family;            /* KDP_FAMILY_IPV4 or KDP_FAMILY_IPV6: the table's */
  uint32_t mark;             /* of the tunnel's own packets */
  const kdp_prefix *address; /* the tunnel's addresses; those of the other family are passed over */
  uint32_t address_count;
} kdp_netfilter_guard;

/* All or nothing. EEXIST: a table of that name is there. UNSUPPORTED: the kernel has no nftables, or not one of the
   expressions used (fib, ct); SYSTEM: refused, see `error`. */
kdp_status kdp_netfilter_add_guard(const kdp_netfilter_guard *guard, kdp_netlink_error *error) KDP_MUST_USE KDP_NONNULL;
/* NOT_FOUND: there is no such table. */
kdp_status kdp_netfilter_delete_table(const char *table, kdp_family family,
                                      kdp_netlink_error *error) KDP_MUST_USE KDP_NONNULL;

#ifdef __cplusplus
}
#endif
#endif
