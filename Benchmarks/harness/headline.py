"""The headline table as data: what is aimed at, what was measured, and whether it was reached."""
import dataclasses
import typing

PEER = "wireguard-go"

# What the peer does on a quiet machine of two cores (docs/performance.md). A run in which it is below 0.7 of that is marked and
# not counted: a loaded machine slows the two by different factors.
PEER_FIGURES = {
    "tunnel": {
        "TCP, one stream": 2.8,
        "TCP, one stream, reverse": 3.6,
        "TCP, four streams": 3.2,
        "UDP, 1,300 bytes": 0.38,
    },
    "small": 50_000,
    "latency": {"idle": 290, "under load": 3200},
}

REACHED, BELOW, MISSING, NOT_COUNTED = "reached", "below", "missing", "not counted"


@dataclasses.dataclass
class Row:
    benchmark: str
    what: str
    target: float
    find: typing.Callable  # of the results of the benchmark: a number or a summary; KeyError or None: there is none
    aim: typing.Optional[float] = None
    most: bool = False  # the target is an upper bound
    unit: str = ""

    def wanted(self):
        sign = "≤" if self.most else "≥"
        aim = f", aim {self.aim:g}" if self.aim is not None else ""
        return f"{sign} {self.target:g}{self.unit}{aim}"


class NotRun(Exception):
    """The options left it out: there is no row, rather than one that is missing."""


def ratio(kind):
    def find(results):
        if kind not in results["ratios"]:
            raise NotRun
        return results["ratios"][kind][f"{PEER}/{PEER}"]

    return find


def mixed(pair):
    def find(results):
        kind = "TCP, one stream"
        if kind not in results["ratios"] or not results["mixed"]:
            raise NotRun
        return results["mixed over peer"][kind][pair]

    return find


def engine_share(results):
    """The engine with its best provider; raw calls are the fastest cipher code there is in its best shape."""
    figures = [f for f in results["figures"] if f["size"] == 1420 and f["batch"] == 64]
    return min(figures, key=lambda f: f["seal_ns"] + f["open_ns"])["raw_over_engine"]


def calls_of(end, results):
    return results["calls"]["kape/kape"][end]


def ring_calls(end, results):
    return results["io_uring"]["calls"][end]


def of_most_peers(name, scale=1):
    """A figure of ours with 10,000 peers; a run with fewer says nothing about them."""

    def find(results):
        if results["most"] < 10_000:
            return None
        figure = results["figures"]["kape"]["10000"][name]
        return {key: figure[key] * scale for key in ("median", "min", "max")}

    return find


def worse_size(name):
    """A ratio of `lanes` at the packet size where it is smaller."""
    return lambda results: min((r[name] for r in results["ratios"].values()), key=lambda r: r["median"])


def of_threads(kind):
    return lambda r: r["over one"]["2"][kind]


def worse_direction(results):
    if results["most"] < 10_000:
        return None
    return min(results["to one peer"]["kape"].values(), key=lambda r: r["median"])


ROWS = (
    Row("tunnel", "one TCP stream, ours/ours over wireguard-go at both ends", 2.0, ratio("TCP, one stream"), aim=2.4),
    Row("tunnel", "the same, reverse direction", 2.0, ratio("TCP, one stream, reverse")),
    Row("tunnel", "the same, four streams", 2.0, ratio("TCP, four streams")),
    Row("tunnel", "UDP of 1,300 bytes over wireguard-go", 4.0, ratio("UDP, 1,300 bytes")),
    Row("small", "64-byte packets a second with less than 1 % lost, over wireguard-go", 5.0, lambda r: r["ratios"]["sustained"][PEER], aim=7),
    Row("tunnel", "ours sending, wireguard-go receiving, over wireguard-go at both ends", 1.2, mixed(f"kape/{PEER}")),
    Row("tunnel", "wireguard-go sending, ours receiving, over wireguard-go at both ends", 1.2, mixed(f"{PEER}/kape")),
    Row("null", "WireGuard, share of the path without a cipher", 0.75, lambda r: r["shares"]["WireGuard over no cipher"]),
    Row("null", "AES-256-GCM, share of the path without a cipher", 0.9, lambda r: r["shares"]["AES-256-GCM over no cipher"]),
    Row("null", "the path without a cipher, share of the bare veth", 0.35, lambda r: r["shares"]["no cipher over the bare veth"]),
    Row("core", "engine, seal and open of 1,420 bytes in batches of 64, over raw AEAD calls", 0.9, engine_share),
    Row("latency", "round trip, idle, median, over wireguard-go", 0.7, lambda r: r["ratios"]["idle p50"][PEER], most=True),
    Row("latency", "round trip under one bulk stream, 99 %, over wireguard-go", 0.5, lambda r: r["ratios"]["under load p99"][PEER], most=True),
    Row("memory", "owned memory at full rate", 5, lambda r: r["figures"]["kape"]["full rate owned"] / 1e6, aim=4, most=True, unit=" MB"),
    Row("memory", "peak resident memory at full rate", 14, lambda r: r["figures"]["kape"]["full rate peak resident"] / 1e6, aim=10, most=True, unit=" MB"),
    Row("peers", "10,000 peers: peak resident memory", 60, of_most_peers("peak resident memory, MB"), most=True, unit=" MB"),
    Row("peers", "10,000 peers: throughput over one peer, the worse direction", 0.9, worse_direction),
    Row("peers", "10,000 peers: wg setconf", 1, of_most_peers("wg setconf, s"), most=True, unit=" s"),
    Row("threads", "two threads over one: one TCP stream", 0.95, of_threads("TCP, one stream")),
    Row("threads", "the same, four streams", 0.95, of_threads("TCP, four streams")),
    Row("threads", "the same, UDP of 1,300 bytes", 0.95, of_threads("UDP, 1,300 bytes")),
    Row("handshake", "handshakes answered, 1,024 peers, over four X25519 alone", 0.7, lambda r: r["figures"]["ratio"]),
    Row("lanes", "two threads sealing for one key pair, over one", 1.8, worse_size("two")),
    Row("lanes", "sealing beside opening, over each alone, added", 1.8, worse_size("beside")),
    Row("gates", "allocations per packet in steady state", 0, lambda r: r["allocations"], most=True),
    Row("tunnel", "system calls for 64 KiB, epoll, sender", 4.2, lambda r: calls_of("sender", r), most=True),
    Row("tunnel", "system calls for 64 KiB, epoll, receiver", 6.5, lambda r: calls_of("receiver", r), most=True),
    Row("tunnel", "system calls for 64 KiB, io_uring, sender", 3, lambda r: ring_calls("sender", r), most=True),
    Row("tunnel", "system calls for 64 KiB, io_uring, receiver", 3, lambda r: ring_calls("receiver", r), most=True),
)


def entry_of(row):
    return {"benchmark": row.benchmark, "what": row.what, "target": row.wanted(), "measured": None, "spread": None, "note": ""}


def judge(row, results):
    """What came of a row, given the results of its benchmark."""
    entry = entry_of(row)
    try:
        found = row.find(results)
    except (KeyError, TypeError, ValueError):
        found = None
    if found is None:
        return {**entry, "outcome": MISSING, "note": "not to be had here"}
    if not isinstance(found, dict):
        found = {"median": found, "min": found, "max": found}
    if "counted" in found and found["counted"] < found["of"]:
        entry["note"] = f"{found['of'] - found['counted']} of {found['of']} runs not counted: the peer was below 0.7 of what it does"
    if found["median"] is None:
        return {**entry, "outcome": NOT_COUNTED if found.get("of") else MISSING}
    value = found["median"]
    good = value <= row.target if row.most else value >= row.target
    return {**entry, "measured": value, "spread": [found["min"], found["max"]], "outcome": REACHED if good else BELOW}


def headline(results, failed=()):
    """The rows of the benchmarks that were run; those of one that failed are missing."""
    rows = []
    for row in ROWS:
        if row.benchmark in failed:
            rows.append({**entry_of(row), "outcome": MISSING, "note": f"{row.benchmark} failed"})
        elif row.benchmark in results:
            try:
                rows.append(judge(row, results[row.benchmark]))
            except NotRun:
                pass
    return rows


def failures(rows):
    return [row for row in rows if row["outcome"] != REACHED]


def number(value):
    return f"{value:.2f}" if abs(value) < 100 else f"{value:,.0f}"


def cells(rows):
    """Texts of each row: what, target, measured, spread, outcome."""
    for row in rows:
        measured = number(row["measured"]) if row["measured"] is not None else "-"
        low, high = row["spread"] or (None, None)
        spread = f"{number(low)} to {number(high)}" if low is not None and low != high else ""
        yield row["what"], row["target"], measured, spread, row["outcome"] + (f" ({row['note']})" if row["note"] else "")
