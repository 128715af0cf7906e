"""`latency`: the round trip of a small datagram through the tunnel, idle and under one bulk TCP stream; the same UDP echo for all.
How long the tunnel's processes stood in line for a processor meanwhile is said too: where that is large, the tail of an idle round
trip is other work on the machine, not the tunnel."""
import json
import time

from . import iperf
from .figures import counted_ratios, show, summary, table
from .headline import PEER_FIGURES
from .hosts import Hosts, inside, within
from .native import native
from .tunnels import Tunnel

FIGURES = ("p50", "p99", "p999")
STATES = ("idle", "under load")
INTERVAL_US = 1000
WARM_UP = 200


def probe(hosts, count):
    return json.loads(inside(hosts.a, native("rtt"), "probe", "10.77.0.2", "9001", str(count), str(INTERVAL_US)))


def measure(program, seconds):
    with Hosts() as hosts, Tunnel(hosts, program, program) as tunnel, iperf.Server(hosts):
        hosts.start(hosts.b, native("rtt"), "echo", "10.77.0.2", "9001")
        if not within(5, lambda: iperf.listening(hosts.b, 9001)):
            raise RuntimeError("the echo did not start")
        count = int(seconds * 1e6 / INTERVAL_US)
        probe(hosts, WARM_UP)
        waited = tunnel.waited()
        idle = probe(hosts, count)
        idle["waited"] = [(after - before) / count * 1e6 for before, after in zip(waited, tunnel.waited())]
        bulk = hosts.start(hosts.a, *iperf.command(seconds + 4, control=iperf.paced()))
        time.sleep(1)
        loaded = probe(hosts, count)
        if bulk.poll() is not None:
            raise RuntimeError("the bulk stream ended before the round trips under it were measured")
        hosts.end(bulk)
        return {"idle": idle, "under load": loaded}


def run(ours, peers, rounds, seconds):
    programs = [ours, *peers]
    runs = {program.name: [] for program in programs}
    for _ in range(rounds):
        for program in programs:
            runs[program.name].append(measure(program, seconds))
    results = {"unit": "microseconds", "runs": runs, "figures": {}, "ratios": {}}
    rows = []
    for state in STATES:
        for figure in FIGURES:
            values = {name: [r[state][figure] for r in rs] for name, rs in runs.items()}
            results["figures"][f"{state} {figure}"] = {name: summary(v) for name, v in values.items()}
            for program in programs:
                ratio = ""
                if program is not ours:
                    # A run is judged by the peer's median, which is known: its tail is what is asked about.
                    medians = [run[state]["p50"] for run in runs[program.name]]
                    r = counted_ratios(values[ours.name], values[program.name], PEER_FIGURES["latency"][state], True, medians)
                    results["ratios"].setdefault(f"{state} {figure}", {})[program.name] = r
                    ratio = show(r)
                s = summary(values[program.name])
                rows.append((f"{state}, {figure}", program.name, f"{s['median']:,.0f}", f"{s['min']:,.0f} to {s['max']:,.0f}", ratio))
    lost = {name: sum(r[state]["sent"] - r[state]["back"] for r in rs for state in STATES) for name, rs in runs.items()}
    text = table(("round trip", "program", "us", "spread", f"{ours.name} over it"), rows)
    for program in programs:
        waits = summary(max(run["idle"]["waited"]) for run in runs[program.name])
        text += f"\nidle, {program.name}: the worse end waited {waits['median']:.0f} us a round trip for a processor ({waits['min']:.0f} to {waits['max']:.0f})"
    return results, text + "\nlost: " + ", ".join(f"{name} {count}" for name, count in lost.items())
