#include <string.h>

#include "kdp/base.h"

bool kdp_address_equal(const kdp_address *a, const kdp_address *b) {
  return a->family == b->family && a->port == b->port && a->scope == b->scope && memcmp(a->bytes, b->bytes, 16) == 0;
}

bool kdp_path_equal(const kdp_path *a, const kdp_path *b) {
  return a->link == b->link && a->ifindex == b->ifindex && kdp_address_equal(&a->remote, &b->remote) &&
         kdp_address_equal(&a->local, &b->local);
}

bool kdp_prefix_normalise(kdp_prefix *prefix) {
  unsigned bits = prefix->family == KDP_FAMILY_IPV4 ? 32 : prefix->family == KDP_FAMILY_IPV6 ? 128 : 0;
  if (bits == 0 || prefix->length > bits) return false;
  unsigned whole = prefix->length / 8, part = prefix->length % 8;
  if (part != 0) {
    prefix->bytes[whole] &= (uint8_t)(0xff00 >> part);
    whole++;
  }
  memset(prefix->bytes + whole, 0, sizeof prefix->bytes - whole);
  return true;
}
