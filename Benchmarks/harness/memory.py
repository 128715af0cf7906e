"""`memory`: owned (RssAnon + RssShmem) and peak resident memory of the whole process, idle and at full rate in both directions."""
import time

from .figures import table
from .hosts import Hosts, memory_of, succeeds, within
from .tunnels import Tunnel


def worst(samples, key):
    return max(sample[key] for sample in samples)


def measure(program, seconds):
    with Hosts() as hosts, Tunnel(hosts, program, program) as tunnel:
        pids = [process.pid for process in tunnel.processes]
        idle = [memory_of(pid) for pid in pids]
        hosts.start(hosts.b, "iperf3", "-s")
        within(5, lambda: succeeds(hosts.b, "sh", "-c", "ss -ltn | grep -q :5201"))
        bulk = hosts.start(hosts.a, "iperf3", "-c", "10.77.0.2", "--bidir", "-t", str(seconds))
        samples = []
        while bulk.poll() is None:
            samples += [memory_of(pid) for pid in pids]
            time.sleep(0.1)
        return {
            "idle owned": worst(idle, "owned"),
            "idle resident": worst(idle, "resident"),
            "full rate owned": worst(samples, "owned"),
            "full rate peak resident": worst(samples, "peak"),
        }


def run(ours, peers, seconds):
    programs = [ours, *peers]
    figures = {program.name: measure(program, seconds) for program in programs}
    rows = [(what, *(f"{figures[p.name][what] / 1e6:.1f}" for p in programs)) for what in figures[ours.name]]
    return {"unit": "bytes, the worse end", "figures": figures}, table(("memory, MB", *(p.name for p in programs)), rows)
