/* The echo engine: the smallest protocol that uses the whole contract for datagrams, written to be read. docs/engine.md
   walks through it. It has a client, which says hello until it is welcomed, and a server, which welcomes; both then
   carry IP packets, probe each other when it has been quiet and follow each other's address. It does not encrypt: its
   tag keeps out damage and strangers' noise, not an attacker.

     byte 0      1       4           8                  16                   16 + size
          +------+-------+-----------+-------------------+--------------------+----------+
          | type | zero  | session   | counter           | IP packet (DATA)   | tag      |
          +------+-------+-----------+-------------------+--------------------+----------+
            1      3       4, BE       8, BE               0 or more            8, LE

     HELLO    client to server   session 0, counter: the client's wall clock, rising with each attempt
     WELCOME  server to client   the session that the server chose, counter: that of the HELLO
     PROBE    both ways          asks for an ECHO
     ECHO     both ways          answers a PROBE
     DATA     both ways          an IP packet */
#ifndef SIM_ECHO_ENGINE_H
#define SIM_ECHO_ENGINE_H
#include "kdp/engine.h"

enum { ECHO_HEAD = 16, ECHO_TAIL = 8 };

typedef struct echo_config {
  bool server;
  kdp_address remote; /* client: where the server is */
  uint64_t key;       /* shared */
} echo_config;

kdp_status echo_create(const echo_config *config, const kdp_limits *limits, const kdp_host *host, kdp_now now,
                       kdp_engine **engine) KDP_MUST_USE KDP_NONNULL;
#endif
