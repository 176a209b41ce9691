"""A connected line to a NATS server: messages with acknowledgement, look-ups, and subscriptions.

The library's errors are translated here: `FleetAway` ends the connection, `FleetRefused` is for a person to mend.
"""

from __future__ import annotations

import asyncio
import json
import secrets as randomness
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from types import MappingProxyType
from typing import Final

from nats import errors as nats_errors
from nats.aio.client import Client
from nats.aio.msg import Msg

from gateway.domain.errors import GatewayError
from gateway.fleet.names import Extent, Outgoing, Stored, StreamMessage
from gateway.runtime.supervision import heed_cancellation, heeding_cancellation

ANSWER_SECONDS = 10.0
_MSG_ID = "Nats-Msg-Id"
_EXPECTED_LAST = "Nats-Expected-Last-Subject-Sequence"
_SEQUENCE = "Nats-Sequence"
STATUS: Final = "Status"
_NOTHING_THERE = "404"
_NOBODY_SERVES = "503"
_NOTHING_CAME = "408"
_GATHER_SECONDS = 1.0
_WRONG_LAST_SEQUENCE = 10071
_HEADER_FRAME = len("NATS/1.0\r\n\r\n")
_MOST_PENDING = 1024
_MOST_READ = 1024
_MOST_DENIED = 100


class FleetAway(GatewayError):
    """The server does not answer, or the connection is lost. The gateway connects again."""


class FleetRefused(GatewayError):
    """The server refuses what the gateway asks. A person must change something there or here."""


class SubjectMoved(GatewayError):
    """Somebody else published on the subject, or the last look at it is out of date. It must be looked at again."""


class FleetLine:
    """A line for as long as its connection lives."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._denied: deque[str] = deque(maxlen=_MOST_DENIED)
        self._inbox = ""
        self._published = 0
        self._answers: dict[int, asyncio.Future[Msg | None]] = {}
        self._queues: set[asyncio.Queue[Msg | None]] = set()
        self._reason: GatewayError = FleetAway("the connection is lost")

    def denied(self, text: str) -> None:
        """Note that the server denied a publication or subscription; `text` is what it said."""
        self._denied.append(text)

    def lost(self, reason: GatewayError) -> None:
        """Note that the connection is lost, and why. Whoever waits for an answer hears it at once."""
        self._reason = reason
        for answer in self._answers.values():
            if not answer.done():
                answer.set_result(None)
        for queue in self._queues:
            if not queue.full():
                queue.put_nowait(None)

    async def put(self, messages: Sequence[Outgoing]) -> tuple[int, ...]:
        """Publish messages in order, all in flight at once, and wait until the stream has each.

        Return their sequence numbers in the stream. Raises FleetAway, FleetRefused, SubjectMoved; some messages may be
        stored then.
        """
        acks = await self._acknowledged(messages, within=ANSWER_SECONDS)
        return tuple(_sequence(ack, message.subject) for ack, message in zip(acks, messages, strict=True))

    async def put_each(self, messages: Sequence[Outgoing], *, within: float) -> tuple[int | None, ...]:
        """Publish as `put` does, each message for itself: None stands for one whose subject has moved.

        Each acknowledgement must come within these seconds. Raises FleetAway, FleetRefused.
        """
        sequences: list[int | None] = []
        for ack, message in zip(await self._acknowledged(messages, within=within), messages, strict=True):
            try:
                sequences.append(_sequence(ack, message.subject))
            except SubjectMoved:
                sequences.append(None)
        return tuple(sequences)

    async def _acknowledged(self, messages: Sequence[Outgoing], *, within: float) -> list[bytes]:
        """Publish messages, and return each acknowledgement; an empty one stands for a subject that nobody takes."""
        answers = await self._answers_to(messages, within=within)
        return [b"" if (answer.headers or {}).get(STATUS) else answer.data for answer in answers]

    async def _answers_to(self, messages: Sequence[Outgoing], *, within: float) -> list[Msg]:
        """Publish messages, and wait for the answer to each. One subscription gets those of the line's whole life."""
        if not self._inbox:
            inbox = self._client.new_inbox()
            try:
                with heeding_cancellation():
                    await self._client.subscribe(f"{inbox}.*", cb=self._take_answer, pending_msgs_limit=_MOST_PENDING)
            except (nats_errors.Error, OSError) as error:
                raise FleetAway(_words(error)) from error
            self._inbox = inbox
        loop, first, self._published = asyncio.get_running_loop(), self._published, self._published + len(messages)
        places = range(first, self._published)
        answers = {place: loop.create_future() for place in places}
        self._answers |= answers
        try:
            for place, message in zip(places, messages, strict=True):
                await self._publish(message, reply=f"{self._inbox}.{place}")
            return [await self._answered(answers[place], messages[0].subject, within=within) for place in places]
        finally:
            for place in places:
                del self._answers[place]

    async def _take_answer(self, message: Msg) -> None:
        answer = self._answers.get(int(message.subject.rpartition(".")[2]))
        if answer is not None and not answer.done():
            answer.set_result(message)

    async def expect_stream(self, stream: str, subject: str) -> None:
        """Check that there is such a stream, and that it can be asked. Raises FleetAway, FleetRefused."""
        config = (await self._stream_info(stream, subject)).get("config")
        if not isinstance(config, dict) or not config.get("allow_direct") or config.get("no_ack"):
            raise FleetRefused(
                f"the stream {stream} must acknowledge, and allow direct gets: `edge-gateway fleet prepare` sets both"
            )

    async def extent(self, stream: str, subject: str) -> Extent:
        """Return the extent of a stream that takes these subjects. Raises FleetAway, FleetRefused."""
        answer = await self._stream_info(stream, subject)
        state = answer.get("state")
        if not isinstance(state, dict):
            raise FleetRefused(f"the answer for {stream} cannot be read")
        return Extent(str(answer.get("created")), int(state.get("first_seq", 0)), int(state.get("last_seq", 0)))

    async def _stream_info(self, stream: str, subject: str) -> Mapping[str, object]:
        message = await self.asked(f"$JS.API.STREAM.INFO.{stream}", b"", refusal="the server has no JetStream")
        answer = _parsed(message.data, subject)
        if "error" in answer:
            raise FleetRefused(_no_stream(subject))
        return answer

    async def last(self, stream: str, subject: str) -> Stored | None:
        """Return the last message of a subject in a stream, None if there is none. Raises FleetAway, FleetRefused."""
        message = await self.asked(f"$JS.API.DIRECT.GET.{stream}.{subject}", b"", refusal=_no_stream(subject))
        headers = message.headers or {}
        if headers.get(STATUS) == _NOTHING_THERE:
            return None
        sequence = headers.get(_SEQUENCE, "")
        if not sequence.isdecimal():
            raise FleetRefused(f"the answer for {subject} cannot be read")
        return Stored(int(sequence), headers.get(_MSG_ID, ""), headers)

    async def stored_after(self, stream: str, subject: str, sequence: int) -> frozenset[str]:
        """Return the message ids of a subject's messages above a sequence number. Raises FleetAway, FleetRefused."""
        wanted = {"deliver_policy": "by_start_sequence", "opt_start_seq": sequence + 1, "headers_only": True}
        return frozenset(
            [(message.headers or {}).get(_MSG_ID, "") async for message in self._read(stream, subject, wanted)]
        )

    async def last_of_each(self, stream: str, subject: str) -> AsyncIterator[StreamMessage]:
        """Yield the last message of each subject that matches. Raises FleetAway, FleetRefused."""
        async for message in self._read(stream, subject, {"deliver_policy": "last_per_subject"}):
            yield kept(message)

    async def follow(
        self, stream: str, subject: str, *, after: int, most: int
    ) -> AsyncIterator[Sequence[StreamMessage]]:
        """Yield the messages above a sequence number in batches, oldest first, and those that come, without an end.

        An empty batch says that there is nothing new. Raises FleetAway, FleetRefused.
        """
        wanted = {"deliver_policy": "by_start_sequence", "opt_start_seq": after + 1}
        asked = json.dumps({"batch": most, "expires": int(_GATHER_SECONDS * 1e9)}).encode()
        inbox = self._client.new_inbox()
        async with self._queued(inbox) as queue:
            name, _ = await self._consumer(stream, subject, wanted)
            place = f"$JS.API.CONSUMER.MSG.NEXT.{stream}.{name}"
            while True:
                await self._publish(Outgoing(place, asked), reply=inbox)
                batch: list[StreamMessage] = []
                while len(batch) < most:
                    message = await self._answered(queue.get(), place)
                    if message.reply:  # a message of the stream, whatever headers it has
                        batch.append(kept(message))
                    elif (message.headers or {}).get(STATUS) in (_NOTHING_THERE, _NOTHING_CAME):
                        break
                    else:
                        raise FleetAway("the server has ended the reading of the stream")
                yield batch

    @asynccontextmanager
    async def pushed(
        self, stream: str, subject: str, take: Callable[[Msg], Awaitable[None]], *, heartbeat: float, pending: int
    ) -> AsyncIterator[int]:
        """Have the last message of each subject pushed, and each new one, while the context lasts.

        Yields how many there are at first. The server says every `heartbeat` seconds that it is alive; `pending` may
        wait here. Raises FleetAway, FleetRefused.
        """
        inbox = self._client.new_inbox()
        wanted = {
            "deliver_subject": inbox,
            "deliver_policy": "last_per_subject",
            "idle_heartbeat": int(heartbeat * 1e9),
        }
        async with self._subscribed(inbox, take, pending=pending):
            _, waiting = await self._consumer(stream, subject, wanted)
            yield waiting

    async def _read(self, stream: str, subject: str, wanted: Mapping[str, object]) -> AsyncIterator[Msg]:
        """Yield the messages that a consumer made for this finds now. Raises FleetAway, FleetRefused."""
        inbox = self._client.new_inbox()
        async with self._queued(inbox) as queue:
            _, pending = await self._consumer(stream, subject, {"deliver_subject": inbox, **wanted})
            left = pending > 0
            while left:
                message = await self._answered(queue.get(), subject)
                left = message.reply.rpartition(".")[2] != "0"  # the number of messages still to come
                yield message

    async def _consumer(self, stream: str, subject: str, wanted: Mapping[str, object]) -> tuple[str, int]:
        """Make a consumer that ends when nobody asks; return its name, and the number of messages that wait for it."""
        name = randomness.token_hex(8)
        config = {
            "name": name,
            "ack_policy": "none",
            "filter_subject": subject,
            "mem_storage": True,
            "num_replicas": 1,
            "inactive_threshold": int(ANSWER_SECONDS * 1e9),
            **wanted,
        }
        asked = json.dumps({"stream_name": stream, "config": config}).encode()
        place = f"$JS.API.CONSUMER.CREATE.{stream}.{name}.{subject}"
        answer = await self.asked(place, asked, refusal=_no_stream(subject))
        pending = _answer(answer.data, subject).get("num_pending")
        return name, pending if isinstance(pending, int) else 0

    async def asked(
        self, subject: str, data: bytes, *, refusal: str, headers: Mapping[str, str] = MappingProxyType({})
    ) -> Msg:
        """Request one answer. `refusal`: the sentence for a subject that nobody serves."""
        (answer,) = await self._answers_to([Outgoing(subject, data, headers=headers)], within=ANSWER_SECONDS)
        if (answer.headers or {}).get(STATUS) == _NOBODY_SERVES:
            raise FleetRefused(refusal)
        return answer

    async def say(self, subject: str, data: bytes, *, headers: Mapping[str, str] = MappingProxyType({})) -> None:
        """Publish without acknowledgement. Raises FleetAway, FleetRefused."""
        await self._publish(Outgoing(subject, data, headers=headers), reply="")

    async def replies(
        self, subject: str, data: bytes, *, headers: Mapping[str, str], within: float
    ) -> AsyncIterator[Msg]:
        """Publish a request and yield its replies, each within these seconds. Raises FleetAway, FleetRefused."""
        inbox = self._client.new_inbox()
        async with self._queued(inbox) as queue:
            await self._publish(Outgoing(subject, data, headers=headers), reply=inbox)
            while True:
                message = await self._answered(queue.get(), subject, within=within)
                if (message.headers or {}).get(STATUS):
                    raise FleetRefused(f"nobody takes {subject}")
                yield message

    @asynccontextmanager
    async def _subscribed(
        self, subject: str, take: Callable[[Msg], Awaitable[None]], *, pending: int = _MOST_PENDING
    ) -> AsyncIterator[None]:
        try:
            subscription = await self._client.subscribe(subject, cb=take, pending_msgs_limit=pending)
        except (nats_errors.Error, OSError) as error:
            heed_cancellation()
            raise FleetAway(_words(error)) from error
        try:
            heed_cancellation()
            yield
        finally:
            with suppress(nats_errors.Error, OSError):  # the line may be gone
                await subscription.unsubscribe()

    @asynccontextmanager
    async def _queued(self, subject: str) -> AsyncIterator[asyncio.Queue[Msg | None]]:
        """Queue the messages of a subject while the context lasts; None stands for the end of the line."""
        queue: asyncio.Queue[Msg | None] = asyncio.Queue(_MOST_READ)
        self._queues.add(queue)
        try:
            async with self._subscribed(subject, queue.put):
                yield queue
        finally:
            self._queues.remove(queue)

    @asynccontextmanager
    async def listening(self, subject: str, take: Callable[[Msg], Awaitable[None]]) -> AsyncIterator[None]:
        """Take messages of a subject while the context lasts. Raises FleetAway, and FleetRefused if it is denied."""
        async with self._subscribed(subject, take):
            try:
                # Twice: the library's first ping may overtake the subscription, which waits for its writing task.
                for _ in range(2):
                    with heeding_cancellation():
                        await self._client.flush(timeout=int(ANSWER_SECONDS))
            except (nats_errors.Error, OSError) as error:
                raise FleetAway(_words(error)) from error
            if denied := self._denial_of(subject):
                raise FleetRefused(denied)
            yield

    async def _publish(self, message: Outgoing, *, reply: str) -> None:
        headers = dict(message.headers)
        if message.message_id:
            headers[_MSG_ID] = message.message_id
        if message.after is not None:
            headers[_EXPECTED_LAST] = str(message.after)
        # The server counts the headers too, and ends the connection over a message that is too long.
        framed = sum((len(f"{name}: {text}\r\n") for name, text in headers.items()), _HEADER_FRAME if headers else 0)
        size = len(message.data) + framed
        if size > self._client.max_payload:
            raise FleetRefused(f"a message of {size:,} bytes is longer than the server takes: raise its max_payload")
        try:
            with heeding_cancellation():
                await self._client.publish(message.subject, message.data, reply=reply, headers=headers or None)
        except (nats_errors.Error, OSError) as error:
            raise FleetAway(_words(error)) from error

    async def _answered(self, answer: Awaitable[Msg | None], subject: str, *, within: float = ANSWER_SECONDS) -> Msg:
        try:
            async with asyncio.timeout(within):
                found = await answer
        except TimeoutError as error:
            raise self._unanswered(subject) from error
        if found is None:
            raise self._reason
        return found

    def _unanswered(self, subject: str) -> GatewayError:
        if denied := self._denial_of(subject):
            return FleetRefused(denied)
        return FleetAway(f"no answer within {ANSWER_SECONDS:g} s")

    def _denial_of(self, subject: str) -> str:
        quoted = f'"{subject}"'.lower()  # the library gives the server's words in small letters
        return next((f"the server says: {text}" for text in self._denied if quoted in text.lower()), "")


def kept(message: Msg) -> StreamMessage:
    """Read a message of a consumer; its place in the stream stands in its reply subject."""
    *_, sequence, _, nanoseconds, _ = message.reply.split(".")
    message_id = (message.headers or {}).get(_MSG_ID, "")
    return StreamMessage(message.subject, message.data, int(nanoseconds) // 1000, int(sequence), message_id)


def _sequence(ack: bytes, subject: str) -> int:
    if not ack:
        raise FleetRefused(_no_stream(subject))
    found = _answer(ack, subject).get("seq")
    if not isinstance(found, int):
        raise FleetRefused(f"what acknowledges {subject} is not a stream")
    return found


def _answer(data: bytes, subject: str) -> Mapping[str, object]:
    """Return JetStream's answer. Raises SubjectMoved, FleetRefused with its words."""
    answer = _parsed(data, subject)
    fault = answer.get("error")
    if isinstance(fault, dict):
        if fault.get("err_code") == _WRONG_LAST_SEQUENCE:
            raise SubjectMoved(f"{subject} has other messages than was seen")
        raise FleetRefused(f"the stream does not take {subject}: {fault.get('description', 'it does not say why')}")
    return answer


def _parsed(data: bytes, subject: str) -> Mapping[str, object]:
    try:
        answer = json.loads(data)
    except ValueError as error:
        raise FleetRefused(f"the answer for {subject} cannot be read") from error
    if not isinstance(answer, dict):
        raise FleetRefused(f"the answer for {subject} cannot be read")
    return answer


def _no_stream(subject: str) -> str:
    return f"no stream takes {subject}: make it with `edge-gateway fleet prepare`"


def _words(error: Exception) -> str:
    return str(error).removeprefix("nats: ") or "the connection is lost"
