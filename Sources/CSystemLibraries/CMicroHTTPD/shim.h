#ifndef KAPE_CMICROHTTPD_SHIM_H
#define KAPE_CMICROHTTPD_SHIM_H

#include <microhttpd.h>
#include <sys/socket.h>

/* Swift does not call variadic functions. */
struct cmicrohttpd_settings {
  int listening; /* a socket; the daemon closes it */
  unsigned int connections;
  unsigned int connections_an_address;
  unsigned int timeout_s;
  size_t memory;                 /* for a request's line and header fields */
  const char *key, *certificate; /* PEM, or both NULL: no TLS */
  void *context;                 /* handed to each of these: */
  void *(*begins)(void *context, const char *uri, struct MHD_Connection *connection);
  MHD_AccessHandlerCallback handles;
  MHD_RequestCompletedCallback ends;
};

/* NULL: no memory, no thread, or the key does not fit the certificate. */
static inline struct MHD_Daemon *cmicrohttpd_start(const struct cmicrohttpd_settings *settings) {
  struct MHD_OptionItem tls[] = {
      {MHD_OPTION_HTTPS_MEM_KEY, 0, (void *)settings->key},
      {MHD_OPTION_HTTPS_MEM_CERT, 0, (void *)settings->certificate},
      {MHD_OPTION_HTTPS_PRIORITIES, 0, (void *)"NORMAL:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2"},
      {MHD_OPTION_END, 0, 0},
  };
  unsigned int flags = MHD_USE_EPOLL_INTERNAL_THREAD | MHD_ALLOW_SUSPEND_RESUME | (settings->key ? MHD_USE_TLS : 0);
  return MHD_start_daemon(flags, 0, 0, 0, settings->handles, settings->context, MHD_OPTION_LISTEN_SOCKET,
                          settings->listening, MHD_OPTION_CONNECTION_LIMIT, settings->connections,
                          MHD_OPTION_PER_IP_CONNECTION_LIMIT, settings->connections_an_address,
                          MHD_OPTION_CONNECTION_TIMEOUT, settings->timeout_s, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
                          settings->memory, MHD_OPTION_URI_LOG_CALLBACK, settings->begins, settings->context,
                          MHD_OPTION_NOTIFY_COMPLETED, settings->ends, settings->context, MHD_OPTION_ARRAY,
                          settings->key ? tls : tls + 3, MHD_OPTION_END);
}

/* The other end's address; NULL when it is not known. */
static inline const struct sockaddr *cmicrohttpd_client(struct MHD_Connection *connection) {
  const union MHD_ConnectionInfo *info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
  return info ? info->client_addr : 0;
}

#endif
