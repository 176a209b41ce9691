"""The line to a far end that answers as a script says: what no broker at hand can be made to say."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest
from waiting import until

from gateway.mqtt.line import Broker, BrokerAway, BrokerLine, BrokerRefused, connected
from gateway.mqtt.packets import MqttMessage

WILL = MqttMessage(topic="north/status", payload=b"offline", kept=True)
UNASKED = "the broker sends answers that were not asked for"
CONSENT = bytes.fromhex("20 03 00 00 00")
Talk = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@asynccontextmanager
async def far_end(talk: Talk) -> AsyncIterator[Broker]:
    """A far end that reads the first packet, and then talks."""

    async def served(reader, writer) -> None:
        try:
            await packet(reader)
            await talk(reader, writer)
            await reader.read()
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(served, "127.0.0.1", 0)
    async with server:
        yield Broker(
            host="127.0.0.1",
            port=server.sockets[0].getsockname()[1],
            is_encrypted=False,
            client_id="north",
            answer_seconds=0.3,
        )


async def packet(reader: asyncio.StreamReader) -> bytes:
    """The next packet, whose length is below 16 KB."""
    head = await reader.readexactly(2)
    length = head[1] & 0x7F
    if head[1] > 0x7F:
        more = await reader.readexactly(1)
        head, length = head + more, length | more[0] << 7
    return head + await reader.readexactly(length)


def says(text: str) -> Talk:
    async def talk(_reader, writer) -> None:
        writer.write(bytes.fromhex(text))

    return talk


@pytest.mark.parametrize(
    ("answer", "kind", "why"),
    [
        ("20 02 00 01", BrokerRefused, "the broker refuses the connection: it does not speak MQTT 5"),
        ("20 03 00 86 00", BrokerRefused, "the broker refuses the connection: the user name or the password is wrong"),
        ("20 02 00 00", BrokerRefused, "the broker refuses the connection: it does not speak MQTT 5"),
        ("20 03 00 99 00", BrokerRefused, "the broker refuses the connection: it wants messages of another form"),
        ("20 03 00 a0 00", BrokerRefused, "the broker refuses the connection: reason 0xa0"),
        ("20 03 00 88 00", BrokerAway, "the broker refuses the connection: it is not available"),
        ("48 54 54 50 2f 31 2e 31", BrokerRefused, "what answers there is no MQTT 5 broker"),
        ("40 02 00 01", BrokerRefused, "what answers there is no MQTT 5 broker"),
        ("30 03 00 01 61", BrokerRefused, "what answers there is no MQTT 5 broker"),
        ("", BrokerAway, "no answer within 0.3 s"),
    ],
)
async def test_what_is_no_consent_is_named(answer, kind, why):
    async with far_end(says(answer)) as broker:
        with pytest.raises(kind) as told:
            async with connected(broker, WILL):
                pass
    assert str(told.value) == why


@pytest.mark.parametrize(
    ("said", "kind", "why"),
    [
        ("e0 02 8b 00", BrokerAway, "the broker ends the connection: it is shutting down"),
        ("e0 02 8e 00", BrokerRefused, "the broker ends the connection: another client has taken the gateway's name"),
        ("e0 00", BrokerAway, "the broker ends the connection"),
        ("20 03 00 00 00", BrokerRefused, "what answers there is no MQTT 5 broker"),
        ("e0 02 9d 00", BrokerRefused, "the broker ends the connection: another server is to be used"),
        pytest.param("d0 00" * 512, BrokerRefused, UNASKED, id="answers to no ping"),
        pytest.param("40 02 00 07" * 65, BrokerRefused, UNASKED, id="answers to no message"),
        ("31 0a 00 01 61 00 00 62 62 62 62 62", BrokerRefused, "what answers there is no MQTT 5 broker"),
    ],
)
async def test_a_line_ends_with_the_brokers_reason(said, kind, why):
    async with far_end(says("20 03 00 00 00" + said)) as broker:
        with pytest.raises(kind) as told:
            async with connected(broker, WILL) as line:
                raise await line.read()
    assert str(told.value) == why


async def test_a_silent_broker_is_asked_and_then_given_up():
    asked = []

    async def talk(reader, writer) -> None:
        writer.write(bytes.fromhex("20 06 00 00 03 13 00 01"))  # it allows a second of silence
        asked.append(await packet(reader))
        writer.write(bytes.fromhex("d0 00"))
        asked.append(await packet(reader))

    async with far_end(talk) as broker, connected(broker, WILL) as line:
        assert "silent for 0.667 s" in str(await line.read())
    assert asked == [b"\xc0\x00"] * 2


async def test_no_more_messages_are_under_way_than_the_broker_allows():
    most = 0

    async def talk(reader, writer) -> None:
        nonlocal most
        writer.write(bytes.fromhex("20 06 00 00 03 21 00 02"))  # two at once
        for _ in range(3):
            first, second = await packet(reader), await packet(reader)
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.05):
                    await packet(reader)
            most += 1
            for one in (second, first, first):  # answers may come in any order, and twice
                writer.write(b"\x40\x02" + one[12:14])

    async with far_end(talk) as broker, connected(broker, WILL) as line:
        await sent(line, messages(6))
    assert most == 3


async def sent(line: BrokerLine, messages) -> list[BrokerRefused | None]:
    """Publish while the line is read; the refusals."""
    async with asyncio.TaskGroup() as group:
        reading = group.create_task(line.read())
        refusals = await line.put(messages)
        reading.cancel()
    return refusals


def messages(count: int, *, long: int = 0) -> list[MqttMessage]:
    return [MqttMessage(topic="north/ev", payload=b"%d" % number + b"x" * long) for number in range(count)]


async def test_a_message_that_is_too_long_for_the_broker_is_not_sent_and_the_others_are():
    heard = []

    async def talk(reader, writer) -> None:
        writer.write(bytes.fromhex("20 08 00 00 05 27 00 00 00 40"))  # 64 bytes at most
        for _ in range(2):
            heard.append(await packet(reader))
            writer.write(b"\x40\x02" + heard[-1][12:14])

    async with far_end(talk) as broker, connected(broker, WILL) as line:
        before, refusal, after = await sent(line, [*messages(1), *messages(1, long=1000), *messages(1)])
    assert (before, after, len(heard)) == (None, None, 2)
    assert str(refusal).startswith("a message of 1,0")


async def test_a_message_that_the_broker_refuses_is_told_with_its_reason_and_the_others_are_sent():
    async def talk(reader, writer) -> None:
        writer.write(CONSENT)
        for reason in (b"", b"\x87", b""):
            writer.write(b"\x40" + bytes([2 + len(reason)]) + (await packet(reader))[12:14] + reason)

    async with far_end(talk) as broker, connected(broker, WILL) as line:
        before, refusal, after = await sent(line, messages(3))
    assert (before, after) == (None, None)
    assert str(refusal) == "the broker does not take north/ev: the user may not do that"


async def test_a_network_that_takes_long_for_many_messages_is_no_fault():
    """Each answer comes in time, all together do not."""

    async def talk(reader, writer) -> None:
        writer.write(CONSENT)
        for _ in range(6):
            head = (await packet(reader))[12:14]
            await asyncio.sleep(0.1)  # the far end's own pace
            writer.write(b"\x40\x02" + head)

    async with far_end(talk) as broker, connected(broker, WILL) as line:
        assert await sent(line, messages(6)) == [None] * 6


async def test_a_broker_that_allows_long_silence_is_asked_all_the_same():
    asked = []

    async def talk(reader, writer) -> None:
        writer.write(bytes.fromhex("20 06 00 00 03 13 ff ff"))
        asked.append(await packet(reader))

    async with far_end(talk) as broker, connected(replace(broker, silence_seconds=1), WILL) as line:
        assert "silent for 0.667 s" in str(await line.read())
    assert asked == [b"\xc0\x00"]


async def test_the_end_is_said_and_waits_for_no_one():
    heard = bytearray()

    async def talk(reader, writer) -> None:
        writer.write(CONSENT)
        heard.extend(await packet(reader))

    async with far_end(talk) as broker:
        async with connected(broker, WILL):
            pass
        await until(lambda: heard == b"\xe0\x01\x04")
