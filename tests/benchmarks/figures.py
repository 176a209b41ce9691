"""The figures of benchmarks: printed, and appended as JSON lines to the file that BENCH_FIGURES names.

The table of `make bench` and the comparison of `make bench-compare` are made from that file (`scripts/bench_table.py`).
"""

from __future__ import annotations

import json
import os
from pathlib import Path


def show(
    what: str, figure: float, unit: str, *, peer: float | None = None, beside: str = "", aim: float | None = None,
    more: bool = False, at: int | None = None,
) -> float:  # fmt: skip
    """Print and note a figure; return its ratio to the peer's, or the figure itself if it has no peer.

    Args:
        what: the name of the figure, the same in every run.
        figure: its value.
        unit: its unit.
        peer: the peer's value in the same run.
        beside: the name of the peer.
        aim: the aim for the ratio, or for the figure if it has no peer.
        more: whether more is better.
        at: the number of lanes, cameras or clients at which it was measured, if it was measured at several.
    """
    judged = figure if peer is None else figure / peer
    said = f"{what}{'' if at is None else f' at {at}'}: {number(figure)} {unit}"
    if peer is not None:
        said += f" beside {number(peer)} of {beside}, ratio {judged:.2f}"
    if aim is not None:
        met = judged >= aim if more else judged <= aim
        said += f" (aim at {'least' if more else 'most'} {aim:g}: {'met' if met else 'missed'})"
    print(said)
    if path := os.environ.get("BENCH_FIGURES"):
        noted = {
            "what": what, "figure": figure, "unit": unit, "peer": peer, "beside": beside, "aim": aim, "more": more,
            "at": at,
        }  # fmt: skip
        with Path(path).open("a", encoding="utf-8") as file:
            file.write(json.dumps(noted) + "\n")
    return judged


def number(value: float) -> str:
    """A number with three digits that count."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"
