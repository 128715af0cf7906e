/* kdp/base.h: the types that every other header of the data plane stands on. */
#ifndef KDP_BASE_H
#define KDP_BASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What the compiler can check for us. */
#define KDP_MUST_USE __attribute__((warn_unused_result))
#define KDP_NONNULL __attribute__((nonnull))

enum { KDP_KEY_SIZE = 32 };

/* An IP address with a port. Plain data: copy it, zero it, compare it with kdp_address_equal. */
typedef enum kdp_family { KDP_FAMILY_NONE = 0, KDP_FAMILY_IPV4 = 4, KDP_FAMILY_IPV6 = 6 } kdp_family;

typedef struct kdp_address {
  uint8_t family;    /* a kdp_family; KDP_FAMILY_NONE: unspecified */
  uint8_t reserved;  /* zero */
  uint16_t port;     /* host byte order */
  uint32_t scope;    /* IPv6 scope id (an interface index), else 0 */
  uint8_t bytes[16]; /* network byte order; IPv4 in the first four, the rest zero */
} kdp_address;

/* Equal in every field. A scope of a global address counts too: io/ leaves it 0 there. */
bool kdp_address_equal(const kdp_address *a, const kdp_address *b) KDP_NONNULL;

/* An IP prefix. Bits of `bytes` beyond `length` are zero (kdp_prefix_normalise sees to that). */
typedef struct kdp_prefix {
  uint8_t family;    /* KDP_FAMILY_IPV4 or KDP_FAMILY_IPV6 */
  uint8_t length;    /* 0 to 32, 0 to 128 */
  uint8_t bytes[16]; /* network byte order */
} kdp_prefix;

/* Clears the host bits; false when the family or the length is out of range. */
bool kdp_prefix_normalise(kdp_prefix *prefix) KDP_NONNULL;

/* A link is a UDP socket or one TCP connection, numbered by the I/O layer, not reused while an engine knows it. */
typedef uint32_t kdp_link;
typedef enum kdp_link_kind { KDP_LINK_DATAGRAM, KDP_LINK_STREAM } kdp_link_kind;

/* Where a datagram came from or goes to. `local` unspecified and `ifindex` 0: the kernel chooses. */
typedef struct kdp_path {
  kdp_link link;
  uint32_t ifindex;
  kdp_address remote, local; /* local.port is not used */
} kdp_path;

bool kdp_path_equal(const kdp_path *a, const kdp_path *b) KDP_NONNULL;

/* What a host lends to an engine. All of an engine's memory comes from `allocate` (NULL: none left), at creation and
   when a peer is added; memory is not assumed to be zero. `random` fills from a cryptographic source. `keylog` may be
   NULL; a line has no newline and is not terminated. */
typedef struct kdp_host {
  void *context;
  void *(*allocate)(void *context, size_t size);
  void (*release)(void *context, void *memory, size_t size);
  void (*random)(void *context, void *bytes, size_t size);
  void (*keylog)(void *context, const char *line, size_t size);
} kdp_host;

/* A host over malloc, free and getrandom(2), without key log. */
kdp_host kdp_host_default(void);

#ifdef __cplusplus
}
#endif
#endif
