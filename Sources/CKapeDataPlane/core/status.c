#include "kdp/status.h"

static const kdp_status_info table[KDP_STATUS_COUNT] = {
#define KDP_STATUS_ROW(name, fault, datagram, stream, text) {#name, text, KDP_FAULT_##fault, datagram, stream},
    KDP_STATUS_LIST(KDP_STATUS_ROW)
#undef KDP_STATUS_ROW
};

static const kdp_status_info unknown = {"UNKNOWN", "a status that this version does not know", KDP_FAULT_LOCAL, true,
                                        true};

const kdp_status_info *kdp_status_describe(kdp_status status) {
  return (uint32_t)status < KDP_STATUS_COUNT ? &table[status] : &unknown;
}
