/* What the kernel tells over rtnetlink(7), as records. Bounded: lengths inside a message are checked against it. */
#include <linux/fib_rules.h>
#include <linux/if.h>
#include <linux/rtnetlink.h>
#include <string.h>
#include <sys/socket.h>

#include "io/netlink_message.h"

static uint8_t family_of_kernel(uint8_t family) {
  return family == AF_INET ? KDP_FAMILY_IPV4 : family == AF_INET6 ? KDP_FAMILY_IPV6 : KDP_FAMILY_NONE;
}

static size_t address_size(uint8_t family) {
  return family == KDP_FAMILY_IPV4 ? 4 : family == KDP_FAMILY_IPV6 ? 16 : 0;
}

static bool attributes_after(const uint8_t *payload, size_t size, void *header, size_t header_size,
                             kdp_netlink_attributes *attributes) {
  if (size < header_size) return false;
  memcpy(header, payload, header_size);
  size_t skip = NLMSG_ALIGN(header_size);
  if (skip > size) skip = size;
  *attributes = (kdp_netlink_attributes){payload + skip, size - skip};
  return true;
}

static void prefix_of(const kdp_netlink_attribute *attribute, uint8_t family, uint8_t length, kdp_prefix *prefix) {
  size_t size = address_size(family);
  if (attribute->size < size || length > size * 8) return;
  memcpy(prefix->bytes, attribute->value, size);
}

static void address_of(const kdp_netlink_attribute *attribute, uint8_t family, kdp_address *address) {
  size_t size = address_size(family);
  if (size == 0 || attribute->size < size) return;
  address->family = family;
  memcpy(address->bytes, attribute->value, size);
}

static bool decode_link(const uint8_t *payload, size_t size, kdp_netlink_link *link) {
  struct ifinfomsg header;
  kdp_netlink_attributes attributes, inner;
  kdp_netlink_attribute attribute, info;
  if (!attributes_after(payload, size, &header, sizeof header, &attributes)) return false;
  /* A bridge tells of a port that leaves it in the words for an interface that is gone, with its family. */
  if (header.ifi_family != AF_UNSPEC) return false;
  link->index = (uint32_t)header.ifi_index;
  link->up = (header.ifi_flags & IFF_UP) != 0;
  link->running = (header.ifi_flags & (IFF_RUNNING | IFF_LOWER_UP)) == (IFF_RUNNING | IFF_LOWER_UP);
  while (kdp_netlink_next_attribute(&attributes, &attribute)) {
    if (attribute.type == IFLA_MTU) link->mtu = kdp_netlink_u32_of(&attribute);
    if (attribute.type == IFLA_IFNAME) kdp_netlink_text_of(&attribute, link->name, sizeof link->name);
    if (attribute.type != IFLA_LINKINFO) continue;
    inner = (kdp_netlink_attributes){attribute.value, attribute.size};
    while (kdp_netlink_next_attribute(&inner, &info))
      if (info.type == IFLA_INFO_KIND) kdp_netlink_text_of(&info, link->kind, sizeof link->kind);
  }
  return true;
}

static bool decode_address(const uint8_t *payload, size_t size, kdp_netlink_address *address) {
  struct ifaddrmsg header;
  kdp_netlink_attributes attributes;
  kdp_netlink_attribute attribute;
  if (!attributes_after(payload, size, &header, sizeof header, &attributes)) return false;
  uint8_t family = family_of_kernel(header.ifa_family);
  if (family == KDP_FAMILY_NONE || header.ifa_prefixlen > address_size(family) * 8) return false;
  address->index = header.ifa_index;
  address->scope = header.ifa_scope;
  address->prefix = (kdp_prefix){.family = family, .length = header.ifa_prefixlen};
  bool local = false;
  while (kdp_netlink_next_attribute(&attributes, &attribute)) {
    if (attribute.type == IFA_ADDRESS && !local) prefix_of(&attribute, family, header.ifa_prefixlen, &address->prefix);
    if (attribute.type == IFA_LOCAL) {
      prefix_of(&attribute, family, header.ifa_prefixlen, &address->prefix);
      local = true; /* with a point-to-point address, IFA_ADDRESS is the other end */
    }
  }
  return true;
}

static void decode_metrics(const kdp_netlink_attribute *attribute, kdp_netlink_route *route) {
  kdp_netlink_attributes metrics = {attribute->value, attribute->size};
  kdp_netlink_attribute metric;
  while (kdp_netlink_next_attribute(&metrics, &metric))
    if (metric.type == RTAX_MTU) route->mtu = kdp_netlink_u32_of(&metric);
}

/* The first of several next hops stands for the route. */
static void decode_multipath(const kdp_netlink_attribute *attribute, uint8_t family, kdp_netlink_route *route) {
  struct rtnexthop hop;
  if (attribute->size < sizeof hop) return;
  memcpy(&hop, attribute->value, sizeof hop);
  if (hop.rtnh_len < sizeof hop || hop.rtnh_len > attribute->size) return;
  route->index = (uint32_t)hop.rtnh_ifindex;
  kdp_netlink_attributes attributes = {attribute->value + sizeof hop, hop.rtnh_len - sizeof hop};
  kdp_netlink_attribute inner;
  while (kdp_netlink_next_attribute(&attributes, &inner))
    if (inner.type == RTA_GATEWAY) address_of(&inner, family, &route->gateway);
}

/* RTA_VIA: an IPv4 route by an IPv6 gateway. */
static void decode_via(const kdp_netlink_attribute *attribute, kdp_netlink_route *route) {
  uint16_t family;
  if (attribute->size < sizeof family) return;
  memcpy(&family, attribute->value, sizeof family);
  kdp_netlink_attribute rest = {.value = attribute->value + sizeof family, .size = attribute->size - sizeof family};
  if (family <= UINT8_MAX) address_of(&rest, family_of_kernel((uint8_t)family), &route->gateway);
}

static bool decode_route(const uint8_t *payload, size_t size, kdp_netlink_route *route) {
  struct rtmsg header;
  kdp_netlink_attributes attributes;
  kdp_netlink_attribute attribute;
  if (!attributes_after(payload, size, &header, sizeof header, &attributes)) return false;
  uint8_t family = family_of_kernel(header.rtm_family);
  if (family == KDP_FAMILY_NONE || header.rtm_dst_len > address_size(family) * 8) return false;
  route->destination = (kdp_prefix){.family = family, .length = header.rtm_dst_len};
  route->type = header.rtm_type;
  route->protocol = header.rtm_protocol;
  route->scope = header.rtm_scope;
  route->table = header.rtm_table;
  while (kdp_netlink_next_attribute(&attributes, &attribute)) {
    switch (attribute.type) {
    case RTA_DST: prefix_of(&attribute, family, header.rtm_dst_len, &route->destination); break;
    case RTA_TABLE: route->table = kdp_netlink_u32_of(&attribute); break;
    case RTA_OIF: route->index = kdp_netlink_u32_of(&attribute); break;
    case RTA_PRIORITY: route->metric = kdp_netlink_u32_of(&attribute); break;
    case RTA_GATEWAY: address_of(&attribute, family, &route->gateway); break;
    case RTA_PREFSRC: address_of(&attribute, family, &route->source); break;
    case RTA_METRICS: decode_metrics(&attribute, route); break;
    case RTA_MULTIPATH: decode_multipath(&attribute, family, route); break;
    case RTA_VIA: decode_via(&attribute, route); break;
    default: break;
    }
  }
  return true;
}

static bool decode_rule(const uint8_t *payload, size_t size, kdp_netlink_rule *rule) {
  struct fib_rule_hdr header;
  kdp_netlink_attributes attributes;
  kdp_netlink_attribute attribute;
  if (!attributes_after(payload, size, &header, sizeof header, &attributes)) return false;
  rule->family = family_of_kernel(header.family);
  rule->invert = (header.flags & FIB_RULE_INVERT) != 0;
  rule->table = header.table;
  rule->action = header.action;
  rule->suppress_prefix = -1;
  while (kdp_netlink_next_attribute(&attributes, &attribute)) {
    switch (attribute.type) {
    case FRA_PRIORITY: rule->priority = kdp_netlink_u32_of(&attribute); break;
    case FRA_TABLE: rule->table = kdp_netlink_u32_of(&attribute); break;
    case FRA_FWMARK: rule->mark = kdp_netlink_u32_of(&attribute); break;
    case FRA_FWMASK: rule->mask = kdp_netlink_u32_of(&attribute); break;
    case FRA_SUPPRESS_PREFIXLEN: rule->suppress_prefix = (int32_t)kdp_netlink_u32_of(&attribute); break;
    default: break;
    }
  }
  return rule->family != KDP_FAMILY_NONE;
}

/* The message as a record; one that contradicts itself is KDP_NETLINK_OTHER: the kernel's next one may be sound. */
void kdp_netlink_decode_message(const struct nlmsghdr *header, const uint8_t *payload, size_t size,
                                kdp_netlink_record *record) {
  *record = (kdp_netlink_record){.sequence = header->nlmsg_seq};
  bool sound = false;
  switch (header->nlmsg_type) {
  case NLMSG_DONE: {
    int32_t code = 0;
    if (size >= sizeof code) memcpy(&code, payload, sizeof code);
    record->error.code = code < 0 && code >= -4095 ? -code : 0;
    record->kind = KDP_NETLINK_DONE;
    return;
  }
  case NLMSG_ERROR:
    record->kind = KDP_NETLINK_FAILED;
    sound = kdp_netlink_error_of(header, payload, size, &record->error);
    break;
  case RTM_DELLINK: record->gone = true; /* fall through */
  case RTM_NEWLINK:
    record->kind = KDP_NETLINK_LINK;
    sound = decode_link(payload, size, &record->link);
    break;
  case RTM_DELADDR: record->gone = true; /* fall through */
  case RTM_NEWADDR:
    record->kind = KDP_NETLINK_ADDRESS;
    sound = decode_address(payload, size, &record->address);
    break;
  case RTM_DELROUTE: record->gone = true; /* fall through */
  case RTM_NEWROUTE:
    record->kind = KDP_NETLINK_ROUTE;
    sound = decode_route(payload, size, &record->route);
    break;
  case RTM_DELRULE: record->gone = true; /* fall through */
  case RTM_NEWRULE:
    record->kind = KDP_NETLINK_RULE;
    sound = decode_rule(payload, size, &record->rule);
    break;
  default: break;
  }
  if (!sound) *record = (kdp_netlink_record){.sequence = header->nlmsg_seq};
}

size_t kdp_netlink_decode(const void *bytes, size_t size, kdp_netlink_record *record) {
  struct nlmsghdr header;
  const uint8_t *payload;
  size_t payload_size;
  size_t used = kdp_netlink_message_at(bytes, size, &header, &payload, &payload_size);
  if (used == 0) {
    *record = (kdp_netlink_record){0};
    return 0;
  }
  kdp_netlink_decode_message(&header, payload, payload_size, record);
  return used;
}
