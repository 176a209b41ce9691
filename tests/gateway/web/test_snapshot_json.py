"""Changes of a snapshot: whoever applies them has what a whole snapshot would show."""

from __future__ import annotations

import gc
import json
import weakref
from dataclasses import replace
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from drivers.contract import GatePosition, PointState
from gateway.lanes.snapshots import DeviceSnapshot, LaneSnapshot, Phase
from gateway.web.status.live import SnapshotJson
from gateway.web.status.snapshot import GatewayState, Snapshot
from tests.gateway.web.test_live import after


def lane(number: int, note: str) -> LaneSnapshot:
    return LaneSnapshot(
        lane_id=f"lane-{number}",
        name=f"Lane {number}",
        direction="entry",
        phase=Phase.IDLE,
        since=0,
        gate_id=number,
        position=GatePosition.CLOSED,
        vehicle=PointState.OFF,
        under=PointState.OFF,
        note=note,
    )


def device(number: int, detail: str) -> DeviceSnapshot:
    return DeviceSnapshot(number, f"Device {number}", "modbus-io", True, 0, detail, None, ())


rows = st.lists(
    st.tuples(st.integers(1, 6), st.sampled_from(["", "a", 'b"'])), unique_by=lambda row: row[0], max_size=6
)


def snapshot_of(site: str, lanes: tuple[LaneSnapshot, ...], devices: tuple[DeviceSnapshot, ...]) -> Snapshot:
    return Snapshot(
        gateway=GatewayState(
            site=site,
            timezone="UTC",
            version="1",
            started_at=0,
            ready=True,
            headline="",
            store_failing="",
            clock_trusted=True,
        ),
        problems=(),
        lanes=lanes,
        areas=(),
        devices=devices,
        cameras=(),
        storage=None,
        events=(),
        central=None,
        fleet=None,
        broker=None,
        books=None,
        demo=None,
    )


@st.composite
def snapshots(draw: st.DrawFn) -> Snapshot:
    site = draw(st.sampled_from(["North", "South"]))
    lanes = tuple(lane(*row) for row in draw(rows))
    return snapshot_of(site, lanes, tuple(device(*row) for row in draw(rows)))


def whole(shown: SnapshotJson) -> dict:
    return json.loads(b"{%b}" % shown.all())


@given(st.lists(snapshots(), min_size=2, max_size=5))
def test_whoever_applies_each_change_has_the_whole(steps):
    shown = [SnapshotJson.of(step) for step in steps]
    state = whole(shown[0])
    for before, now in pairwise(shown):
        state = after(state, json.loads(b"{%b}" % now.since(before)))
        assert state == whole(now)


@given(snapshots())
def test_nothing_is_sent_when_nothing_has_changed(snapshot):
    assert SnapshotJson.of(snapshot).since(SnapshotJson.of(replace(snapshot))) == b""


@given(snapshots(), st.integers(7, 9))
def test_only_what_is_new_is_sent_of_a_list(snapshot, number):
    more = replace(snapshot, devices=(*snapshot.devices, device(number, "")))
    change = json.loads(b"{%b}" % SnapshotJson.of(more).since(SnapshotJson.of(snapshot)))
    assert [*change] == ["devices"]
    assert [row["device_id"] for row in change["devices"]["put"]] == [number]


def test_a_change_is_found_once_for_all_who_ask_and_not_kept_longer_than_they_need_it():
    first = SnapshotJson.of(snapshot_of("North", (lane(1, "a"),), ()))
    second = SnapshotJson.of(snapshot_of("North", (lane(1, "b"),), ()))
    assert second.since(first) is second.since(first)
    assert json.loads(b"{%b}" % second.since(first))["lanes"]["put"][0]["note"] == "b"
    gone = weakref.ref(first)
    del first
    gc.collect()
    assert gone() is None
