/* kdp/socket_address.h: kdp_address to and from the kernel's socket addresses. */
#ifndef KDP_SOCKET_ADDRESS_H
#define KDP_SOCKET_ADDRESS_H
#include <netinet/in.h>

#include "base.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef union kdp_socket_address {
  struct sockaddr any;
  struct sockaddr_in ipv4;
  struct sockaddr_in6 ipv6;
} kdp_socket_address;

/* Returns the size of the socket address; 0 when the family is none. */
socklen_t kdp_socket_address_write(const kdp_address *address, kdp_socket_address *out) KDP_NONNULL;
/* Families other than the two give KDP_FAMILY_NONE. Scope only where the kernel needs it (link-local). */
void kdp_socket_address_read(const kdp_socket_address *in, kdp_address *address) KDP_NONNULL;

#ifdef __cplusplus
}
#endif
#endif
