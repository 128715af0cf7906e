/* The virtio-net header in front of each TUN read and write (virtio 1.2, section 5.1.6; the legacy 10-byte form, host
   byte order). Declared here so that nothing but io/ includes a Linux header. */
#ifndef KDP_OFFLOAD_VIRTIO_H
#define KDP_OFFLOAD_VIRTIO_H
#include "kdp/base.h"

enum { KDP_VIRTIO_SIZE = 10 };
enum { KDP_VIRTIO_NEEDS_CSUM = 1, KDP_VIRTIO_DATA_VALID = 2 };
enum {
  KDP_VIRTIO_GSO_NONE = 0,
  KDP_VIRTIO_GSO_TCPV4 = 1,
  KDP_VIRTIO_GSO_TCPV6 = 4,
  KDP_VIRTIO_GSO_UDP_L4 = 5,
  KDP_VIRTIO_GSO_ECN = 0x80
};

typedef struct kdp_virtio {
  uint8_t flags, gso_type;
  uint16_t header_size; /* of all headers to the payload */
  uint16_t gso_size;    /* payload bytes of a segment */
  uint16_t csum_start, csum_offset;
} kdp_virtio;
_Static_assert(sizeof(kdp_virtio) == KDP_VIRTIO_SIZE, "the header is ten bytes on the descriptor");
#endif
