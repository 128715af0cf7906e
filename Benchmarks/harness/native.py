"""The C programs, built into .build/bench when they or what they are made of has changed."""
import concurrent.futures
import os
import shutil
import subprocess

from .tunnels import TOP

SOURCE = os.path.join(TOP, "Sources", "CKapeDataPlane")
NATIVE = os.path.join(TOP, "Benchmarks", "native")
BUILD = os.path.join(TOP, ".build", "bench")
INCLUDES = ["-I" + SOURCE, "-I" + os.path.join(SOURCE, "include"), "-I" + NATIVE]
LIBRARIES = ["-lcrypto", "-lsodium", "-luring", "-ldl", "-lpthread"]
# What a program has besides its own file.
PARTS = {
    "core": ("side", "counters", "raw_aead"),
    "aead": ("side", "raw_aead"),
    "handshake": ("side",),
    "lanes": ("side",),
    "clients": ("side",),
    "fixed_key": ("fixed_key_engine",),
}


def newest(*folders):
    """When a header under the folders changed last."""
    return max(
        os.path.getmtime(os.path.join(folder, name))
        for top in folders
        for folder, _, names in os.walk(top)
        for name in names
        if name.endswith(".h")
    )


def is_older(product, *sources):
    return not os.path.exists(product) or any(os.path.getmtime(product) < os.path.getmtime(s) for s in sources)


def compile_or_fail(command):
    result = subprocess.run(command, capture_output=True, text=True)
    if result.returncode != 0:
        raise RuntimeError(f"{' '.join(command[-3:])} does not build:\n{result.stderr.strip()[-2000:]}")


def native(name):
    """A program of one file without the data plane; its path."""
    source, program = os.path.join(NATIVE, name + ".c"), os.path.join(BUILD, name)
    if is_older(program, source):
        os.makedirs(BUILD, exist_ok=True)
        compile_or_fail(["cc", "-O2", "-Wall", "-Wextra", source, "-o", program])
    return program


def clang():
    """The toolchain's, which builds the product too."""
    swift = shutil.which("swift")
    if not swift:
        raise RuntimeError("swift is not on the PATH; its clang builds the benchmarks: see scripts/setup")
    return os.path.join(os.path.dirname(os.path.realpath(swift)), "clang")


def objects(sources, headers):
    """Compiles what is older than its source or than any header; the paths of all."""
    compiler, todo, made = clang(), [], []
    for source in sources:
        product = os.path.join(BUILD, "objects", os.path.relpath(source, TOP).replace("/", "-") + ".o")
        made.append(product)
        if is_older(product, source) or os.path.getmtime(product) < headers:
            todo.append([compiler, "-O2", "-std=gnu11", "-Wall", "-Wextra", *INCLUDES, "-c", source, "-o", product])
    os.makedirs(os.path.join(BUILD, "objects"), exist_ok=True)
    with concurrent.futures.ThreadPoolExecutor(min(4, os.cpu_count() or 1)) as pool:
        list(pool.map(compile_or_fail, todo))
    return made


def with_data_plane(name):
    """A program that uses the data plane, with the toolchain's clang; its path."""
    program = os.path.join(BUILD, name)
    plane = [os.path.join(folder, file) for folder, _, files in os.walk(SOURCE) for file in files if file.endswith(".c")]
    own = [os.path.join(NATIVE, part + ".c") for part in (name, *PARTS.get(name, ()))]
    made = objects(plane + own, newest(SOURCE, NATIVE))
    if is_older(program, *made):
        has_ipsec_mb = "raw_aead" in PARTS.get(name, ()) and os.path.exists("/usr/include/intel-ipsec-mb.h")
        compile_or_fail([clang(), *made, *LIBRARIES, *(["-lIPSec_MB"] if has_ipsec_mb else []), "-o", program])
    return program
