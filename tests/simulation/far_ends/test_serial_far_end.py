"""Every profile of the serial line family has a far end that speaks as the profile says."""

from __future__ import annotations

from pathlib import Path

import pytest

from drivers.contract import GatePosition, PointState
from drivers.serial_line.frames import FrameSplitter
from drivers.serial_line.profile import load_gate_profile, load_tag_reader_profile
from drivers.serial_line.status import position_in
from simulation.far_ends.barrier import Barrier, Wish
from simulation.far_ends.serial_devices import SerialBarrier, SerialTags

PROFILES = Path(__file__).parents[3] / "drivers" / "profiles"
GATES = sorted(
    path.stem
    for path in PROFILES.glob("*.toml")
    if 'family = "serial-line"' in path.read_text() and 'kind = "gate"' in path.read_text()
)


@pytest.mark.parametrize("name", GATES)
def test_a_barrier_answers_as_its_profile_says(name):
    profile = load_gate_profile(PROFILES / f"{name}.toml")
    barrier = Barrier(travel_seconds=1.0)
    device = SerialBarrier(profile=profile, barrier=barrier)
    assert set(device.requests(unit=7).values()) == {what for what, _ in profile.sends()}
    for what, template in profile.sends():
        request = profile.request(template, unit=7)
        assert device.requests(unit=7)[request] == what
    if profile.status is None or profile.replies is None:
        assert device.answer("commands.open", unit=7, refuses=False, now=0.0) == b""
        assert barrier.state(now=2.0).open_limit
        return
    barrier.command(Wish.OPEN, now=0.0)
    barrier.set_photocell(interrupted=True, now=0.0)
    for now, expected in ((0.5, GatePosition.OPENING), (2.0, GatePosition.OPEN)):
        frame = device.answer("status", unit=7, refuses=False, now=now)
        assert FrameSplitter(profile.replies).feed(frame) == (frame,)
        assert profile.status.answer.matches(frame, unit=7)
        points = {point: where.state_in(frame) for point, where in profile.points.items()}
        seen = position_in(frame, profile.position, points, before=GatePosition.CLOSED, commanded=None)
        assert seen is expected
        assert points.get("photocell", PointState.ON) is PointState.ON


@pytest.mark.parametrize("tags", [(), (b"\xe2" * 12,), (b"\x01" * 12, b"\x02" * 8)])
def test_a_reader_shows_what_is_in_its_field(tags):
    profile = load_tag_reader_profile(PROFILES / "uhf-iqrfid-5102.toml")
    device = SerialTags(profile=profile)
    device.field = tags
    frame = device.answer("poll", unit=0, refuses=False, now=0.0)
    assert FrameSplitter(profile.replies).feed(frame) == (frame,)
    if not tags:
        assert frame == bytes.fromhex("05 00 01 FB F2 3D")
    else:
        assert profile.tags.of(frame) == tags
