"""The C programs, built once into .build/bench."""
import os
import shutil
import subprocess

from .tunnels import TOP

SOURCE = os.path.join(TOP, "Sources", "CKapeDataPlane")


def native(name):
    """A program of one file; its path."""
    source = os.path.join(TOP, "Benchmarks", "native", name + ".c")
    program = os.path.join(TOP, ".build", "bench", name)
    if not os.path.exists(program) or os.path.getmtime(program) < os.path.getmtime(source):
        os.makedirs(os.path.dirname(program), exist_ok=True)
        subprocess.run(["cc", "-O2", "-Wall", "-Wextra", source, "-o", program], check=True)
    return program


def with_data_plane(name):
    """A program that uses the data plane: always built anew from its sources, with the toolchain's clang; its path."""
    program = os.path.join(TOP, ".build", "bench", name)
    os.makedirs(os.path.dirname(program), exist_ok=True)
    sources = [os.path.join(folder, file) for folder, _, files in os.walk(SOURCE) for file in files if file.endswith(".c")]
    clang = os.path.join(os.path.dirname(os.path.realpath(shutil.which("swift"))), "clang")
    subprocess.run(
        [clang, "-O2", "-std=gnu11", "-I" + SOURCE, "-I" + os.path.join(SOURCE, "include"), *sources,
         os.path.join(TOP, "Benchmarks", "native", name + ".c"), "-lcrypto", "-lsodium", "-luring", "-ldl", "-lpthread", "-o", program],
        check=True,
    )
    return program
