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
    AnswerKind,
    Answers,
    BrokerAnswer,
    MalformedPacket,
    MqttMessage,
    connect,
    publish,
)
from gateway.runtime.connection_faults import connection_words
from gateway.texts import Text, text

MOST_IN_FLIGHT = 32
_CLOSE_SECONDS = 2.0
_PINGS_IN_SILENCE = 3
_READ_BYTES = 512
_MOST_UNASKED = 64
_REFUSES = {
    0x01: "protocol",
    0x80: "unspecified",
    0x81: "malformed",
    0x82: "unexpected",
    0x83: "own_rule",
    0x84: "protocol",
    0x85: "client_name",
    0x86: "password",
    0x87: "not_authorised",
    0x8A: "banned",
    0x8C: "sign_in_way",
    0x8E: "name_taken",
    0x90: "topic",
    0x95: "too_long",
    0x97: "quota",
    0x99: "payload_form",
    0x9A: "no_retained",
    0x9B: "no_acknowledgement",
    0x9C: "other_server",
    0x9D: "other_server",
}
"""Refusals that a person must mend (2.4)."""
_PASSING = {
    0x88: "unavailable",
    0x89: "busy",
    0x8B: "shutting_down",
    0x8D: "heard_nothing",
    0x93: "too_many_at_once",
    0x96: "too_many_messages",
    0x98: "operator",
    0x9F: "too_many_connections",
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
        self._unanswered: dict[int, asyncio.Future[BrokerAnswer]] = {}
        self._pings = self._unasked = 0
        self._window = MOST_IN_FLIGHT
        self._longest = 0
        self._ping_seconds = broker.silence_seconds / _PINGS_IN_SILENCE
        self._reason: BrokerAway | None = None

    async def begin(self, will: MqttMessage) -> None:
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
        heard: list[BrokerAnswer] = []
        try:
            async with asyncio.timeout(broker.answer_seconds):
                while not heard:
                    heard = await self._heard()
        except TimeoutError as error:
            raise _unanswered(broker) from error
        except BrokerAway as error:
            if broker.is_encrypted and broker.certificate is None:
                raise BrokerAway(text("mqtt.may_ask_for_certificate", why=error.words)) from error
            raise
        consent, *others = heard
        if consent.kind is not AnswerKind.CONNECTED:
            raise BrokerRefused(text("mqtt.not_mqtt"))
        if consent.is_refusal:
            raise _refusal("refuses", consent.reason)
        self._window = min(MOST_IN_FLIGHT, consent.most_unanswered)
        self._longest = consent.longest_packet
        silence = broker.silence_seconds
        self._ping_seconds = min(consent.keep_alive or silence, silence) / _PINGS_IN_SILENCE
        for answer in others:
            self._take(answer)

    async def put(self, messages: Sequence[MqttMessage]) -> list[BrokerRefused | None]:
        """Publish messages in order, and wait for the answer to each. `read` must run.

        Return for each message why the broker refuses it, None for one that it has. Raises BrokerAway; the broker may
        have some messages then.
        """
        refusals: list[BrokerRefused | None] = []
        for first in range(0, len(messages), self._window):
            refusals += await self._put(messages[first : first + self._window])
        return refusals

    async def _put(self, messages: Sequence[MqttMessage]) -> list[BrokerRefused | None]:
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
                refusals.append(BrokerRefused(text("mqtt.message_too_long", bytes=long)))
                continue
            answer = await self._answered(packet_id)
            why = text("mqtt.topic_refused", topic=message.topic, why=_words(answer.reason))
            refusals.append(BrokerRefused(why) if answer.is_refusal else None)
        return refusals

    async def _answered(self, packet_id: int) -> BrokerAnswer:
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
                    return BrokerAway(text("mqtt.silent", seconds=f"{2 * self._ping_seconds:.3g}"))
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

    async def _heard(self) -> list[BrokerAnswer]:
        """Wait for bytes; return the answers that are whole by then. Raises BrokerAway, BrokerRefused."""
        await asyncio.sleep(0)  # bytes that are there are read without a wait: a flood of them must not stop the loop
        try:
            data = await self._reader.read(_READ_BYTES)
        except OSError as error:
            raise _translated(error, self._broker.host) from error
        if not data:
            raise BrokerAway(text("mqtt.connection_lost"))
        try:
            return list(self._answers.feed(data))
        except MalformedPacket as error:
            raise BrokerRefused(text("mqtt.not_mqtt")) from error

    def _take(self, answer: BrokerAnswer) -> None:
        match answer.kind:
            case AnswerKind.TAKEN:
                waiting = self._unanswered.get(answer.packet_id)
                if waiting is None or waiting.done():
                    self._overhear()
                else:
                    waiting.set_result(answer)
            case AnswerKind.PONG if self._pings:
                self._pings -= 1
            case AnswerKind.PONG:
                self._overhear()
            case AnswerKind.DISCONNECT:
                raise _refusal("ends", answer.reason)
            case AnswerKind.CONNECTED:
                raise BrokerRefused(text("mqtt.not_mqtt"))

    def _overhear(self) -> None:
        """Count an answer that was not asked for. Raises BrokerRefused when there are many."""
        self._unasked += 1
        if self._unasked > _MOST_UNASKED:
            raise BrokerRefused(text("mqtt.unasked"))


@asynccontextmanager
async def connected(broker: Broker, will: MqttMessage) -> AsyncIterator[BrokerLine]:
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
        raise BrokerRefused(text("mqtt.authority_not_pem", file=str(broker.ca_file))) from error
    except OSError as error:
        raise BrokerRefused(
            text("mqtt.authority_unreadable", file=str(broker.ca_file), why=str(error.strerror))
        ) from error
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    if broker.certificate is None:
        return context
    try:
        context.load_cert_chain(broker.certificate, broker.key, password="")  # a key with a password is not asked about
    except ssl.SSLError as error:
        raise BrokerRefused(text("mqtt.certificate_no_pair", file=broker.certificate, key=str(broker.key))) from error
    except OSError as error:
        why = str(error.strerror)
        words = text("mqtt.certificate_unreadable", file=broker.certificate, key=str(broker.key), why=why)
        raise BrokerRefused(words) from error
    return context


def _translated(error: OSError, host: str) -> BrokerAway | BrokerRefused:
    """Name an error of the connection by the reaction that it needs."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return BrokerRefused(text("mqtt.certificate_not_accepted", why=error.verify_message))
    if isinstance(error, ssl.SSLError) and "ALERT" in (error.reason or ""):
        return BrokerRefused(text("mqtt.own_certificate_refused"))
    return BrokerAway(connection_words(error, host))


def _refusal(what: str, reason: int) -> BrokerAway | BrokerRefused:
    """Name a reason of the broker by the reaction that it needs."""
    if reason == 0:
        return BrokerAway(text(f"mqtt.broker.{what}"))
    kind = BrokerAway if reason in _PASSING else BrokerRefused
    return kind(text(f"mqtt.broker_for.{what}", why=_words(reason)))


def _words(reason: int) -> Text:
    if reason in _PASSING:
        return text(f"mqtt.reason.{_PASSING[reason]}")
    if reason in _REFUSES:
        return text(f"mqtt.reason.{_REFUSES[reason]}")
    return text("mqtt.reason_number", number=f"{reason:#04x}")


def _unanswered(broker: Broker) -> BrokerAway:
    return BrokerAway(text("mqtt.no_answer", seconds=broker.answer_seconds))
