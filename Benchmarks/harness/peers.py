"""`peers`: one server with 1, 100, 1,000 and 10,000 peers and two prefixes for each; up to 1,000 of them have a live session. Throughput and
processor time of the stream of one peer, cost of a small packet to one peer and to all the live ones in turn, `wg setconf`, memory."""
import json
import subprocess

from . import iperf
from .figures import counted_ratios, show, summary, table
from .hosts import Hosts, inside, interface_counter, run as run_command
from .native import native, with_data_plane
from .tunnels import Tunnel, interface

COUNTS = (1, 100, 1_000, 10_000)
LIVE_MOST = 1000
SMALL_RATE = 40_000


class Clients:
    """Live sessions with the far end, each from an address of its own (native/clients.c)."""

    def __init__(self, hosts, server_key, count):
        self.hosts, self.server_key, self.count = hosts, server_key, count

    def __enter__(self):
        self.process = self.hosts.start(
            self.hosts.a, with_data_plane("clients"), "run", str(self.count), self.server_key, "192.0.2.2", "51821",
            env={"KAPE_AEAD": "openssl"}, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        )
        line = self.process.stdout.readline()
        live = json.loads(line)["live"] if line else 0
        if live < self.count:
            with open(self.process.log, errors="replace") as log:
                raise RuntimeError(f"only {live} of {self.count} clients have a session: {log.read()[-300:]}")
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        self.process.wait(10)
        self.hosts.processes.remove(self.process)


def stream(hosts, tunnel, seconds, options):
    before = tunnel.cpu()[1]
    moved, took = iperf.client(hosts, seconds, options)
    return {"gbit": moved * 8 / took / 1e9, "cpu": (tunnel.cpu()[1] - before) / (max(moved, 1) / 1e9)}


def small_packets(hosts, tunnel, seconds, address, count):
    """Microseconds of the server's processor time for one 64-byte packet that it sends to `count` addresses in turn."""
    counter = lambda: interface_counter(hosts.b, interface(1), "tx_packets")
    packets, cpu = counter(), tunnel.cpu()[1]
    inside(hosts.b, native("pps"), "send", address, "9", str(seconds), "64", str(SMALL_RATE), str(count))
    return (tunnel.cpu()[1] - cpu) / max(1, counter() - packets) * 1e6


def measure(program, count, seconds):
    others = count - 1
    configuration = run_command(with_data_plane("clients"), "config", str(others), "192.0.2.1") if others else ""
    with Hosts() as hosts, Tunnel(hosts, program, program, far_peers=configuration) as tunnel:
        inside(hosts.b, "ip", "route", "add", "10.128.0.0/9", "dev", interface(1))
        figure = {"setconf": tunnel.setconf_seconds, "idle": tunnel.memory()[1]}
        live = min(LIVE_MOST, others)
        if live:
            with Clients(hosts, tunnel.public_keys[1], live):
                figure.update(load(hosts, tunnel, seconds, live))
        else:
            figure.update(load(hosts, tunnel, seconds, 0))
        return figure


def load(hosts, tunnel, seconds, live):
    with iperf.Server(hosts):
        figure = {"live": live, "in": stream(hosts, tunnel, seconds, []), "out": stream(hosts, tunnel, seconds, ["-R"])}
    figure["small"] = small_packets(hosts, tunnel, min(seconds, 1.5), "10.77.0.1", 1)
    if live:
        figure["small, in turn"] = small_packets(hosts, tunnel, min(seconds, 1.5), "10.128.0.0", live)
    figure["loaded"] = tunnel.memory()[1]
    return figure


# Row, how to find it in a run, and how to show it.
ROWS = (
    ("TCP into the server, Gbit/s", lambda f: f["in"]["gbit"], "{:.2f}"),
    ("TCP out of the server, Gbit/s", lambda f: f["out"]["gbit"], "{:.2f}"),
    ("CPU of the server, in, s/GB", lambda f: f["in"]["cpu"], "{:.2f}"),
    ("CPU of the server, out, s/GB", lambda f: f["out"]["cpu"], "{:.2f}"),
    ("CPU for a 64-byte packet to one peer, us", lambda f: f["small"], "{:.2f}"),
    ("the same to the live peers in turn, us", lambda f: f.get("small, in turn"), "{:.2f}"),
    ("wg setconf, s", lambda f: f["setconf"], "{:.3f}"),
    ("owned memory, configured, MB", lambda f: f["idle"]["owned"] / 1e6, "{:.1f}"),
    ("owned memory under load, MB", lambda f: f["loaded"]["owned"] / 1e6, "{:.1f}"),
    ("peak resident memory, MB", lambda f: f["loaded"]["peak"] / 1e6, "{:.1f}"),
)


def run(ours, peers, rounds, seconds, counts=COUNTS):
    programs = [ours, *peers]
    runs = {program.name: {count: [] for count in counts} for program in programs}
    for _ in range(rounds):
        for count in counts:
            for program in programs:
                runs[program.name][count].append(measure(program, count, seconds))
    header = ["with peers", *(f"{program.name}, {count:,}" for program in programs for count in counts)]
    figures, rows = {}, []
    for name, find, form in ROWS:
        cells = []
        for program in programs:
            for count in counts:
                values = [v for v in map(find, runs[program.name][count]) if v is not None]
                figures.setdefault(program.name, {}).setdefault(str(count), {})[name] = summary(values)
                cells.append(form.format(summary(values)["median"]) if values else "-")
        rows.append((name, *cells))
    results = {"figures": figures, "live": min(LIVE_MOST, max(counts) - 1), "to one peer": {}, "most": max(counts)}
    text = table(header, rows)
    for program in programs:
        ratio = {
            what: counted_ratios([f[what]["gbit"] for f in runs[program.name][max(counts)]], [f[what]["gbit"] for f in runs[program.name][min(counts)]])
            for what in ("in", "out")
        }
        results["to one peer"][program.name] = ratio
        text += f"\nthroughput of {program.name} with {max(counts):,} peers over one: in {show(ratio['in'])}, out {show(ratio['out'])}"
    return results, text
