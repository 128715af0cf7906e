#include "kdp/socket_address.h"

#include <string.h>

socklen_t kdp_socket_address_write(const kdp_address *address, kdp_socket_address *out) {
  switch (address->family) {
  case KDP_FAMILY_IPV4:
    out->ipv4 = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons(address->port)};
    memcpy(&out->ipv4.sin_addr, address->bytes, 4);
    return sizeof out->ipv4;
  case KDP_FAMILY_IPV6:
    out->ipv6 = (struct sockaddr_in6){
        .sin6_family = AF_INET6, .sin6_port = htons(address->port), .sin6_scope_id = address->scope};
    memcpy(&out->ipv6.sin6_addr, address->bytes, 16);
    return sizeof out->ipv6;
  default: return 0;
  }
}

void kdp_socket_address_read(const kdp_socket_address *in, kdp_address *address) {
  *address = (kdp_address){0};
  if (in->any.sa_family == AF_INET) {
    address->family = KDP_FAMILY_IPV4;
    address->port = ntohs(in->ipv4.sin_port);
    memcpy(address->bytes, &in->ipv4.sin_addr, 4);
  } else if (in->any.sa_family == AF_INET6) {
    address->family = KDP_FAMILY_IPV6;
    address->port = ntohs(in->ipv6.sin6_port);
    if (IN6_IS_ADDR_LINKLOCAL(&in->ipv6.sin6_addr)) address->scope = in->ipv6.sin6_scope_id;
    memcpy(address->bytes, &in->ipv6.sin6_addr, 16);
  }
}
