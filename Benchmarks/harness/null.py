"""`null`: the same path without a cipher, with AES-256-GCM under one fixed key, as WireGuard, and no tunnel at all, by turns: what
this machine's kernel lets anyone reach, and how much of it the ciphers leave."""
from . import iperf
from .figures import ratios, show, summary, table
from .hosts import Hosts
from .native import with_data_plane
from .tunnels import FixedKeyTunnel, Tunnel

BARE, NULL, CHACHA, AES, WIREGUARD = "no tunnel (veth)", "no cipher", "ChaCha20-Poly1305, fixed key", "AES-256-GCM, fixed key", "WireGuard"
CIPHERS = {NULL: "none", CHACHA: "chacha20-poly1305", AES: "aes-256-gcm"}


def gbit(hosts, seconds, address="10.77.0.2"):
    moved, took = iperf.client(hosts, seconds, address=address)
    return moved * 8 / took / 1e9


def measure(what, ours, program, seconds):
    with Hosts() as hosts, iperf.Server(hosts):
        if what == BARE:
            return gbit(hosts, seconds, "192.0.2.2"), None
        tunnel = Tunnel(hosts, ours, ours) if what == WIREGUARD else FixedKeyTunnel(hosts, program, CIPHERS[what])
        with tunnel:
            before = sum(tunnel.cpu())
            moved, took = iperf.client(hosts, seconds)
            return moved * 8 / took / 1e9, (sum(tunnel.cpu()) - before) / (moved / 1e9)


def run(ours, rounds, seconds):
    program = with_data_plane("fixed_key")
    values = {what: [] for what in (BARE, NULL, CHACHA, AES, WIREGUARD)}
    cpu = {what: [] for what in values}
    for _ in range(rounds):
        for what in values:
            rate, cost = measure(what, ours, program, seconds)
            values[what].append(rate)
            if cost is not None:
                cpu[what].append(cost)
    shares = {
        "no cipher over the bare veth": ratios(values[NULL], values[BARE]),
        "WireGuard over no cipher": ratios(values[WIREGUARD], values[NULL]),
        "ChaCha20-Poly1305 over no cipher": ratios(values[CHACHA], values[NULL]),
        "AES-256-GCM over no cipher": ratios(values[AES], values[NULL]),
    }
    rows = [
        (what, f"{summary(v)['median']:.2f}", f"{min(v):.2f} to {max(v):.2f}", f"{summary(cpu[what])['median']:.2f}" if cpu[what] else "")
        for what, v in values.items()
    ]
    text = table(("one TCP stream", "Gbit/s", "spread", "CPU s/GB, both ends"), rows)
    text += "".join(f"\n{what}: {show(share)}" for what, share in shares.items())
    return {
        "unit": "Gbit/s received",
        "figures": {what: summary(v) for what, v in values.items()},
        "cpu": {what: summary(v) for what, v in cpu.items() if v},
        "shares": shares,
    }, text
