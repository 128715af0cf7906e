"""Just enough SVG for plots that can be read: charts of bars and of lines with their axes. No dependency."""
import math
from xml.sax.saxutils import escape

COLOURS = ("#1f5fa8", "#c8552b", "#3f8f4f", "#8a5aa8", "#777777", "#b08a1e")
WIDTH, LEFT, RIGHT, TOP, BOTTOM = 760, 76, 24, 48, 52
TEXT = 'font-family="sans-serif" fill="#222222"'


def text(x, y, content, size=12, anchor="start", extra=""):
    return f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" text-anchor="{anchor}" {TEXT}{extra}>{escape(str(content))}</text>'


def line(x1, y1, x2, y2, colour="#dddddd", width=1, dash=""):
    dashes = f' stroke-dasharray="{dash}"' if dash else ""
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{colour}" stroke-width="{width}"{dashes}/>'


def document(height, parts):
    body = "\n".join(parts)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" viewBox="0 0 {WIDTH} {height}">\n'
        f'<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>\n{body}\n</svg>\n'
    )


def round_number(value):
    return f"{value:,.0f}" if value >= 100 or value == int(value) else f"{value:g}"


def ticks(low, high, logarithmic):
    """Round numbers from low to high."""
    if logarithmic:
        first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
        steps = (1, 2, 5) if last - first <= 3 else (1,)
        return [m * 10.0**e for e in range(first, last + 1) for m in steps if low <= m * 10.0**e <= high * 1.0001]
    step = 10.0 ** math.floor(math.log10((high - low) / 4 or 1))
    step *= next(m for m in (1, 2, 5, 10) if (high - low) / (step * m) <= 6)
    first = math.ceil(low / step)
    return [round(i * step, 10) for i in range(first, math.floor(high / step) + 1)]


class Axis:
    """Maps values to pixels, linear or logarithmic."""

    def __init__(self, low, high, start, end, logarithmic=False):
        self.logarithmic, self.start, self.end = logarithmic, start, end
        self.low, self.high = low, high if high > low else low + 1

    def at(self, value):
        if self.logarithmic:
            share = (math.log(value) - math.log(self.low)) / (math.log(self.high) - math.log(self.low))
        else:
            share = (value - self.low) / (self.high - self.low)
        return self.start + share * (self.end - self.start)

    def ticks(self):
        return ticks(self.low, self.high, self.logarithmic)


def lines(title, x_label, y_label, series, x_log=False, y_log=False, x_ticks=None):
    """A chart of curves: `series` is a list of (name, [(x, y), ...]). `x_ticks` are (value, label)."""
    height = 420
    points = [p for _, curve in series for p in curve if (p[0] > 0 or not x_log) and (p[1] > 0 or not y_log)]
    if not points:
        return document(height, [text(LEFT, 30, title, 16), text(LEFT, 80, "nothing was measured")])
    xs, ys = [p[0] for p in points], [p[1] for p in points]
    x = Axis(min(xs), max(xs), LEFT, WIDTH - RIGHT, x_log)
    y = Axis(min(ys) if y_log else 0, max(ys) * 1.05, height - BOTTOM, TOP + 24, y_log)
    parts = [text(LEFT, 26, title, 16)]
    for value in y.ticks():
        parts += [line(LEFT, y.at(value), WIDTH - RIGHT, y.at(value)), text(LEFT - 8, y.at(value) + 4, round_number(value), anchor="end")]
    for value, label in x_ticks or [(v, round_number(v)) for v in x.ticks()]:
        if x.low <= value <= x.high:
            parts += [line(x.at(value), y.start, x.at(value), y.start + 5, "#222222"), text(x.at(value), y.start + 20, label, anchor="middle")]
    parts += [line(LEFT, y.start, WIDTH - RIGHT, y.start, "#222222"), text((LEFT + WIDTH - RIGHT) / 2, height - 12, x_label, anchor="middle")]
    parts.append(text(18, (TOP + y.start) / 2, y_label, anchor="middle", extra=f' transform="rotate(-90 18 {(TOP + y.start) / 2:.1f})"'))
    at = LEFT
    for index, (name, curve) in enumerate(series):
        colour = COLOURS[index % len(COLOURS)]
        kept = [(x.at(a), y.at(b)) for a, b in curve if (a > 0 or not x_log) and (b > 0 or not y_log)]
        path = " ".join(f"{a:.1f},{b:.1f}" for a, b in kept)
        parts.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
        if len(kept) <= 20:
            parts += [f'<circle cx="{a:.1f}" cy="{b:.1f}" r="3" fill="{colour}"/>' for a, b in kept]
        parts += [line(at, 44, at + 18, 44, colour, 3), text(at + 24, 48, name)]
        at += 44 + 7 * len(name)
    return document(height, parts)


HALO = ' stroke="#ffffff" stroke-width="3" paint-order="stroke"'


def bars(title, rows, note="", mark="target", most=3.0):
    """Horizontal bars against one mark, which is at 1. `rows` are (label, value, text, good). A bar longer than `most` ends at the
    edge with an arrow."""
    left, step, top = 372, 30, 60
    height = top + step * len(rows) + 40
    x = Axis(0, most, left, WIDTH - 112)
    parts = [text(16, 26, title, 16), text(16, 44, note, 11), line(x.at(1), top - 4, x.at(1), height - 34, "#222222", 1, "4 3")]
    parts.append(text(x.at(1), height - 18, mark, 11, "middle"))
    for index, (label, value, shown, good) in enumerate(rows):
        y = top + step * index
        end = x.at(min(value, most))
        parts += [
            text(left - 8, y + 15, label, 11, "end"),
            f'<rect x="{left}" y="{y + 3}" width="{max(1.0, end - left):.1f}" height="16" fill="{COLOURS[2 if good else 1]}"/>',
            text(end + 6, y + 16, shown + (" →" if value > most else ""), 11, extra=HALO),
        ]
    return document(height, parts)
