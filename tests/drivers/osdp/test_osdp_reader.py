"""Readers over a real line: libosdp's own peripherals at the other end of a pseudo-terminal."""

import asyncio
import os
import secrets
import signal
import socket
import time
from collections import Counter
from pathlib import Path

import pytest
from osdp import Command, CommandLEDColor
from waiting import until

from drivers.bus.line_quality import Failure
from drivers.child_process import ChildProcess
from drivers.contract import (
    CardPresented,
    DeviceConnected,
    DeviceLost,
    Feedback,
    KeysPressed,
    LossExplained,
    TamperChanged,
)
from drivers.link import LinkSpec

KEY = secrets.token_bytes(16)
CARD = 0x2A5_C0DE


def plan(address=1, key=KEY, **more):
    return {"address": address, "key": key.hex() if key else None, **more}


async def test_card_keys_and_tamper_come_over_the_secure_channel(peripherals, connected_reader, listener):
    await peripherals.plug_in(plan())
    async with connected_reader(peripherals.spec, {1: KEY}, connected=1):
        before = time.monotonic()
        await peripherals.read(listener, 1, CARD, 26)
        (card,) = listener.of(CardPresented)
        assert (card.device_id, card.bit_length, card.bits, card.text) == (201, 26, CARD, "")
        assert before <= card.at <= time.monotonic()

        peripherals.type_keys(1, b"12\x7f4\x0d")
        await listener.until(lambda: listener.of(KeysPressed))
        assert "".join(report.keys for report in listener.of(KeysPressed)) == "12*4#"

        peripherals.tamper(1, tampered=True)
        await listener.until(lambda: listener.of(TamperChanged))
        peripherals.tamper(1, tampered=False)
        await listener.until(lambda: len(listener.of(TamperChanged)) == 2)
        assert [report.tampered for report in listener.of(TamperChanged)] == [True, False]
    assert not listener.of(DeviceLost)


@pytest.mark.long("two processes, and the seconds in which libosdp gives up")
@pytest.mark.parametrize("manner", ["double", "corrupts"])
async def test_whatever_the_line_does_to_replies_a_card_is_read_once(manner, peripherals, connected_reader, listener):
    await peripherals.plug_in(plan(), manner=manner)
    async with connected_reader(peripherals.spec, {1: KEY}, connected=1):
        cards = (CARD, CARD + 1, CARD + 2)
        presented = [card for card in cards for _ in range(await peripherals.read(listener, 1, card, 26))]
        read = [card.bits for card in listener.of(CardPresented)]
        assert list(dict.fromkeys(read)) == list(cards)
        assert not Counter(read) - Counter(presented)


async def test_over_a_converter_on_the_network(peripherals, connected_reader, listener):
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(8)
        spec = LinkSpec(f"tcp://127.0.0.1:{server.getsockname()[1]}")
        async with connected_reader(spec, {1: KEY}):
            for round_number in (1, 2):
                connection, _ = await asyncio.to_thread(server.accept)
                await peripherals.serve(connection.detach(), plan())
                await listener.until(lambda count=round_number: len(listener.of(DeviceConnected)) == count)
                await peripherals.unplug()
                await listener.until(lambda count=round_number: len(listener.of(DeviceLost)) == count)


async def test_the_reader_shows_what_was_decided(peripherals, connected_reader, listener):
    await peripherals.plug_in(plan())
    async with connected_reader(peripherals.spec, {1: KEY}) as (_, (reader,)):
        reader.show(Feedback.DENIED)  # not connected yet: nothing, and nothing for later
        await listener.until(lambda: listener.of(DeviceConnected))
        reader.show(Feedback.GRANTED)
        await until(lambda: len(shown(peripherals)) >= 2)
        lamp, buzzer = shown(peripherals)
        assert (lamp["on_color"], lamp["temporary"], lamp["timer_count"]) == (CommandLEDColor.Green, True, 30)
        assert buzzer["rep_count"] == 1
        reader.show(Feedback.DENIED)
        await until(lambda: len(shown(peripherals)) >= 4)
        assert shown(peripherals)[2]["on_color"] == CommandLEDColor.Red
        assert shown(peripherals)[3]["rep_count"] == 3
        reader.show(Feedback.READY)
        await until(lambda: len(shown(peripherals)) >= 5)
        assert shown(peripherals)[4]["control_code"] == 1


def shown(peripherals):
    return [said for said in peripherals.shown if said["command"] in (Command.LED, Command.Buzzer)]


async def test_a_reader_without_lamp_and_buzzer_stays_connected(peripherals, connected_reader, listener):
    await peripherals.plug_in(plan(shows=False))
    async with connected_reader(peripherals.spec, {1: KEY}, connected=1) as (_, (reader,)):
        reader.show(Feedback.GRANTED)
        await peripherals.read(listener, 1, CARD, 26)
        assert not shown(peripherals)
        assert not listener.of(DeviceLost)


async def test_readers_that_cannot_be_trusted_are_never_connected_and_each_says_why(
    peripherals, connected_reader, listener
):
    keys = dict.fromkeys((1, 2, 3, 4), KEY)
    await peripherals.plug_in(
        plan(1),
        plan(2, key=bytes(range(16))),
        plan(3, key=None, secure=False),
        plan(4, key=None),
    )

    def reasons():
        # The reader that can be trusted may take its time to open a secure channel on a busy machine.
        return {report.device_id: report.reason for report in listener.of(DeviceLost) if report.device_id != 201}

    async with connected_reader(peripherals.spec, keys):
        await listener.until(lambda: len(reasons()) == 3 and listener.of(DeviceConnected))
        for address in (1, 2, 3, 4):
            peripherals.present(address, CARD, 26)
            peripherals.type_keys(address, b"1")
        await listener.until(lambda: listener.of(CardPresented) and listener.of(KeysPressed))
    assert reasons() == {
        202: "answers, but has another key",
        203: "answers, but opens no secure channel",
        204: "answers, but has another key",
    }
    heard = listener.of(DeviceConnected) + listener.of(CardPresented) + listener.of(KeysPressed)
    assert {report.device_id for report in heard} == {201}
    assert not [said for said in peripherals.shown if said["command"] == Command.Keyset]


@pytest.mark.long("two processes, and the seconds in which libosdp gives up")
async def test_a_dead_reader_costs_the_others_nothing_and_comes_back_without_its_old_readings(
    peripherals, connected_reader, listener
):
    keys = {address: secrets.token_bytes(16) for address in (1, 2, 3)}
    await peripherals.plug_in(*(plan(address, key) for address, key in keys.items()))
    async with connected_reader(peripherals.spec, keys, connected=3):
        peripherals.live(3, alive=False)
        await listener.until(lambda: [r.device_id for r in listener.of(DeviceLost)] == [203])
        await peripherals.read(listener, 2, CARD, 26)
        peripherals.present(3, 1, 26)  # it is kept in the reader, and nobody stands there any more when it is told
        peripherals.live(3, alive=True)
        await listener.until(lambda: len(listener.of(DeviceConnected)) == 4)
        await asyncio.sleep(0.7)  # what a reader tells sooner after it connected does not count
        await peripherals.read(listener, 3, CARD + 3, 26)
    assert [(card.device_id, card.bits) for card in listener.of(CardPresented)] == [(202, CARD), (203, CARD + 3)]
    assert len(listener.of(DeviceLost)) == 1


async def test_a_line_that_is_not_there_is_lost_once(tmp_path, connected_reader, listener):
    async with connected_reader(LinkSpec(f"serial:{tmp_path / 'none'}"), {1: KEY, 2: KEY}):
        await listener.until(lambda: len(listener.of(DeviceLost)) == 2)
        await asyncio.sleep(0.6)  # the line is opened in vain some times meanwhile
    assert len(listener.reports) == 2
    assert "does not open" in listener.of(DeviceLost)[0].reason


@pytest.mark.long("two processes, and the seconds in which libosdp gives up")
async def test_a_hung_line_is_reported(peripherals, connected_reader, listener):
    await peripherals.plug_in(plan())
    async with connected_reader(peripherals.spec, {1: KEY}, connected=1):
        peripherals.stop(signal.SIGSTOP)
        await listener.until(lambda: listener.of(DeviceLost))
        assert listener.of(DeviceLost)[0].reason == "stopped answering"
        peripherals.stop(signal.SIGCONT)
        await listener.until(lambda: len(listener.of(DeviceConnected)) == 2)


@pytest.mark.parametrize(
    "fault",
    [
        pytest.param(signal.SIGSEGV, id="dies"),
        pytest.param(signal.SIGSTOP, id="hangs", marks=pytest.mark.long("the seconds of a process that hangs")),
    ],
)
async def test_a_process_that_fails_is_started_again(fault, peripherals, connected_reader, listener, monkeypatch):
    monkeypatch.setattr("drivers.osdp.line.SILENT_SECONDS", 2.0)
    await peripherals.plug_in(plan())
    async with connected_reader(peripherals.spec, {1: KEY}, connected=1) as (line, _):
        pid = line.pid
        os.kill(pid, fault)
        await listener.until(lambda: listener.of(DeviceLost))
        await listener.until(lambda: len(listener.of(DeviceConnected)) == 2)
        assert line.pid != pid


@pytest.mark.long("two processes, and the seconds in which libosdp gives up")
async def test_readers_of_a_process_that_does_not_die_are_lost_all_the_same(
    peripherals, connected_reader, listener, monkeypatch
):
    """As one that hangs in the driver of its port, where no signal reaches it."""
    monkeypatch.setattr("drivers.osdp.line.SILENT_SECONDS", 1.5)
    monkeypatch.setattr("drivers.osdp.line.END_SECONDS", 0.1)
    await peripherals.plug_in(plan())
    async with connected_reader(peripherals.spec, {1: KEY}, connected=1) as (line, _):
        pid = line.pid
        with monkeypatch.context() as patch:
            patch.setattr(ChildProcess, "kill", lambda _child: None)
            os.kill(pid, signal.SIGSTOP)
            try:
                await listener.until(lambda: listener.of(DeviceLost))
            finally:
                os.kill(pid, signal.SIGKILL)  # it was still there
        monkeypatch.setattr("drivers.osdp.line.SILENT_SECONDS", 6.0)  # the next one may begin slowly
        await listener.until(lambda: len(listener.of(DeviceConnected)) == 2)
        assert line.pid != pid


async def test_its_process_ends_when_asked_to(peripherals, connected_reader, listener, monkeypatch):
    monkeypatch.setattr("drivers.osdp.line.END_SECONDS", 600.0)  # after which it would be killed
    await peripherals.plug_in(plan())
    async with connected_reader(peripherals.spec, {1: KEY}) as (line, _):
        await listener.until(lambda: listener.of(DeviceConnected))
        pid = line.pid
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


async def test_keys_are_in_no_argument_and_no_environment(peripherals, connected_reader, listener):
    await peripherals.plug_in(plan())
    async with connected_reader(peripherals.spec, {1: KEY}) as (line, _):
        await listener.until(lambda: listener.of(DeviceConnected))
        for name in ("cmdline", "environ"):
            assert KEY.hex().encode() not in Path(f"/proc/{line.pid}/{name}").read_bytes()


@pytest.mark.long("two processes, and the seconds in which libosdp gives up")
async def test_a_lost_reader_that_comes_back_with_another_key_says_so(peripherals, connected_reader, listener):
    await peripherals.plug_in(plan())
    async with connected_reader(peripherals.spec, {1: KEY}, connected=1):
        await peripherals.unplug()
        await listener.until(lambda: listener.of(DeviceLost))
        await peripherals.plug_in(plan(key=bytes(range(16))))
        await listener.until(lambda: listener.of(LossExplained) and listener.of(LossExplained)[-1].answers)
        assert listener.of(LossExplained)[-1].reason == "answers, but has another key"
        assert len(listener.of(DeviceLost)) == 1


@pytest.mark.long("two processes, and the seconds in which libosdp gives up")
async def test_the_line_tells_how_each_reader_answers(peripherals, connected_reader):
    other = secrets.token_bytes(16)
    await peripherals.plug_in(plan(1), plan(2, key=other))
    async with connected_reader(peripherals.spec, {1: KEY, 2: KEY, 3: KEY}) as (line, _):

        def units():
            return {unit.unit: unit for unit in line.quality().units}

        assert (units()[1].unsecured, sum(units()[1].reply_times)) == ("it has not answered yet", 0)
        await until(lambda: sum(units()[1].reply_times) > 20 and units()[1].unsecured == "")
        await until(lambda: units()[2].unsecured == "answers, but has another key")
        await until(lambda: units()[3].failing is Failure.SILENT)
        good, foreign, absent = (units()[address] for address in (1, 2, 3))
        assert good.reply_seconds is not None
        assert 0 < good.reply_seconds < good.allowed_seconds
        assert (good.failing, good.is_tampered) == (None, False)
        assert sum(foreign.reply_times) > 0
        assert (sum(absent.reply_times), absent.failed[Failure.SILENT] > 1) == (0, True)
        assert line.quality().down_reason == ""
        peripherals.tamper(1, tampered=True)
        await until(lambda: units()[1].is_tampered)


@pytest.mark.long("two processes, and the seconds in which libosdp gives up")
async def test_a_line_that_does_not_open_says_why_and_one_that_garbles_is_told(tmp_path, peripherals, connected_reader):
    async with connected_reader(LinkSpec(f"serial:{tmp_path / 'nothing'}"), {1: KEY}) as (line, _):
        await until(lambda: "does not open" in line.quality().down_reason)
    await peripherals.plug_in(plan(), manner="corrupts")
    async with connected_reader(peripherals.spec, {1: KEY}) as (line, _):
        await until(lambda: line.quality().units[0].failed.get(Failure.GARBLED, 0) > 0)
