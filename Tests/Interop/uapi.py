#!/usr/bin/env python3
"""Speaks WireGuard's configuration protocol to a socket, byte for byte.

uapi.py SOCKET ask < REQUEST      sends a request as it is and prints the answer, up to its blank line or the end
uapi.py SOCKET holder             prints the process that listens
uapi.py SOCKET partial            sends half of a transaction and stays
uapi.py SOCKET deaf [COUNT]       asks for everything and does not read, as so many clients
uapi.py SOCKET idle COUNT         so many clients that say nothing
uapi.py SOCKET crowd COUNT        one client, a while later the others; prints how many of all are still connected
uapi.py SOCKET refusals KEY       sends requests that are to be refused; prints a line each: NUMBER ERRNO REQUEST
uapi.py SOCKET split < REQUEST    as ask, one byte at a time
uapi.py SOCKET compare OTHER SEED COUNT   applies the same random transactions to both; they must agree after each
uapi.py peers COUNT               prints a configuration for wg with that many peers
uapi.py pass-descriptors NAME COMMAND...   opens a TUN and a configuration socket and starts COMMAND with both
"""
import base64, fcntl, hashlib, os, random, socket, struct, sys, time


def connect(path):
    client = socket.socket(socket.AF_UNIX)
    client.settimeout(20)
    client.connect(path)
    return client


def answer(client):
    text = b""
    while not text.endswith(b"\n\n"):
        part = client.recv(65536)
        if not part:
            return text + b"(end)\n"
        text += part
    return text


def key(number):
    return hashlib.sha256(b"kape test %d" % number).digest()


def refusals(ours):
    """What no device takes, alone and after something that it would take."""
    peer = "public_key=" + key(1).hex() + "\n"
    other = "public_key=" + key(2).hex() + "\nallowed_ip=192.0.2.0/24\n"
    device = [
        "listen_port=65536", "listen_port=-1", "listen_port=", "listen_port=a", "listen_port=0x10", "listen_port= 1",
        "fwmark=4294967296", "fwmark=-1", "fwmark=", "fwmark=off", "private_key=", "private_key=00", "private_key=" + "zz" * 32,
        "private_key=" + "00" * 33, "replace_peers=false", "replace_peers=1", "nonsense=1", "nonsense", "=", "listen_port",
        "public_key=", "public_key=" + "0g" * 32, "public_key=" + key(1).hex()[:-1], "allowed_ip=10.0.0.0/8", "endpoint=192.0.2.1:1",
        "errno=0", "PRIVATE_KEY=" + key(3).hex(),
    ]
    peers = [
        "allowed_ip=", "allowed_ip=10.0.0.0", "allowed_ip=10.0.0.0/33", "allowed_ip=::/129", "allowed_ip=10.0.0/8",
        "allowed_ip=10.0.0.0/-1", "allowed_ip=10.0.0.0/8/8", "allowed_ip=fe80::1%lo/64", "allowed_ip=--10.0.0.0/8",
        "endpoint=", "endpoint=192.0.2.1", "endpoint=192.0.2.1:65536", "endpoint=[2001:db8::1]", "endpoint=2001:db8::1:5",
        "endpoint=host.example:1", "endpoint=:1", "endpoint=192.0.2.1:", "preshared_key=00", "preshared_key=",
        "persistent_keepalive_interval=65536", "persistent_keepalive_interval=off", "persistent_keepalive_interval=-1",
        "persistent_keepalive_interval=", "replace_allowed_ips=false", "remove=false", "update_only=yes", "protocol_version=2",
        "protocol_version=", "listen_port=1", "private_key=" + key(3).hex(), "replace_peers=true", "fwmark=1", "nonsense=1", "nonsense",
    ]
    good = "fwmark=77\n" + other
    for line in device:
        yield "set=1\n" + line + "\n\n"
        yield "set=1\nfwmark=77\n" + line + "\n\n"
    for line in peers:
        yield "set=1\n" + peer + line + "\n\n"
        yield "set=1\n" + good + peer + "allowed_ip=198.51.100.0/24\n" + line + "\n\n"
    yield "get=1\nlisten_port=1\n\n"
    yield "set=1\n" + "replace_peers=true\n" + "private_key=" + "00" * 31 + "\n\n"
    yield "set=1\nfwmark=77\n" + "public_key=" + ours + "\nremove=true\n" + peer + "allowed_ip=bad\n\n"


def print_refusals(path, ours):
    for number, request in enumerate(refusals(ours)):
        client = connect(path)
        client.sendall(request.encode())
        text = answer(client).decode()
        client.close()
        print(number, text.split("\n")[0], repr(request))


def transaction(draw):
    """One that is right, or wrong now and then, over few peers and few prefixes, so that they meet."""
    prefixes = ["10.0.0.0/8", "10.1.0.0/16", "10.1.2.3/32", "0.0.0.0/0", "::/0", "fd00::/8", "fd00:1::/32", "fd00:1::5/128", "10.1.2.99/24"]
    lines = ["set=1"]
    if draw.random() < 0.2:
        lines.append("private_key=" + draw.choice([key(draw.randrange(100, 104)).hex(), "00" * 32]))
    if draw.random() < 0.2:
        lines.append("fwmark=%d" % draw.choice([0, 1, 0xFFFFFFFF]))
    if draw.random() < 0.1:
        lines.append("listen_port=%d" % draw.randrange(40000, 40100))
    replace = draw.random() < 0.15
    if replace:
        lines.append("replace_peers=true")
    for _ in range(draw.randrange(4)):
        lines.append("public_key=" + key(draw.randrange(1, 7)).hex())
        if draw.random() < 0.15:
            lines.append("remove=true")
        if draw.random() < 0.25:
            lines.append("update_only=true")
        if draw.random() < 0.3:
            lines.append("preshared_key=" + draw.choice([key(draw.randrange(200, 203)).hex(), "00" * 32]))
        # Ours remembers where a peer is when it is replaced by itself; so it is always told here.
        if replace or draw.random() < 0.4:
            lines.append("endpoint=" + draw.choice(["192.0.2.%d:%d", "[2001:db8::%d]:%d"]) % (draw.randrange(1, 9), draw.randrange(1, 9)))
        if draw.random() < 0.3:
            lines.append("persistent_keepalive_interval=%d" % draw.choice([0, 0, 65535]))
        if draw.random() < 0.3:
            lines.append("replace_allowed_ips=true")
        for _ in range(draw.randrange(4)):
            lines.append("allowed_ip=" + draw.choice(prefixes))
        if draw.random() < 0.1:
            lines.append("protocol_version=1")
    return "\n".join(lines) + "\n\n"


def state(client):
    """What a device says of its configuration, without order and without what passes."""
    client.sendall(b"get=1\n\n")
    device, peers, current = {}, {}, None
    for line in answer(client).decode().strip().split("\n"):
        name, value = line.split("=", 1)
        if name == "public_key":
            current = peers.setdefault(value, {"allowed_ip": set()})
        elif current is None:
            device[name] = value
        elif name == "allowed_ip":
            current["allowed_ip"].add(value)
        elif name not in ("rx_bytes", "tx_bytes", "last_handshake_time_sec", "last_handshake_time_nsec", "errno"):
            current[name] = value
    return device, peers


def compare(path, other, seed, count):
    draw = random.Random(seed)
    ours, theirs = connect(path), connect(other)
    kinds = {}
    for number in range(count):
        request = transaction(draw)
        answers = []
        for client in (ours, theirs):
            client.sendall(request.encode())
            answers.append(answer(client))
        states = [state(client) for client in (ours, theirs)]
        if answers[0] != answers[1] or states[0] != states[1]:
            sys.exit("seed %d, transaction %d:\n%s\nours: %r\n%r\ntheirs: %r\n%r" % (seed, number, request, answers[0], states[0], answers[1], states[1]))
        for line in request.split():
            kinds[line.split("=")[0]] = kinds.get(line.split("=")[0], 0) + 1
    print(" ".join("%s:%d" % item for item in sorted(kinds.items())))


def configuration(count):
    shuffled = random.Random(1)
    print("[Interface]\nPrivateKey = " + base64.b64encode(key(0)).decode() + "\nListenPort = 51999\nFwMark = 0x51")
    for number in range(1, count + 1):
        print("[Peer]\nPublicKey = " + base64.b64encode(key(number)).decode())
        print("PresharedKey = " + base64.b64encode(key(-number)).decode())
        print("AllowedIPs = 10.%d.%d.0/24, fd00:%x::/64" % (number >> 8 & 255, number & 255, number))
        print("Endpoint = 192.0.2.%d:%d" % (shuffled.randrange(1, 255), shuffled.randrange(1, 65536)))
        print("PersistentKeepalive = %d" % shuffled.randrange(1000, 65536))


def is_open(client):
    client.setblocking(False)
    try:
        return client.recv(1) != b""
    except BlockingIOError:
        return True


def pass_descriptors(name, command):
    tun = os.open("/dev/net/tun", os.O_RDWR)
    no_information, tun_mode, virtio_header = 0x1000, 0x1, 0x4000
    fcntl.ioctl(tun, 0x400454CA, struct.pack("16sH22x", name.encode(), tun_mode | no_information | virtio_header))
    listening = socket.socket(socket.AF_UNIX)
    listening.bind("/var/run/wireguard/%s.sock" % name)
    listening.listen()
    for descriptor in (tun, listening.fileno()):
        os.set_inheritable(descriptor, True)
    os.environ["WG_TUN_FD"], os.environ["WG_UAPI_FD"] = str(tun), str(listening.fileno())
    os.execvp(command[0], command)


def main():
    if sys.argv[1] == "peers":
        return configuration(int(sys.argv[2]))
    if sys.argv[1] == "pass-descriptors":
        return pass_descriptors(sys.argv[2], sys.argv[3:])
    path, what = sys.argv[1:3]
    if what == "compare":
        return compare(path, sys.argv[3], int(sys.argv[4]), int(sys.argv[5]))
    if what == "refusals":
        return print_refusals(path, sys.argv[3])
    client = connect(path)
    if what == "ask":
        client.sendall(sys.stdin.buffer.read())
        print(answer(client).decode(), end="")
    elif what == "split":
        for byte in sys.stdin.buffer.read():
            client.send(bytes([byte]))
        print(answer(client).decode(), end="")
    elif what == "holder":
        print(struct.unpack("iii", client.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))[0])
    elif what == "partial":
        client.sendall(b"set=1\nprivate_key=00")
        time.sleep(3600)
    elif what == "deaf":
        others = [connect(path) for _ in range(int(sys.argv[3]) - 1)] if len(sys.argv) > 3 else []
        for each in [client] + others:
            each.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            each.sendall(b"get=1\n\n")
        time.sleep(3600)
    elif what == "idle":
        others = [connect(path) for _ in range(int(sys.argv[3]) - 1)]
        time.sleep(3600)
    elif what == "crowd":
        time.sleep(1.5)
        others = [connect(path) for _ in range(int(sys.argv[3]) - 1)]
        time.sleep(0.5)
        print(sum(map(is_open, [client] + others)))
    else:
        sys.exit(__doc__)


main()
