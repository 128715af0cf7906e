"""`core`: engines in memory, without I/O, against raw calls of the AEAD table."""
import json
import os
import subprocess

from .figures import table
from .native import with_data_plane


def run(seconds):
    program = with_data_plane("core")
    figures = []
    for provider in ("ipsec-mb", "openssl"):
        result = subprocess.run([program, str(seconds)], capture_output=True, text=True, env={**os.environ, "KAPE_AEAD": provider})
        if result.returncode == 0:
            figures += [json.loads(line) for line in result.stdout.splitlines()]
    rows = [
        (f"{f['provider']}, {f['size']} bytes, batch {f['batch']}", *(f"{f[k]:.0f}" for k in ("seal_ns", "open_ns", "raw_seal_ns", "raw_open_ns")), f"{f['raw_over_engine']:.2f}")
        for f in figures
    ]
    return {"unit": "ns per packet", "figures": figures}, table(("engine in memory", "seal", "open", "raw seal", "raw open", "raw over engine"), rows)
