/* Where things are in the headers of TCP (RFC 9293 section 3.1) and UDP (RFC 768): byte offsets from the header's
   start. */
#ifndef KDP_NET_TCP_H
#define KDP_NET_TCP_H

enum { KDP_TCP_SEQUENCE = 4, KDP_TCP_ACKNOWLEDGEMENT = 8, KDP_TCP_DATA_OFFSET = 12, KDP_TCP_FLAGS = 13 };
enum { KDP_TCP_WINDOW = 14, KDP_TCP_CHECKSUM = 16, KDP_TCP_URGENT = 18, KDP_TCP_OPTIONS = 20 };
enum { KDP_TCP_FIN = 0x01, KDP_TCP_PSH = 0x08, KDP_TCP_ACK = 0x10, KDP_TCP_CWR = 0x80 };
enum { KDP_UDP_LENGTH = 4, KDP_UDP_CHECKSUM = 6 };
#endif
