"""`small`: packets of 64 bytes of UDP payload delivered per second, over a sweep of offered rates."""
import json
import subprocess

from .figures import ratios, summary, table
from .hosts import Hosts, inside
from .native import native
from .tunnels import Tunnel

RATES = [25_000, 50_000, 75_000, 100_000, 150_000, 200_000, 300_000, 400_000, 0]


def sweep(program, seconds, rates):
    """For each offered rate: sent and delivered per second."""
    pps = native("pps")
    rows = []
    with Hosts() as hosts, Tunnel(hosts, program, program):
        for rate in rates:
            receiver = hosts.start(hosts.b, pps, "recv", "10.77.0.2", "9000", str(seconds), stdout=subprocess.PIPE)
            sender = json.loads(inside(hosts.a, pps, "send", "10.77.0.2", "9000", str(seconds + 0.3), "64", str(rate)))
            output, _ = receiver.communicate(timeout=30)
            hosts.processes.remove(receiver)
            got = json.loads(output)
            rows.append({"offered": rate, "sent": sender["sent"] / sender["seconds"], "delivered": got["received"] / got["seconds"]})
    return rows


def best(rows):
    """The most delivered per second in the sweep."""
    return max(row["delivered"] for row in rows)


def run(ours, peers, rounds, seconds):
    programs = [ours, *peers]
    sweeps = {program.name: [] for program in programs}
    for _ in range(rounds):
        for program in programs:
            sweeps[program.name].append(sweep(program, seconds, RATES))
    peaks = {name: [best(rows) for rows in runs] for name, runs in sweeps.items()}
    results = {
        "unit": "packets delivered per second",
        "sweeps": sweeps,
        "peak": {name: summary(values) for name, values in peaks.items()},
        "ratios": {peer.name: ratios(peaks[ours.name], peaks[peer.name]) for peer in peers},
    }
    rows = []
    for index, rate in enumerate(RATES):
        for program in programs:
            middle = sorted(run[index]["delivered"] for run in sweeps[program.name])[rounds // 2]
            sent = sorted(run[index]["sent"] for run in sweeps[program.name])[rounds // 2]
            rows.append((f"{rate:,}" if rate else "no limit", program.name, f"{sent:,.0f}", f"{middle:,.0f}", f"{max(0, 1 - middle / sent):.1%}"))
    text = table(("offered a second", "program", "sent", "delivered", "loss"), rows)
    for peer in peers:
        r = results["ratios"][peer.name]
        text += f"\nmost delivered: {ours.name} over {peer.name} {r['median']:.2f} ({r['min']:.2f} to {r['max']:.2f})"
    return results, text
