"""`handshake`: handshakes per second and core, in memory, against X25519 alone; and the time from a program's start to its first
answered packet."""
import json
import os
import time

from .figures import counted_ratios, show, summary, table
from .hosts import Hosts, inside, run as run_command, within
from .iperf import listening
from .native import native, with_data_plane
from .tunnels import Tunnel, interface

# All in one shell, so that nothing but the program's own time and four commands stand between the two stamps.
START = """
date +%s%N
"$@" >/dev/null 2>&1 &
echo $!
while ! [ -S "/var/run/wireguard/$NAME.sock" ]; do sleep 0.001; done
wg setconf "$NAME" "$CONFIGURATION" && ip link set "$NAME" up mtu 1420 && ip addr add 10.77.0.1/24 dev "$NAME" && exec "$RTT" first 10.77.0.2 9001
"""


def start_time(program):
    """Milliseconds from the program's start to its first answered packet; the far end has been up for long."""
    with Hosts() as hosts, Tunnel(hosts, program, program) as tunnel:
        hosts.start(hosts.b, native("rtt"), "echo", "10.77.0.2", "9001")
        within(5, lambda: listening(hosts.b, 9001))
        hosts.end(tunnel.processes[0])
        name = interface(0)
        within(5, lambda: not os.path.exists(f"/var/run/wireguard/{name}.sock"))
        environment = {**os.environ, **program.env, "NAME": name, "CONFIGURATION": hosts.path("tunnel0.conf"), "RTT": native("rtt")}
        time.sleep(0.1)  # a stamp newer than that of the session before
        begin, pid, end = inside(hosts.a, "sh", "-c", START, "sh", *program.command, name, env=environment).split()
        try:
            return (int(end) - int(begin)) / 1e6
        finally:
            os.kill(int(pid), 15)
            within(5, lambda: not os.path.exists(f"/proc/{pid}"))


def run(ours, peers, rounds, seconds):
    figures = json.loads(run_command(with_data_plane("handshake"), str(seconds), "1024"))
    programs = [ours, *peers]
    starts = {program.name: [] for program in programs}
    for _ in range(rounds):
        for program in programs:
            starts[program.name].append(start_time(program))
    rows = [
        ("initiations answered (server)", f"{figures['answer_ns'] / 1e3:.1f}", f"{figures['answered_a_second']:,.0f}"),
        ("the first of each peer", f"{figures['answer_first_ns'] / 1e3:.1f}", f"{1e9 / figures['answer_first_ns']:,.0f}"),
        ("initiations made (client)", f"{figures['initiate_ns'] / 1e3:.1f}", f"{1e9 / figures['initiate_ns']:,.0f}"),
        ("responses taken (client)", f"{figures['finish_ns'] / 1e3:.1f}", f"{1e9 / figures['finish_ns']:,.0f}"),
        ("X25519, OpenSSL", f"{figures['x25519_openssl_ns'] / 1e3:.1f}", f"{1e9 / figures['x25519_openssl_ns']:,.0f}"),
        ("X25519, libsodium", f"{figures['x25519_libsodium_ns'] / 1e3:.1f}", f"{1e9 / figures['x25519_libsodium_ns']:,.0f}"),
        ("four of the faster alone", f"{1e6 / figures['alone_a_second']:.1f}", f"{figures['alone_a_second']:,.0f}"),
    ]
    text = table((f"{figures['peers']:,} peers, one core", "us", "a second"), rows)
    text += f"\nanswered over four multiplications alone: {figures['ratio']:.2f}"
    results = {"figures": figures, "start, ms": {name: summary(v) for name, v in starts.items()}, "start ratios": {}}
    for program in programs:
        text += f"\nfrom start to the first answered packet, {program.name}: {summary(starts[program.name])['median']:.0f} ms"
        if program is not ours:
            ratio = counted_ratios(starts[ours.name], starts[program.name])
            results["start ratios"][program.name] = ratio
            text += f"; {ours.name} over it {show(ratio)}"
    return results, text
