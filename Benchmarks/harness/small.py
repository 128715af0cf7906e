"""`small`: packets of 64 bytes of UDP payload over a sweep of offered rates. Two figures: the rate `sustained`, which is the
highest that was sent with less than 1 % of the packets lost (interpolated to the next rate above it), and the most
delivered at any rate."""
import json
import subprocess

from .figures import counted_ratios, show, summary, sustained, table
from .headline import PEER_FIGURES
from .hosts import Hosts, inside, within
from .iperf import listening
from .native import native
from .tunnels import Tunnel

RATES = [10_000, 25_000, 50_000, 75_000, 100_000, 150_000, 200_000, 300_000, 400_000, 0]


def offer(hosts, rate, seconds, size=64):
    """Sends from host a to host b for `seconds`: what was sent and delivered per second, and the share lost."""
    pps = native("pps")
    receiver = hosts.start(hosts.b, pps, "recv", "10.77.0.2", "9000", str(seconds + 5), stdout=subprocess.PIPE)
    within(5, lambda: listening(hosts.b, 9000))
    sender = json.loads(inside(hosts.a, pps, "send", "10.77.0.2", "9000", str(seconds), str(size), str(rate)))
    output, _ = receiver.communicate(timeout=30)
    hosts.processes.remove(receiver)
    got = json.loads(output)
    return {
        "offered": rate,
        "sent": sender["sent"] / sender["seconds"],
        "delivered": got["received"] / max(sender["seconds"], got["seconds"]),
        "loss": max(0.0, 1 - got["received"] / sender["sent"]),
    }


def sweep(program, seconds, rates):
    with Hosts() as hosts, Tunnel(hosts, program, program):
        return [offer(hosts, rate, seconds) for rate in rates]


def median_row(runs, index):
    return {key: summary(run[index][key] for run in runs)["median"] for key in ("sent", "delivered", "loss")}


def run(ours, peers, rounds, seconds, rates=None):
    rates = rates or RATES
    programs = [ours, *peers]
    sweeps = {program.name: [] for program in programs}
    for _ in range(rounds):
        for program in programs:
            sweeps[program.name].append(sweep(program, seconds, rates))
    figures = {
        "sustained": {name: [sustained(rows) for rows in runs] for name, runs in sweeps.items()},
        "peak": {name: [max(row["delivered"] for row in rows) for rows in runs] for name, runs in sweeps.items()},
    }
    results = {"unit": "packets a second", "sweeps": sweeps, "ratios": {}}
    text = table(
        ("offered a second", "program", "sent", "delivered", "loss"),
        [
            (f"{rate:,}" if rate else "no limit", program.name, f"{row['sent']:,.0f}", f"{row['delivered']:,.0f}", f"{row['loss']:.1%}")
            for index, rate in enumerate(rates)
            for program in programs
            for row in (median_row(sweeps[program.name], index),)
        ],
    )
    for what, values in figures.items():
        results[what] = {name: summary(v) for name, v in values.items()}
        results["ratios"][what] = {}
        label = "sustained with less than 1 % lost" if what == "sustained" else "most delivered"
        text += f"\n{label}: " + ", ".join(f"{name} {summary(v)['median']:,.0f}" for name, v in values.items())
        for peer in peers:
            # A run is judged by the most that the peer delivers: that is what it is known for.
            ratio = counted_ratios(values[ours.name], values[peer.name], PEER_FIGURES["small"], judged=figures["peak"][peer.name])
            results["ratios"][what][peer.name] = ratio
            text += f"; {ours.name} over {peer.name} {show(ratio)}"
    return results, text
