/* Packets of TCP, UDP and other protocols read from a script: whole and right unless patched. */
#ifndef KDP_FUZZ_FORMS_H
#define KDP_FUZZ_FORMS_H
#include "support/packets.h"
#include "support/script.h"

static inline packet_form read_form(script *s, uint32_t most_payload) {
  uint8_t kind = script_u8(s);
  packet_form form = {.version = kind & 1 ? 6 : 4,
                      .protocol = kind & 2   ? 6
                                  : kind & 4 ? 17
                                  : kind & 8 ? 1
                                             : 17,
                      .tos = script_u8(s),
                      .ttl = script_u8(s),
                      .id = script_u16(s),
                      .df = kind & 16,
                      .flow_label = script_u8(s),
                      .source = script_u8(s) % 4,
                      .destination = script_u8(s) % 4,
                      .source_port = script_u8(s) % 4,
                      .destination_port = 443,
                      .sequence = script_u32(s),
                      .acknowledgement = script_u8(s),
                      .window = script_u8(s),
                      .flags = kind & 32 ? script_u8(s) : 0x10,
                      .payload_seed = script_u8(s),
                      .payload = script_u16(s)};
  if (kind & 64) {
    uint8_t options = script_u8(s);
    form.ip_options = (uint8_t)(form.version == 4 ? options % 11 * 4 : 0);
    form.extension_size = (uint8_t)(form.version == 6 ? options % 4 * 8 : 0);
    form.no_checksum = options & 128;
  }
  if (form.protocol == 6) form.tcp_options = (uint8_t)(script_u8(s) % 11 * 4);
  form.payload %= most_payload + 1;
  return form;
}

/* Changes up to seven bytes of the headers; true: it did. */
static inline bool patch(script *s, uint8_t *packet, size_t size) {
  uint8_t count = script_u8(s);
  if (count % 16 < 9 || size == 0) return false;
  bool changed = false;
  for (int i = 0; i < count % 16 - 8; i++) {
    size_t at = script_u8(s) % size;
    uint8_t bits = script_u8(s);
    packet[at] ^= bits;
    changed |= bits != 0;
  }
  return changed;
}
#endif
