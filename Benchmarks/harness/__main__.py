"""scripts/bench [BENCHMARK...]: see Benchmarks/README.md."""
import argparse
import json
import os
import signal
import subprocess
import sys
import time
import traceback

from . import aead, core, environment, gates, handshake, headline, iperf, lanes, latency, memory, null, peers, plots, report, small, threads, tunnel, tunnels

QUICK = {"rounds": 1, "seconds": 1, "memory_seconds": 3, "core_seconds": 0.05}

# Name, and how it is run with our program, its peers and the options.
BENCHMARKS = {
    "tunnel": lambda c: tunnel.run(c.ours, c.peers, c.secondary, c.rounds, c.seconds, c.kind, not c.no_mixed),
    "small": lambda c: small.run(c.ours, c.peers, c.rounds, min(c.seconds, 1.5)),
    "latency": lambda c: latency.run(c.ours, c.peers, c.rounds, c.seconds + 1),
    "core": lambda c: core.run(c.core_seconds, not c.quick),
    "aead": lambda c: aead.run(c.core_seconds),
    "lanes": lambda c: lanes.run(30 * c.core_seconds, *((1, 0) if c.quick else ())),
    "handshake": lambda c: handshake.run(c.ours, c.peers, c.rounds, c.seconds),
    "memory": lambda c: memory.run(c.ours, c.peers, c.memory_seconds),
    "peers": lambda c: peers.run(c.ours, c.peers, c.rounds, c.seconds),
    "null": lambda c: null.run(c.ours, c.rounds, c.seconds),
    "threads": lambda c: threads.run(c.rounds if c.quick else 4 * c.rounds, min(c.seconds, 2)),
    "gates": lambda c: gates.run(),
}


def parse(arguments):
    parser = argparse.ArgumentParser(prog="scripts/bench", description="Measures kape against its peers, alternating, in one run.")
    parser.add_argument("benchmark", nargs="*", default=[], help=f"of {', '.join(BENCHMARKS)} (default: all)")
    parser.add_argument("--rounds", type=int, default=3, help="alternations of ours and the peers (3)")
    parser.add_argument("--seconds", type=float, default=3, help="of each measurement (3)")
    parser.add_argument("--memory-seconds", type=float, default=60, help="how long `memory` runs at full rate (60)")
    parser.add_argument("--core-seconds", type=float, default=0.3, help="of each figure of `core` and `aead` (0.3)")
    parser.add_argument("--congestion", default=iperf.congestion, help=f"TCP congestion control of iperf3 ({iperf.congestion})")
    parser.add_argument("--quick", action="store_true", help="everything once and short: to see that it works")
    parser.add_argument("--no-mixed", action="store_true", help="`tunnel` without ours at one end and the peer at the other")
    parser.add_argument("--kind", action="append", choices=list(tunnel.KINDS), help="only these rows of `tunnel`")
    parser.add_argument("--json", metavar="FILE", help="all figures")
    parser.add_argument("--plots", metavar="DIR", help="SVG plots")
    parser.add_argument("--check", action="store_true", help="exit 1 when a row of the headline is below its target or missing")
    parser.add_argument("--write-docs", action="store_true", help="put the headline table into docs/performance.md")
    parser.add_argument("--from", dest="source", metavar="FILE", help="measure nothing: print, plot and check what --json has written")
    options = parser.parse_args(arguments)
    unknown = [name for name in options.benchmark if name not in BENCHMARKS]
    if unknown:
        parser.error(f"unknown benchmark {unknown[0]}: there are {', '.join(BENCHMARKS)}")
    iperf.congestion = options.congestion
    if options.quick:
        for name, value in QUICK.items():
            setattr(options, name, value)
    if options.rounds < 1 or min(options.seconds, options.memory_seconds, options.core_seconds) <= 0:
        parser.error("--rounds and the seconds must be above zero")
    return options


def find_programs(options):
    """Sets what is compared; says what cannot be had."""
    options.ours = tunnels.ours()
    fastest = tunnels.wireguard_go()
    others = {"wireguard-go-2022 (Debian 12, without offloads)": tunnels.wireguard_go_2022(), "the kernel's WireGuard": tunnels.kernel()}
    options.peers = [fastest] if fastest else []
    options.secondary = [program for program in others.values() if program]
    missing = [name for name, program in {"wireguard-go with offloads (Debian 13)": fastest, **others}.items() if not program]
    missing.append("boringtun (no Debian package; the one in mitmproxy_rs has no TUN, so there is no tunnel to compare)")
    for name in missing:
        print(f"missing, left out: {name}")
    return missing


def measure(options):
    if os.getuid() != 0:
        sys.exit("bench: needs root, for network namespaces")
    machine = environment.machine()
    print("  ".join(f"{key}: {value}" for key, value in machine.items()))
    missing = find_programs(options)
    programs = {p.name: p.version for p in (options.ours, *options.peers, *options.secondary)}
    tools = environment.tools()
    for name, version in {**programs, **tools}.items():
        print(f"{name}: {version}")
    chosen = [name for name in BENCHMARKS if name in (options.benchmark or BENCHMARKS)]
    result = {
        "machine": machine,
        "programs": programs,
        "tools": tools,
        "missing": missing,
        "options": {key: getattr(options, key) for key in ("rounds", "seconds", "memory_seconds", "core_seconds", "quick", "kind", "congestion")},
        "results": {},
        "failed": {},
    }
    for name in chosen:
        begin = time.monotonic()
        print(f"\n{name} …", flush=True)
        try:
            result["results"][name], text = BENCHMARKS[name](options)
        except (RuntimeError, OSError, ValueError, LookupError, subprocess.SubprocessError) as error:
            # The others are worth having; the exit status tells.
            traceback.print_exc()
            result["failed"][name] = text = f"FAILED: {error}"
        print(f"{text}\n({name} took {time.monotonic() - begin:.0f} s)", flush=True)
    return result


def load(path):
    try:
        with open(path) as file:
            result = json.load(file)
        if not {"machine", "programs", "options", "results", "failed"} <= result.keys():
            raise ValueError("parts are missing")
    except (OSError, ValueError, AttributeError) as error:
        sys.exit(f"bench: {path}: not a file that --json has written: {error}")
    return result


def main():
    options = parse(sys.argv[1:])
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that namespaces and processes go
    if options.source:
        result = load(options.source)
    else:
        result = measure(options)
    rows = result["headline"] = headline.headline(result["results"], result["failed"])
    if options.json:
        with open(options.json, "w") as file:
            json.dump(result, file, indent=1)
    if rows:
        print(f"\nheadline\n{report.headline_text(rows)}")
    if options.plots:
        plots.write(result, options.plots)
    if options.write_docs:
        report.write_docs(result)
    failed = headline.failures(rows)
    if options.check and (failed or not rows):
        print(f"bench: {len(failed)} of {len(rows)} rows of the headline are not reached", file=sys.stderr)
        sys.exit(1)
    if result["failed"]:
        print(f"bench: failed: {', '.join(result['failed'])}", file=sys.stderr)
        sys.exit(1)


main()
