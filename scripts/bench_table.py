"""Print one table of the figures that benchmarks noted, and put it with the machine's facts into the documents.

`bench_table.py FIGURES [--write docs/performance.md --plot docs/growth.svg]`; `make bench` calls it.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import platform
import sqlite3
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from gateway.runtime.clock import SystemClock

ROOT = Path(__file__).resolve().parents[1]
BEGIN, END = "<!-- figures: written by make bench -->", "<!-- end of figures -->"
HEAD = ("what", "figure", "beside", "ratio", "aim", "met")
_COLUMNS = 2
_WIDTH, _HEIGHT, _ROOM = 380, 160, 26
_COLOUR = "#1f6f8b"
_LEAST_SPAN = math.log(4)
"""The smallest ratio that fills a panel's height: what hardly grows looks flat."""


class Figure(NamedTuple):
    """A figure, as `tests/benchmarks/figures.py` notes it."""

    what: str
    figure: float
    unit: str
    peer: float | None
    beside: str
    aim: float | None
    more: bool
    at: int | None

    @property
    def judged(self) -> float:
        """The ratio to the peer, or the figure itself if it has no peer."""
        return self.figure if self.peer is None else self.figure / self.peer

    @property
    def name(self) -> str:
        """Its name, with the number of lanes, cameras or clients at which it was measured."""
        return self.what if self.at is None else f"{self.what}, {self.at}"

    def row(self) -> tuple[str, ...]:
        """Return the cells of the table."""
        ratio = "" if self.peer is None else f"{self.judged:.2f}"
        beside = "" if self.peer is None else f"{_number(self.peer)} ({self.beside})"
        aim, met = "", ""
        if self.aim is not None:
            aim = f"{'≥' if self.more else '≤'} {self.aim:g}"
            met = "yes" if (self.judged >= self.aim if self.more else self.judged <= self.aim) else "no"
        return self.name, f"{_number(self.figure)} {self.unit}".strip(), beside, ratio, aim, met


def read(path: Path) -> list[Figure]:
    """Read the figures of a file; of one that was measured several times, the last."""
    figures = [Figure(**json.loads(line)) for line in path.read_text("utf-8").splitlines()]
    return list({(one.what, one.at): one for one in figures}.values())


def table(rows: Iterable[Sequence[str]], head: Sequence[str] = HEAD) -> str:
    """Return rows as a table in Markdown, its columns aligned."""
    lines = [tuple(head), *map(tuple, rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(head))]
    text = [f"| {' | '.join(cell.ljust(width) for cell, width in zip(line, widths, strict=True))} |" for line in lines]
    text.insert(1, "|" + "|".join("-" * (width + 2) for width in widths) + "|")
    return "\n".join(text)


def machine() -> str:
    """Return one sentence about this machine, the programs and the day."""
    cpu = next(
        (line.partition(":")[2].strip() for line in _lines("/proc/cpuinfo") if line.startswith("model name")), ""
    )
    memory = next((int(line.split()[1]) / 1e6 for line in _lines("/proc/meminfo") if line.startswith("MemTotal")), 0)
    done = subprocess.run(
        ["git", "describe", "--always", "--dirty"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    return (
        f"{SystemClock().wall().as_datetime():%Y-%m-%d}, commit {done.stdout.strip() or 'unknown'}: {os.cpu_count()}"
        f" cores ({cpu or platform.machine()}), {memory:.0f} GB, Linux {platform.release()}, Python"
        f" {platform.python_version()}, SQLite {sqlite3.sqlite_version}."
    )


def exponent(points: Sequence[tuple[int, float]]) -> float:
    """Return the exponent with which figures grow: the slope of the line through their logarithms."""
    xs, ys = [math.log(at) for at, _ in points], [math.log(value) for _, value in points]
    middle_x, middle_y = sum(xs) / len(xs), sum(ys) / len(ys)
    spread = sum((x - middle_x) ** 2 for x in xs)
    return sum((x - middle_x) * (y - middle_y) for x, y in zip(xs, ys, strict=True)) / spread if spread else 0.0


def growth(figures: Iterable[Figure]) -> dict[str, list[tuple[int, float]]]:
    """Return the figures that were measured at several sizes, by name and unit."""
    found: defaultdict[str, list[tuple[int, float]]] = defaultdict(list)
    for one in figures:
        if one.at is not None and one.figure > 0:
            found[f"{one.what} ({one.unit})"].append((one.at, one.figure))
    return {what: sorted(points) for what, points in found.items() if len(points) > 2}


def drawn(lines: dict[str, list[tuple[int, float]]]) -> str:
    """Draw a panel for each figure over the size at which it was measured, both logarithmic, as SVG."""
    total = _HEIGHT * math.ceil(len(lines) / _COLUMNS)
    panels = "".join(
        f'<g transform="translate({_WIDTH * (place % _COLUMNS)},{_HEIGHT * (place // _COLUMNS)})">'
        f"{_panel(what, points)}</g>"
        for place, (what, points) in enumerate(lines.items())
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH * _COLUMNS}" height="{total}" font-family="sans-serif"'
        f' font-size="11"><rect width="{_WIDTH * _COLUMNS}" height="{total}" fill="white"/>{panels}</svg>\n'
    )


def _panel(what: str, points: Sequence[tuple[int, float]]) -> str:
    least, most = min(value for _, value in points), max(value for _, value in points)
    span = max(math.log(most / least), _LEAST_SPAN)
    first, last = math.log(points[0][0]), math.log(points[-1][0])
    spots = [
        (
            _ROOM + (_WIDTH - 2 * _ROOM) * (math.log(at) - first) / (last - first),
            _HEIGHT - 36 - (_HEIGHT - 98) * math.log(value / least) / span,
        )
        for at, value in points
    ]
    path = " ".join(f"{x:.0f},{y:.0f}" for x, y in spots)
    marks = "".join(
        f'<circle cx="{x:.0f}" cy="{y:.0f}" r="3" fill="{_COLOUR}"/>'
        f'<text x="{x:.0f}" y="{y - 7:.0f}" text-anchor="middle">{_number(value)}</text>'
        f'<text x="{x:.0f}" y="{_HEIGHT - 14}" text-anchor="middle" fill="#666666">{at}</text>'
        for (x, y), (at, value) in zip(spots, points, strict=True)
    )
    return (
        f'<text x="10" y="18" font-weight="bold">{what}</text>'
        f'<text x="10" y="33" fill="#666666">exponent {exponent(points):.2f}</text>'
        f'<polyline points="{path}" fill="none" stroke="{_COLOUR}" stroke-width="2"/>{marks}'
    )


def _number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def _lines(path: str) -> list[str]:
    try:
        return Path(path).read_text("utf-8").splitlines()
    except OSError:
        return []


def main() -> int:
    """Print the table; write it where it is asked for."""
    command = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    command.add_argument("figures", type=Path)
    command.add_argument("--write", type=Path, help="the document whose table is replaced, between its markers")
    command.add_argument("--plot", type=Path, help="the picture of growth")
    asked = command.parse_args()
    if not asked.figures.exists():
        print("no benchmark noted a figure")
        return 1
    figures = read(asked.figures)
    text = f"{machine()}\n\n{table(one.row() for one in figures)}"
    print(f"\n{text}")
    lines = growth(figures)
    for what, points in lines.items():
        print(f"growth of {what}: exponent {exponent(points):.2f} from {points[0][0]} to {points[-1][0]}")
    if asked.plot and lines:
        asked.plot.write_text(drawn(lines), "utf-8")
    if asked.write:
        before, _, rest = asked.write.read_text("utf-8").partition(BEGIN)
        _, _, after = rest.partition(END)
        asked.write.write_text(f"{before}{BEGIN}\n{text}\n{END}{after}", "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
