"""`gates`: what does not depend on time is held by the ordinary tests; here worker_gates_test is run, so that the headline can say
what it found: allocations per packet in the whole process over 10^6 packets."""
import os
import re
import subprocess

from .tunnels import TOP


def run():
    result = subprocess.run(
        ["make", "-s", "-C", os.path.join(TOP, "Tests", "CKapeDataPlane"), "check", "ONLY=worker_gates_test"], capture_output=True, text=True
    )
    passed = result.returncode == 0
    calls = re.findall(r"system calls for 64 KiB: sender ([\d.]+), receiver ([\d.]+)", result.stdout)
    text = "worker_gates_test: " + ("no allocation in 10^6 packets" if passed else "FAILED\n" + (result.stdout + result.stderr)[-1500:])
    text += "".join(f"\n  system calls for 64 KiB, backend {i + 1}: sender {s}, receiver {r}" for i, (s, r) in enumerate(calls))
    return {"passed": passed, "allocations": 0 if passed else None}, text
