"""Results of the form that a run has, small enough to read, for the tests of what is made of them."""
from harness.figures import counted_ratios, summary
from harness.headline import PEER_FIGURES
from harness.threads import CHOSEN, compare

PEER = "wireguard-go"


def tunnel(ours=6.0, peer=3.0):
    figure = lambda known: counted_ratios([ours], [peer], known)
    kinds = PEER_FIGURES["tunnel"]
    return {
        "ratios": {kind: {f"{PEER}/{PEER}": figure(known)} for kind, known in kinds.items()},
        "mixed": True,
        "mixed over peer": {kind: {f"kape/{PEER}": figure(known), f"{PEER}/kape": figure(known)} for kind, known in kinds.items()},
        "calls": {"kape/kape": {"sender": summary([3.0]), "receiver": summary([2.6])}},
        "io_uring": {"calls": {"sender": summary([0.9]), "receiver": summary([1.1])}},
    }


def latency(ours=100.0, peer=200.0):
    distribution = [[q / 100, 50 + q] for q in range(100)] + [[0.999, 400.0], [1.0, 900.0]]
    run = {state: {"p50": ours, "distribution": distribution} for state in ("idle", "under load")}
    ratio = {PEER: counted_ratios([ours], [peer], 290, True)}
    return {"runs": {"kape": [run, run], PEER: [run]}, "ratios": {"idle p50": ratio, "under load p99": ratio}}


def small():
    sweep = [{"sent": rate, "delivered": rate * 0.9, "loss": 0.1} for rate in (10_000, 50_000)]
    return {"sweeps": {"kape": [sweep, sweep], PEER: [sweep]}, "ratios": {"sustained": {PEER: counted_ratios([300_000], [50_000])}}}


def core():
    figure = {"provider": "ipsec-mb", "seal_ns": 500.0, "open_ns": 510.0, "raw_over_engine": 0.95}
    return {"figures": [{**figure, "size": size, "batch": batch} for size in (64, 1420) for batch in (1, 64)]}


def lanes():
    return {"ratios": {size: {name: summary([value]) for name in ("two", "beside", "apart")} for size, value in (("64", 1.9), ("1420", 1.85))}}


def memory():
    over_time = [[i / 10, 2_000_000 + i, 9_000_000] for i in range(30)]
    figure = {"full rate owned": 3_000_000, "full rate peak resident": 9_500_000, "over time": over_time}
    return {"figures": {"kape": figure, PEER: {**figure, "full rate owned": 150_000_000}}}


def peers(most=10_000):
    figure = {"peak resident memory, MB": summary([24.0]), "wg setconf, s": summary([0.16])}
    ratio = {"in": counted_ratios([3.0], [3.1]), "out": counted_ratios([3.0], [3.0])}
    return {"figures": {"kape": {str(most): figure}}, "to one peer": {"kape": ratio}, "most": most}


def null():
    share = lambda value: summary([value])
    names = {"WireGuard over no cipher": 0.8, "AES-256-GCM over no cipher": 0.95, "no cipher over the bare veth": 0.4}
    return {"shares": {name: share(value) for name, value in names.items()}}


def threads(two=3.0, one=3.0):
    rounds = lambda gbit: [{kind: {"gbit": gbit, "cpu": 2.0} for kind in CHOSEN}]
    return compare({"1": rounds(one), "2": rounds(two)})


def every():
    return {
        "threads": threads(),
        "tunnel": tunnel(12.0, 3.0),
        "small": small(),
        "latency": latency(),
        "core": core(),
        "memory": memory(),
        "peers": peers(),
        "null": null(),
        "handshake": {"figures": {"ratio": 0.88}},
        "lanes": lanes(),
        "gates": {"allocations": 0},
    }
