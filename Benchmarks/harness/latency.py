"""`latency`: the round trip of a small datagram through the tunnel, idle and under one bulk TCP stream."""
import json
import time

from .figures import ratios, summary, table
from .hosts import Hosts, inside, succeeds, within
from .native import native
from .tunnels import Tunnel

FIGURES = ("p50", "p99", "p999")


def measure(program, seconds):
    rtt = native("rtt")
    with Hosts() as hosts, Tunnel(hosts, program, program):
        hosts.start(hosts.b, rtt, "echo", "10.77.0.2", "9001")
        hosts.start(hosts.b, "iperf3", "-s")
        within(5, lambda: succeeds(hosts.b, "sh", "-c", "ss -ltn | grep -q :5201 && ss -lun | grep -q :9001"))
        count = str(int(seconds * 500))
        idle = json.loads(inside(hosts.a, rtt, "probe", "10.77.0.2", "9001", count, "2000"))
        bulk = hosts.start(hosts.a, "iperf3", "-c", "10.77.0.2", "-t", str(seconds + 2))
        time.sleep(1)
        loaded = json.loads(inside(hosts.a, rtt, "probe", "10.77.0.2", "9001", count, "2000"))
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
    for state in ("idle", "under load"):
        for figure in FIGURES:
            values = {name: [r[state][figure] for r in rs] for name, rs in runs.items()}
            results["figures"][f"{state} {figure}"] = {name: summary(v) for name, v in values.items()}
            for program in programs:
                ratio = ""
                if program is not ours:
                    r = ratios(values[ours.name], values[program.name])
                    results["ratios"].setdefault(f"{state} {figure}", {})[program.name] = r
                    ratio = f"{r['median']:.2f} ({r['min']:.2f} to {r['max']:.2f})"
                rows.append((f"{state}, {figure}", program.name, f"{summary(values[program.name])['median']:,.0f}", ratio))
    return results, table(("round trip", "program", "us", f"{ours.name} over it"), rows)
