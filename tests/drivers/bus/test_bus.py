"""The shared line: order, deadlines, silence and lateness, against a scripted peer on a real socket."""

from __future__ import annotations

import asyncio
import time
from contextlib import asynccontextmanager

import pytest
from waiting import until

from drivers.bus.bus import Bus
from drivers.bus.transactions import Exchange, Priority, TimedAnswer, UnitRests
from drivers.bus.wire import Direction
from drivers.contract import DeadlinePassed, LineDown, LinkError, NotPermitted, ProtocolViolation
from drivers.link import LinkSpec


class Peer:
    """Answers `3 ping\\n` with `3 pong\\n`; each unit may be slow or silent."""

    def __init__(self):
        self.heard: list[str] = []
        self.delays: dict[int, float | None] = {}
        self.writers: set[asyncio.StreamWriter] = set()
        self.port = 0

    async def serve(self, reader, writer):
        self.writers.add(writer)
        try:
            while line := (await reader.readline()).decode().strip():
                self.heard.append(line)
                unit, word = line.split()
                delay = self.delays.get(int(unit), 0.0)
                answer = f"{unit} {word.replace('i', 'o')}\n".encode()
                if delay is not None:
                    asyncio.get_running_loop().call_later(delay, self._send, writer, answer)
        except ConnectionError:
            return
        finally:
            self.writers.discard(writer)
            writer.close()

    def _send(self, writer, answer):
        if not writer.is_closing():
            writer.write(answer)

    def hang_up(self):
        for writer in tuple(self.writers):
            writer.transport.abort()


@pytest.fixture
async def peer():
    peer = Peer()
    server = await asyncio.start_server(peer.serve, "127.0.0.1", 0)
    peer.port = server.sockets[0].getsockname()[1]
    yield peer
    server.close()
    peer.hang_up()
    await server.wait_closed()


@pytest.fixture
def line(peer, running):
    @asynccontextmanager
    async def make(**settings):
        bus = Bus(name="line", spec=LinkSpec(f"tcp://127.0.0.1:{peer.port}", baud=115_200), **settings)
        async with running(bus.run()):
            await until(lambda: bus.down_reason is None)
            yield bus

    return make


def exchange(word="ping", *, unit=1, tagged=True):
    """Another unit's answer is passed over; another word's is a violation when tagged, and passed over when not."""

    def parse(received: bytes):
        for whole in received.split(b"\n")[:-1]:
            text = whole.decode()
            if text == f"{unit} {word.replace('i', 'o')}":
                return text
            if text.startswith(f"{unit} ") and tagged:
                raise ProtocolViolation(text)
        return None

    return Exchange(unit, f"{unit} {word}\n".encode(), parse, tagged)


def poll(bus, word="ping", *, unit=1, tagged=True, timeout=0.3, within=3.0):
    return bus.transact(
        exchange(word, unit=unit, tagged=tagged),
        priority=Priority.POLL,
        deadline=time.monotonic() + within,
        timeout=timeout,
    )


def command(bus, word="ping", *, unit=1, tagged=True, timeout=0.3, within=3.0):
    return bus.transact(
        exchange(word, unit=unit, tagged=tagged),
        priority=Priority.COMMAND,
        deadline=time.monotonic() + within,
        timeout=timeout,
    )


async def test_an_answer_carries_its_instants(line):
    async with line() as bus:
        before = time.monotonic()
        answer = await command(bus)
        assert answer.reply == "1 pong"
        assert before <= answer.written_at <= answer.at <= time.monotonic()


async def test_a_command_waits_for_at_most_one_transaction(line, peer):
    async with line() as bus, asyncio.TaskGroup() as group:
        peer.delays[2] = 0.05
        for number in range(10):
            group.create_task(poll(bus, f"pi{number}", unit=2, timeout=10.0, within=30.0))
        await until(lambda: len(peer.heard) >= 2)
        ahead = len(peer.heard)
        await command(bus, "open", timeout=10.0, within=30.0)
        assert peer.heard.index("1 open") <= ahead


async def test_commands_keep_their_order(line, peer):
    async with line() as bus, asyncio.TaskGroup() as group:
        for number in range(5):
            group.create_task(command(bus, f"c{number}"))
    assert peer.heard == [f"1 c{number}" for number in range(5)]


async def test_a_command_past_its_deadline_is_never_sent(line, peer):
    async with line() as bus:
        peer.delays[2] = None
        async with asyncio.TaskGroup() as group:
            silent = group.create_task(outcome(poll(bus, unit=2, timeout=1.0)))
            await until(lambda: peer.heard)
            with pytest.raises(DeadlinePassed):
                await command(bus, "open", within=0.1)
            assert not silent.done()
            assert isinstance(await silent, LinkError)
        with pytest.raises(DeadlinePassed):
            await command(bus, "open", within=-1)
        await command(bus, "last")
        assert "1 open" not in peer.heard


async def test_a_command_given_up_while_its_permission_is_asked_is_never_sent(peer, running):
    """Between the line's turn and the first byte the loop turns once: the deadline may pass in it."""
    now = time.monotonic()
    bus = Bus(name="line", spec=LinkSpec(f"tcp://127.0.0.1:{peer.port}"), monotonic=lambda: now)

    def clock_passes_the_deadline():
        nonlocal now
        now += 1.0
        return ""

    async with running(bus.run()):
        await until(lambda: bus.down_reason is None)
        late = bus.transact(
            exchange("close"), priority=Priority.COMMAND, deadline=now + 0.5, forbidden=clock_passes_the_deadline
        )
        with pytest.raises(DeadlinePassed):
            await late
        callers: list[asyncio.Task] = []

        def caller_gives_up():
            callers[0].cancel()
            return ""

        async with asyncio.TaskGroup() as group:
            given_up = bus.transact(
                exchange("close"), priority=Priority.COMMAND, deadline=now + 2.0, forbidden=caller_gives_up
            )
            callers.append(group.create_task(given_up))
        assert callers[0].cancelled()
        await bus.transact(exchange("last"), priority=Priority.COMMAND, deadline=now + 2.0)
    assert peer.heard == ["1 last"]


async def test_a_command_whose_permission_is_asked_when_the_line_closes_is_told(line):
    async with asyncio.TaskGroup() as group, line() as bus:
        closing = bus.transact(
            exchange("close"), priority=Priority.COMMAND, deadline=time.monotonic() + 2, forbidden=lambda: ""
        )
        task = group.create_task(outcome(closing))
        while bus.busy_since is None:
            await asyncio.sleep(0)
    assert isinstance(task.result(), LinkError)


async def test_a_forbidden_command_is_never_sent(line, peer):
    async with line() as bus:
        forbidden = bus.transact(
            exchange("close"),
            priority=Priority.COMMAND,
            deadline=time.monotonic() + 1,
            forbidden=lambda: "the photocell is on",
        )
        with pytest.raises(NotPermitted, match="photocell"):
            await forbidden
        await command(bus, "last")
    assert peer.heard == ["1 last"]


async def test_a_closed_line_refuses_at_once_and_sends_nothing_later(peer, running):
    bus = Bus(name="line", spec=LinkSpec(f"tcp://127.0.0.1:{peer.port}"))
    with pytest.raises(LinkError, match="not open yet"):
        await command(bus, "open")
    async with running(bus.run()):
        await until(lambda: bus.down_reason is None)
        await command(bus, "last")
    assert peer.heard == ["1 last"]


async def test_what_waits_when_the_line_is_lost_is_refused(line, peer):
    async with line() as bus:
        peer.delays[1] = None
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(outcome(command(bus, word))) for word in ("open", "close", "stop")]
            await until(lambda: peer.heard)
            peer.hang_up()
            results = [await task for task in tasks]
        assert all(isinstance(result, LinkError) for result in results)
        peer.delays.clear()
        await until(lambda: bus.down_reason is None)
        await command(bus, "last")
        assert peer.heard == ["1 open", "1 last"]


@pytest.mark.parametrize("has_answered", [True, False])
async def test_polls_wait_while_a_line_that_hung_up_behind_an_answer_is_opened_again(line, peer, has_answered):
    polled, commanded = [], []
    async with line() as bus, asyncio.TaskGroup() as group:

        def ask():
            polled.append(group.create_task(outcome(poll(bus))))
            commanded.append(group.create_task(outcome(command(bus, "open"))))

        if has_answered:
            await poll(bus)
        with bus.telling_interruptions(ask):
            await until(lambda: peer.writers)
            for writer in tuple(peer.writers):
                writer.close()
            await until(lambda: polled and polled[0].done())
    assert isinstance(polled[0].result(), TimedAnswer if has_answered else LineDown)
    assert isinstance(commanded[0].result(), LineDown)
    assert "1 open" not in peer.heard


async def outcome(body):
    try:
        return await body
    except (LinkError, DeadlinePassed, ProtocolViolation) as error:
        return error


async def test_the_queue_is_bounded(line, peer):
    async with line(queue_limit=3) as bus:
        peer.delays[1] = 0.05
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(outcome(poll(bus, f"p{number}"))) for number in range(8)]
        refused = [task for task in tasks if isinstance(task.result(), LinkError)]
        assert 4 <= len(refused) <= 5
        assert "overloaded" in str(refused[0].result())


async def test_a_late_answer_never_answers_the_next_request(line, peer):
    async with line() as bus:
        peer.delays[1] = None
        with pytest.raises(LinkError, match="did not answer within 100 ms"):
            await poll(bus, tagged=False, timeout=0.1)
        async with asyncio.TaskGroup() as group:
            task = group.create_task(outcome(poll(bus, tagged=False, timeout=5.0)))
            await until(lambda: len(peer.heard) == 2)
            for writer in peer.writers:
                writer.write(b"1 pong\n")
        assert isinstance(task.result(), UnitRests)
        assert isinstance(await outcome(command(bus, "open", tagged=False, timeout=0.2)), LinkError)
        assert peer.heard == ["1 ping", "1 ping", "1 open"]


async def test_the_other_units_go_on_beside_a_silent_one(line, peer):
    async with line() as bus:
        peer.delays[9] = None
        started = time.monotonic()
        while time.monotonic() - started < 1.0:
            await outcome(poll(bus, unit=9, timeout=0.1))
            assert (await poll(bus, unit=1)).reply == "1 pong"
            await asyncio.sleep(0.01)  # the pace of somebody who polls
        wasted = peer.heard.count("9 ping") * 0.1
        assert wasted <= 0.4 * (time.monotonic() - started)


async def test_a_violation_is_told_and_the_line_drained(line):
    async with line() as bus:
        wrong = Exchange(1, b"1 ping\n", exchange("other").parse, tagged=True)
        with pytest.raises(ProtocolViolation):
            await bus.transact(wrong, priority=Priority.POLL, deadline=time.monotonic() + 1)
        assert (await poll(bus)).reply == "1 pong"


async def test_babble_is_a_violation(line, peer):
    async with line() as bus:
        peer.delays[1] = None
        async with asyncio.TaskGroup() as group:
            task = group.create_task(outcome(poll(bus, timeout=1.0)))
            await until(lambda: peer.heard)
            for writer in peer.writers:
                writer.write(b"x" * 3000)
        assert isinstance(task.result(), ProtocolViolation)


async def test_a_cancelled_caller_leaves_the_line_in_order(line, peer):
    async with line() as bus:
        peer.delays[1] = 0.05
        async with asyncio.TaskGroup() as group:
            task = group.create_task(poll(bus, "first"))
            await until(lambda: peer.heard)
            task.cancel()
        assert (await poll(bus, "ping")).reply == "1 pong"


async def test_a_session_where_nobody_answers_is_opened_anew(line, peer):
    async with line() as bus:
        peer.delays[1] = None
        sessions = set(peer.writers)
        for _ in range(10):
            await outcome(command(bus, "open", timeout=0.02))
        peer.delays.clear()
        await until(lambda: not peer.writers <= sessions and bus.down_reason is None)
        assert (await command(bus)).reply == "1 pong"


async def test_everything_on_the_line_is_traced(line, peer):
    traced = []
    async with line(trace=lambda *record: traced.append(record)) as bus:
        await command(bus)
        for writer in peer.writers:
            writer.write(b"noise")
        await until(lambda: len(traced) >= 3)
    assert [(direction, data) for direction, data, _ in traced] == [
        (Direction.SENT, b"1 ping\n"),
        (Direction.RECEIVED, b"1 pong\n"),
        (Direction.DROPPED, b"noise"),
    ]


def test_tags_do_not_repeat_soon():
    bus = Bus(name="line", spec=LinkSpec("tcp://127.0.0.1:1"))
    tags = [bus.tag() for _ in range(65_535)]
    assert len(set(tags)) == 65_535
    assert min(tags) == 1
    assert max(tags) == 65_535
