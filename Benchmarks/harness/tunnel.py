"""`tunnel`: throughput through a pair of programs, both ends on this machine; what it costs each end in processor time, and in
system calls for 64 KiB of one stream."""
import os

from . import iperf, syscalls
from .figures import counted_ratios, show, summary, table
from .headline import PEER_FIGURES
from .hosts import Hosts
from .tunnels import Tunnel, ours

KINDS = {
    "TCP, one stream": [],
    "TCP, one stream, reverse": ["-R"],
    "TCP, four streams": ["-P", "4"],
    "UDP, 1,300 bytes": ["-u", "-b", "0", "-l", "1300"],
}
ONE_STREAM = "TCP, one stream"


def per_gigabyte(before, after, moved):
    """Seconds for 10^9 bytes, of each end: host a sends, unless reversed."""
    return [None if b is None else (a - b) / (moved / 1e9) for b, a in zip(before, after)]


def count_calls(hosts, tunnel, seconds):
    """System calls of each end for 64 KiB of payload of one TCP stream; None where they cannot be counted."""
    if any(process is None for process in tunnel.processes):
        return None
    calls, (moved, _) = syscalls.during([p.pid for p in tunnel.processes], lambda: iperf.client(hosts, seconds))
    return [count / (moved / 65536) for count in calls] if calls and moved else None


def uses_io_uring(tunnel):
    folder = f"/proc/{tunnel.processes[0].pid}/fd"
    return any("io_uring" in os.readlink(os.path.join(folder, fd)) for fd in os.listdir(folder))


def measure(near, far, seconds, kinds, calls):
    with Hosts() as hosts, Tunnel(hosts, near, far) as tunnel, iperf.Server(hosts):
        figures = {}
        for kind in kinds:
            before = tunnel.cpu()
            moved, took = iperf.client(hosts, seconds, KINDS[kind])
            figures[kind] = {"gbit": moved * 8 / took / 1e9, "cpu": per_gigabyte(before, tunnel.cpu(), max(moved, 1))}
        if calls:
            figures["calls"] = count_calls(hosts, tunnel, min(seconds, 2))
        return figures


def measure_io_uring(seconds, rounds):
    """Ours over io_uring: system calls and throughput of one stream; None where the kernel refuses it."""
    program = ours("kape, io_uring", KAPE_BACKEND="io_uring")
    gbit, calls, cpu = [], [], []
    for _ in range(rounds):
        with Hosts() as hosts, Tunnel(hosts, program, program) as tunnel, iperf.Server(hosts):
            if not uses_io_uring(tunnel):
                return None
            before = tunnel.cpu()
            moved, took = iperf.client(hosts, seconds)
            gbit.append(moved * 8 / took / 1e9)
            cpu.append(sum(per_gigabyte(before, tunnel.cpu(), max(moved, 1))))
            counted = count_calls(hosts, tunnel, min(seconds, 2))
            if counted:
                calls.append(counted)
    return {"gbit": summary(gbit), "cpu, both ends": summary(cpu), "calls": calls_summary(calls)}


def calls_summary(calls):
    return {end: summary(c[i] for c in calls) for i, end in enumerate(("sender", "receiver"))} if calls else None


def pairs_of(ours_program, peers, secondary, mixed):
    pairs = {f"{ours_program.name}/{ours_program.name}": (ours_program, ours_program)}
    for peer in peers:
        pairs[f"{peer.name}/{peer.name}"] = (peer, peer)
        if mixed:
            pairs[f"{ours_program.name}/{peer.name}"] = (ours_program, peer)
            pairs[f"{peer.name}/{ours_program.name}"] = (peer, ours_program)
    for peer in secondary:
        pairs[f"{peer.name}/{peer.name}"] = (peer, peer)
    return pairs


def text_of(results, base, kinds, pairs):
    rows = []
    for kind in kinds:
        for name in pairs:
            figure = results["pairs"][name][kind]
            cpu = [f"{c['median']:.2f}" if c["median"] is not None else "-" for c in results["cpu"][name][kind]]
            ratio = "" if name == base else show(results["ratios"][kind][name])
            rows.append((kind, name, f"{figure['median']:.2f}", f"{figure['min']:.2f} to {figure['max']:.2f}", " / ".join(cpu), ratio))
    text = table(("what", "near end/far end", "Gbit/s", "spread", "CPU s/GB, near / far", f"{base} over it"), rows)
    for name, calls in results["calls"].items():
        if calls:
            text += f"\nsystem calls for 64 KiB of one stream, {name}: sender {calls['sender']['median']:.2f}, receiver {calls['receiver']['median']:.2f}"
        else:
            text += f"\nsystem calls of {name}: not counted (no tracepoint here, or no process of its own)"
    ring = results.get("io_uring")
    if ring is None:
        return text + "\nio_uring: refused by this kernel; left out"
    calls = ring["calls"]
    counted = f"sender {calls['sender']['median']:.2f}, receiver {calls['receiver']['median']:.2f} system calls for 64 KiB, " if calls else ""
    return text + f"\nour io_uring backend, one stream: {counted}{ring['gbit']['median']:.2f} Gbit/s, CPU of both ends {ring['cpu, both ends']['median']:.2f} s/GB"


def run(ours_program, peers, secondary, rounds, seconds, kinds=None, mixed=True):
    """Alternates ours/ours with each peer/peer and the mixtures, `rounds` times. Returns the results and a table."""
    kinds = list(kinds or KINDS)
    pairs = pairs_of(ours_program, peers, secondary, mixed)
    base = f"{ours_program.name}/{ours_program.name}"
    runs = {name: [] for name in pairs}
    for _ in range(rounds):
        for name, (near, far) in pairs.items():
            runs[name].append(measure(near, far, seconds, kinds, calls=near is far))
    values = {name: {kind: [r[kind]["gbit"] for r in rs] for kind in kinds} for name, rs in runs.items()}
    results = {
        "unit": "Gbit/s received; CPU seconds for 10^9 bytes, near and far end; the near end sends unless reversed",
        "pairs": {name: {kind: summary(v) for kind, v in row.items()} for name, row in values.items()},
        "cpu": {
            name: {kind: [summary(r[kind]["cpu"][end] for r in rs if r[kind]["cpu"][end] is not None) for end in (0, 1)] for kind in kinds}
            for name, rs in runs.items()
        },
        "calls": {name: calls_summary([r["calls"] for r in rs if r["calls"]]) for name, rs in runs.items() if "calls" in rs[0]},
        "ratios": {kind: {} for kind in kinds},
        "mixed": mixed,
        "mixed over peer": {kind: {} for kind in kinds},
        "io_uring": measure_io_uring(seconds, min(rounds, 2)),
    }
    for kind in kinds:
        known = PEER_FIGURES["tunnel"].get(kind)
        for name in pairs:
            if name != base:
                is_peer = name in {f"{peer.name}/{peer.name}" for peer in peers}
                results["ratios"][kind][name] = counted_ratios(values[base][kind], values[name][kind], known if is_peer else None)
        for peer in peers if mixed else ():
            both = f"{peer.name}/{peer.name}"
            for name in (f"{ours_program.name}/{peer.name}", f"{peer.name}/{ours_program.name}"):
                results["mixed over peer"][kind][name] = counted_ratios(values[name][kind], values[both][kind], known)
    return results, text_of(results, base, kinds, pairs)
