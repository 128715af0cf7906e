/* Kernel constants that are newer than the headers of the systems we build on (Debian 12: Linux 6.1). The values are
   the kernel's own ABI; whether the running kernel knows them is found out by trying. */
#ifndef KDP_IO_LINUX_COMPAT_H
#define KDP_IO_LINUX_COMPAT_H

#include <linux/if_link.h>
#include <linux/if_tun.h>
#include <linux/udp.h>

/* Linux 6.2: both together and only with TUN_F_CSUM, else EINVAL. */
#ifndef TUN_F_USO4
#define TUN_F_USO4 0x20
#define TUN_F_USO6 0x40
#endif

#ifndef UDP_SEGMENT
#define UDP_SEGMENT 103
#endif
#ifndef UDP_GRO
#define UDP_GRO 104
#endif

/* IORING_OP_READ_MULTISHOT: Linux 6.7. */
enum { KDP_IORING_OP_READ_MULTISHOT = 49 };

/* Link attributes; the older headers have the enum without its newest members. IFLA_GSO_IPV4_MAX_SIZE: Linux 6.3. */
enum { KDP_IFLA_GSO_MAX_SEGS = 40, KDP_IFLA_GSO_MAX_SIZE = 41, KDP_IFLA_GSO_IPV4_MAX_SIZE = 63 };

#endif
