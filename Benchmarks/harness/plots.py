"""The plots of a run, as SVG: what each shows is in its title."""
import os
import re

from . import svg
from .headline import PEER, ROWS


def share_of_target(row, entry):
    """1 is the target, more is better, also where the target is an upper bound."""
    if row.most:
        return 3.1 if entry["measured"] == 0 else row.target / entry["measured"]
    return entry["measured"] / row.target


def headline_bars(rows):
    by_what = {row.what: row for row in ROWS}
    bars = []
    for entry in rows:
        if entry["measured"] is None:
            bars.append((shorten(entry["what"]), 0, entry["outcome"], False))
            continue
        share = share_of_target(by_what[entry["what"]], entry)
        bars.append((shorten(entry["what"]), share, f"{entry['measured']:.2f} ({entry['target']})", entry["outcome"] == "reached"))
    return svg.bars("Measured over target", bars, "Each bar is one row of the headline table; longer is better, also where the target is an upper bound.")


def shorten(label, most=56):
    label = re.sub("wireguard-go", "wg-go", label)
    return label if len(label) <= most else label[: most - 1] + "…"


def ratio_bars(results):
    """Ours over the peer, of all runs that counted; where less is better, the peer over ours."""
    found = []
    for kind, ratios in results.get("tunnel", {}).get("ratios", {}).items():
        found.append((f"throughput: {kind}", ratios.get(f"{PEER}/{PEER}"), False))
    for what, ratios in results.get("small", {}).get("ratios", {}).items():
        found.append((f"64-byte packets a second, {what}", ratios.get(PEER), False))
    for what, ratios in results.get("latency", {}).get("ratios", {}).items():
        found.append((f"round trip, {what.replace('p999', '99.9 %').replace('p99', '99 %').replace('p50', 'median')}", ratios.get(PEER), True))
    rows = []
    for label, ratio, inverse in found:
        middle = ratio and ratio["median"]
        value = (1 / middle if inverse else middle) if middle else 0
        rows.append((label, value, f"{value:.2f} times" if middle else "not counted" if ratio else "missing", value >= 1))
    return svg.bars(f"kape against {PEER}", rows, "How many times better: more throughput, a shorter round trip. Medians of alternating runs.", PEER, 8.0)


def throughput_by_size(core):
    """Gbit/s that one core seals, by packet size."""
    series = {}
    for f in core["figures"]:
        if f["batch"] in (1, 64):
            series.setdefault(f"{f['provider']}, batch {f['batch']}", []).append((f["size"], f["size"] * 8 / f["seal_ns"]))
    sizes = sorted({f["size"] for f in core["figures"]})
    return svg.lines(
        "Sealed by one core, against packet size", "bytes of a packet", "Gbit/s", sorted(series.items()),
        x_log=True, x_ticks=[(size, f"{size:,}") for size in sizes],
    )


def memory_over_time(memory):
    series = [
        (f"{name}, {what}", [(sample[0], sample[column] / 1e6) for sample in figure["over time"]])
        for name, figure in memory["figures"].items()
        for what, column in (("owned", 1), ("resident", 2))
    ]
    return svg.lines("Memory at full rate, the worse end", "seconds", "MB", series, y_log=True)


def latency_distribution(latency, state):
    """The share of round trips that take longer than a time; the median of the rounds at each share."""
    series = []
    for name, runs in latency["runs"].items():
        curves = [run[state]["distribution"] for run in runs]
        middle = []
        for index, (share, _) in enumerate(curves[0]):
            values = sorted(curve[index][1] for curve in curves)
            if 1 - share >= 0.0001:
                middle.append((values[len(values) // 2], (1 - share) * 100))
        series.append((name, middle))
    return svg.lines(f"Round trip through the tunnel, {state}", "microseconds", "% that take longer", series, x_log=True, y_log=True)


def small_packets(small):
    series = []
    for name, sweeps in small["sweeps"].items():
        points = sorted(
            (sorted(sweep[i]["sent"] for sweep in sweeps)[len(sweeps) // 2], sorted(sweep[i]["delivered"] for sweep in sweeps)[len(sweeps) // 2])
            for i in range(len(sweeps[0]))
        )
        series.append((name, [(sent / 1000, got / 1000) for sent, got in points]))
    return svg.lines("Packets of 64 bytes", "thousands a second sent", "thousands a second delivered", series)


def draw(report):
    """File names and their contents, of what the report has."""
    results, plots = report["results"], {}
    if report.get("headline"):
        plots["headline.svg"] = headline_bars(report["headline"])
    if {"tunnel", "small", "latency"} & results.keys():
        plots["ratios.svg"] = ratio_bars(results)
    if "core" in results:
        plots["throughput-by-size.svg"] = throughput_by_size(results["core"])
    if "memory" in results:
        plots["memory-over-time.svg"] = memory_over_time(results["memory"])
    if "latency" in results:
        plots["latency-idle.svg"] = latency_distribution(results["latency"], "idle")
        plots["latency-under-load.svg"] = latency_distribution(results["latency"], "under load")
    if "small" in results:
        plots["small-packets.svg"] = small_packets(results["small"])
    return plots


def write(report, folder):
    os.makedirs(folder, exist_ok=True)
    for name, content in draw(report).items():
        with open(os.path.join(folder, name), "w") as file:
            file.write(content)
