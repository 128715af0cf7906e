/* kdp.h: all of the data plane's public API for C. */
#ifndef KDP_H
#define KDP_H
#include "kdp/aead.h"
#include "kdp/engine.h"
#include "kdp/wireguard.h"
#ifdef __linux__
#include "kdp/process.h"
#include "kdp/worker.h"
#endif
#endif
