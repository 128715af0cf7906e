"""`threads`: a tunnel with two threads at each end against one with one, in turns: throughput, and processor seconds of both ends
for a gigabyte."""
from . import iperf
from .figures import ratios, show, summary, table
from .hosts import Hosts
from .tunnel import KINDS, per_gigabyte
from .tunnels import Tunnel, ours

CHOSEN = ("TCP, one stream", "TCP, four streams", "UDP, 1,300 bytes")


def measure(program, seconds, kinds=CHOSEN):
    """Of each kind: Gbit/s received, and CPU seconds of both ends for 10^9 bytes."""
    with Hosts() as hosts, Tunnel(hosts, program, program) as tunnel, iperf.Server(hosts):
        figures = {}
        for kind in kinds:
            before = tunnel.cpu()
            moved, took = iperf.client(hosts, seconds, KINDS[kind])
            figures[kind] = {"gbit": moved * 8 / took / 1e9, "cpu": sum(per_gigabyte(before, tunnel.cpu(), max(moved, 1)))}
        return figures


def compare(runs, kinds=CHOSEN):
    """Results of `runs`: by number of threads, one dictionary as of `measure` for each round."""
    results = {"unit": "Gbit/s received; CPU seconds of both ends for 10^9 bytes", "threads": {}, "over one": {}, "cpu over one": {}}
    for count, rounds in runs.items():
        results["threads"][count] = {kind: {what: summary(r[kind][what] for r in rounds) for what in ("gbit", "cpu")} for kind in kinds}
        if count != "1":
            for name, what in (("over one", "gbit"), ("cpu over one", "cpu")):
                results[name][count] = {kind: ratios([r[kind][what] for r in rounds], [r[kind][what] for r in runs["1"]]) for kind in kinds}
    return results


def text_of(results, kinds=CHOSEN):
    rows = []
    for kind in kinds:
        for count, figures in results["threads"].items():
            gbit, cpu = figures[kind]["gbit"]["median"], figures[kind]["cpu"]["median"]
            ratio = ["", ""] if count == "1" else [show(results[name][count][kind]) for name in ("over one", "cpu over one")]
            rows.append((kind, count, f"{gbit:.2f}", ratio[0], f"{cpu:.2f}", ratio[1]))
    return table(("what", "threads", "Gbit/s", "over one thread", "CPU s/GB, both ends", "over one thread"), rows)


def run(rounds, seconds, counts=(2,)):
    programs = {str(count): ours(f"kape, {count} threads", KAPE_THREADS=str(count)) for count in (1, *counts)}
    runs = {count: [] for count in programs}
    for number in range(rounds):
        # Who comes first takes turns, too: what a machine drifts by then falls on both.
        for count, program in sorted(programs.items(), reverse=number % 2 == 1):
            runs[count].append(measure(program, seconds))
    results = compare(runs)
    return results, text_of(results)
