"""A line to an MQTT broker: messages with acknowledgement, pings, and why it ended.

Errors are named by their reaction: `BrokerAway` mends itself, `BrokerRefused` is for a person to mend.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from itertools import cycle

from gateway.domain.errors import GatewayError
from gateway.mqtt.packets import (
    DISCONNECT_WITH_WILL,
    PING,
    Answer,
    Answers,
    Kind,
    MalformedPacket,
    Message,
    connect,
    publish,
)
from gateway.runtime.connection_faults import connection_words

MOST_IN_FLIGHT = 32
_CLOSE_SECONDS = 2.0
_PINGS_IN_SILENCE = 3
_READ_BYTES = 512
_MOST_UNASKED = 64
LOST = "the connection is lost"
_NOT_MQTT = "what answers there is no MQTT 5 broker"
_UNASKED = "the broker sends answers that were not asked for"

_WORDS = {
    0x01: "it does not speak MQTT 5",
    0x80: "it does not say why",
    0x81: "it cannot read what the gateway sends",
    0x82: "it does not expect what the gateway sends",
    0x83: "a rule of its own forbids it",
    0x84: "it does not speak MQTT 5",
    0x85: "it does not accept the gateway's name",
    0x86: "the user name or the password is wrong",
    0x87: "the user may not do that",
    0x8A: "the gateway is banned",
    0x8C: "it wants another way to sign in",
    0x8E: "another client has taken the gateway's name",
    0x90: "the topic is not allowed",
    0x95: "the message is too long",
    0x97: "the user's quota is used up",
    0x99: "it wants messages of another form",
    0x9A: "it keeps no messages",
    0x9B: "it acknowledges no messages",
    0x9C: "another server is to be used",
    0x9D: "another server is to be used",
}
"""Refusals in the words of the person who mends them (2.4)."""
_PASSING = {
    0x88: "it is not available",
    0x89: "it is busy",
    0x8B: "it is shutting down",
    0x8D: "it heard nothing for too long",
    0x93: "it gets too many messages at once",
    0x96: "it gets too many messages",
    0x98: "its operator has ended the connection",
    0x9F: "it gets too many connections",
}
"""Reasons that pass by themselves."""


class BrokerAway(GatewayError):
    """The broker does not answer, or the connection is lost. The gateway connects again."""


class BrokerRefused(GatewayError):
    """The broker refuses what the gateway asks. A person must change something there or here."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Broker:
    """Address of a broker, and the credentials for it.

    `client_id`: the gateway's name there, which nobody else has. `answer_seconds`: so long an answer may take.
    `silence_seconds`: so long the line may be silent, if the broker does not ask for less.
    """

    host: str
    port: int
    is_encrypted: bool
    client_id: str
    username: str | None = None
    password: str | None = field(default=None, repr=False)
    certificate: str | None = None
    key: str | None = None
    ca_file: str | None = None
    answer_seconds: float = 10.0
    silence_seconds: int = 60

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"


class BrokerLine:
    """A line for as long as its connection lives."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, broker: Broker) -> None:
        self._reader = reader
        self._writer = writer
        self._broker = broker
        self._answers = Answers()
        self._packet_ids = cycle(range(1, 65536))
        self._unanswered: dict[int, asyncio.Future[Answer]] = {}
        self._pings = self._unasked = 0
        self._window = MOST_IN_FLIGHT
        self._longest = 0
        self._ping_seconds = broker.silence_seconds / _PINGS_IN_SILENCE
        self._reason: BrokerAway | None = None

    async def begin(self, will: Message) -> None:
        """Introduce the gateway, and wait for the broker's consent. Raises BrokerAway, BrokerRefused.

        The broker publishes `will` when the line ends, in whatever way.
        """
        broker = self._broker
        self._writer.write(
            connect(
                client_id=broker.client_id,
                will=will,
                keep_alive=broker.silence_seconds,
                username=broker.username,
                password=broker.password,
            )
        )
        heard: list[Answer] = []
        try:
            async with asyncio.timeout(broker.answer_seconds):
                while not heard:
                    heard = await self._heard()
        except TimeoutError as error:
            raise _unanswered(broker) from error
        except BrokerAway as error:
            if broker.is_encrypted and broker.certificate is None:
                raise BrokerAway(f"{error}; it may ask for a certificate") from error
            raise
        consent, *others = heard
        if consent.kind is not Kind.CONNECTED:
            raise BrokerRefused(_NOT_MQTT)
        if consent.is_refusal:
            raise _refusal("the broker refuses the connection", consent.reason)
        self._window = min(MOST_IN_FLIGHT, consent.most_unanswered)
        self._longest = consent.longest_packet
        silence = broker.silence_seconds
        self._ping_seconds = min(consent.keep_alive or silence, silence) / _PINGS_IN_SILENCE
        for answer in others:
            self._take(answer)

    async def put(self, messages: Sequence[Message]) -> list[BrokerRefused | None]:
        """Publish messages in order, and wait for the answer to each. `read` must run.

        Return for each message why the broker refuses it, None for one that it has. Raises BrokerAway; the broker may
        have some messages then.
        """
        refusals: list[BrokerRefused | None] = []
        for first in range(0, len(messages), self._window):
            refusals += await self._put(messages[first : first + self._window])
        return refusals

    async def _put(self, messages: Sequence[Message]) -> list[BrokerRefused | None]:
        """Publish as many messages as the broker takes at once, and hear the answer to each.

        The time for an answer begins after the one before it: a slow network takes long for all of them.
        """
        named = {next(self._packet_ids): message for message in messages}
        packets = {packet_id: publish(message, packet_id=packet_id) for packet_id, message in named.items()}
        fitting = {one: packet for one, packet in packets.items() if len(packet) <= (self._longest or len(packet))}
        loop = asyncio.get_running_loop()
        self._unanswered = {packet_id: loop.create_future() for packet_id in fitting}
        self._writer.writelines(fitting.values())
        refusals: list[BrokerRefused | None] = []
        for packet_id, message in named.items():
            if packet_id not in fitting:
                long = len(packets[packet_id])
                refusals.append(BrokerRefused(f"a message of {long:,} bytes is longer than the broker takes"))
                continue
            answer = await self._answered(packet_id)
            why = f"the broker does not take {message.topic}: {_words(answer.reason)}"
            refusals.append(BrokerRefused(why) if answer.is_refusal else None)
        return refusals

    async def _answered(self, packet_id: int) -> Answer:
        try:
            async with asyncio.timeout(self._broker.answer_seconds):
                return await self._unanswered[packet_id]
        except TimeoutError as error:
            raise _unanswered(self._broker) from error

    async def read(self) -> BrokerAway | BrokerRefused:
        """Take the broker's answers and send pings until the line ends; return why it ended."""
        is_asked = False
        while True:
            try:
                async with asyncio.timeout(self._ping_seconds):
                    heard = await self._heard()
                for answer in heard:
                    self._take(answer)
                is_asked = False
            except TimeoutError:
                if is_asked:
                    return BrokerAway(f"silent for {2 * self._ping_seconds:.3g} s")
                is_asked = True
                self._pings += 1
                self._writer.write(PING)
            except (BrokerAway, BrokerRefused) as reason:
                return self._reason or reason

    def end(self, reason: BrokerAway) -> None:
        """End the line, so that `read` returns this reason."""
        self._reason = reason
        self._writer.transport.abort()

    async def close(self) -> None:
        """Take leave. A broker that does not even take the last bytes is left to the kernel."""
        try:
            with suppress(TimeoutError, OSError):
                async with asyncio.timeout(_CLOSE_SECONDS):
                    self._writer.write(DISCONNECT_WITH_WILL)
                    self._writer.close()
                    await self._writer.wait_closed()
        finally:
            self._writer.transport.abort()

    async def _heard(self) -> list[Answer]:
        """Wait for bytes; return the answers that are whole by then. Raises BrokerAway, BrokerRefused."""
        await asyncio.sleep(0)  # bytes that are there are read without a wait: a flood of them must not stop the loop
        try:
            data = await self._reader.read(_READ_BYTES)
        except OSError as error:
            raise _translated(error, self._broker.host) from error
        if not data:
            raise BrokerAway(LOST)
        try:
            return list(self._answers.feed(data))
        except MalformedPacket as error:
            raise BrokerRefused(_NOT_MQTT) from error

    def _take(self, answer: Answer) -> None:
        match answer.kind:
            case Kind.TAKEN:
                waiting = self._unanswered.get(answer.packet_id)
                if waiting is None or waiting.done():
                    self._overhear()
                else:
                    waiting.set_result(answer)
            case Kind.PONG if self._pings:
                self._pings -= 1
            case Kind.PONG:
                self._overhear()
            case Kind.DISCONNECT:
                raise _refusal("the broker ends the connection", answer.reason)
            case Kind.CONNECTED:
                raise BrokerRefused(_NOT_MQTT)

    def _overhear(self) -> None:
        """Count an answer that was not asked for. Raises BrokerRefused when there are many."""
        self._unasked += 1
        if self._unasked > _MOST_UNASKED:
            raise BrokerRefused(_UNASKED)


@asynccontextmanager
async def connected(broker: Broker, will: Message) -> AsyncIterator[BrokerLine]:
    """Yield a line to a broker, which publishes `will` when the context ends. Raises BrokerAway, BrokerRefused."""
    trust = await asyncio.to_thread(_trust, broker) if broker.is_encrypted else None
    try:
        async with asyncio.timeout(broker.answer_seconds):
            reader, writer = await asyncio.open_connection(broker.host, broker.port, ssl=trust)
    except TimeoutError as error:
        raise _unanswered(broker) from error
    except OSError as error:
        raise _translated(error, broker.host) from error
    line = BrokerLine(reader, writer, broker=broker)
    try:
        await line.begin(will)
        yield line
    finally:
        await line.close()


def _trust(broker: Broker) -> ssl.SSLContext:
    """Read the authorities of the broker's certificate, and the gateway's own one. Raises BrokerRefused."""
    try:
        context = ssl.create_default_context(cafile=broker.ca_file)
    except ssl.SSLError as error:
        raise BrokerRefused(f"`ca_file` {broker.ca_file} holds no certificate in PEM form") from error
    except OSError as error:
        raise BrokerRefused(f"`ca_file` {broker.ca_file} cannot be read: {error.strerror}") from error
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    if broker.certificate is None:
        return context
    try:
        context.load_cert_chain(broker.certificate, broker.key, password="")  # a key with a password is not asked about
    except ssl.SSLError as error:
        raise BrokerRefused(
            f"`certificate` {broker.certificate} and `key` {broker.key} are no pair in PEM form"
        ) from error
    except OSError as error:
        words = f"`certificate` {broker.certificate} or `key` {broker.key} cannot be read: {error.strerror}"
        raise BrokerRefused(words) from error
    return context


def _translated(error: OSError, host: str) -> BrokerAway | BrokerRefused:
    """Name an error of the connection by the reaction that it needs."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return BrokerRefused(f"the broker's certificate is not accepted: {error.verify_message}")
    if isinstance(error, ssl.SSLError) and "ALERT" in (error.reason or ""):
        return BrokerRefused("the broker does not accept the gateway's certificate, or asks for one")
    return BrokerAway(connection_words(error, host))


def _refusal(what: str, reason: int) -> BrokerAway | BrokerRefused:
    """Name a reason of the broker by the reaction that it needs."""
    if reason == 0:
        return BrokerAway(what)
    kind = BrokerAway if reason in _PASSING else BrokerRefused
    return kind(f"{what}: {_words(reason)}")


def _words(reason: int) -> str:
    return _PASSING.get(reason) or _WORDS.get(reason) or f"reason {reason:#04x}"


def _unanswered(broker: Broker) -> BrokerAway:
    return BrokerAway(f"no answer within {broker.answer_seconds:g} s")
