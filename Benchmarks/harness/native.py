"""The C programs, built once into .build/bench."""
import os
import subprocess

from .tunnels import TOP


def native(name):
    source = os.path.join(TOP, "Benchmarks", "native", name + ".c")
    program = os.path.join(TOP, ".build", "bench", name)
    if not os.path.exists(program) or os.path.getmtime(program) < os.path.getmtime(source):
        os.makedirs(os.path.dirname(program), exist_ok=True)
        subprocess.run(["cc", "-O2", "-Wall", "-Wextra", source, "-o", program], check=True)
    return program
