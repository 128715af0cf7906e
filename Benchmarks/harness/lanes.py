"""`lanes`: one engine in memory on two threads, each with a lane of its own, over one thread. In spells, some time apart: a hypervisor
moves processors, and how far two of them are from each other stays the same for seconds."""
import json
import os
import time

from .figures import ratios, show, summary, table
from .hosts import run as run_command
from .native import with_data_plane


def beside(figure):
    """What both reach together, each as a share of what it reaches alone, added: 2 when neither notices the other."""
    shares = zip(figure["beside, seal"], figure["seal"], figure["beside, open"], figure["open"])
    return summary(with_other / alone + other / other_alone for with_other, alone, other, other_alone in shares)


def evaluate(figure):
    return {
        "two": ratios(figure["seal two"], figure["seal"]),
        "apart": ratios(figure["seal apart"], figure["seal"]),
        "beside": beside(figure),
    }


def joined(spells):
    """The figures of several runs of the program as those of one."""
    figures = []
    for same in zip(*spells):
        lists = {name: sum((f[name] for f in same), []) for name, value in same[0].items() if isinstance(value, list)}
        figures.append({**same[0], **{name: sum(f[name] for f in same) for name in ("turns", "rounds")}, **lists})
    return figures


def run(seconds, spells=7, apart=6):
    outputs = []
    for spell in range(spells):
        if spell:
            time.sleep(apart)
        outputs.append(run_command(with_data_plane("lanes"), str(seconds / spells), env=dict(os.environ)))
    figures = joined([[json.loads(line) for line in output.splitlines()] for output in outputs])
    results = {"unit": "packets per second of processor time", "figures": figures, "ratios": {str(f["size"]): evaluate(f) for f in figures}}
    rows = [
        (f"{f['size']} bytes, batch {f['batch']}, {f['rounds']} rounds", *(show(r[name]) if f["rounds"] else "too busy" for name in ("two", "beside", "apart")))
        for f, r in zip(figures, results["ratios"].values())
    ]
    header = ("two threads over one", "seal for one key pair", "seal beside open, over each alone", "two engines (the machine's own)")
    return results, table(header, rows)
