"""`aead`: providers through our table against direct calls of the libraries, in batches of 64."""
import json

from .figures import table
from .hosts import run as run_command
from .native import with_data_plane


def best(figures, kind):
    """The fastest way of a kind."""
    return min((f for f in figures if f["kind"] == kind), key=total)


def total(figure):
    return figure["seal_ns"] + figure["open_ns"]


def run(seconds):
    figures = [json.loads(line) for line in run_command(with_data_plane("aead"), str(seconds)).splitlines()]
    rows, shares = [], {}
    for algorithm, size in dict.fromkeys((f["algorithm"], f["size"]) for f in figures):
        group = [f for f in figures if (f["algorithm"], f["size"]) == (algorithm, size)]
        fastest = best(group, "raw")
        shares[f"{algorithm}, {size} bytes"] = total(fastest) / total(best(group, "table"))
        for f in group:
            name = f"our table, {f['name']}" if f["kind"] == "table" else f["name"]
            rows.append((f"{algorithm}, {size} bytes", name, f"{f['seal_ns']:.0f}", f"{f['open_ns']:.0f}", f"{total(fastest) / total(f):.2f}"))
    text = table(("batches of 64", "way", "seal, ns", "open, ns", "speed over the fastest library"), rows)
    return {"unit": "ns per packet", "figures": figures, "best of our table over the fastest library": shares}, text
