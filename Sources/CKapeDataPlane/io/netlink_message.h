/* Netlink messages (RFC 3549, netlink(7)): a bounded builder, a bounded walk, and one exchange with the kernel. */
#ifndef KDP_IO_NETLINK_MESSAGE_H
#define KDP_IO_NETLINK_MESSAGE_H

#include <linux/netlink.h>

#include "kdp/netlink.h"

/* Requests are put together in memory of the caller's; what does not fit sets `failed`, to be checked once at the end.
   Messages and attributes are padded to 4 bytes with zeros. */
typedef struct kdp_netlink_builder {
  uint8_t *bytes;
  size_t size, capacity;
  size_t message; /* offset of the message being built */
  bool failed;
} kdp_netlink_builder;

kdp_netlink_builder kdp_netlink_builder_make(void *bytes, size_t capacity);
/* Begins a message with its family header (ifinfomsg, rtmsg, nfgenmsg, …). */
void kdp_netlink_begin(kdp_netlink_builder *builder, uint16_t type, uint16_t flags, uint32_t sequence,
                       const void *header, size_t header_size);
void kdp_netlink_end(kdp_netlink_builder *builder);
void kdp_netlink_put(kdp_netlink_builder *builder, uint16_t type, const void *value, size_t size);
void kdp_netlink_put_u32(kdp_netlink_builder *builder, uint16_t type, uint32_t value);    /* host byte order */
void kdp_netlink_put_be32(kdp_netlink_builder *builder, uint16_t type, uint32_t value);   /* as nfnetlink has it */
void kdp_netlink_put_text(kdp_netlink_builder *builder, uint16_t type, const char *text); /* with its final zero */
size_t kdp_netlink_nest(kdp_netlink_builder *builder, uint16_t type); /* returns what unnest takes */
void kdp_netlink_unnest(kdp_netlink_builder *builder, size_t nest);

/* A walk over attributes. */
typedef struct kdp_netlink_attributes {
  const uint8_t *at;
  size_t left;
} kdp_netlink_attributes;
typedef struct kdp_netlink_attribute {
  uint16_t type; /* without the nested and byte order flags */
  const uint8_t *value;
  size_t size;
} kdp_netlink_attribute;
bool kdp_netlink_next_attribute(kdp_netlink_attributes *attributes, kdp_netlink_attribute *attribute);
/* 0 when the attribute is too short. */
uint32_t kdp_netlink_u32_of(const kdp_netlink_attribute *attribute);
void kdp_netlink_text_of(const kdp_netlink_attribute *attribute, char *text, size_t capacity);

/* One message at the front of `bytes`. Returns its padded size, 0 when it is cut off. */
size_t kdp_netlink_message_at(const uint8_t *bytes, size_t size, struct nlmsghdr *header, const uint8_t **payload,
                              size_t *payload_size);
/* NLMSG_ERROR: the code and the extended acknowledgement's text. */
bool kdp_netlink_error_of(const struct nlmsghdr *header, const uint8_t *payload, size_t payload_size,
                          kdp_netlink_error *error);

/* The message as a record; one that contradicts itself is KDP_NETLINK_OTHER: the next one may be sound. */
void kdp_netlink_decode_message(const struct nlmsghdr *header, const uint8_t *payload, size_t payload_size,
                                kdp_netlink_record *record);

struct kdp_netlink {
  int fd;
  uint32_t sequence;
  size_t capacity;
  uint8_t bytes[]; /* for what is received */
};

kdp_status kdp_netlink_open_bus(int bus, uint32_t groups, bool nonblocking, kdp_netlink **netlink);
/* Sends what was built. INVALID_ARGUMENT when it did not fit. */
kdp_status kdp_netlink_send(kdp_netlink *netlink, const kdp_netlink_builder *builder, kdp_netlink_error *error);
/* One datagram from the kernel into netlink->bytes; its size in *size. */
kdp_status kdp_netlink_receive(kdp_netlink *netlink, size_t *size, kdp_netlink_error *error);

#endif
