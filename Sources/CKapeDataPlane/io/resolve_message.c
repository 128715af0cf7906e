/* Responses of name servers (RFC 1035 section 4). Bounded; names are read by the C library, within the message. */
#include <arpa/nameser.h>
#include <resolv.h>
#include <string.h>
#include <strings.h>

#include "core/bytes.h"
#include "kdp/resolve.h"

enum { FLAG_RESPONSE = 0x8000, FLAG_CUT = 0x0200, RCODE_MASK = 0xf };

static bool same_name(const char *a, const char *b) {
  size_t length = strlen(a);
  if (length > 0 && a[length - 1] == '.') length--;
  return strlen(b) == length && strncasecmp(a, b, length) == 0;
}

static uint16_t type_of(kdp_family family) {
  return family == KDP_FAMILY_IPV4 ? ns_t_a : ns_t_aaaa;
}

static void skip_name(kdp_reader *reader) {
  const u_char *at = reader->at;
  if (reader->failed || ns_name_skip(&at, reader->end) < 0) {
    reader->failed = true;
    return;
  }
  reader->at = at;
}

/* One resource record of the answer; false: it is cut off. */
static bool read_record(kdp_reader *reader, kdp_family family, kdp_resolve_answer *answer) {
  skip_name(reader);
  uint16_t type = kdp_read_be16(reader), class = kdp_read_be16(reader);
  kdp_read_be32(reader); /* time to live: the tunnel asks again when handshakes fail, not by age */
  uint16_t size = kdp_read_be16(reader);
  const uint8_t *data = kdp_read_bytes(reader, size);
  if (!data) return false;
  if (type != type_of(family) || class != ns_c_in || size != (family == KDP_FAMILY_IPV4 ? 4 : 16)) return true;
  if (answer->count == KDP_RESOLVE_ADDRESSES_MAX) return true;
  kdp_address *address = &answer->address[answer->count++];
  *address = (kdp_address){.family = (uint8_t)family};
  memcpy(address->bytes, data, size);
  return true;
}

bool kdp_resolve_read(const void *bytes, size_t size, uint16_t identifier, const char *name, kdp_family family,
                      kdp_resolve_answer *answer, bool *cut) {
  char asked[NS_MAXDNAME];
  kdp_reader reader = kdp_reader_make(bytes, size);
  *cut = false;
  uint16_t told = kdp_read_be16(&reader), flags = kdp_read_be16(&reader);
  uint16_t questions = kdp_read_be16(&reader), answers = kdp_read_be16(&reader);
  kdp_read_be32(&reader); /* the counts of the sections after the answer */
  if (!kdp_reader_ok(&reader) || told != identifier || !(flags & FLAG_RESPONSE) || questions != 1) return false;
  if (dn_expand(bytes, reader.end, reader.at, asked, sizeof asked) < 0 || !same_name(name, asked)) return false;
  skip_name(&reader);
  uint16_t type = kdp_read_be16(&reader), class = kdp_read_be16(&reader);
  if (!kdp_reader_ok(&reader) || type != type_of(family) || class != ns_c_in) return false;
  answer->response = flags & RCODE_MASK;
  *cut = (flags & FLAG_CUT) != 0;
  if (*cut || answer->response != ns_r_noerror) return true;
  for (uint16_t i = 0; i < answers && read_record(&reader, family, answer); i++) {
  }
  return true;
}
