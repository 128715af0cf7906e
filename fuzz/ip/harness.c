/* The reader of IP headers, its ECN functions, the checksums and the writer of ICMP errors, on any bytes. */
#include "core/bytes.h"
#include "net/checksum.h"
#include "net/icmp.h"
#include "net/ip.h"
#include "support/packets.h"
#include "support/script.h"

static uint16_t pseudo_sum_v6(const uint8_t *packet, size_t size) {
  uint8_t pseudo[40] = {0};
  memcpy(pseudo, packet + 8, 32);
  kdp_store_be32(pseudo + 32, (uint32_t)size);
  pseudo[39] = packet[6];
  return packet_sum(pseudo, sizeof pseudo, 0);
}

static void check_read(const uint8_t *packet, size_t size, const kdp_ip *ip) {
  CHECK(ip->version == packet[0] >> 4);
  CHECK(ip->size <= size && ip->header_size <= ip->size);
  CHECK(ip->header_size >= (ip->version == 4 ? 20 : 40));
  CHECK(ip->source == packet + (ip->version == 4 ? 12 : 8));
  CHECK(ip->destination == ip->source + (ip->version == 4 ? 4 : 16));
  CHECK(!ip->plain || (!ip->fragment && ip->header_size == (ip->version == 4 ? 20 : 40)));
  CHECK(ip->ecn == kdp_ip_ecn(packet));
  kdp_ip_transport transport = kdp_ip_find_transport(packet, ip);
  CHECK(transport.offset >= ip->header_size && transport.offset <= ip->size);
  CHECK(transport.fragment == ip->fragment);
  CHECK(!ip->plain || (transport.found && transport.offset == ip->header_size && transport.protocol == ip->protocol));
}

static void check_ecn(uint8_t *packet, const kdp_ip *ip) {
  bool right = ip->version == 4 && packet_sum(packet, ip->header_size, 0) == 0xffff;
  uint8_t before[60];
  memcpy(before, packet, ip->header_size);
  for (uint8_t ecn = 0; ecn < 4; ecn++) {
    kdp_ip_set_ecn(packet, ecn);
    CHECK(kdp_ip_ecn(packet) == ecn);
    CHECK(!right || packet_sum(packet, ip->header_size, 0) == 0xffff);
  }
  kdp_ip_set_ecn(packet, ip->ecn);
  if (ip->version == 4) memcpy(packet + 10, before + 10, 2); /* zero has two forms */
  CHECK(memcmp(packet, before, ip->header_size) == 0);
  for (uint8_t outer = 0; outer < 4; outer++) {
    int after = kdp_ecn_decapsulate(ip->ecn, outer);
    CHECK(after >= -1 && after < 4 && (after != -1 || (outer == 3 && ip->ecn == 0)));
    CHECK(outer != 3 || ip->ecn == 0 || after == 3);
  }
}

static void check_answer(kdp_icmp_kind kind, uint16_t mtu, const uint8_t *packet, const kdp_ip *ip, uint8_t *answer,
                         size_t size) {
  kdp_ip read;
  CHECK(size <= KDP_ICMP_MAX_SIZE);
  CHECK(kdp_ip_read(answer, size, &read) == KDP_OK && read.size == size && read.version == ip->version && read.plain);
  size_t address = ip->version == 4 ? 4 : 16;
  CHECK(memcmp(read.source, ip->destination, address) == 0 && memcmp(read.destination, ip->source, address) == 0);
  const uint8_t *icmp = answer + read.header_size;
  size_t quote = size - read.header_size - 8;
  if (ip->version == 4) {
    CHECK(size <= 576 && packet_sum(answer, 20, 0) == 0xffff);
    CHECK(packet_sum(icmp, 8 + quote, 0) == 0xffff);
    CHECK(read.protocol == KDP_PROTOCOL_ICMP && icmp[0] == 3 && icmp[1] == (kind == KDP_ICMP_TOO_BIG ? 4 : 1));
    if (kind == KDP_ICMP_TOO_BIG) CHECK(kdp_load_be16(icmp + 6) == mtu);
  } else {
    CHECK(packet_sum(icmp, 8 + quote, pseudo_sum_v6(answer, 8 + quote)) == 0xffff);
    CHECK(read.protocol == KDP_PROTOCOL_ICMPV6 && icmp[0] == (kind == KDP_ICMP_TOO_BIG ? 2 : 1));
    if (kind == KDP_ICMP_TOO_BIG) CHECK(kdp_load_be32(icmp + 4) == (mtu < 1280 ? 1280u : mtu));
  }
  CHECK(quote <= ip->size && memcmp(icmp + 8, packet, quote) == 0);
  uint8_t again[KDP_ICMP_MAX_SIZE];
  CHECK(kdp_icmp_write_error(KDP_ICMP_HOST_UNREACHABLE, 0, answer, size, again) == 0); /* no error on an error */
}

static void check_sums(const uint8_t *bytes, size_t size, size_t cut) {
  cut = size == 0 ? 0 : cut % (size + 1) & ~(size_t)1; /* only the last piece may be odd */
  uint8_t *copy = malloc(size);
  uint64_t sum = kdp_checksum_add(kdp_checksum_add(0, bytes, cut), bytes + cut, size - cut);
  uint64_t copied =
      kdp_checksum_copy_add(kdp_checksum_copy_add(0, copy, bytes, cut), copy + cut, bytes + cut, size - cut);
  CHECK(size == 0 || memcmp(copy, bytes, size) == 0);
  uint16_t wanted = packet_sum(bytes, size, 0), got = kdp_checksum_fold(sum), got_copied = kdp_checksum_fold(copied);
  CHECK(kdp_load_be16(&got) == wanted && kdp_load_be16(&got_copied) == wanted);
  free(copy);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
  script s = {bytes, bytes + size};
  kdp_icmp_kind kind = script_u8(&s) % 2 ? KDP_ICMP_TOO_BIG : KDP_ICMP_HOST_UNREACHABLE;
  uint16_t mtu = script_u16(&s);
  uint8_t pad = script_u8(&s); /* a length field may be made to fit, so that what lies behind it is reached */
  size_t packet_size;
  const uint8_t *given = script_bytes(&s, 70000, &packet_size);
  uint8_t *packet = exact_copy(given, packet_size);
  if (pad % 2 && packet_size >= 40 && packet_size < 65536) {
    if (packet[0] >> 4 == 4) kdp_store_be16(packet + 2, (uint16_t)packet_size);
    if (packet[0] >> 4 == 6) kdp_store_be16(packet + 4, (uint16_t)(packet_size - 40));
  }
  check_sums(packet, packet_size, mtu);
  uint8_t *answer = malloc(KDP_ICMP_MAX_SIZE);
  size_t answer_size = kdp_icmp_write_error(kind, mtu, packet, packet_size, answer);
  kdp_ip ip;
  kdp_status status = kdp_ip_read(packet, packet_size, &ip);
  CHECK(status == KDP_OK || status == KDP_NOT_IP || status == KDP_TOO_SHORT);
  CHECK(status == KDP_OK || answer_size == 0);
  if (status == KDP_OK) {
    check_read(packet, packet_size, &ip);
    if (answer_size > 0) check_answer(kind, mtu, packet, &ip, answer, answer_size);
    check_ecn(packet, &ip);
  }
  free(answer);
  free(packet);
  return 0;
}
