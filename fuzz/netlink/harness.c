/* What arrives on an rtnetlink socket, taken as a datagram of any bytes, and built messages read back. */
#include "io/netlink_message.h"
#include "support/script.h"

static bool is_terminated(const char *text, size_t size) {
  return memchr(text, 0, size) != NULL;
}

static void hold(const kdp_netlink_record *record) {
  static const kdp_netlink_record none;
  CHECK(is_terminated(record->link.name, sizeof record->link.name));
  CHECK(is_terminated(record->link.kind, sizeof record->link.kind));
  CHECK(is_terminated(record->error.text, sizeof record->error.text));
  CHECK(record->error.code >= 0 && record->error.code <= 4095);
  CHECK(record->route.destination.length <= 128 && record->address.prefix.length <= 128);
  CHECK(record->rule.suppress_prefix >= 0 || record->kind == KDP_NETLINK_RULE);
  /* What a record is not about is zero. */
  if (record->kind != KDP_NETLINK_LINK) CHECK(memcmp(&record->link, &none.link, sizeof none.link) == 0);
  if (record->kind != KDP_NETLINK_ADDRESS) CHECK(memcmp(&record->address, &none.address, sizeof none.address) == 0);
  if (record->kind != KDP_NETLINK_ROUTE) CHECK(memcmp(&record->route, &none.route, sizeof none.route) == 0);
  if (record->kind != KDP_NETLINK_RULE) CHECK(memcmp(&record->rule, &none.rule, sizeof none.rule) == 0);
}

/* Attributes that fit are read back as they were put; what does not fit is said. */
static void build(const uint8_t *bytes, size_t size) {
  script s = {bytes, bytes + size};
  uint8_t room[256], header[4] = {0}, values[32][8];
  uint16_t types[32];
  size_t sizes[32], count = 0, capacity = script_u8(&s);
  kdp_netlink_builder builder = kdp_netlink_builder_make(room, capacity);
  kdp_netlink_begin(&builder, 1, 0, 1, header, sizeof header);
  while (count < 32 && script_left(&s) > 0 && !builder.failed) {
    sizes[count] = script_u8(&s) % 9;
    types[count] = script_u8(&s);
    for (size_t i = 0; i < sizes[count]; i++)
      values[count][i] = script_u8(&s);
    kdp_netlink_put(&builder, types[count], values[count], sizes[count]);
    count++;
  }
  kdp_netlink_end(&builder);
  CHECK(builder.size <= capacity);
  if (builder.failed) return;
  struct nlmsghdr message;
  const uint8_t *payload;
  size_t payload_size;
  CHECK(kdp_netlink_message_at(room, builder.size, &message, &payload, &payload_size) == builder.size);
  kdp_netlink_attributes attributes = {payload + sizeof header, payload_size - sizeof header};
  kdp_netlink_attribute attribute;
  for (size_t i = 0; i < count; i++) {
    CHECK(kdp_netlink_next_attribute(&attributes, &attribute));
    CHECK(attribute.type == types[i] && attribute.size == sizes[i]);
    CHECK(memcmp(attribute.value, values[i], sizes[i]) == 0);
  }
  CHECK(!kdp_netlink_next_attribute(&attributes, &attribute));
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
  size_t at = 0;
  while (at < size) {
    kdp_netlink_record record;
    size_t used = kdp_netlink_decode(bytes + at, size - at, &record);
    CHECK(used <= size - at);
    if (used == 0) break;
    hold(&record);
    at += used;
  }
  build(bytes, size);
  return 0;
}
