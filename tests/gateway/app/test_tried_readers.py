"""Readers that a change of the site file touched: their trial with real far ends behind TCP ports."""

from __future__ import annotations

import asyncio
import contextlib
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import pytest
from changing_site import a_house

from drivers.profile_file import SHIPPED_PROFILES
from drivers.serial_line.profile import load_tag_reader_profile
from gateway.cli.reload import reload
from gateway.domain.day_counts import DayCount, Measure
from gateway.domain.events import EventKind
from gateway.lanes import runner
from gateway.lanes.snapshots import Phase
from gateway.runtime.clock import SystemClock
from gateway.site import running_site
from simulation.far_ends.line_devices import Misbehaviour
from simulation.far_ends.serial_devices import SerialTags
from simulation.far_ends.serial_far_end import SerialFarEnd

READER = 102


@dataclass
class Desk:
    """A card reader behind a serial server: it sends a line for each card, and nothing else."""

    port: int = 0
    writers: list[asyncio.StreamWriter] = field(default_factory=list)

    def read(self, line: bytes) -> None:
        self.writers[-1].write(line + b"\r\n")


@asynccontextmanager
async def a_card_desk():
    desk = Desk()

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        desk.writers.append(writer)
        with contextlib.suppress(ConnectionError):
            await reader.read()
        writer.close()

    async with await asyncio.start_server(connected, "127.0.0.1", 0) as server:
        desk.port = server.sockets[0].getsockname()[1]
        yield desk
        server.close()
        for writer in desk.writers:
            writer.close()


@pytest.fixture
async def house(tmp_path):
    async with a_house(tmp_path) as opened:
        await opened.sees(lambda: opened.services.interface.port)
        yield opened


@pytest.fixture
async def desk(house):
    """A desk at which the reader of the entry is read from now on, on trial."""
    async with a_card_desk() as opened:
        house.edit("serial:/dev/no-such-port-entry", f"tcp://127.0.0.1:{opened.port}")
        yield opened


async def read_daily(house) -> None:
    """Let the reader of the entry have read something on each day of the last three weeks."""
    today = datetime.fromtimestamp(SystemClock().wall().micros / 1e6, UTC).date()
    days = ((today - timedelta(days=ago)).isoformat() for ago in range(1, 22))
    await house.gateway.store.day_counts.add(DayCount(day, Measure.READINGS, str(READER), 40) for day in days)


async def a_vehicle_waits(house) -> None:
    house.entry.arming(occupied=True)
    await house.sees(lambda: house.lane("entry").phase is Phase.ARMED)


async def test_a_reader_that_only_speaks_for_cards_is_told_until_it_has_read_one(house, desk):
    done = await house.site_file.reload(by="user:chief", asks_person=True)
    assert done.on_trial
    (unseen,) = house.site_file.trial.unseen()
    assert (unseen.device_id, unseen.name, unseen.proof) == (READER, "Reader entry", "card")
    assert str(unseen.words) == "Reader entry is not yet seen to read: hold a card to it"
    await house.sees(lambda: house.device(READER).online)
    desk.read(b"990011")
    await house.sees(lambda: not house.site_file.trial.unseen())
    assert house.site_file.confirm(by="user:chief")
    assert (await house.site_file.outcome()).unseen == ()


async def test_a_change_that_is_kept_tells_the_readers_that_were_not_seen_to_read(house, desk, monkeypatch, capsys):
    monkeypatch.setattr(running_site, "GOOD_SECONDS", 0.1)
    await asyncio.to_thread(reload, house.path.parent / "data")
    said = capsys.readouterr().out.splitlines()
    assert "in force: lanes and interface have no new problem" in said
    assert said[-1] == "Reader entry is not yet seen to read: hold a card to it"
    assert await house.gateway.lanes.recorder.drained(within=10)
    (told,) = [
        event
        for event in await house.gateway.store.events.latest(limit=50)
        if event.type == EventKind.SITE_CHANGE_CONFIRMED
    ]
    assert told.description.endswith("; Reader entry is not yet seen to read: hold a card to it")


async def test_a_change_is_taken_back_if_vehicles_wait_at_a_reader_of_every_day_that_reads_nothing(
    house, desk, monkeypatch
):
    monkeypatch.setattr(running_site, "TRIAL_SECONDS", 1.5)
    monkeypatch.setattr(running_site, "GOOD_SECONDS", 0.1)
    monkeypatch.setattr(runner, "WAITED_SECONDS", 0.5)
    before = house.path.read_bytes().replace(f"tcp://127.0.0.1:{desk.port}".encode(), b"serial:/dev/no-such-port-entry")
    await read_daily(house)
    await house.site_file.reload(by="command")
    await a_vehicle_waits(house)
    await house.sees(lambda: house.path.read_bytes() == before)
    house.entry.arming(occupied=False)
    outcome = await house.site_file.outcome()
    assert not outcome.confirmed
    assert (
        str(outcome.why)
        == "Reader entry has read nothing while vehicles waited; before the change it was read regularly"
    )


async def test_a_reader_of_every_day_that_reads_ends_the_trial(house, desk, monkeypatch):
    monkeypatch.setattr(running_site, "GOOD_SECONDS", 0.1)
    await read_daily(house)
    await house.site_file.reload(by="command")
    await a_vehicle_waits(house)
    await house.sees(lambda: house.device(READER).online)
    desk.read(b"990011")
    outcome = await house.site_file.outcome()
    assert (outcome.confirmed, outcome.unseen) == (True, ())


async def test_a_change_is_kept_after_its_time_if_no_vehicle_came_to_the_reader_of_every_day(house, desk, monkeypatch):
    monkeypatch.setattr(running_site, "TRIAL_SECONDS", 1.5)
    monkeypatch.setattr(running_site, "GOOD_SECONDS", 0.1)
    await read_daily(house)
    await house.site_file.reload(by="command")
    assert house.site_file.seconds_left()
    outcome = await house.site_file.outcome()
    assert outcome.confirmed
    assert [one.name for one in outcome.unseen] == ["Reader entry"]


async def test_a_polled_reader_is_shown_by_its_answer(house, tmp_path):
    profile = load_tag_reader_profile(SHIPPED_PROFILES / "uhf-iqrfid-5102.toml")
    far_end = SerialFarEnd(devices={0: SerialTags(profile=profile)})
    far_end.misbehave(0, Misbehaviour(deaf=True))
    async with far_end.serial(path=tmp_path / "line") as terminal:
        reader = 'driver = "serial-reader"\nlink = "desk-entry"'
        house.edit(reader, f'{reader.replace("serial-reader", "serial-tag-reader")}\nprofile = "uhf-iqrfid-5102"')
        house.edit("serial:/dev/no-such-port-entry", f"serial:{terminal.path}")
        await house.site_file.reload(by="user:chief", asks_person=True)
        (unseen,) = house.site_file.trial.unseen()
        assert str(unseen.words) == "Reader entry has not answered since the change: check its line and its address"
        far_end.misbehave(0)
        await house.sees(lambda: not house.site_file.trial.unseen())
        assert house.site_file.take_back(by="user:chief")
        assert not (await house.site_file.outcome()).confirmed
