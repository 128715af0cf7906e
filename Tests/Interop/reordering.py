#!/usr/bin/env python3
"""reordering.py INTERFACE

Watches WireGuard data messages on an interface until SIGTERM and prints, as one line, how many it saw and by how many counters one came late at most: the highest
counter of its session that was seen before, less its own. Segmented sends are looked at as a whole: their counters are consecutive.
"""
import signal
import socket
import struct
import sys

ETH_P_ALL, SOL_PACKET, PACKET_VNET_HDR, SO_RCVBUFFORCE = 3, 263, 15, 33
VIRTIO, ETHERNET, UDP, DATA = 10, 14, 8, 4


def parse(frame):
    """Receiver index, first counter and size of one datagram of a data message; None for anything else."""
    at = VIRTIO + ETHERNET
    kind = struct.unpack_from("!H", frame, VIRTIO + 12)[0]
    if kind == 0x0800 and frame[at + 9] == socket.IPPROTO_UDP:
        at += (frame[at] & 15) * 4
    elif kind == 0x86DD and frame[at + 6] == socket.IPPROTO_UDP:
        at += 40
    else:
        return None
    at += UDP
    if len(frame) < at + 16 or frame[at : at + 4] != bytes([DATA, 0, 0, 0]):
        return None
    index, counter = struct.unpack_from("<IQ", frame, at + 4)
    return index, counter, at


stopped = False


def stop(*_):
    global stopped
    stopped = True


def main():
    signal.signal(signal.SIGTERM, stop)
    s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL))
    s.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 64 << 20)
    s.setsockopt(SOL_PACKET, PACKET_VNET_HDR, 1)
    s.bind((sys.argv[1], 0))
    s.settimeout(0.1)
    print("ready", flush=True)
    highest, seen, latest = {}, 0, 0
    while True:
        frame = bytearray(256)
        try:
            size = s.recv_into(frame, 256, socket.MSG_TRUNC)
        except TimeoutError:
            if stopped:
                break
            continue
        found = parse(frame)
        if not found:
            continue
        index, counter, at = found
        segment = struct.unpack_from("<H", frame, 4)[0] if frame[1] else 0
        count = -(-(size - at) // segment) if segment else 1
        seen += count
        before = highest.get(index, -1)
        latest = max(latest, before - counter)
        highest[index] = max(before, counter + count - 1)
    print(f"{seen} messages of {len(highest)} sessions, {latest} late at most")


main()
