"""Two-wire lines that return what is sent on them, though nobody said so: no write counts by its echo."""

from __future__ import annotations

import asyncio
import os
import time
import tty

import pytest
from pymodbus.framer import FramerRTU
from waiting import until

from drivers.bus.bus import Bus
from drivers.bus.line_quality import LineFault
from drivers.contract import DeviceFault, LinkError
from drivers.link import LinkSpec
from drivers.modbus.frames import Read, Table, Write
from drivers.modbus.unit_requests import ModbusRequests

TIMEOUT = 0.4
READ = Read(Table.DISCRETE_INPUT, 0, 8)
OPEN = Write(Table.COIL, 0, 0xFF00)
INPUTS = 0x15


def frame(*content: int) -> bytes:
    return bytes(content) + FramerRTU.compute_CRC(bytes(content)).to_bytes(2, "big")


def spoilt(data: bytes) -> bytes:
    return data[:3] + bytes([data[3] ^ 0x10]) + data[4:]


VALUES, REFUSED = frame(1, 2, 1, INPUTS), frame(1, 0x85, 3)
BUSY = frame(1, 0x85, 6)


class FarEnd:
    """The far end of a line: what comes back on a read and on a write, given the request."""

    def __init__(self, path, *, reads, writes):
        self.reads, self.writes = reads, writes
        self.asked = []
        self._master, self._slave = os.openpty()
        tty.setraw(self._slave)
        path.symlink_to(os.ttyname(self._slave))
        self.spec = LinkSpec(f"serial:{path}", baud=115_200)
        asyncio.get_running_loop().add_reader(self._master, self._hear)

    def _hear(self):
        request = os.read(self._master, 256)
        self.asked.append(request)
        os.write(self._master, (self.reads if request[1] == 2 else self.writes)(request))

    def close(self):
        asyncio.get_running_loop().remove_reader(self._master)
        os.close(self._master)
        os.close(self._slave)


@pytest.fixture
async def line(tmp_path, running):
    """A function that gives a far end, its bus and its unit's requests."""
    ends = []
    async with asyncio.TaskGroup() as group:

        def make(*, reads, writes):
            end = FarEnd(tmp_path / f"line{len(ends)}", reads=reads, writes=writes)
            bus = Bus(name="yard", spec=end.spec)
            ends.append((end, group.create_task(bus.run())))
            return end, bus, ModbusRequests(bus=bus, unit=1, framing="rtu", timeout=TIMEOUT)

        yield make
        for end, task in ends:
            task.cancel()
            end.close()


async def opened(bus):
    await until(lambda: bus.down_reason is None)


async def read(requests, times=1):
    for _ in range(times):
        values, _ = await requests.read(READ, deadline=time.monotonic() + 5)
    return values


async def write(requests):
    await requests.write(OPEN, deadline=time.monotonic() + 5)


def echo(request):
    return request


def with_echo(answer):
    return lambda request: request + answer


def acknowledged(request):
    return request


@pytest.mark.parametrize(
    ("writes", "error"),
    [
        pytest.param(lambda request: request + request, None, id="obeys"),
        pytest.param(lambda request: request + REFUSED, DeviceFault, id="refuses"),
        pytest.param(echo, LinkError, id="does not answer"),
        pytest.param(lambda request: spoilt(request) + REFUSED, DeviceFault, id="refuses behind a spoilt echo"),
        pytest.param(lambda request: b"\x00" + request + b"\xff" + request, None, id="obeys amid noise"),
        pytest.param(lambda request: request + spoilt(request), LinkError, id="its answer is spoilt"),
        pytest.param(lambda request: request[:5] + REFUSED, DeviceFault, id="refuses behind half an echo"),
    ],
)
@pytest.mark.parametrize("before", [b"", b"\x00"], ids=["clean", "noisy"])
async def test_on_a_line_that_echoes_a_write_counts_by_what_follows_its_echo(line, before, writes, error):
    _, bus, requests = line(reads=lambda request: before + request + VALUES, writes=writes)
    await opened(bus)
    assert await read(requests) == (1, 0, 1, 0, 1, 0, 0, 0)
    assert bus.quality().fault is LineFault.ECHOES, "at once, while its unit answers"
    if error is None:
        await write(requests)
    else:
        with pytest.raises(error):
            await write(requests)


@pytest.mark.parametrize(
    "reads",
    [lambda _: VALUES, lambda _: b"\x00" + VALUES + b"\xff\x00", lambda _: 4 * VALUES],
    ids=["clean", "noisy", "answered four times"],
)
async def test_on_a_line_without_an_echo_the_repeated_write_is_its_acknowledgement(line, reads):
    _, bus, requests = line(reads=reads, writes=acknowledged)
    await opened(bus)
    await read(requests)
    await write(requests)
    assert bus.quality().fault is None


async def test_before_reads_have_shown_anything_no_command_counts_by_what_may_be_its_echo(line):
    _, bus, requests = line(reads=lambda _: VALUES, writes=acknowledged)
    await opened(bus)
    with pytest.raises(LinkError):
        await write(requests)


async def test_a_setting_before_the_first_read_counts_since_a_read_must_follow(line):
    _, bus, requests = line(reads=lambda _: VALUES, writes=acknowledged)
    await opened(bus)
    await requests.put(OPEN, deadline=time.monotonic() + 5)


async def test_a_unit_that_never_answers_shows_the_echo_too(line):
    _, bus, requests = line(reads=echo, writes=echo)
    await opened(bus)
    with pytest.raises(LinkError):
        await read(requests)
    assert bus.quality().fault is LineFault.ECHOES
    with pytest.raises(LinkError):
        await write(requests)


async def test_an_echo_that_was_switched_off_is_forgotten_after_many_clean_answers(line):
    end, bus, requests = line(reads=with_echo(VALUES), writes=acknowledged)
    await opened(bus)
    await read(requests)
    end.reads = lambda _: VALUES
    await read(requests, times=50)
    await write(requests)
    assert bus.quality().fault is None


@pytest.mark.parametrize("lost", [1, 2, 5])
@pytest.mark.parametrize("is_proven", [True, False])
async def test_echoes_that_lack_their_first_bytes_do_not_make_a_whole_one_an_acknowledgement(line, lost, is_proven):
    end, bus, requests = line(reads=with_echo(VALUES), writes=with_echo(REFUSED))
    await opened(bus)
    if is_proven:
        await read(requests)
    end.reads = lambda request: request[lost:] + VALUES
    await read(requests, times=20)
    with pytest.raises(DeviceFault):
        await write(requests)


async def test_some_answers_without_an_echo_do_not_disprove_it(line):
    end, bus, requests = line(reads=with_echo(VALUES), writes=with_echo(REFUSED))
    await opened(bus)
    await read(requests)
    for _ in range(3):
        end.reads = lambda _: VALUES
        await read(requests, times=20)
        end.reads = lambda request: request[1:] + VALUES
        await read(requests)
    with pytest.raises(DeviceFault):
        await write(requests)


async def test_an_answer_behind_a_spoilt_echo_shows_nothing(line):
    end, bus, requests = line(reads=lambda request: spoilt(request) + VALUES, writes=echo)
    await opened(bus)
    await read(requests)
    with pytest.raises(LinkError):
        await write(requests)
    end.reads = with_echo(VALUES)
    await opened(bus)
    await read(requests)
    assert bus.quality().fault is LineFault.ECHOES
