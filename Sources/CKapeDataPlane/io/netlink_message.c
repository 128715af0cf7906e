#include "io/netlink_message.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "core/bytes.h"

enum { HEADER = sizeof(struct nlmsghdr), ATTRIBUTE = sizeof(struct nlattr), RECEIVE_SIZE = 65536 };

static size_t padded(size_t size) {
  return (size + 3) & ~(size_t)3;
}

/* ---- Building ---- */

kdp_netlink_builder kdp_netlink_builder_make(void *bytes, size_t capacity) {
  return (kdp_netlink_builder){.bytes = bytes, .capacity = capacity};
}

static uint8_t *room(kdp_netlink_builder *builder, size_t size) {
  if (builder->failed || builder->capacity - builder->size < padded(size)) {
    builder->failed = true;
    return NULL;
  }
  uint8_t *at = builder->bytes + builder->size;
  memset(at, 0, padded(size));
  builder->size += padded(size);
  return at;
}

void kdp_netlink_begin(kdp_netlink_builder *builder, uint16_t type, uint16_t flags, uint32_t sequence,
                       const void *header, size_t header_size) {
  builder->message = builder->size;
  uint8_t *at = room(builder, HEADER + header_size);
  if (!at) return;
  struct nlmsghdr message = {.nlmsg_type = type, .nlmsg_flags = flags, .nlmsg_seq = sequence};
  memcpy(at, &message, HEADER);
  memcpy(at + HEADER, header, header_size);
}

void kdp_netlink_end(kdp_netlink_builder *builder) {
  if (builder->failed) return;
  uint32_t length = (uint32_t)(builder->size - builder->message);
  memcpy(builder->bytes + builder->message, &length, sizeof length);
}

void kdp_netlink_put(kdp_netlink_builder *builder, uint16_t type, const void *value, size_t size) {
  if (size > UINT16_MAX - ATTRIBUTE) builder->failed = true;
  uint8_t *at = room(builder, ATTRIBUTE + size);
  if (!at) return;
  struct nlattr attribute = {.nla_len = (uint16_t)(ATTRIBUTE + size), .nla_type = type};
  memcpy(at, &attribute, ATTRIBUTE);
  if (size) memcpy(at + ATTRIBUTE, value, size);
}

void kdp_netlink_put_u32(kdp_netlink_builder *builder, uint16_t type, uint32_t value) {
  kdp_netlink_put(builder, type, &value, sizeof value);
}

void kdp_netlink_put_be32(kdp_netlink_builder *builder, uint16_t type, uint32_t value) {
  uint8_t bytes[4];
  kdp_store_be32(bytes, value);
  kdp_netlink_put(builder, type, bytes, sizeof bytes);
}

void kdp_netlink_put_text(kdp_netlink_builder *builder, uint16_t type, const char *text) {
  kdp_netlink_put(builder, type, text, strlen(text) + 1);
}

size_t kdp_netlink_nest(kdp_netlink_builder *builder, uint16_t type) {
  size_t nest = builder->size;
  kdp_netlink_put(builder, type | NLA_F_NESTED, NULL, 0);
  return nest;
}

void kdp_netlink_unnest(kdp_netlink_builder *builder, size_t nest) {
  size_t size = builder->size - nest;
  if (size > UINT16_MAX) builder->failed = true;
  if (builder->failed) return;
  uint16_t length = (uint16_t)size;
  memcpy(builder->bytes + nest, &length, sizeof length);
}

/* ---- Walking ---- */

bool kdp_netlink_next_attribute(kdp_netlink_attributes *attributes, kdp_netlink_attribute *attribute) {
  struct nlattr header;
  if (attributes->left < ATTRIBUTE) return false;
  memcpy(&header, attributes->at, ATTRIBUTE);
  if (header.nla_len < ATTRIBUTE || header.nla_len > attributes->left) return false;
  *attribute = (kdp_netlink_attribute){.type = header.nla_type & NLA_TYPE_MASK,
                                       .value = attributes->at + ATTRIBUTE,
                                       .size = header.nla_len - (size_t)ATTRIBUTE};
  size_t step = padded(header.nla_len);
  if (step > attributes->left) step = attributes->left;
  attributes->at += step;
  attributes->left -= step;
  return true;
}

uint32_t kdp_netlink_u32_of(const kdp_netlink_attribute *attribute) {
  uint32_t value = 0;
  if (attribute->size >= sizeof value) memcpy(&value, attribute->value, sizeof value);
  return value;
}

void kdp_netlink_text_of(const kdp_netlink_attribute *attribute, char *text, size_t capacity) {
  size_t size = attribute->size < capacity - 1 ? attribute->size : capacity - 1;
  memcpy(text, attribute->value, size);
  text[size] = 0;
}

size_t kdp_netlink_message_at(const uint8_t *bytes, size_t size, struct nlmsghdr *header, const uint8_t **payload,
                              size_t *payload_size) {
  if (size < HEADER) return 0;
  memcpy(header, bytes, HEADER);
  if (header->nlmsg_len < HEADER || header->nlmsg_len > size) return 0;
  *payload = bytes + HEADER;
  *payload_size = header->nlmsg_len - (size_t)HEADER;
  size_t step = padded(header->nlmsg_len);
  return step < size ? step : size;
}

bool kdp_netlink_error_of(const struct nlmsghdr *header, const uint8_t *payload, size_t payload_size,
                          kdp_netlink_error *error) {
  *error = (kdp_netlink_error){0};
  struct nlmsgerr answer;
  if (payload_size < sizeof answer) return false;
  memcpy(&answer, payload, sizeof answer);
  if (answer.error > 0 || answer.error < -4095) return false; /* the kernel's range of errno values */
  error->code = -answer.error;
  if (!(header->nlmsg_flags & NLM_F_ACK_TLVS)) return true;
  size_t skip = sizeof answer;
  if (!(header->nlmsg_flags & NLM_F_CAPPED)) {
    if (answer.msg.nlmsg_len < HEADER) return true;
    skip += padded(answer.msg.nlmsg_len - (size_t)HEADER);
  }
  if (skip > payload_size) return true;
  kdp_netlink_attributes attributes = {payload + skip, payload_size - skip};
  kdp_netlink_attribute attribute;
  while (kdp_netlink_next_attribute(&attributes, &attribute))
    if (attribute.type == NLMSGERR_ATTR_MSG) kdp_netlink_text_of(&attribute, error->text, sizeof error->text);
  return true;
}

/* ---- The socket ---- */

kdp_status kdp_netlink_open_bus(int bus, uint32_t groups, bool nonblocking, kdp_netlink **netlink) {
  kdp_netlink *made = malloc(sizeof *made + RECEIVE_SIZE);
  if (!made) return KDP_NO_MEMORY;
  *made = (kdp_netlink){.capacity = RECEIVE_SIZE};
  made->fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | (nonblocking ? SOCK_NONBLOCK : 0), bus);
  struct sockaddr_nl address = {.nl_family = AF_NETLINK, .nl_groups = groups};
  if (made->fd < 0 || bind(made->fd, (struct sockaddr *)&address, sizeof address) < 0) {
    int code = errno;
    kdp_netlink_close(made);
    errno = code;
    return KDP_SYSTEM;
  }
  int on = 1;
  struct timeval deadline = {.tv_sec = 5};
  /* Niceties of newer kernels: refused, errors have no text and lists are longer. */
  (void)setsockopt(made->fd, SOL_NETLINK, NETLINK_EXT_ACK, &on, sizeof on);
  (void)setsockopt(made->fd, SOL_NETLINK, NETLINK_CAP_ACK, &on, sizeof on);
  (void)setsockopt(made->fd, SOL_NETLINK, NETLINK_GET_STRICT_CHK, &on, sizeof on);
  (void)setsockopt(made->fd, SOL_SOCKET, SO_RCVTIMEO, &deadline, sizeof deadline);
  *netlink = made;
  return KDP_OK;
}

void kdp_netlink_close(kdp_netlink *netlink) {
  if (!netlink) return;
  if (netlink->fd >= 0) close(netlink->fd);
  free(netlink);
}

int kdp_netlink_fd(const kdp_netlink *netlink) {
  return netlink->fd;
}

static kdp_status refused(kdp_netlink_error *error, int code) {
  *error = (kdp_netlink_error){.code = code};
  return KDP_SYSTEM;
}

kdp_status kdp_netlink_send(kdp_netlink *netlink, const kdp_netlink_builder *builder, kdp_netlink_error *error) {
  *error = (kdp_netlink_error){0};
  if (builder->failed) return KDP_INVALID_ARGUMENT;
  struct sockaddr_nl kernel = {.nl_family = AF_NETLINK};
  for (;;) {
    ssize_t sent =
        sendto(netlink->fd, builder->bytes, builder->size, 0, (const struct sockaddr *)&kernel, sizeof kernel);
    if (sent == (ssize_t)builder->size) return KDP_OK;
    if (sent >= 0) return refused(error, EMSGSIZE);
    if (errno != EINTR) return refused(error, errno);
  }
}

kdp_status kdp_netlink_receive(kdp_netlink *netlink, size_t *size, kdp_netlink_error *error) {
  for (;;) {
    struct sockaddr_nl from = {0};
    struct iovec vector = {netlink->bytes, netlink->capacity};
    struct msghdr message = {.msg_name = &from, .msg_namelen = sizeof from, .msg_iov = &vector, .msg_iovlen = 1};
    ssize_t got = recvmsg(netlink->fd, &message, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return refused(error, errno == EWOULDBLOCK ? ETIMEDOUT : errno);
    if (from.nl_pid != 0) continue; /* another process may send to this socket; only the kernel is believed */
    if (message.msg_flags & MSG_TRUNC) return refused(error, EMSGSIZE);
    *size = (size_t)got;
    return KDP_OK;
  }
}
