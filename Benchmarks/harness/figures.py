"""Medians, spread, ratios pair by pair, and tables."""
import statistics

# A run in which a peer is below this share of what it is known to do tells more about the machine than about either.
PEER_SHARE = 0.7


def summary(values):
    values = list(values)
    if not values:
        return {"median": None, "min": None, "max": None, "values": []}
    return {"median": statistics.median(values), "min": min(values), "max": max(values), "values": values}


def ratios(a, b):
    """The ratio of each pair of neighbours in the alternation, summarised."""
    return summary([x / y for x, y in zip(a, b) if y])


def came_near(value, known, lower_is_better=False):
    """Whether a peer did what it is known to do, or nearly; `known` None: nothing is known."""
    if known is None:
        return True
    return value <= known / PEER_SHARE if lower_is_better else value >= known * PEER_SHARE


def counted_ratios(ours, peer, known=None, lower_is_better=False, judged=None):
    """As `ratios`, but pairs in which the peer did not come near what it is known to do are left out, and how many of how
    many were counted is said. `judged`: what is compared with `known`, where that is not the peer's value itself."""
    pairs = [(x, y, came_near(j, known, lower_is_better)) for x, y, j in zip(ours, peer, judged or peer) if y]
    result = summary(x / y for x, y, good in pairs if good)
    result.update(counted=sum(good for *_, good in pairs), of=len(pairs), all=summary(x / y for x, y, _ in pairs))
    return result


def sustained(rows, most_loss=0.01):
    """The highest rate that was sent with less than `most_loss` lost, interpolated towards the next rate above it. `rows`
    have `sent` a second and `loss` as a fraction."""
    points = sorted((row["sent"], row["loss"]) for row in rows)
    good = [i for i, (_, loss) in enumerate(points) if loss < most_loss]
    last = good[-1] if good else -1
    low, low_loss = points[last] if good else (0.0, 0.0)
    if last + 1 == len(points):
        return low
    high, high_loss = points[last + 1]
    return low + (high - low) * (most_loss - low_loss) / (high_loss - low_loss)


def show(ratio, digits=2):
    """"2.08 (1.48 to 4.24)"; with pairs left out, how many were counted."""
    if ratio["median"] is None:
        return "not counted"
    text = f"{ratio['median']:.{digits}f} ({ratio['min']:.{digits}f} to {ratio['max']:.{digits}f})"
    return text + (f", {ratio['counted']} of {ratio['of']} counted" if ratio.get("counted", 0) != ratio.get("of", 0) else "")


def table(header, rows):
    """Text columns, the first to the left, the others to the right."""
    cells = [header, *rows]
    widths = [max(len(str(row[i])) for row in cells) for i in range(len(header))]
    lines = ["  ".join(str(v).ljust(w) if i == 0 else str(v).rjust(w) for i, (v, w) in enumerate(zip(row, widths))) for row in cells]
    return "\n".join(line.rstrip() for line in (lines[0], "  ".join("-" * w for w in widths), *lines[1:]))
