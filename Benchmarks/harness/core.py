"""`core`: engines in memory, without I/O, against direct calls of the cipher libraries."""
import json
import os
import subprocess
import tempfile

from .figures import table
from .hosts import run as run_command
from .native import with_data_plane

COUNTED = ((1420, 64), (64, 64), (1420, 1))
ROUNDS = (4, 24)


def own_and_all(path, program):
    """Instructions in a callgrind file: in the program itself and in all of it with its libraries."""
    own = every = 0
    names, current, skip = {}, "", False
    with open(path) as file:
        for line in file:
            if line.startswith(("ob=", "cob=")):  # a name stands where its number is met first
                number, _, name = line.partition("=")[2].strip().partition(" ")
                name = names.setdefault(number, name)
                current = name if line.startswith("ob=") else current
            elif line.startswith("calls="):
                skip = True  # the next line is what the callee cost, which is counted where it lies
            elif line[:1] in "0123456789+-*" and " " in line:
                if not skip:
                    cost = int(line.split()[1])
                    every += cost
                    own += cost if os.path.basename(current) == os.path.basename(program) else 0
                skip = False
    return own, every


def collect(program, function, size, batch, rounds, folder):
    path = os.path.join(folder, "callgrind.out")
    run_command(
        "valgrind", "--tool=callgrind", f"--callgrind-out-file={path}", f"--toggle-collect={function}",
        program, "count", str(size), str(batch), str(rounds), env={**os.environ, "KAPE_AEAD": "openssl"},
    )
    return own_and_all(path, program)


def instructions(program):
    """Instructions per packet by callgrind, as the difference of two lengths; with OpenSSL, since valgrind does not know the
    instructions that ipsec-mb takes. In our own code, and with libcrypto's."""
    figures = []
    with tempfile.TemporaryDirectory(prefix="kape-bench.") as folder:
        for size, batch in COUNTED:
            figure = {"size": size, "batch": batch}
            for what, function in (("seal", "kdp_engine_inside"), ("open", "kdp_engine_outside")):
                (own_0, all_0), (own_1, all_1) = (collect(program, function, size, batch, r, folder) for r in ROUNDS)
                packets = (ROUNDS[1] - ROUNDS[0]) * batch
                figure[f"{what}, ours"] = (own_1 - own_0) / packets
                figure[f"{what}, with the cipher"] = (all_1 - all_0) / packets
            figures.append(figure)
    return figures


def run(seconds, count=True):
    program = with_data_plane("core")
    figures, left_out = [], []
    for provider in ("avx512", "ipsec-mb", "openssl"):
        result = subprocess.run([program, str(seconds)], capture_output=True, text=True, env={**os.environ, "KAPE_AEAD": provider})
        if result.returncode == 0:
            figures += [json.loads(line) for line in result.stdout.splitlines()]
        else:
            left_out.append(provider)
    counts = bool(figures) and "seal_cycles" in figures[0]
    columns = ["seal_ns", "open_ns", "raw_seal_ns", "raw_open_ns"] + (["seal_cycles", "open_cycles", "seal_instructions", "open_instructions"] if counts else [])
    rows = [
        (f"{f['provider']}, {f['size']} bytes, batch {f['batch']}", *(f"{f[k]:.0f}" for k in columns), f["raw"], f"{f['raw_over_engine']:.2f}")
        for f in figures
    ]
    text = table(("engine in memory, per packet", *(c.replace("_", " ") for c in columns), "fastest raw way", "raw over engine"), rows)
    text += "".join(f"\nprovider {name}: not on this machine; left out" for name in left_out)
    if not counts:
        text += "\ncycles: perf_event does not count them on this machine"
    results = {"unit": "per packet", "figures": figures, "instructions by": "perf_event" if counts else None}
    if not counts and count:
        results["callgrind"] = instructions(program)
        results["instructions by"] = "callgrind, OpenSSL provider"
        for f in results["callgrind"]:
            text += (
                f"\ninstructions by callgrind (OpenSSL), {f['size']} bytes, batch {f['batch']}: seal {f['seal, ours']:.0f} of ours,"
                f" {f['seal, with the cipher']:.0f} with the cipher; open {f['open, ours']:.0f} of ours, {f['open, with the cipher']:.0f} with the cipher"
            )
    return results, text
