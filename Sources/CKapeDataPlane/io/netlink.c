/* rtnetlink(7): what is asked and what is told. */
#include "kdp/netlink.h"

#include <errno.h>
#include <linux/fib_rules.h>
#include <linux/if.h>
#include <linux/rtnetlink.h>
#include <string.h>
#include <sys/socket.h>

#include "io/netlink_message.h"

enum { REQUEST_SIZE = 512, ATTEMPTS_MAX = 64 };

static uint8_t family_to_kernel(uint8_t family) {
  return family == KDP_FAMILY_IPV4 ? AF_INET : family == KDP_FAMILY_IPV6 ? AF_INET6 : AF_UNSPEC;
}

static size_t address_size(uint8_t family) {
  return family == KDP_FAMILY_IPV4 ? 4 : family == KDP_FAMILY_IPV6 ? 16 : 0;
}

/* ---- Exchanges ---- */

kdp_status kdp_netlink_open(uint32_t changes, kdp_netlink **netlink) {
  uint32_t groups = 0;
  if (changes & KDP_NETLINK_LINK_CHANGES) groups |= RTMGRP_LINK;
  if (changes & KDP_NETLINK_ADDRESS_CHANGES) groups |= RTMGRP_IPV4_IFADDR | RTMGRP_IPV6_IFADDR;
  if (changes & KDP_NETLINK_ROUTE_CHANGES) groups |= RTMGRP_IPV4_ROUTE | RTMGRP_IPV6_ROUTE;
  return kdp_netlink_open_bus(NETLINK_ROUTE, groups, changes != 0, netlink);
}

/* Which records of an answer are for the caller. */
typedef struct selection {
  kdp_netlink_kind kind;
  uint8_t family;
  uint32_t index, table;
  kdp_netlink_visit visit;
  void *context;
} selection;

static bool selected(const selection *wanted, const kdp_netlink_record *record) {
  if (record->kind != wanted->kind) return false;
  uint32_t index = record->kind == KDP_NETLINK_ROUTE ? record->route.index : record->address.index;
  if (wanted->index && index != wanted->index) return false;
  if (wanted->table && record->route.table != wanted->table) return false;
  if (wanted->family == KDP_FAMILY_NONE) return true;
  switch (record->kind) {
  case KDP_NETLINK_ADDRESS: return record->address.prefix.family == wanted->family;
  case KDP_NETLINK_ROUTE: return record->route.destination.family == wanted->family;
  case KDP_NETLINK_RULE: return record->rule.family == wanted->family;
  default: return true;
  }
}

/* Reads until the answer to netlink->sequence is whole. With `wanted` NULL that is its acknowledgement. */
static kdp_status answer(kdp_netlink *netlink, const selection *wanted, bool list, kdp_netlink_error *error) {
  bool showing = true, interrupted = false;
  for (;;) {
    size_t size;
    kdp_status status = kdp_netlink_receive(netlink, &size, error);
    if (status != KDP_OK) return status;
    const uint8_t *at = netlink->bytes, *end = at + size;
    while (at < end) {
      struct nlmsghdr header;
      const uint8_t *payload;
      size_t payload_size;
      size_t used = kdp_netlink_message_at(at, (size_t)(end - at), &header, &payload, &payload_size);
      if (used == 0) break;
      at += used;
      if (header.nlmsg_seq != netlink->sequence) continue; /* late answer to a request that timed out */
      kdp_netlink_record record;
      kdp_netlink_decode_message(&header, payload, payload_size, &record);
      interrupted |= (header.nlmsg_flags & NLM_F_DUMP_INTR) != 0;
      if (record.kind == KDP_NETLINK_FAILED || record.kind == KDP_NETLINK_DONE) {
        *error = record.error;
        if (error->code) return KDP_SYSTEM;
        return interrupted ? KDP_AGAIN : KDP_OK;
      }
      if (!wanted || !selected(wanted, &record)) continue;
      if (showing) showing = wanted->visit(wanted->context, &record);
      if (!list) return KDP_OK;
    }
  }
}

typedef struct request {
  uint8_t bytes[REQUEST_SIZE];
  kdp_netlink_builder builder;
} request;

static void begin(kdp_netlink *netlink, request *made, uint16_t type, uint16_t flags, const void *header, size_t size) {
  made->builder = kdp_netlink_builder_make(made->bytes, sizeof made->bytes);
  kdp_netlink_begin(&made->builder, type, NLM_F_REQUEST | flags, ++netlink->sequence, header, size);
}

static kdp_status finish(kdp_netlink *netlink, request *made, const selection *wanted, bool list,
                         kdp_netlink_error *error) {
  kdp_netlink_end(&made->builder);
  kdp_status status = kdp_netlink_send(netlink, &made->builder, error);
  return status == KDP_OK ? answer(netlink, wanted, list, error) : status;
}

/* ---- Links ---- */

static bool keep_link(void *context, const kdp_netlink_record *record) {
  *(kdp_netlink_link *)context = record->link;
  return false;
}

kdp_status kdp_netlink_find_link(kdp_netlink *netlink, const char *name, kdp_netlink_link *link,
                                 kdp_netlink_error *error) {
  struct ifinfomsg header = {.ifi_family = AF_UNSPEC};
  request made;
  selection wanted = {.kind = KDP_NETLINK_LINK, .visit = keep_link, .context = link};
  *link = (kdp_netlink_link){0};
  *error = (kdp_netlink_error){0};
  if (strlen(name) >= IFNAMSIZ) return KDP_INVALID_ARGUMENT;
  begin(netlink, &made, RTM_GETLINK, 0, &header, sizeof header);
  kdp_netlink_put_text(&made.builder, IFLA_IFNAME, name);
  return finish(netlink, &made, &wanted, false, error);
}

kdp_status kdp_netlink_link_at(kdp_netlink *netlink, uint32_t index, kdp_netlink_link *link, kdp_netlink_error *error) {
  struct ifinfomsg header = {.ifi_family = AF_UNSPEC, .ifi_index = (int)index};
  request made;
  selection wanted = {.kind = KDP_NETLINK_LINK, .visit = keep_link, .context = link};
  *link = (kdp_netlink_link){0};
  begin(netlink, &made, RTM_GETLINK, 0, &header, sizeof header);
  return finish(netlink, &made, &wanted, false, error);
}

kdp_status kdp_netlink_set_link(kdp_netlink *netlink, uint32_t index, bool up, uint32_t mtu, kdp_netlink_error *error) {
  struct ifinfomsg header = {
      .ifi_family = AF_UNSPEC, .ifi_index = (int)index, .ifi_flags = up ? IFF_UP : 0, .ifi_change = IFF_UP};
  request made;
  begin(netlink, &made, RTM_NEWLINK, NLM_F_ACK, &header, sizeof header);
  if (mtu) kdp_netlink_put_u32(&made.builder, IFLA_MTU, mtu);
  return finish(netlink, &made, NULL, false, error);
}

kdp_status kdp_netlink_delete_link(kdp_netlink *netlink, uint32_t index, kdp_netlink_error *error) {
  struct ifinfomsg header = {.ifi_family = AF_UNSPEC, .ifi_index = (int)index};
  request made;
  begin(netlink, &made, RTM_DELLINK, NLM_F_ACK, &header, sizeof header);
  return finish(netlink, &made, NULL, false, error);
}

kdp_status kdp_netlink_list_links(kdp_netlink *netlink, kdp_netlink_visit visit, void *context,
                                  kdp_netlink_error *error) {
  struct ifinfomsg header = {.ifi_family = AF_UNSPEC};
  request made;
  selection wanted = {.kind = KDP_NETLINK_LINK, .visit = visit, .context = context};
  begin(netlink, &made, RTM_GETLINK, NLM_F_DUMP, &header, sizeof header);
  return finish(netlink, &made, &wanted, true, error);
}

/* ---- Addresses ---- */

static kdp_status change_address(kdp_netlink *netlink, uint16_t type, uint16_t flags,
                                 const kdp_netlink_address *address, kdp_netlink_error *error) {
  size_t size = address_size(address->prefix.family);
  *error = (kdp_netlink_error){0};
  if (size == 0 || address->prefix.length > size * 8) return KDP_INVALID_ARGUMENT;
  struct ifaddrmsg header = {.ifa_family = family_to_kernel(address->prefix.family),
                             .ifa_prefixlen = address->prefix.length,
                             .ifa_scope = address->scope,
                             .ifa_index = address->index};
  request made;
  begin(netlink, &made, type, NLM_F_ACK | flags, &header, sizeof header);
  kdp_netlink_put(&made.builder, IFA_LOCAL, address->prefix.bytes, size);
  kdp_netlink_put(&made.builder, IFA_ADDRESS, address->prefix.bytes, size);
  return finish(netlink, &made, NULL, false, error);
}

kdp_status kdp_netlink_add_address(kdp_netlink *netlink, const kdp_netlink_address *address, kdp_netlink_error *error) {
  return change_address(netlink, RTM_NEWADDR, NLM_F_CREATE | NLM_F_EXCL, address, error);
}

kdp_status kdp_netlink_delete_address(kdp_netlink *netlink, const kdp_netlink_address *address,
                                      kdp_netlink_error *error) {
  return change_address(netlink, RTM_DELADDR, 0, address, error);
}

kdp_status kdp_netlink_list_addresses(kdp_netlink *netlink, kdp_family family, uint32_t index, kdp_netlink_visit visit,
                                      void *context, kdp_netlink_error *error) {
  struct ifaddrmsg header = {.ifa_family = family_to_kernel((uint8_t)family), .ifa_index = index};
  request made;
  selection wanted = {
      .kind = KDP_NETLINK_ADDRESS, .family = (uint8_t)family, .index = index, .visit = visit, .context = context};
  begin(netlink, &made, RTM_GETADDR, NLM_F_DUMP, &header, sizeof header);
  return finish(netlink, &made, &wanted, true, error);
}

/* ---- Routes ---- */

/* A table's number has 32 bits, the header's field 8. */
static uint8_t table_in_header(uint32_t table) {
  return table < 256 ? (uint8_t)table : RT_TABLE_UNSPEC;
}

static kdp_status change_route(kdp_netlink *netlink, uint16_t type, uint16_t flags, const kdp_netlink_route *route,
                               kdp_netlink_error *error) {
  uint8_t family = route->destination.family;
  size_t size = address_size(family);
  bool adds = type == RTM_NEWROUTE;
  *error = (kdp_netlink_error){0};
  if (size == 0 || route->destination.length > size * 8) return KDP_INVALID_ARGUMENT;
  if (route->gateway.family != KDP_FAMILY_NONE && route->gateway.family != family) return KDP_INVALID_ARGUMENT;
  uint32_t table = route->table ? route->table : (uint32_t)RT_TABLE_MAIN;
  struct rtmsg header = {.rtm_family = family_to_kernel(family),
                         .rtm_dst_len = route->destination.length,
                         .rtm_table = table_in_header(table),
                         .rtm_protocol = adds ? RTPROT_BOOT : route->protocol,
                         .rtm_type = adds ? RTN_UNICAST : route->type,
                         .rtm_scope = RT_SCOPE_UNIVERSE};
  if (family == KDP_FAMILY_IPV4 && route->gateway.family == KDP_FAMILY_NONE) header.rtm_scope = RT_SCOPE_LINK;
  if (!adds && family == KDP_FAMILY_IPV4) header.rtm_scope = RT_SCOPE_NOWHERE; /* any */
  request made;
  begin(netlink, &made, type, NLM_F_ACK | flags, &header, sizeof header);
  kdp_netlink_put(&made.builder, RTA_DST, route->destination.bytes, size);
  kdp_netlink_put_u32(&made.builder, RTA_TABLE, table);
  if (route->index) kdp_netlink_put_u32(&made.builder, RTA_OIF, route->index);
  if (route->metric) kdp_netlink_put_u32(&made.builder, RTA_PRIORITY, route->metric);
  if (route->gateway.family) kdp_netlink_put(&made.builder, RTA_GATEWAY, route->gateway.bytes, size);
  if (route->source.family == family) kdp_netlink_put(&made.builder, RTA_PREFSRC, route->source.bytes, size);
  if (route->mtu && adds) {
    size_t metrics = kdp_netlink_nest(&made.builder, RTA_METRICS);
    kdp_netlink_put_u32(&made.builder, RTAX_MTU, route->mtu);
    kdp_netlink_unnest(&made.builder, metrics);
  }
  return finish(netlink, &made, NULL, false, error);
}

kdp_status kdp_netlink_add_route(kdp_netlink *netlink, const kdp_netlink_route *route, kdp_netlink_error *error) {
  return change_route(netlink, RTM_NEWROUTE, NLM_F_CREATE | NLM_F_EXCL, route, error);
}

kdp_status kdp_netlink_delete_route(kdp_netlink *netlink, const kdp_netlink_route *route, kdp_netlink_error *error) {
  return change_route(netlink, RTM_DELROUTE, 0, route, error);
}

static bool keep_route(void *context, const kdp_netlink_record *record) {
  *(kdp_netlink_route *)context = record->route;
  return false;
}

kdp_status kdp_netlink_route_to(kdp_netlink *netlink, const kdp_address *destination, uint32_t mark,
                                kdp_netlink_route *route, kdp_netlink_error *error) {
  size_t size = address_size(destination->family);
  *route = (kdp_netlink_route){0};
  *error = (kdp_netlink_error){0};
  if (size == 0) return KDP_INVALID_ARGUMENT;
  struct rtmsg header = {.rtm_family = family_to_kernel(destination->family),
                         .rtm_dst_len = (uint8_t)(size * 8),
                         .rtm_flags = RTM_F_LOOKUP_TABLE};
  request made;
  selection wanted = {.kind = KDP_NETLINK_ROUTE, .visit = keep_route, .context = route};
  begin(netlink, &made, RTM_GETROUTE, 0, &header, sizeof header);
  kdp_netlink_put(&made.builder, RTA_DST, destination->bytes, size);
  if (destination->scope) kdp_netlink_put_u32(&made.builder, RTA_OIF, destination->scope);
  if (mark) kdp_netlink_put_u32(&made.builder, RTA_MARK, mark);
  return finish(netlink, &made, &wanted, false, error);
}

kdp_status kdp_netlink_list_routes(kdp_netlink *netlink, kdp_family family, uint32_t table, uint32_t index,
                                   kdp_netlink_visit visit, void *context, kdp_netlink_error *error) {
  struct rtmsg header = {.rtm_family = family_to_kernel((uint8_t)family), .rtm_table = table_in_header(table)};
  request made;
  selection wanted = {.kind = KDP_NETLINK_ROUTE,
                      .family = (uint8_t)family,
                      .index = index,
                      .table = table,
                      .visit = visit,
                      .context = context};
  begin(netlink, &made, RTM_GETROUTE, NLM_F_DUMP, &header, sizeof header);
  if (table) kdp_netlink_put_u32(&made.builder, RTA_TABLE, table);
  if (index) kdp_netlink_put_u32(&made.builder, RTA_OIF, index);
  kdp_status status = finish(netlink, &made, &wanted, true, error);
  /* A table that nothing was ever put into does not exist: an empty list. */
  if (status == KDP_SYSTEM && table && error->code == ENOENT) return KDP_OK;
  return status;
}

/* ---- Rules ---- */

static kdp_status change_rule(kdp_netlink *netlink, uint16_t type, uint16_t flags, const kdp_netlink_rule *rule,
                              kdp_netlink_error *error) {
  struct fib_rule_hdr header = {.family = family_to_kernel(rule->family),
                                .table = table_in_header(rule->table),
                                .action = rule->action ? rule->action : FR_ACT_TO_TBL,
                                .flags = rule->invert ? FIB_RULE_INVERT : 0};
  *error = (kdp_netlink_error){0};
  if (header.family == AF_UNSPEC) return KDP_INVALID_ARGUMENT;
  request made;
  begin(netlink, &made, type, NLM_F_ACK | flags, &header, sizeof header);
  if (rule->priority) kdp_netlink_put_u32(&made.builder, FRA_PRIORITY, rule->priority);
  kdp_netlink_put_u32(&made.builder, FRA_TABLE, rule->table);
  if (rule->mask) {
    kdp_netlink_put_u32(&made.builder, FRA_FWMARK, rule->mark);
    kdp_netlink_put_u32(&made.builder, FRA_FWMASK, rule->mask);
  }
  if (rule->suppress_prefix >= 0)
    kdp_netlink_put_u32(&made.builder, FRA_SUPPRESS_PREFIXLEN, (uint32_t)rule->suppress_prefix);
  return finish(netlink, &made, NULL, false, error);
}

kdp_status kdp_netlink_add_rule(kdp_netlink *netlink, const kdp_netlink_rule *rule, kdp_netlink_error *error) {
  return change_rule(netlink, RTM_NEWRULE, NLM_F_CREATE | NLM_F_EXCL, rule, error);
}

kdp_status kdp_netlink_delete_rule(kdp_netlink *netlink, const kdp_netlink_rule *rule, kdp_netlink_error *error) {
  return change_rule(netlink, RTM_DELRULE, 0, rule, error);
}

kdp_status kdp_netlink_list_rules(kdp_netlink *netlink, kdp_family family, kdp_netlink_visit visit, void *context,
                                  kdp_netlink_error *error) {
  struct fib_rule_hdr header = {.family = family_to_kernel((uint8_t)family)};
  request made;
  selection wanted = {.kind = KDP_NETLINK_RULE, .family = (uint8_t)family, .visit = visit, .context = context};
  begin(netlink, &made, RTM_GETRULE, NLM_F_DUMP, &header, sizeof header);
  return finish(netlink, &made, &wanted, true, error);
}

/* ---- Changes ---- */

kdp_status kdp_netlink_read_changes(kdp_netlink *netlink, kdp_netlink_visit visit, void *context) {
  bool lost = false;
  for (int datagram = 0; datagram < ATTEMPTS_MAX; datagram++) {
    size_t size;
    kdp_netlink_error error;
    kdp_status status = kdp_netlink_receive(netlink, &size, &error);
    if (status != KDP_OK) {
      if (error.code == ENOBUFS || error.code == EMSGSIZE) {
        lost = true;
        continue;
      }
      if (error.code == ETIMEDOUT) break; /* nothing more is waiting */
      errno = error.code;
      return status;
    }
    kdp_netlink_record record;
    const uint8_t *at = netlink->bytes, *end = at + size;
    while (at < end) {
      size_t used = kdp_netlink_decode(at, (size_t)(end - at), &record);
      if (used == 0) break;
      at += used;
      if (record.kind != KDP_NETLINK_OTHER && !visit(context, &record)) return lost ? KDP_LIMIT : KDP_OK;
    }
  }
  return lost ? KDP_LIMIT : KDP_OK;
}
