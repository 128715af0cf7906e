#define _GNU_SOURCE /* struct mmsghdr, struct in6_pktinfo */
#include "io/route_table.h"

#include <sys/socket.h>
#include <unistd.h>

#include "kdp/socket_address.h"

enum { UDP_HEADER = 8, IPV4_HEADER = 20, IPV6_HEADER = 40 };

static kdp_route *find(kdp_route_table *table, const kdp_address *remote) {
  for (uint32_t i = 0; i < table->count; i++)
    if (kdp_address_equal(&table->route[i].path.remote, remote)) return &table->route[i];
  return NULL;
}

uint16_t kdp_route_largest(const kdp_route_table *table, const kdp_address *remote) {
  for (uint32_t i = 0; i < table->count; i++)
    if (kdp_address_equal(&table->route[i].path.remote, remote)) return table->route[i].largest;
  return UINT16_MAX;
}

void kdp_route_refuse(kdp_route_table *table, const kdp_path *path, uint16_t size, uint16_t mtu, uint64_t boot) {
  kdp_route *route = find(table, &path->remote);
  if (!route) {
    if (table->count < KDP_ROUTES) {
      route = &table->route[table->count++];
    } else {
      route = &table->route[0];
      for (uint32_t i = 1; i < table->count; i++)
        if (table->route[i].recheck < route->recheck) route = &table->route[i];
    }
    *route = (kdp_route){.largest = UINT16_MAX};
  }
  uint16_t headers = UDP_HEADER + (path->remote.family == KDP_FAMILY_IPV6 ? IPV6_HEADER : IPV4_HEADER);
  uint16_t largest = size > 0 ? size - 1 : 0;
  if (mtu > headers && mtu - headers < largest) largest = mtu - headers;
  if (largest < route->largest) route->largest = largest;
  route->path = *path;
  route->mtu = mtu;
  route->recheck = boot + KDP_ROUTE_RECHECK;
}

void kdp_route_refuse_all(kdp_route_table *table, const kdp_path *path, uint16_t mtu, uint64_t boot) {
  kdp_route_refuse(table, path, 0, mtu, boot);
}

void kdp_route_forget_refused(kdp_route_table *table) {
  for (uint32_t i = 0; i < table->count;) {
    if (table->route[i].largest == 0)
      table->route[i] = table->route[--table->count];
    else
      i++;
  }
}

void kdp_route_learn(kdp_route_table *table, const kdp_address *remote, uint16_t mtu, uint64_t boot) {
  kdp_route *route = find(table, remote);
  if (!route) return;
  if (mtu != 0 && mtu == route->mtu) {
    route->recheck = boot + KDP_ROUTE_RECHECK;
  } else if (mtu != 0 || boot >= route->recheck) {
    *route = table->route[--table->count];
  }
}

uint64_t kdp_route_deadline(const kdp_route_table *table) {
  uint64_t deadline = KDP_NEVER;
  for (uint32_t i = 0; i < table->count; i++)
    if (table->route[i].recheck < deadline) deadline = table->route[i].recheck;
  return deadline;
}

uint16_t kdp_route_ask_mtu(const kdp_path *path, uint32_t fwmark) {
  kdp_socket_address remote, local;
  socklen_t size = kdp_socket_address_write(&path->remote, &remote);
  if (size == 0) return 0;
  int fd = socket(remote.any.sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return 0;
  int mtu = 0, mark = (int)fwmark;
  socklen_t length = sizeof mtu;
  bool ipv6 = remote.any.sa_family == AF_INET6;
  if (fwmark && setsockopt(fd, SOL_SOCKET, SO_MARK, &mark, sizeof mark) != 0) goto out;
  kdp_address source = path->local;
  source.port = 0;
  socklen_t source_size = kdp_socket_address_write(&source, &local);
  /* A source that is gone changes nothing in the question. */
  if (source_size && bind(fd, &local.any, source_size) != 0) source_size = 0;
  if (connect(fd, &remote.any, size) != 0) goto out;
  if (getsockopt(fd, ipv6 ? IPPROTO_IPV6 : IPPROTO_IP, ipv6 ? IPV6_MTU : IP_MTU, &mtu, &length) != 0) mtu = 0;
out:
  close(fd);
  return (uint16_t)(mtu < 0 ? 0 : mtu > UINT16_MAX ? UINT16_MAX : mtu);
}
