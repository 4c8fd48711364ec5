"""The front of two metrics -> a self-contained SVG: axes with units, every point numbered, and a list of what it takes.

It names its colours for light and dark surroundings, and says in words (`title`, `desc`) what it shows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from html import escape
from math import ceil, floor, log10
from textwrap import wrap

from solver.asking import Metric
from solver.context import Context
from solver.front import Front, FrontPoint, Pair
from solver.render.questions import place_words, written
from solver.words import FIGURES, figure

WIDTH, HEIGHT = 760, 470
LEFT, RIGHT, TOP, BOTTOM = 90, 24, 64, 70
TICKS = 5
LINE, LETTERS = 18, 104
"""Height of a line of the list under the plot, and the letters that fit into one."""
CLOSE = 26
"""Points nearer to each other than this, across and up, share a label."""
DOTS = 600
"""At most so many other launches are drawn, spread evenly over them."""
SCALES = {"token_latency_us": 1e-3}
"""Figures that are shown in another unit than they are kept in."""
LIGHT = {
    "ground": "#ffffff",
    "ink": "#202124",
    "faint": "#dadce0",
    "other": "#9aa0a6",
    "mark": "#1967d2",
    "own": "#b06000",
}
DARK = {
    "ground": "#202124",
    "ink": "#e8eaed",
    "faint": "#3c4043",
    "other": "#80868b",
    "mark": "#8ab4f8",
    "own": "#fdd663",
}
COLOURED = (
    "text {{ fill: {ink} }} .ground {{ fill: {ground} }} .grid {{ stroke: {faint} }} .axis {{ stroke: {ink} }} "
    ".other {{ fill: {other} }} .point {{ fill: {mark} }} .answer {{ fill: {own} }} .front {{ stroke: {mark} }}"
)
STYLE = f"""
text {{ font: 13px sans-serif }} .head {{ font-size: 16px; font-weight: bold }} .number {{ font-weight: bold }}
.other {{ opacity: .55 }} .axis, .front {{ fill: none }} .front {{ stroke-width: 1.5; stroke-dasharray: 5 3 }}
{COLOURED.format(**LIGHT)}
@media (prefers-color-scheme: dark) {{ {COLOURED.format(**DARK)} }}
"""


class Axis:
    """One metric along one side: where a value lies, and the values that are marked."""

    def __init__(self, metric: Metric, values: Iterable[float], start: float, end: float) -> None:
        self.metric, self.start, self.end = metric, start, end
        self.scale = SCALES.get(metric.figure, 1.0)
        shown = [v * self.scale for v in values]
        least, most = min(shown), max(shown)
        room = (most - least) * 0.06 or abs(most) * 0.1 or 1.0
        self.ticks = ticks(least - room if least < 0 else max(0.0, least - room), most + room)
        self.low, self.high = self.ticks[0], self.ticks[-1]

    def at(self, value: float) -> float:
        """The place of a value, in user units of the drawing."""
        return self.place(value * self.scale)

    def place(self, shown: float) -> float:
        return self.start + (shown - self.low) / (self.high - self.low) * (self.end - self.start)

    @property
    def title(self) -> str:
        unit = f" ({figure(self.metric.figure, 1).split(' ', 1)[1]})" if self.metric.figure in FIGURES else ""
        return f"{self.metric.title}{unit}: {'more' if self.metric.maximised else 'less'} is better"


def ticks(low: float, high: float) -> list[float]:
    """Round numbers that span a range."""
    raw = (high - low) / TICKS
    power = 10.0 ** floor(log10(raw))
    step = next(n * power for n in (1, 2, 2.5, 5, 10) if n * power >= raw * 0.999)
    first, last = floor(low / step), ceil(high / step)
    return [round(n * step, 10) for n in range(first, last + 1)]


def plot(context: Context, front: Front) -> str:
    """The drawing as text."""
    first, second = front.metrics
    places = [p.values for p in front.points]
    shown = [*front.others[:: max(1, len(front.others) // DOTS)], *places, *([front.answer] if front.answer else ())]
    if not shown:
        shown = [(0.0, 0.0)]
    across = Axis(first, [p[0] for p in shown], LEFT, WIDTH - RIGHT)
    up = Axis(second, [p[1] for p in shown], HEIGHT - BOTTOM, TOP)
    entries = [_entry(context, front, n, point) for n, point in enumerate(front.points, 1)]
    listed = [text for entry in entries for text in _lines(entry)]
    height = HEIGHT + LINE * len(listed) + 12
    title = f"{first.title} and {second.title}: the launches that no other beats in both"
    body = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" '
        'role="img" aria-labelledby="title desc">',
        f'<title id="title">{escape(title)}</title>',
        f'<desc id="desc">{escape(" ".join(entries))}</desc>',
        f"<style>{STYLE}</style>",
        f'<rect class="ground" width="{WIDTH}" height="{height}"/>',
        f'<text class="head" x="{LEFT}" y="26">{escape(title)}</text>',
        f'<text x="{LEFT}" y="46">{escape(_subject(context))}</text>',
        *_axes(across, up),
        *(_dot("other", 2.5, across.at(x), up.at(y)) for x, y in shown if (x, y) not in places),
        f'<polyline class="front" points="{_steps(places, across, up)}"/>',
        *_answer(front, across, up),
        *(_mark(point, across, up) for point in front.points),
        *_labels(front, across, up),
        *(_line(n, text) for n, text in enumerate(listed)),
        "</svg>",
    ]
    return "\n".join(body) + "\n"


def _subject(context: Context) -> str:
    return f"SGLang {context.release}, {context.model_name}, {context.hardware_name}; estimates"


def _axes(across: Axis, up: Axis) -> Iterator[str]:
    bottom, right = HEIGHT - BOTTOM, WIDTH - RIGHT
    for tick in across.ticks:
        x = across.place(tick)
        yield f'<line class="grid" x1="{x:.1f}" y1="{TOP}" x2="{x:.1f}" y2="{bottom}"/>'
        yield f'<text x="{x:.1f}" y="{bottom + 20}" text-anchor="middle">{tick:g}</text>'
    for tick in up.ticks:
        y = up.place(tick)
        yield f'<line class="grid" x1="{LEFT}" y1="{y:.1f}" x2="{right}" y2="{y:.1f}"/>'
        yield f'<text x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{tick:g}</text>'
    yield f'<path class="axis" fill="none" d="M{LEFT} {TOP}V{bottom}H{right}"/>'
    middle = (LEFT + right) / 2
    yield f'<text x="{middle:.0f}" y="{bottom + 46}" text-anchor="middle">{escape(across.title)}</text>'
    side = (TOP + bottom) / 2
    turned = f'transform="rotate(-90 22 {side:.0f})"'
    yield f'<text x="22" y="{side:.0f}" text-anchor="middle" {turned}>{escape(up.title)}</text>'


def _dot(kind: str, radius: float, x: float, y: float) -> str:
    return f'<circle class="{kind}" cx="{x:.1f}" cy="{y:.1f}" r="{radius:g}"/>'


def _steps(places: list[Pair], across: Axis, up: Axis) -> str:
    """The border of what can be reached: from point to point, worse in one metric only."""
    corners: list[tuple[float, float]] = []
    for x, y in places:
        if corners:
            corners.append((across.at(x), corners[-1][1]))
        corners.append((across.at(x), up.at(y)))
    return " ".join(f"{x:.1f},{y:.1f}" for x, y in corners)


def _mark(point: FrontPoint, across: Axis, up: Axis) -> str:
    return _dot("point answer" if point.is_answer else "point", 5, across.at(point.values[0]), up.at(point.values[1]))


def _labels(front: Front, across: Axis, up: Axis) -> Iterator[str]:
    """The number of each point; points that lie close together share a label."""
    groups: list[list[int]] = []
    places = [(across.at(p.values[0]), up.at(p.values[1])) for p in front.points]
    for number, (x, y) in enumerate(places):
        before = places[groups[-1][-1]] if groups else (-WIDTH, 0)
        if abs(x - before[0]) < CLOSE and abs(y - before[1]) < CLOSE:
            groups[-1].append(number)
        else:
            groups.append([number])
    for group in groups:
        x, y = places[group[0]]
        text = ", ".join(str(number + 1) for number in group)
        own = [str(number + 1) for number in group if front.points[number].is_answer]
        text += f" ({own[0]} is the answer)" if own else ""
        side, anchor = (-9, "end") if x > (LEFT + WIDTH) / 2 else (9, "start")
        yield f'<text class="number" x="{x + side:.1f}" y="{y - 8:.1f}" text-anchor="{anchor}">{text}</text>'


def _answer(front: Front, across: Axis, up: Axis) -> Iterator[str]:
    """The answer's own place, where it is no point of the front."""
    if front.answer is not None and not any(p.is_answer for p in front.points):
        x, y = across.at(front.answer[0]), up.at(front.answer[1])
        yield _dot("answer", 5, x, y)
        yield f'<text class="number" x="{x + 9:.1f}" y="{y - 7:.1f}">the answer</text>'


def _entry(context: Context, front: Front, number: int, point: FrontPoint) -> str:
    """A point in words."""
    program = context.resolver.program
    moved = ", ".join(written(m.key, m.after, program) for m in point.launch.flags)
    what = "the answer" if point.is_answer else moved or "given as the answer"
    return f"{number}. {', '.join(place_words(front, point.values))}: {what}."


def _line(number: int, text: str) -> str:
    inset = 24 if text == text.lstrip() else 40
    return f'<text x="{inset}" y="{HEIGHT + LINE * number + 8}">{escape(text.strip())}</text>'


def _lines(entry: str) -> list[str]:
    return wrap(entry, LETTERS, subsequent_indent="    ", break_long_words=False, break_on_hyphens=False)
