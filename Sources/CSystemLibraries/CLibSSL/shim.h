/* What of libssl is a macro, as functions: Swift imports no macro with arguments. */
#ifndef KAPE_CLIBSSL_SHIM_H
#define KAPE_CLIBSSL_SHIM_H

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

static inline int clibssl_set_minimum_version(SSL_CTX *context, int version) {
  return (int)SSL_CTX_set_min_proto_version(context, version);
}

static inline int clibssl_set_server_name(SSL *ssl, const char *name) {
  return (int)SSL_set_tlsext_host_name(ssl, name);
}

#endif
