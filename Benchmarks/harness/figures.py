"""Medians, spread, and ratios pair by pair."""
import statistics


def summary(values):
    return {"median": statistics.median(values), "min": min(values), "max": max(values), "values": list(values)}


def ratios(a, b):
    """The ratio of each pair of neighbours in the alternation, summarised."""
    return summary([x / y for x, y in zip(a, b) if y])


def table(header, rows):
    """Text columns, the first to the left, the others to the right."""
    cells = [header, *rows]
    widths = [max(len(str(row[i])) for row in cells) for i in range(len(header))]
    lines = ["  ".join(str(v).ljust(w) if i == 0 else str(v).rjust(w) for i, (v, w) in enumerate(zip(row, widths))) for row in cells]
    return "\n".join(line.rstrip() for line in (lines[0], "  ".join("-" * w for w in widths), *lines[1:]))
