#!/usr/bin/env python3
"""datagrams.py echo ADDRESS PORT | datagrams.py send ADDRESS PORT SEED COUNT [segmented] [any-order]

Sends COUNT datagrams of random sizes (seeded) in windows of 32 and compares what comes back with what went out: each once, unchanged, and in
order. With `segmented` each window is one send with UDP_SEGMENT, so that the kernel hands super-packets to the interface. Exits 1 with the first
difference. `any-order`: they may overtake each other within a window, as fragments, which have no ports to tell their flow by, do where an
interface has several queues.
"""
import random
import socket
import struct
import sys

UDP_SEGMENT = 103
WINDOW = 32


def open_socket(address):
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    s = socket.socket(family, socket.SOCK_DGRAM)
    for option in (socket.SO_RCVBUF, socket.SO_SNDBUF):
        s.setsockopt(socket.SOL_SOCKET, option, 4 << 20)
    return s


def echo(address, port):
    s = open_socket(address)
    s.bind((address, port))
    print("ready", flush=True)
    while True:
        data, peer = s.recvfrom(65535)
        s.sendto(data, peer)


def sizes_of(rng, segmented):
    if segmented:
        size = rng.randrange(12, 1200)
        count = rng.randrange(2, WINDOW + 1)
        return [size] * (count - 1) + [rng.randrange(8, size + 1)]
    # mostly within the MTU, some that the host must fragment
    return [rng.choice((rng.randrange(8, 1373), rng.randrange(8, 200), 1372, rng.randrange(1373, 9000))) for _ in range(WINDOW)]


def differs(window, back):
    """What is wrong with what came back in place of the window's datagrams, or None."""
    for position, (sent, got) in enumerate(zip(window, back)):
        if got != sent:
            number = struct.unpack(">Q", got[:8])[0] if len(got) >= 8 else None
            return f"expected number {struct.unpack('>Q', sent[:8])[0]} of {len(sent)} bytes, got number {number} of {len(got)} bytes"
    return None


def send(address, port, seed, count, segmented, any_order):
    rng = random.Random(seed)
    s = open_socket(address)
    s.connect((address, port))
    s.settimeout(3)
    number = 0
    while number < count:
        window = []
        for size in sizes_of(rng, segmented):
            window.append(struct.pack(">Q", number) + rng.randbytes(size - 8))
            number += 1
        if segmented:
            s.sendmsg([b"".join(window)], [(socket.SOL_UDP, UDP_SEGMENT, struct.pack("H", len(window[0])))])
        else:
            for datagram in window:
                s.send(datagram)
        back = []
        for position in range(len(window)):
            try:
                back.append(s.recv(65535))
            except TimeoutError:
                sys.exit(f"datagram {position} of a window of {len(window)} (sizes {[len(d) for d in window]}) did not come back")
        if any_order:
            back.sort(key=lambda datagram: datagram[:8])
        difference = differs(window, back)
        if difference:
            sys.exit(difference)
    s.settimeout(0.2)
    try:
        extra = s.recv(65535)
        sys.exit(f"a datagram of {len(extra)} bytes came back twice")
    except TimeoutError:
        print(f"{number} datagrams came back unchanged" + ("" if any_order else " and in order"))


if __name__ == "__main__":
    mode, address, port = sys.argv[1], sys.argv[2], int(sys.argv[3])
    if mode == "echo":
        echo(address, port)
    else:
        send(address, port, int(sys.argv[4]), int(sys.argv[5]), "segmented" in sys.argv[6:], "any-order" in sys.argv[6:])
