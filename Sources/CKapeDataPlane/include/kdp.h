/* kdp.h: all of the data plane's public API for C. */
#ifndef KDP_H
#define KDP_H
#include "kdp/aead.h"
#include "kdp/embed.h"
#include "kdp/engine.h"
#include "kdp/wireguard.h"
#ifdef __linux__
#include "kdp/embed_linux.h"
#include "kdp/process.h"
#include "kdp/socket_address.h"
#include "kdp/worker.h"
#endif
#endif
