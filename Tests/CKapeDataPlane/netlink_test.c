/* rtnetlink and nf_tables: the codec on bytes, and what the kernel makes of it in a network namespace of the test's
   own. */
#define _GNU_SOURCE
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>
#include <errno.h>
#include <linux/if.h>
#include <linux/rtnetlink.h>

#include "io/netlink_message.h"
#include "kdp/netfilter.h"

/* ---- Bytes ---- */

/* Memory that ends where a page that may not be touched begins. */
static uint8_t *guarded(size_t size, void **map, size_t *map_size) {
  size_t page = (size_t)sysconf(_SC_PAGESIZE);
  *map_size = (size + page - 1) / page * page + page;
  *map = mmap(NULL, *map_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  assert_ptr_not_equal(*map, MAP_FAILED);
  uint8_t *end = (uint8_t *)*map + *map_size - page;
  assert_int_equal(mprotect(end, page, PROT_NONE), 0);
  return end - size;
}

static size_t route_message(uint8_t *bytes, size_t capacity) {
  kdp_netlink_builder builder = kdp_netlink_builder_make(bytes, capacity);
  struct rtmsg header = {.rtm_family = AF_INET, .rtm_dst_len = 24, .rtm_table = 0, .rtm_type = RTN_UNICAST};
  const uint8_t destination[4] = {10, 1, 2, 0}, gateway[4] = {192, 0, 2, 1};
  kdp_netlink_begin(&builder, RTM_NEWROUTE, 0, 7, &header, sizeof header);
  kdp_netlink_put(&builder, RTA_DST, destination, 4);
  kdp_netlink_put(&builder, RTA_GATEWAY, gateway, 4);
  kdp_netlink_put_u32(&builder, RTA_TABLE, 51820);
  kdp_netlink_put_u32(&builder, RTA_OIF, 3);
  size_t metrics = kdp_netlink_nest(&builder, RTA_METRICS);
  kdp_netlink_put_u32(&builder, RTAX_MTU, 1400);
  kdp_netlink_unnest(&builder, metrics);
  kdp_netlink_end(&builder);
  assert_false(builder.failed);
  return builder.size;
}

static void a_route_is_read_as_it_was_written(void **state) {
  (void)state;
  uint8_t bytes[256];
  size_t size = route_message(bytes, sizeof bytes);
  kdp_netlink_record record;
  assert_int_equal(kdp_netlink_decode(bytes, size, &record), size);
  assert_int_equal(record.kind, KDP_NETLINK_ROUTE);
  assert_false(record.gone);
  assert_int_equal(record.sequence, 7);
  assert_int_equal(record.route.table, 51820);
  assert_int_equal(record.route.index, 3);
  assert_int_equal(record.route.mtu, 1400);
  assert_int_equal(record.route.destination.family, KDP_FAMILY_IPV4);
  assert_int_equal(record.route.destination.length, 24);
  assert_memory_equal(record.route.destination.bytes, ((uint8_t[]){10, 1, 2, 0}), 4);
  assert_memory_equal(record.route.gateway.bytes, ((uint8_t[]){192, 0, 2, 1}), 4);
}

static kdp_netlink_record link_record(uint16_t type, uint8_t family, unsigned flags) {
  uint8_t bytes[256];
  kdp_netlink_builder builder = kdp_netlink_builder_make(bytes, sizeof bytes);
  struct ifinfomsg header = {.ifi_family = family, .ifi_index = 5, .ifi_flags = flags};
  kdp_netlink_begin(&builder, type, 0, 0, &header, sizeof header);
  kdp_netlink_put_text(&builder, IFLA_IFNAME, "kwg0");
  kdp_netlink_put_u32(&builder, IFLA_MTU, 9000);
  kdp_netlink_end(&builder);
  kdp_netlink_record record;
  assert_int_equal(kdp_netlink_decode(bytes, builder.size, &record), builder.size);
  return record;
}

static void a_link_is_read_as_it_was_written(void **state) {
  (void)state;
  kdp_netlink_record record = link_record(RTM_NEWLINK, AF_UNSPEC, IFF_UP);
  assert_int_equal(record.kind, KDP_NETLINK_LINK);
  assert_false(record.gone);
  assert_int_equal(record.link.index, 5);
  assert_int_equal(record.link.mtu, 9000);
  assert_true(record.link.up);
  assert_string_equal(record.link.name, "kwg0");
  record = link_record(RTM_DELLINK, AF_UNSPEC, 0);
  assert_int_equal(record.kind, KDP_NETLINK_LINK);
  assert_true(record.gone);
  assert_false(record.link.up);
}

static void a_port_that_leaves_a_bridge_is_no_link_that_is_gone(void **state) {
  (void)state;
  assert_int_equal(link_record(RTM_DELLINK, AF_BRIDGE, 0).kind, KDP_NETLINK_OTHER);
}

static void a_message_cut_anywhere_is_not_read_past_its_end(void **state) {
  (void)state;
  uint8_t whole[256];
  size_t size = route_message(whole, sizeof whole);
  for (size_t cut = 0; cut < size; cut++) {
    void *map;
    size_t map_size;
    uint8_t *bytes = guarded(cut, &map, &map_size);
    memcpy(bytes, whole, cut);
    kdp_netlink_record record;
    assert_int_equal(kdp_netlink_decode(bytes, cut, &record), 0);
    if (cut >= sizeof(struct nlmsghdr)) { /* the same with a header that says it is whole */
      uint32_t length = (uint32_t)cut;
      memcpy(bytes, &length, sizeof length);
      assert_int_equal(kdp_netlink_decode(bytes, cut, &record), cut);
    }
    munmap(map, map_size);
  }
}

static void any_bytes_are_survived(void **state) {
  (void)state;
  uint64_t seed = 0x9e3779b97f4a7c15;
  static const uint16_t types[] = {RTM_NEWLINK, RTM_NEWADDR, RTM_NEWROUTE, RTM_NEWRULE, NLMSG_ERROR, NLMSG_DONE};
  for (int round = 0; round < 20000; round++) {
    void *map = NULL;
    size_t map_size, size = 16 + (size_t)(seed >> 33) % 200;
    uint8_t *bytes = guarded(size, &map, &map_size);
    for (size_t i = 0; i < size; i++) {
      seed = seed * 6364136223846793005u + 1442695040888963407u;
      bytes[i] = (uint8_t)(seed >> 56) & ((seed >> 40) & 1 ? 0xff : 0x1f); /* small numbers make lengths that fit */
    }
    uint32_t length = (uint32_t)size;
    memcpy(bytes, &length, sizeof length);
    memcpy(bytes + 4, &types[(seed >> 20) % 6], 2);
    kdp_netlink_record record;
    assert_int_equal(kdp_netlink_decode(bytes, size, &record), size);
    munmap(map, map_size);
  }
}

static void what_does_not_fit_is_said_and_not_written(void **state) {
  (void)state;
  void *map;
  size_t map_size;
  uint8_t *bytes = guarded(64, &map, &map_size);
  kdp_netlink_builder builder = kdp_netlink_builder_make(bytes, 64);
  struct rtmsg header = {0};
  kdp_netlink_begin(&builder, RTM_NEWROUTE, 0, 1, &header, sizeof header);
  for (int i = 0; i < 20; i++)
    kdp_netlink_put_u32(&builder, RTA_OIF, 1);
  kdp_netlink_end(&builder);
  assert_true(builder.failed);
  munmap(map, map_size);
}

static void the_kernels_words_are_kept(void **state) {
  (void)state;
  uint8_t bytes[256];
  kdp_netlink_builder builder = kdp_netlink_builder_make(bytes, sizeof bytes);
  struct nlmsgerr header = {.error = -EEXIST, .msg = {.nlmsg_len = sizeof(struct nlmsghdr)}};
  kdp_netlink_begin(&builder, NLMSG_ERROR, NLM_F_ACK_TLVS | NLM_F_CAPPED, 9, &header, sizeof header);
  kdp_netlink_put_text(&builder, NLMSGERR_ATTR_MSG, "it is there already");
  kdp_netlink_end(&builder);
  kdp_netlink_record record;
  assert_int_equal(kdp_netlink_decode(bytes, builder.size, &record), builder.size);
  assert_int_equal(record.kind, KDP_NETLINK_FAILED);
  assert_int_equal(record.error.code, EEXIST);
  assert_string_equal(record.error.text, "it is there already");
}

/* ---- The kernel, in a namespace ---- */

static int enter_namespace(void **state) {
  (void)state;
  static bool entered;
  if (!entered) entered = unshare(CLONE_NEWNET) == 0 || unshare(CLONE_NEWUSER | CLONE_NEWNET) == 0;
  return 0;
}

static kdp_netlink *opened(void) {
  kdp_netlink *netlink = NULL;
  kdp_netlink_error error;
  kdp_netlink_link link;
  assert_int_equal(kdp_netlink_open(0, &netlink), KDP_OK);
  assert_int_equal(kdp_netlink_find_link(netlink, "lo", &link, &error), KDP_OK);
  if (link.up || kdp_netlink_set_link(netlink, link.index, true, 65536, &error) != KDP_OK) {
    kdp_netlink_close(netlink); /* not a fresh namespace of ours: leave it alone */
    skip();
  }
  return netlink;
}

static void closed(kdp_netlink *netlink) {
  kdp_netlink_error error;
  assert_int_equal(kdp_netlink_set_link(netlink, 1, false, 65536, &error), KDP_OK);
  kdp_netlink_close(netlink);
}

typedef struct seen {
  kdp_netlink_record record[32];
  uint32_t count;
} seen;

static bool see(void *context, const kdp_netlink_record *record) {
  seen *into = context;
  if (into->count < 32) into->record[into->count++] = *record;
  return true;
}

static const kdp_netlink_address ipv4_address = {
    .index = 1, .prefix = {.family = KDP_FAMILY_IPV4, .length = 24, .bytes = {10, 77, 0, 2}}};
static const kdp_netlink_address ipv6_address = {
    .index = 1, .prefix = {.family = KDP_FAMILY_IPV6, .length = 64, .bytes = {0xfd, 0x77, [15] = 2}}};

static void links_are_found_and_changed(void **state) {
  (void)state;
  kdp_netlink *netlink = opened();
  kdp_netlink_error error;
  kdp_netlink_link link;
  assert_int_equal(kdp_netlink_set_link(netlink, 1, true, 1380, &error), KDP_OK);
  assert_int_equal(kdp_netlink_link_at(netlink, 1, &link, &error), KDP_OK);
  assert_string_equal(link.name, "lo");
  assert_int_equal(link.mtu, 1380);
  assert_true(link.up);
  assert_int_equal(kdp_netlink_find_link(netlink, "no-such-link", &link, &error), KDP_SYSTEM);
  assert_int_equal(error.code, ENODEV);
  assert_int_equal(kdp_netlink_find_link(netlink, "a-name-that-is-too-long", &link, &error), KDP_INVALID_ARGUMENT);
  seen links = {0};
  assert_int_equal(kdp_netlink_list_links(netlink, see, &links, &error), KDP_OK);
  assert_true(links.count >= 1);
  closed(netlink);
}

static void addresses_come_and_go(void **state) {
  (void)state;
  kdp_netlink *netlink = opened();
  kdp_netlink_error error;
  assert_int_equal(kdp_netlink_add_address(netlink, &ipv4_address, &error), KDP_OK);
  assert_int_equal(kdp_netlink_add_address(netlink, &ipv6_address, &error), KDP_OK);
  assert_int_equal(kdp_netlink_add_address(netlink, &ipv4_address, &error), KDP_SYSTEM);
  assert_int_equal(error.code, EEXIST);
  assert_true(strlen(error.text) > 0);
  seen listed = {0};
  assert_int_equal(kdp_netlink_list_addresses(netlink, KDP_FAMILY_IPV4, 1, see, &listed, &error), KDP_OK);
  assert_int_equal(listed.count, 2); /* 127.0.0.1 and ours */
  assert_memory_equal(&listed.record[1].address.prefix, &ipv4_address.prefix, sizeof ipv4_address.prefix);
  assert_int_equal(kdp_netlink_delete_address(netlink, &ipv4_address, &error), KDP_OK);
  assert_int_equal(kdp_netlink_delete_address(netlink, &ipv6_address, &error), KDP_OK);
  assert_int_equal(kdp_netlink_delete_address(netlink, &ipv6_address, &error), KDP_SYSTEM);
  assert_int_equal(error.code, EADDRNOTAVAIL);
  closed(netlink);
}

static void routes_come_and_go_in_any_table(void **state) {
  (void)state;
  kdp_netlink *netlink = opened();
  kdp_netlink_error error;
  static const uint32_t tables[] = {0, 200, 51820};
  static const kdp_prefix prefixes[] = {
      {.family = KDP_FAMILY_IPV4, .length = 0},
      {.family = KDP_FAMILY_IPV4, .length = 16, .bytes = {198, 18}},
      {.family = KDP_FAMILY_IPV6, .length = 0},
      {.family = KDP_FAMILY_IPV6, .length = 48, .bytes = {0x20, 0x01, 0x0d, 0xb8, 0, 1}},
  };
  for (size_t i = 0; i < 12; i++) {
    uint32_t table = tables[i / 4];
    kdp_netlink_route route = {.destination = prefixes[i % 4], .table = table, .index = 1, .metric = 77, .mtu = 1300};
    assert_int_equal(kdp_netlink_add_route(netlink, &route, &error), KDP_OK);
    assert_int_equal(kdp_netlink_add_route(netlink, &route, &error), KDP_SYSTEM);
    assert_int_equal(error.code, EEXIST);
    seen listed = {0};
    kdp_family family = (kdp_family)prefixes[i % 4].family;
    assert_int_equal(
        kdp_netlink_list_routes(netlink, family, table ? table : (uint32_t)RT_TABLE_MAIN, 1, see, &listed, &error),
        KDP_OK);
    bool found = false;
    for (uint32_t k = 0; k < listed.count; k++) {
      const kdp_netlink_route *at = &listed.record[k].route;
      found |= memcmp(&at->destination, &route.destination, sizeof at->destination) == 0 && at->metric == 77 &&
               at->mtu == 1300 && at->index == 1 && at->protocol == RTPROT_BOOT;
    }
    assert_true(found);
    assert_int_equal(kdp_netlink_delete_route(netlink, &route, &error), KDP_OK);
    assert_int_equal(kdp_netlink_delete_route(netlink, &route, &error), KDP_SYSTEM);
    assert_int_equal(error.code, ESRCH);
  }
  seen none = {0};
  assert_int_equal(kdp_netlink_list_routes(netlink, KDP_FAMILY_IPV4, 51999, 0, see, &none, &error), KDP_OK);
  assert_int_equal(none.count, 0);
  closed(netlink);
}

static void the_route_depends_on_the_mark(void **state) {
  (void)state;
  kdp_netlink *netlink = opened();
  kdp_netlink_error error;
  kdp_netlink_route route, tunnel = {.destination = {.family = KDP_FAMILY_IPV4}, .table = 51820, .index = 1};
  kdp_netlink_rule rule = {.family = KDP_FAMILY_IPV4,
                           .invert = true,
                           .priority = 32765,
                           .table = 51820,
                           .mark = 51820,
                           .mask = UINT32_MAX,
                           .suppress_prefix = -1};
  kdp_netlink_rule suppress = {
      .family = KDP_FAMILY_IPV4, .priority = 32764, .table = RT_TABLE_MAIN, .suppress_prefix = 0};
  const kdp_address far = {.family = KDP_FAMILY_IPV4, .bytes = {192, 0, 2, 9}};
  assert_int_equal(kdp_netlink_route_to(netlink, &far, 0, &route, &error), KDP_SYSTEM);
  assert_int_equal(error.code, ENETUNREACH);
  assert_int_equal(kdp_netlink_add_route(netlink, &tunnel, &error), KDP_OK);
  assert_int_equal(kdp_netlink_add_rule(netlink, &rule, &error), KDP_OK);
  assert_int_equal(kdp_netlink_add_rule(netlink, &suppress, &error), KDP_OK);
  assert_int_equal(kdp_netlink_route_to(netlink, &far, 0, &route, &error), KDP_OK);
  assert_int_equal(route.table, 51820);
  assert_int_equal(kdp_netlink_route_to(netlink, &far, 51820, &route, &error), KDP_SYSTEM);
  seen rules = {0};
  assert_int_equal(kdp_netlink_list_rules(netlink, KDP_FAMILY_IPV4, see, &rules, &error), KDP_OK);
  assert_int_equal(rules.count, 5); /* local, ours, main, default */
  assert_int_equal(rules.record[1].rule.suppress_prefix, 0);
  assert_int_equal(rules.record[1].rule.priority, 32764);
  assert_true(rules.record[2].rule.invert);
  assert_int_equal(rules.record[2].rule.mark, 51820);
  assert_int_equal(rules.record[2].rule.mask, UINT32_MAX);
  assert_int_equal(rules.record[2].rule.suppress_prefix, -1);
  assert_int_equal(kdp_netlink_delete_rule(netlink, &rule, &error), KDP_OK);
  assert_int_equal(kdp_netlink_delete_rule(netlink, &suppress, &error), KDP_OK);
  assert_int_equal(kdp_netlink_delete_rule(netlink, &suppress, &error), KDP_SYSTEM);
  assert_int_equal(kdp_netlink_delete_route(netlink, &tunnel, &error), KDP_OK);
  closed(netlink);
}

static void changes_are_told(void **state) {
  (void)state;
  kdp_netlink *netlink = opened(), *monitor = NULL;
  kdp_netlink_error error;
  assert_int_equal(kdp_netlink_open(KDP_NETLINK_LINK_CHANGES | KDP_NETLINK_ADDRESS_CHANGES, &monitor), KDP_OK);
  seen told = {0};
  assert_int_equal(kdp_netlink_read_changes(monitor, see, &told), KDP_OK);
  assert_int_equal(told.count, 0);
  assert_int_equal(kdp_netlink_add_address(netlink, &ipv4_address, &error), KDP_OK);
  assert_int_equal(kdp_netlink_delete_address(netlink, &ipv4_address, &error), KDP_OK);
  assert_int_equal(kdp_netlink_set_link(netlink, 1, true, 1400, &error), KDP_OK);
  assert_int_equal(kdp_netlink_read_changes(monitor, see, &told), KDP_OK);
  assert_true(told.count >= 3);
  assert_int_equal(told.record[0].kind, KDP_NETLINK_ADDRESS);
  assert_false(told.record[0].gone);
  assert_true(told.record[1].gone);
  assert_int_equal(told.record[2].kind, KDP_NETLINK_LINK);
  assert_int_equal(told.record[2].link.mtu, 1400);
  kdp_netlink_close(monitor);
  closed(netlink);
}

static void guard_rules_come_and_go_as_one(void **state) {
  (void)state;
  kdp_netlink *netlink = opened();
  kdp_netlink_error error;
  enum { MANY = 300 };
  kdp_prefix *address = calloc(MANY, sizeof *address);
  assert_non_null(address);
  for (int i = 0; i < MANY; i++)
    address[i] = (kdp_prefix){.family = i % 2 ? KDP_FAMILY_IPV4 : KDP_FAMILY_IPV6,
                              .length = 32,
                              .bytes = {10, 0, (uint8_t)(i >> 8), (uint8_t)i}};
  static const uint8_t families[] = {KDP_FAMILY_IPV4, KDP_FAMILY_IPV6};
  for (int i = 0; i < 2; i++) {
    kdp_netfilter_guard guard = {.table = "kape-test", .interface = "lo", .family = families[i], .mark = 51820};
    guard.address = address;
    guard.address_count = MANY;
    kdp_status status = kdp_netfilter_add_guard(&guard, &error);
    if (status == KDP_UNSUPPORTED) {
      free(address);
      closed(netlink);
      skip();
    }
    assert_int_equal(status, KDP_OK);
    assert_int_equal(kdp_netfilter_add_guard(&guard, &error), KDP_SYSTEM);
    assert_int_equal(error.code, EEXIST);
    assert_int_equal(kdp_netfilter_delete_table("kape-test", (kdp_family)families[i], &error), KDP_OK);
    assert_int_equal(kdp_netfilter_delete_table("kape-test", (kdp_family)families[i], &error), KDP_NOT_FOUND);
  }
  free(address);
  closed(netlink);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_route_is_read_as_it_was_written),
      cmocka_unit_test(a_link_is_read_as_it_was_written),
      cmocka_unit_test(a_port_that_leaves_a_bridge_is_no_link_that_is_gone),
      cmocka_unit_test(a_message_cut_anywhere_is_not_read_past_its_end),
      cmocka_unit_test(any_bytes_are_survived),
      cmocka_unit_test(what_does_not_fit_is_said_and_not_written),
      cmocka_unit_test(the_kernels_words_are_kept),
      cmocka_unit_test(links_are_found_and_changed),
      cmocka_unit_test(addresses_come_and_go),
      cmocka_unit_test(routes_come_and_go_in_any_table),
      cmocka_unit_test(the_route_depends_on_the_mark),
      cmocka_unit_test(changes_are_told),
      cmocka_unit_test(guard_rules_come_and_go_as_one),
  };
  return cmocka_run_group_tests_name("netlink", tests, enter_namespace, NULL);
}
