/* kdp/resolve.h: looks up a name at given DNS servers over sockets with a mark, so that the question leaves by the
   underlay also while a full tunnel is up or its own DNS is installed. Linux. RFC 1035, over UDP, and over TCP when an
   answer was cut. */
#ifndef KDP_RESOLVE_H
#define KDP_RESOLVE_H

#include "base.h"
#include "status.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { KDP_RESOLVE_ADDRESSES_MAX = 32 };

typedef struct kdp_resolve_config {
  const kdp_address *server; /* asked in turn; port 0: 53 */
  uint32_t server_count;
  uint32_t fwmark;     /* 0: none */
  uint32_t timeout_ms; /* for one question to one server; 0: 2,000 */
  uint32_t rounds;     /* how often the list of servers is gone through; 0: 2 */
} kdp_resolve_config;

typedef struct kdp_resolve_answer {
  kdp_address address[KDP_RESOLVE_ADDRESSES_MAX]; /* IPv6 after IPv4, in the server's order; port 0 */
  uint32_t count;
  int code;     /* errno of the last failure to ask */
  int response; /* the last server's response code (RCODE), -1: none answered */
} kdp_resolve_answer;

/* Blocks: up to 2 * rounds * server_count * timeout_ms; not for a worker's thread. OK: there are addresses. NOT_FOUND:
   a server said that there are none. SYSTEM: none could be asked (`code`), none answered (ETIMEDOUT), or they only
   refused
   (`response`). INVALID_ARGUMENT: not a name that can be asked for, or no server. */
kdp_status kdp_resolve(const char *name, const kdp_resolve_config *config,
                       kdp_resolve_answer *answer) KDP_MUST_USE KDP_NONNULL;

/* Takes the addresses of one response to a question for `family` under `identifier`, appended to `answer`. False: it is
   no answer to that question. *cut: ask again over TCP. */
bool kdp_resolve_read(const void *bytes, size_t size, uint16_t identifier, const char *name, kdp_family family,
                      kdp_resolve_answer *answer, bool *cut) KDP_NONNULL;

#ifdef __cplusplus
}
#endif
#endif
