"""`tunnel`: throughput through a pair of programs, both ends on this machine."""
import json

from .figures import ratios, summary, table
from .hosts import Hosts, inside, within, succeeds
from .tunnels import Tunnel

KINDS = {
    "TCP, one stream": [],
    "TCP, one stream, reverse": ["-R"],
    "TCP, four streams": ["-P", "4"],
    "UDP, 1,300 bytes": ["-u", "-b", "0", "-l", "1300"],
}


def received(hosts, seconds, options):
    """Gbit/s at the receiver."""
    report = json.loads(inside(hosts.a, "iperf3", "-J", "-c", "10.77.0.2", "-t", str(seconds), *options))
    end = report["end"]
    if "-u" in options:
        seconds_run = end["sum"]["seconds"]
        lost = end["sum"].get("lost_packets", 0)
        return (end["sum"]["packets"] - lost) * 1300 * 8 / seconds_run / 1e9
    return end["sum_received"]["bits_per_second"] / 1e9


def measure(near, far, seconds, kinds):
    with Hosts() as hosts, Tunnel(hosts, near, far):
        server = hosts.start(hosts.b, "iperf3", "-s")
        if not within(5, lambda: succeeds(hosts.b, "sh", "-c", "ss -ltn | grep -q :5201")):
            raise RuntimeError("iperf3 did not start")
        figures = {kind: received(hosts, seconds, KINDS[kind]) for kind in kinds}
        hosts.end(server)
        return figures


def run(ours, peers, rounds, seconds, kinds=None, mixed=False):
    """Alternates ours/ours with each peer/peer (and the mixtures), `rounds` times. Returns the results and a table."""
    kinds = list(kinds or KINDS)
    pairs = {f"{ours.name}/{ours.name}": (ours, ours)}
    for peer in peers:
        pairs[f"{peer.name}/{peer.name}"] = (peer, peer)
        if mixed:
            pairs[f"{ours.name}/{peer.name}"] = (ours, peer)
            pairs[f"{peer.name}/{ours.name}"] = (peer, ours)
    values = {name: {kind: [] for kind in kinds} for name in pairs}
    for _ in range(rounds):
        for name, (near, far) in pairs.items():
            for kind, figure in measure(near, far, seconds, kinds).items():
                values[name][kind].append(figure)
    results = {"unit": "Gbit/s received", "pairs": {name: {kind: summary(v) for kind, v in row.items()} for name, row in values.items()}, "ratios": {}}
    rows = []
    base = f"{ours.name}/{ours.name}"
    for kind in kinds:
        for name in pairs:
            figure = results["pairs"][name][kind]
            ratio = ""
            if name != base:
                r = ratios(values[base][kind], values[name][kind])
                results["ratios"].setdefault(kind, {})[name] = r
                ratio = f"{r['median']:.2f} ({r['min']:.2f} to {r['max']:.2f})"
            rows.append((kind, name, f"{figure['median']:.2f}", f"{figure['min']:.2f} to {figure['max']:.2f}", ratio))
    return results, table(("what", "pair", "Gbit/s", "spread", f"{base} over it"), rows)
