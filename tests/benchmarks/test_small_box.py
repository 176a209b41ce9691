"""The lanes and cameras that a quarter of this machine's processors carry, as on a small board.

A control group limits the processor time of the gateway and its children together (root); cameras, barriers and readers
have the rest of the machine. Storage and memory are not limited. Each size is measured until one does not keep up.

Run: pytest tests/benchmarks/test_small_box.py -m benchmark -s
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from figures import show
from site_of_size import site_of_size, steady_cameras, used, values

from gateway.runtime.timings import FAST_BOUNDS

SHARE = 0.25
PERIOD_MICROS = 10_000
LANES = (2, 4, 8, 16, 32)
CAMERAS = (2, 4, 8, 16, 32)
LANES_BESIDE_CAMERAS = 2
PASSAGES = 5
SETTLE_SECONDS = 6.0
SLOWEST_CARD = 0.1
MOST_LAG = 0.05
OLDEST_FOOTAGE = 8.0
_GROUPS = Path("/sys/fs/cgroup")

pytestmark = [pytest.mark.benchmark, pytest.mark.timeout(900)]


@pytest.fixture
def small_box() -> Iterator[tuple[str, ...]]:
    """The words that start a command within the limits of a small box."""
    with limited(SHARE * (os.cpu_count() or 1)) as group:
        yield ("sh", "-c", f'echo $$ > {group}/cgroup.procs && exec "$@"', "sh")


@contextmanager
def limited(cores: float) -> Iterator[Path]:
    """A control group with so much processor time, of either version of control groups."""
    quota = round(cores * PERIOD_MICROS)
    is_old = (_GROUPS / "cpu").is_dir()
    group = (_GROUPS / "cpu" if is_old else _GROUPS) / f"small-box-{os.getpid()}"
    try:
        group.mkdir()
    except OSError as error:
        pytest.skip(f"no control group can be made: {error.strerror}")
    try:
        if is_old:
            (group / "cpu.cfs_period_us").write_text(str(PERIOD_MICROS))
            (group / "cpu.cfs_quota_us").write_text(str(quota))
        else:
            (group / "cpu.max").write_text(f"{quota} {PERIOD_MICROS}")
        yield group
    except OSError as error:
        pytest.skip(f"the control group takes no limit of processor time: {error.strerror}")
    finally:
        group.rmdir()


async def test_lanes(tmp_path, small_box):
    await ramp("lanes", [(size, 0) for size in LANES], tmp_path, small_box, cameras_port=0)


async def test_cameras(tmp_path, small_box):
    with steady_cameras(max(CAMERAS)) as port:
        await ramp(
            "cameras", [(LANES_BESIDE_CAMERAS, size) for size in CAMERAS], tmp_path, small_box, cameras_port=port
        )


async def ramp(what: str, sizes: list[tuple[int, int]], folder: Path, within: tuple[str, ...], *, cameras_port: int):
    """Measure sizes until one does not keep up; show the largest that does."""
    carried = 0
    for lanes, cameras in sizes:
        size = cameras or lanes
        if not await keeps_up(what, lanes, cameras, folder / str(size), within, cameras_port=cameras_port):
            break
        carried = size
    show(f"{what} that a small box carries", carried, what, more=True)


async def keeps_up(
    what: str, lanes: int, cameras: int, folder: Path, within: tuple[str, ...], *, cameras_port: int
) -> bool:
    size = cameras or lanes
    try:
        async with site_of_size(folder, lanes=lanes, cameras=cameras, cameras_port=cameras_port, within=within) as (
            gateway,
            field,
        ):
            await asyncio.sleep(SETTLE_SECONDS)
            before, processor, began = await gateway.metrics(), gateway.processor(), time.monotonic()
            took = [one for some in await asyncio.gather(*(lane.passages(PASSAGES) for lane in field)) for one in some]
            seconds = time.monotonic() - began
            share = used(processor, gateway.processor()) / seconds / (SHARE * (os.cpu_count() or 1))
            after = await gateway.metrics()
    except AssertionError as error:
        print(f"{size} {what}: not at work within two minutes ({error})")
        return False
    opened = sorted(one for one in took if one is not None)
    lag = lag_p99(before, after)
    gaps = sum(values(after, "camera_gaps_total")) - sum(values(before, "camera_gaps_total"))
    oldest = max((time.time() - at for at in values(after, "camera_footage_timestamp_seconds")), default=0.0)
    p99 = opened[int(len(opened) * 0.99)] if opened else float("inf")
    show(f"small box, card to open p99 by {what}", p99 * 1000, "ms", at=size)
    show(f"small box, loop lag p99 by {what}", lag * 1000, "ms at most", at=size)
    show(f"small box, share of its processors by {what}", share * 100, "%", at=size)
    print(f"  {len(took) - len(opened)} of {len(took)} cards opened nothing; {gaps:g} gaps, footage {oldest:.1f} s old")
    return (
        len(opened) == len(took) and p99 <= SLOWEST_CARD and lag <= MOST_LAG and not gaps and oldest <= OLDEST_FOOTAGE
    )


def lag_p99(before: str, after: str) -> float:
    """Return the bound that 99 % of the loop's delays between two readings of its metrics do not exceed."""
    counts = [
        late - early
        for late, early in zip(*(values(text, "loop_lag_seconds_bucket") for text in (after, before)), strict=True)
    ]
    bounds = (*FAST_BOUNDS, float("inf"))
    return next(bound for bound, count in zip(bounds, counts, strict=True) if count >= 0.99 * counts[-1])
