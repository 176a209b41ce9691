"""Traces of cards at a lane over a real store: what they tell of each step, and that they name nobody."""

from __future__ import annotations

import pytest
from waiting import until

from drivers.contract import CardPresented, GateMoved, GatePosition, LinkError, PointState
from gateway.domain.credentials import Card, text_alias
from gateway.domain.errors import StoreError
from gateway.lanes.card_traces import CardTrace
from gateway.store.cards.cards import CardRecord
from tests.gateway.lanes.test_lanes import alive

CARD = Card(7, "0007", holder="Ada Lovelace", aliases=(text_alias("0007"),))


@pytest.fixture
def traces() -> list[CardTrace]:
    return []


@pytest.fixture
async def house(tmp_path, traces):
    async with alive(tmp_path, traced=traces.append) as house:
        await house.store.cards.apply(put=[CardRecord(CARD, "{}")], now=0)
        yield house


def present(house, text="0007"):
    house.point("near", PointState.ON)
    house.lanes.report(CardPresented(102, 0, 0, text, house.clock.monotonic()))


def parts(trace):
    return {part.name: part for part in trace.parts}


async def test_a_card_is_followed_from_the_reader_to_the_moved_gate_and_the_disk(house, traces):
    present(house)
    await until(lambda: house.lane().command is not None and house.lane().command.state == "acknowledged")
    assert traces == []
    house.report(GateMoved, GatePosition.OPENING)
    await until(lambda: traces)
    (trace,) = traces
    assert [part.name for part in trace.parts] == ["decide", "acknowledge", "move", "commit"]
    assert trace.whole.data == {"lane": "main"}
    assert parts(trace)["decide"].data == {"granted": True, "reason": "valid_card"}
    assert not any(part.error for part in trace.parts)
    assert all(trace.whole.began <= part.began <= part.ended <= trace.whole.ended for part in trace.parts)
    assert parts(trace)["acknowledge"].ended == parts(trace)["move"].began
    assert abs(house.clock.wall().micros - trace.whole.ended) < 30_000_000


async def test_a_denied_card_ends_on_the_disk(house, traces):
    present(house, "0008")
    await until(lambda: traces)
    assert [part.name for part in traces[0].parts] == ["decide", "commit"]
    assert parts(traces[0])["decide"].data["granted"] is False


async def test_a_trace_names_neither_card_nor_holder(house, traces):
    present(house)
    await until(lambda: house.gate.told)
    house.report(GateMoved, GatePosition.OPENING)
    await until(lambda: traces)
    assert "0007" not in repr(traces)
    assert "Ada" not in repr(traces)


async def test_a_refused_command_is_told_with_its_reason(house, traces, monkeypatch):
    async def broken(**_):
        raise LinkError("unit 2 on yard did not answer")

    monkeypatch.setattr(house.gate, "open", broken)
    present(house)
    await until(lambda: house.lane().note)
    house.report(GateMoved, GatePosition.OPENING)
    await until(lambda: traces)
    assert parts(traces[0])["acknowledge"].error == "no answer, but the gate moved"
    assert "move" not in parts(traces[0])


async def test_a_trace_waits_for_a_disk_that_refuses(house, traces, monkeypatch):
    record = house.store.journal.record

    async def refused(_):
        raise StoreError("the disk is full")

    monkeypatch.setattr(house.store.journal, "record", refused)
    present(house, "0008")
    await until(lambda: house.lanes.recorder.failing)
    assert traces == []
    monkeypatch.setattr(house.store.journal, "record", record)
    await until(lambda: traces)
    commit = parts(traces[0])["commit"]
    assert commit.error == ""
    assert commit.ended > commit.began
