#!/usr/bin/env python3
"""boringtun-server.py HOST PORT SERVER_PRIVATE_KEY PEER_PUBLIC_KEY: a WireGuard server on boringtun.

TCP and UDP that come through the tunnel, to any address, are echoed.
"""
import asyncio
import sys

from mitmproxy_rs import wireguard


async def echo_tcp(stream):
    while data := await stream.read(65536):
        stream.write(data)
        await stream.drain()
    stream.close()


async def echo_udp(stream):
    while data := await stream.read(65536):
        stream.write(data)


async def main():
    host, port, private_key, peer = sys.argv[1:]
    server = await wireguard.start_wireguard_server(host, int(port), private_key, [peer], echo_tcp, echo_udp)
    print("listening", flush=True)
    await server.wait_closed()


asyncio.run(main())
