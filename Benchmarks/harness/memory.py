"""`memory`: owned (RssAnon + RssShmem) and resident memory of the whole process, idle and at full rate in both directions, the
worse end. With more peers: see `peers`."""
import time

from . import iperf
from .figures import table
from .hosts import Hosts
from .tunnels import Tunnel

SAMPLE_SECONDS = 0.1


def worst(samples, key):
    return max(sample[key] for sample in samples)


def watch(tunnel, running):
    """Samples of both ends while `running()`: seconds since the start, and for each end what memory_of says."""
    begin, samples = time.monotonic(), []
    while running():
        samples.append((time.monotonic() - begin, tunnel.memory()))
        time.sleep(max(0.0, begin + len(samples) * SAMPLE_SECONDS - time.monotonic()))
    return samples


def measure(program, seconds):
    with Hosts() as hosts, Tunnel(hosts, program, program) as tunnel, iperf.Server(hosts):
        idle = tunnel.memory()
        bulk = hosts.start(hosts.a, *iperf.command(seconds, "--bidir"))
        samples = watch(tunnel, lambda: bulk.poll() is None)
        if bulk.returncode != 0:
            raise RuntimeError(f"iperf3 ended with {bulk.returncode} under {program.name}")
        every = [end for _, ends in samples for end in ends]
        return {
            "idle owned": worst(idle, "owned"),
            "idle resident": worst(idle, "resident"),
            "full rate owned": worst(every, "owned"),
            "full rate peak resident": worst(every, "peak"),
            "samples": len(samples),
            "over time": [[round(t, 2), worst(ends, "owned"), worst(ends, "resident")] for t, ends in samples],
        }


WHAT = ("idle owned", "idle resident", "full rate owned", "full rate peak resident")


def run(ours, peers, seconds):
    programs = [ours, *peers]
    figures = {program.name: measure(program, seconds) for program in programs}
    rows = [(what, *(f"{figures[p.name][what] / 1e6:.1f}" for p in programs)) for what in WHAT]
    text = table(("memory, MB", *(p.name for p in programs)), rows)
    counts = ", ".join(f"{figures[p.name]['samples']} of {p.name}" for p in programs)
    return {"unit": "bytes, the worse end", "seconds": seconds, "figures": figures}, f"{text}\nsamples: {counts}, one every 100 ms for {seconds:g} s, both directions"
