/* nf_tables over nfnetlink. Rules are lists of expressions that pass values through register 1 and end in a verdict;
   what is written here shows in `nft list ruleset` as the comment over each rule. */
#include "kdp/netfilter.h"

#include <errno.h>
#include <netinet/in.h> /* before the kernel's headers, which then leave out what it has */

#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/rtnetlink.h>
#include <stdlib.h>
#include <string.h>

#include "core/bytes.h"
#include "io/netlink_message.h"

enum { NAME_MAX_SIZE = 31, INTERFACE_SIZE = 16, FIXED_BYTES = 4096, BYTES_PER_ADDRESS = 1024 };

/* Where the destination address is in each family's header, and where priorities lie on the hooks. */
enum { IPV4_DESTINATION = 16, IPV6_DESTINATION = 24, PRIORITY_RAW = -300, PRIORITY_MANGLE = -150 };

static const char GUARD[] = "guard", KEEP[] = "keep-mark", RESTORE[] = "restore-mark";

typedef struct batch {
  kdp_netlink *netlink;
  kdp_netlink_builder builder;
  uint8_t family; /* NFPROTO_* */
  const char *table;
  uint32_t first, last; /* sequence numbers of what will be acknowledged */
} batch;

static void message(batch *to, uint16_t type, uint16_t flags) {
  struct nfgenmsg header = {.nfgen_family = to->family, .version = NFNETLINK_V0};
  to->last = ++to->netlink->sequence;
  kdp_netlink_begin(&to->builder, (uint16_t)(NFNL_SUBSYS_NFTABLES << 8 | type), NLM_F_REQUEST | NLM_F_ACK | flags,
                    to->last, &header, sizeof header);
}

/* The marks round a batch: all of what is between them happens, or none. */
static void boundary(batch *to, uint16_t type) {
  struct nfgenmsg header = {.version = NFNETLINK_V0, .res_id = htons(NFNL_SUBSYS_NFTABLES)};
  kdp_netlink_begin(&to->builder, type, NLM_F_REQUEST, ++to->netlink->sequence, &header, sizeof header);
  kdp_netlink_end(&to->builder);
}

/* ---- Expressions ---- */

typedef struct expression {
  size_t element, data;
} expression;

static expression expression_begin(batch *to, const char *name) {
  expression made = {.element = kdp_netlink_nest(&to->builder, NFTA_LIST_ELEM)};
  kdp_netlink_put_text(&to->builder, NFTA_EXPR_NAME, name);
  made.data = kdp_netlink_nest(&to->builder, NFTA_EXPR_DATA);
  return made;
}

static void expression_end(batch *to, expression made) {
  kdp_netlink_unnest(&to->builder, made.data);
  kdp_netlink_unnest(&to->builder, made.element);
}

static void meta_load(batch *to, uint32_t key) {
  expression made = expression_begin(to, "meta");
  kdp_netlink_put_be32(&to->builder, NFTA_META_KEY, key);
  kdp_netlink_put_be32(&to->builder, NFTA_META_DREG, NFT_REG_1);
  expression_end(to, made);
}

static void meta_store(batch *to, uint32_t key) {
  expression made = expression_begin(to, "meta");
  kdp_netlink_put_be32(&to->builder, NFTA_META_KEY, key);
  kdp_netlink_put_be32(&to->builder, NFTA_META_SREG, NFT_REG_1);
  expression_end(to, made);
}

static void ct_mark(batch *to, uint16_t direction /* NFTA_CT_DREG or NFTA_CT_SREG */) {
  expression made = expression_begin(to, "ct");
  kdp_netlink_put_be32(&to->builder, NFTA_CT_KEY, NFT_CT_MARK);
  kdp_netlink_put_be32(&to->builder, direction, NFT_REG_1);
  expression_end(to, made);
}

static void payload_load(batch *to, uint32_t offset, uint32_t size) {
  expression made = expression_begin(to, "payload");
  kdp_netlink_put_be32(&to->builder, NFTA_PAYLOAD_DREG, NFT_REG_1);
  kdp_netlink_put_be32(&to->builder, NFTA_PAYLOAD_BASE, NFT_PAYLOAD_NETWORK_HEADER);
  kdp_netlink_put_be32(&to->builder, NFTA_PAYLOAD_OFFSET, offset);
  kdp_netlink_put_be32(&to->builder, NFTA_PAYLOAD_LEN, size);
  expression_end(to, made);
}

static void fib_source_type(batch *to) {
  expression made = expression_begin(to, "fib");
  kdp_netlink_put_be32(&to->builder, NFTA_FIB_DREG, NFT_REG_1);
  kdp_netlink_put_be32(&to->builder, NFTA_FIB_RESULT, NFT_FIB_RESULT_ADDRTYPE);
  kdp_netlink_put_be32(&to->builder, NFTA_FIB_FLAGS, NFTA_FIB_F_SADDR);
  expression_end(to, made);
}

static void compare(batch *to, uint32_t operation, const void *value, size_t size) {
  expression made = expression_begin(to, "cmp");
  kdp_netlink_put_be32(&to->builder, NFTA_CMP_SREG, NFT_REG_1);
  kdp_netlink_put_be32(&to->builder, NFTA_CMP_OP, operation);
  size_t data = kdp_netlink_nest(&to->builder, NFTA_CMP_DATA);
  kdp_netlink_put(&to->builder, NFTA_DATA_VALUE, value, size);
  kdp_netlink_unnest(&to->builder, data);
  expression_end(to, made);
}

static void drop(batch *to) {
  expression made = expression_begin(to, "immediate");
  kdp_netlink_put_be32(&to->builder, NFTA_IMMEDIATE_DREG, NFT_REG_VERDICT);
  size_t data = kdp_netlink_nest(&to->builder, NFTA_IMMEDIATE_DATA);
  size_t verdict = kdp_netlink_nest(&to->builder, NFTA_DATA_VERDICT);
  kdp_netlink_put_be32(&to->builder, NFTA_VERDICT_CODE, NF_DROP);
  kdp_netlink_unnest(&to->builder, verdict);
  kdp_netlink_unnest(&to->builder, data);
  expression_end(to, made);
}

/* ---- Table, chains, rules ---- */

static void add_table(batch *to) {
  message(to, NFT_MSG_NEWTABLE, NLM_F_CREATE | NLM_F_EXCL);
  kdp_netlink_put_text(&to->builder, NFTA_TABLE_NAME, to->table);
  kdp_netlink_end(&to->builder);
}

static void add_chain(batch *to, const char *name, uint32_t hook, int32_t priority) {
  message(to, NFT_MSG_NEWCHAIN, NLM_F_CREATE);
  kdp_netlink_put_text(&to->builder, NFTA_CHAIN_TABLE, to->table);
  kdp_netlink_put_text(&to->builder, NFTA_CHAIN_NAME, name);
  size_t hooks = kdp_netlink_nest(&to->builder, NFTA_CHAIN_HOOK);
  kdp_netlink_put_be32(&to->builder, NFTA_HOOK_HOOKNUM, hook);
  kdp_netlink_put_be32(&to->builder, NFTA_HOOK_PRIORITY, (uint32_t)priority);
  kdp_netlink_unnest(&to->builder, hooks);
  kdp_netlink_put_text(&to->builder, NFTA_CHAIN_TYPE, "filter");
  kdp_netlink_end(&to->builder);
}

static size_t rule_begin(batch *to, const char *chain) {
  message(to, NFT_MSG_NEWRULE, NLM_F_CREATE | NLM_F_APPEND);
  kdp_netlink_put_text(&to->builder, NFTA_RULE_TABLE, to->table);
  kdp_netlink_put_text(&to->builder, NFTA_RULE_CHAIN, chain);
  return kdp_netlink_nest(&to->builder, NFTA_RULE_EXPRESSIONS);
}

static void rule_end(batch *to, size_t expressions) {
  kdp_netlink_unnest(&to->builder, expressions);
  kdp_netlink_end(&to->builder);
}

/* iifname != INTERFACE ip daddr ADDRESS fib saddr type != local drop */
static void add_address_rule(batch *to, const char *interface, const kdp_prefix *address) {
  char name[INTERFACE_SIZE] = {0};
  uint32_t local = RTN_LOCAL;
  bool ipv4 = address->family == KDP_FAMILY_IPV4;
  memcpy(name, interface, strlen(interface));
  size_t rule = rule_begin(to, GUARD);
  meta_load(to, NFT_META_IIFNAME);
  compare(to, NFT_CMP_NEQ, name, sizeof name);
  payload_load(to, ipv4 ? IPV4_DESTINATION : IPV6_DESTINATION, ipv4 ? 4 : 16);
  compare(to, NFT_CMP_EQ, address->bytes, ipv4 ? 4 : 16);
  fib_source_type(to);
  compare(to, NFT_CMP_NEQ, &local, sizeof local);
  drop(to);
  rule_end(to, rule);
}

static void match_udp(batch *to) {
  uint8_t protocol = IPPROTO_UDP;
  meta_load(to, NFT_META_L4PROTO);
  compare(to, NFT_CMP_EQ, &protocol, sizeof protocol);
}

/* meta l4proto udp meta mark MARK ct mark set meta mark */
static void add_keep_rule(batch *to, uint32_t mark) {
  size_t rule = rule_begin(to, KEEP);
  match_udp(to);
  meta_load(to, NFT_META_MARK);
  compare(to, NFT_CMP_EQ, &mark, sizeof mark);
  meta_load(to, NFT_META_MARK);
  ct_mark(to, NFTA_CT_SREG);
  rule_end(to, rule);
}

/* meta l4proto udp meta mark set ct mark */
static void add_restore_rule(batch *to) {
  size_t rule = rule_begin(to, RESTORE);
  match_udp(to);
  ct_mark(to, NFTA_CT_DREG);
  meta_store(to, NFT_META_MARK);
  rule_end(to, rule);
}

/* ---- Batches ---- */

static kdp_status batch_begin(batch *to, const char *table, uint8_t family, size_t capacity, kdp_netlink_error *error) {
  *to = (batch){.family = family == KDP_FAMILY_IPV4 ? NFPROTO_IPV4 : NFPROTO_IPV6, .table = table};
  kdp_status status = kdp_netlink_open_bus(NETLINK_NETFILTER, 0, false, &to->netlink);
  if (status != KDP_OK) {
    error->code = status == KDP_SYSTEM ? errno : 0;
    return status == KDP_SYSTEM && errno == EPROTONOSUPPORT ? KDP_UNSUPPORTED : status;
  }
  void *bytes = malloc(capacity);
  if (!bytes) {
    kdp_netlink_close(to->netlink);
    return KDP_NO_MEMORY;
  }
  to->builder = kdp_netlink_builder_make(bytes, capacity);
  boundary(to, NFNL_MSG_BATCH_BEGIN);
  to->first = to->netlink->sequence + 1;
  return KDP_OK;
}

/* The kernel has worked through a batch when the send returns; acknowledgements wait in the socket, an error ends them.
 */
static kdp_status collect(batch *to, kdp_netlink_error *error) {
  uint32_t left = to->last - to->first + 1;
  while (left > 0) {
    size_t size;
    kdp_status status = kdp_netlink_receive(to->netlink, &size, error);
    if (status != KDP_OK) return status;
    const uint8_t *at = to->netlink->bytes, *end = at + size;
    while (at < end && left > 0) {
      kdp_netlink_record record;
      size_t used = kdp_netlink_decode(at, (size_t)(end - at), &record);
      if (used == 0) break;
      at += used;
      if (record.kind != KDP_NETLINK_FAILED) continue;
      if (record.error.code) {
        *error = record.error;
        return KDP_SYSTEM;
      }
      if (record.sequence - to->first <= to->last - to->first) left--;
    }
  }
  return KDP_OK;
}

static kdp_status batch_commit(batch *to, kdp_netlink_error *error) {
  boundary(to, NFNL_MSG_BATCH_END);
  kdp_status status = kdp_netlink_send(to->netlink, &to->builder, error);
  if (status == KDP_OK) status = collect(to, error);
  free(to->builder.bytes);
  kdp_netlink_close(to->netlink);
  return status;
}

kdp_status kdp_netfilter_add_guard(const kdp_netfilter_guard *guard, kdp_netlink_error *error) {
  *error = (kdp_netlink_error){0};
  if (strlen(guard->table) > NAME_MAX_SIZE || strlen(guard->interface) >= INTERFACE_SIZE) return KDP_INVALID_ARGUMENT;
  if (guard->family != KDP_FAMILY_IPV4 && guard->family != KDP_FAMILY_IPV6) return KDP_INVALID_ARGUMENT;
  batch to;
  size_t capacity = FIXED_BYTES + (size_t)guard->address_count * BYTES_PER_ADDRESS;
  kdp_status status = batch_begin(&to, guard->table, guard->family, capacity, error);
  if (status != KDP_OK) return status;
  add_table(&to);
  add_chain(&to, GUARD, NF_INET_PRE_ROUTING, PRIORITY_RAW);
  add_chain(&to, RESTORE, NF_INET_PRE_ROUTING, PRIORITY_MANGLE);
  add_chain(&to, KEEP, NF_INET_POST_ROUTING, PRIORITY_MANGLE);
  for (uint32_t i = 0; i < guard->address_count; i++)
    if (guard->address[i].family == guard->family) add_address_rule(&to, guard->interface, &guard->address[i]);
  add_keep_rule(&to, guard->mark);
  add_restore_rule(&to);
  status = batch_commit(&to, error);
  /* ENOENT: an expression or a chain type that this kernel does not have; EOPNOTSUPP, EPROTONOSUPPORT: no nf_tables. */
  bool missing = error->code == ENOENT || error->code == EOPNOTSUPP || error->code == EPROTONOSUPPORT;
  return status == KDP_SYSTEM && missing ? KDP_UNSUPPORTED : status;
}

kdp_status kdp_netfilter_delete_table(const char *table, kdp_family family, kdp_netlink_error *error) {
  *error = (kdp_netlink_error){0};
  if (strlen(table) > NAME_MAX_SIZE) return KDP_INVALID_ARGUMENT;
  batch to;
  kdp_status status = batch_begin(&to, table, (uint8_t)family, FIXED_BYTES, error);
  if (status != KDP_OK) return status;
  message(&to, NFT_MSG_DELTABLE, 0);
  kdp_netlink_put_text(&to.builder, NFTA_TABLE_NAME, table);
  kdp_netlink_end(&to.builder);
  status = batch_commit(&to, error);
  return status == KDP_SYSTEM && error->code == ENOENT ? KDP_NOT_FOUND : status;
}
