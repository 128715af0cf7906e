"""scripts/bench [BENCHMARK...]: see Benchmarks/README.md."""
import argparse
import json
import os
import platform
import sys

from . import core, latency, memory, small, tunnel, tunnels

BENCHMARKS = ("tunnel", "small", "latency", "core", "memory")


def machine():
    with open("/proc/cpuinfo") as info:
        cpu = next((line.split(":", 1)[1].strip() for line in info if line.startswith("model name")), "unknown")
    return {"kernel": platform.release(), "cpu": cpu, "cores": os.cpu_count()}


def main():
    parser = argparse.ArgumentParser(prog="scripts/bench", description="Measures kape against its peers, alternating, in one run.")
    parser.add_argument("benchmark", nargs="*", default=[], help=f"of {', '.join(BENCHMARKS)} (default: all)")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=4)
    parser.add_argument("--mixed", action="store_true", help="also ours at one end and the peer at the other")
    parser.add_argument("--kind", action="append", choices=list(tunnel.KINDS), help="only these rows of `tunnel`")
    parser.add_argument("--memory-seconds", type=float, default=60, help="how long `memory` runs at full rate")
    parser.add_argument("--json", metavar="FILE")
    options = parser.parse_args()
    if os.getuid() != 0:
        sys.exit("bench: needs root, for network namespaces")
    chosen = options.benchmark or list(BENCHMARKS)
    unknown = [name for name in chosen if name not in BENCHMARKS]
    if unknown:
        parser.error(f"unknown benchmark {unknown[0]}")
    ours = tunnels.ours()
    peers = [peer for peer in (tunnels.wireguard_go(),) if peer]
    if not peers:
        print("missing: wireguard-go with offloads cannot be had here; its rows are left out", file=sys.stderr)
    report = {"machine": machine(), "programs": {p.name: p.version for p in (ours, *peers)}, "results": {}}
    print("  ".join(f"{key}: {value}" for key, value in report["machine"].items()))
    for program in (ours, *peers):
        print(f"{program.name}: {program.version}")
    runs = {
        "tunnel": lambda: tunnel.run(ours, peers, options.rounds, options.seconds, options.kind, options.mixed),
        "small": lambda: small.run(ours, peers, options.rounds, min(options.seconds, 2)),
        "latency": lambda: latency.run(ours, peers, options.rounds, options.seconds),
        "core": lambda: core.run(0.3),
        "memory": lambda: memory.run(ours, peers, options.memory_seconds),
    }
    for name in BENCHMARKS:
        if name in chosen:
            report["results"][name], text = runs[name]()
            print(f"\n{name}\n{text}", flush=True)
    if options.json:
        with open(options.json, "w") as file:
            json.dump(report, file, indent=1)


main()
