/* Wire messages (section 5.4 of the paper). Numbers are little endian. Every struct is made of bytes, so it can lie
   anywhere and a pointer into a packet may be cast to it once its size is known. */
#ifndef KDP_WIREGUARD_MESSAGES_H
#define KDP_WIREGUARD_MESSAGES_H

#include <assert.h>

#include "core/bytes.h"
#include "kdp/status.h"
#include "wireguard/spec.h"

/* The first four bytes: a type and three zero bytes, which is the type as a little-endian 32-bit number. */
typedef enum kdp_wg_message_type {
  KDP_WG_INITIATION = 1,
  KDP_WG_RESPONSE = 2,
  KDP_WG_COOKIE_REPLY = 3,
  KDP_WG_TRANSPORT = 4
} kdp_wg_message_type;

/* Both MACs end the messages of a handshake (section 5.4.4). */
typedef struct kdp_wg_macs {
  uint8_t mac1[KDP_WG_MAC_SIZE];
  uint8_t mac2[KDP_WG_MAC_SIZE];
} kdp_wg_macs;

/* Section 5.4.2, first message, initiator to responder.

   |  0  type = 1         |  4  sender           |
   |  8  ephemeral, 32 bytes                     |
   | 40  static, 32 bytes sealed + 16            |
   | 88  timestamp, 12 bytes sealed + 16         |
   |116  mac1, 16         |132  mac2, 16         |  148 */
typedef struct kdp_wg_initiation {
  uint8_t type[4];
  uint8_t sender[4];
  uint8_t ephemeral[KDP_WG_KEY_SIZE];
  uint8_t sealed_static[KDP_WG_KEY_SIZE + KDP_WG_TAG_SIZE];
  uint8_t sealed_timestamp[KDP_WG_TIMESTAMP_SIZE + KDP_WG_TAG_SIZE];
  kdp_wg_macs macs;
} kdp_wg_initiation;
static_assert(sizeof(kdp_wg_initiation) == 148, "section 5.4.2");
static_assert(offsetof(kdp_wg_initiation, ephemeral) == 8, "section 5.4.2");
static_assert(offsetof(kdp_wg_initiation, sealed_static) == 40, "section 5.4.2");
static_assert(offsetof(kdp_wg_initiation, sealed_timestamp) == 88, "section 5.4.2");
static_assert(offsetof(kdp_wg_initiation, macs) == 116, "section 5.4.2");

/* Section 5.4.3, second message, responder to initiator.

   |  0  type = 2         |  4  sender           |
   |  8  receiver         | 12  ephemeral, 32 ...|
   | 44  nothing, 0 bytes sealed + 16            |
   | 60  mac1, 16         | 76  mac2, 16         |  92 */
typedef struct kdp_wg_response {
  uint8_t type[4];
  uint8_t sender[4];
  uint8_t receiver[4];
  uint8_t ephemeral[KDP_WG_KEY_SIZE];
  uint8_t sealed_nothing[KDP_WG_TAG_SIZE];
  kdp_wg_macs macs;
} kdp_wg_response;
static_assert(sizeof(kdp_wg_response) == 92, "section 5.4.3");
static_assert(offsetof(kdp_wg_response, ephemeral) == 12, "section 5.4.3");
static_assert(offsetof(kdp_wg_response, sealed_nothing) == 44, "section 5.4.3");
static_assert(offsetof(kdp_wg_response, macs) == 60, "section 5.4.3");

/* Section 5.4.7, in place of an answer while under load.

   |  0  type = 3         |  4  receiver         |
   |  8  nonce, 24 bytes                         |
   | 32  cookie, 16 bytes sealed + 16            |  64 */
typedef struct kdp_wg_cookie_reply {
  uint8_t type[4];
  uint8_t receiver[4];
  uint8_t nonce[24];
  uint8_t sealed_cookie[KDP_WG_COOKIE_SIZE + KDP_WG_TAG_SIZE];
} kdp_wg_cookie_reply;
static_assert(sizeof(kdp_wg_cookie_reply) == 64, "section 5.4.7");
static_assert(offsetof(kdp_wg_cookie_reply, nonce) == 8, "section 5.4.7");
static_assert(offsetof(kdp_wg_cookie_reply, sealed_cookie) == 32, "section 5.4.7");

/* Section 5.4.6; the sealed packet with its tag follows.

   |  0  type = 4         |  4  receiver         |
   |  8  counter, 8 bytes                        |  16 */
typedef struct kdp_wg_transport_header {
  uint8_t type[4];
  uint8_t receiver[4];
  uint8_t counter[8];
} kdp_wg_transport_header;
static_assert(sizeof(kdp_wg_transport_header) == 16, "section 5.4.6");
static_assert(offsetof(kdp_wg_transport_header, counter) == 8, "section 5.4.6");

enum { KDP_WG_TRANSPORT_MIN_SIZE = sizeof(kdp_wg_transport_header) + KDP_WG_TAG_SIZE };

static inline void kdp_wg_transport_write(uint8_t *at, uint32_t receiver, uint64_t counter) {
  kdp_store_le32(at, KDP_WG_TRANSPORT);
  kdp_store_le32(at + 4, receiver);
  kdp_store_le64(at + 8, counter);
}

/* Type of a datagram whose size fits it: OK, TOO_SHORT, TOO_LONG or UNKNOWN_TYPE. */
static inline kdp_status kdp_wg_classify(const uint8_t *bytes, size_t size, kdp_wg_message_type *type) {
  if (size < 4) return KDP_TOO_SHORT;
  size_t wanted;
  switch (kdp_load_le32(bytes)) {
  case KDP_WG_TRANSPORT: *type = KDP_WG_TRANSPORT; return size < KDP_WG_TRANSPORT_MIN_SIZE ? KDP_TOO_SHORT : KDP_OK;
  case KDP_WG_INITIATION:
    *type = KDP_WG_INITIATION;
    wanted = sizeof(kdp_wg_initiation);
    break;
  case KDP_WG_RESPONSE:
    *type = KDP_WG_RESPONSE;
    wanted = sizeof(kdp_wg_response);
    break;
  case KDP_WG_COOKIE_REPLY:
    *type = KDP_WG_COOKIE_REPLY;
    wanted = sizeof(kdp_wg_cookie_reply);
    break;
  default: return KDP_UNKNOWN_TYPE;
  }
  return size < wanted ? KDP_TOO_SHORT : size > wanted ? KDP_TOO_LONG : KDP_OK;
}

#endif
