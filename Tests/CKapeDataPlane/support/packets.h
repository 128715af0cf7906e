/* Inner packets for tests, and what a kernel does with a super-packet: written the slow and plain way, with nothing of
   the data plane in it, so that it can judge the data plane. */
#ifndef KDP_TEST_PACKETS_H
#define KDP_TEST_PACKETS_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "offload/virtio.h"

enum { PACKET_MOST = 66000 };

typedef struct packet_form {
  uint8_t version;  /* 4 or 6 */
  uint8_t protocol; /* 6, 17; others: the payload follows the IP header */
  uint8_t tos, ttl;
  uint16_t id;                 /* IPv4 */
  bool df;                     /* IPv4 */
  uint32_t flow_label;         /* IPv6 */
  uint8_t ip_options;          /* bytes, a multiple of 4 */
  uint8_t extension_size;      /* IPv6: bytes of destination options, a multiple of 8 */
  uint8_t source, destination; /* last byte of the addresses */
  uint16_t source_port, destination_port;
  uint32_t sequence, acknowledgement;
  uint16_t window, urgent;
  uint8_t flags;       /* TCP */
  uint8_t tcp_options; /* bytes, a multiple of 4 */
  uint64_t option_seed;
  uint32_t payload; /* bytes */
  uint64_t payload_seed;
  bool no_checksum; /* UDP */
} packet_form;

/* Writes the whole packet, all checksums right; returns its size. */
size_t packet_write(const packet_form *form, uint8_t *to);

/* Plain arithmetic on a finished packet. */
uint16_t packet_sum(const uint8_t *bytes, size_t size,
                    uint32_t start);            /* RFC 1071, big-endian words, not complemented */
size_t packet_transport(const uint8_t *packet); /* offset of the transport header; one extension header is passed */
size_t packet_headers(const uint8_t *packet);   /* bytes of all headers of a TCP or UDP packet */
uint8_t packet_protocol(const uint8_t *packet); /* behind an extension header */
bool packet_checksums_right(const uint8_t *packet, size_t size);
void packet_fix_checksums(uint8_t *packet, size_t size);
void packet_fix_ip_checksum(uint8_t *packet); /* of IPv4 without options */
/* Puts the sum of the pseudo header where the checksum was, and writes the header that asks for completion. */
kdp_virtio packet_make_partial(uint8_t *packet, size_t size, uint8_t gso_type, uint16_t gso_size);

/* Cuts a super-packet as Linux does (inet_gso_segment, tcp_gso_segment, __udp_gso_segment): calls `give` for each
   segment, in order. Without GSO: once, with the checksum completed if asked for. Fails the test on a header that Linux
   would refuse. */
typedef void packet_give(void *context, const uint8_t *segment, size_t size);
void kernel_segment(const kdp_virtio *header, const uint8_t *packet, size_t size, packet_give *give, void *context);
#endif
