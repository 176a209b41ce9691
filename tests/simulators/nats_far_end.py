"""A NATS server with streams, in the test's own loop: it hangs, dies and comes back at a word.

It speaks as much as a gateway and its operator use: subjects with wildcards, headers, streams with acknowledgement,
duplicates and expected sequences, look-ups, and consumers that push or are pulled. Tests that hold for it and for a
real server run with both (`server` of the fleet's tests), so the two cannot drift apart.
"""

from __future__ import annotations

import asyncio
import base64
import itertools
import json
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field

_API = "$JS.API."
_EXISTS = {"code": 400, "err_code": 10058, "description": "stream name already in use"}
_NO_MESSAGE = {"code": 404, "err_code": 10037, "description": "no message found"}
_NOT_FOUND = {"code": 404, "err_code": 10059, "description": "stream not found"}
_GREETING = {
    "server_id": "far-end",
    "server_name": "far-end",
    "version": "2.10.0",
    "proto": 1,
    "headers": True,
    "jetstream": True,
    "max_payload": 1_048_576,
}


def _matches(pattern: str, subject: str) -> bool:
    words = subject.split(".")
    for place, word in enumerate(pattern.split(".")):
        if word == ">":
            return len(words) > place
        if place >= len(words) or word not in ("*", words[place]):
            return False
    return len(words) == len(pattern.split("."))


def _headers(raw: bytes) -> dict[str, str]:
    lines = raw.decode(errors="replace").split("\r\n")[1:]
    return {name.strip(): text.strip() for name, _, text in (line.partition(":") for line in lines) if name}


def _status(line: str, **fields: object) -> bytes:
    """Headers of the server itself: `404 Message Not Found`, say."""
    more = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in fields.items())
    return f"NATS/1.0{line and ' '}{line}\r\n{more}\r\n".encode()


@dataclass(frozen=True, slots=True)
class _Message:
    sequence: int
    subject: str
    headers: bytes
    data: bytes
    at: int


@dataclass
class _Stream:
    config: dict[str, object]
    messages: list[_Message] = field(default_factory=list)
    last: int = 0
    created: str = field(default_factory=lambda: f"2026-11-28T00:00:00.{time.monotonic_ns() % 10**9:09}Z")
    known: dict[str, tuple[int, int]] = field(default_factory=dict)

    def takes(self, subject: str) -> bool:
        return any(_matches(one, subject) for one in self.config["subjects"])

    def last_of(self, subject: str) -> _Message | None:
        return next((one for one in reversed(self.messages) if one.subject == subject), None)

    def put(self, subject: str, headers: bytes, data: bytes) -> dict[str, object]:
        """Take a message; return its acknowledgement."""
        name, said, now = self.config["name"], _headers(headers), time.time_ns()
        before = self.last_of(subject)
        expected = said.get("Nats-Expected-Last-Subject-Sequence")
        if expected is not None and int(expected) != (before.sequence if before else 0):
            return {"error": {"code": 400, "err_code": 10071, "description": "wrong last sequence"}}
        number = said.get("Nats-Msg-Id", "")
        sequence, until = self.known.get(number, (0, 0))
        if number and now < until:
            return {"stream": name, "seq": sequence, "duplicate": True}
        self.last += 1
        self.messages.append(_Message(self.last, subject, headers, data, now))
        if number:
            self.known[number] = self.last, now + int(self.config.get("duplicate_window") or 0)
        if self.config.get("max_msgs_per_subject") == 1 and before:
            self.messages.remove(before)
        return {"stream": name, "seq": self.last}

    def info(self, asked: dict[str, object]) -> dict[str, object]:
        wanted = asked.get("subjects_filter")
        state: dict[str, object] = {
            "messages": len(self.messages),
            "bytes": sum(len(one.data) for one in self.messages),
            "consumer_count": 0,
            "first_seq": self.messages[0].sequence if self.messages else 0,
            "last_seq": self.last,
        }
        if wanted:
            found = [one.subject for one in self.messages if _matches(str(wanted), one.subject)]
            state["subjects"] = {subject: found.count(subject) for subject in set(found)}
        return {"config": self.config, "created": self.created, "state": state}


@dataclass(eq=False)
class _Consumer:
    """The reader of a stream. It waits until somebody hears it, and ends when nobody does any more.

    `next_in`: the sequence number of the next message that it has not looked at.
    """

    name: str
    stream: _Stream
    config: dict[str, object]
    send: Callable[..., bool]
    is_heard_at: Callable[[str], bool]
    delivered: int = 0
    next_in: int = 1
    waiting: list[_Message] = field(default_factory=list)
    asked: list[tuple[str, int]] = field(default_factory=list)
    was_heard: bool = False

    def __post_init__(self) -> None:
        begin = int(self.config.get("opt_start_seq") or 1)
        self.waiting = [one for one in self.stream.messages if one.sequence >= begin and self._takes(one)]
        if self.config.get("deliver_policy") == "last_per_subject":
            newest = {one.subject: one.sequence for one in self.waiting}
            self.waiting = [one for one in self.waiting if newest[one.subject] == one.sequence]
        self.next_in = max(begin, self.stream.last + 1)

    def _takes(self, message: _Message) -> bool:
        return _matches(str(self.config.get("filter_subject") or ">"), message.subject)

    def is_over(self) -> bool:
        """Return whether whoever heard it has gone."""
        inbox = self.config.get("deliver_subject")
        if inbox is None:
            return False
        is_heard = self.is_heard_at(str(inbox))
        was_heard, self.was_heard = self.was_heard, self.was_heard or is_heard
        return was_heard and not is_heard

    def look(self) -> None:
        """Deliver what is there, as far as it is asked for."""
        new = [one for one in self.stream.messages if one.sequence >= self.next_in and self._takes(one)]
        self.waiting += new
        self.next_in = max(self.next_in, self.stream.last + 1)
        while self.waiting:
            inbox = self.config.get("deliver_subject")
            if inbox is None:
                if not self.asked:
                    return
                inbox, left = self.asked.pop(0)
                if left > 1:
                    self.asked.insert(0, (inbox, left - 1))
            elif not self.is_heard_at(str(inbox)):
                return
            message = self.waiting.pop(0)
            self.delivered += 1
            place = f"{self.stream.config['name']}.{self.name}.1.{message.sequence}.{self.delivered}"
            reply = f"$JS.ACK.{place}.{message.at}.{len(self.waiting)}"
            data = b"" if self.config.get("headers_only") else message.data
            self.send(str(inbox), message.headers, data, reply=reply, subject=message.subject)

    def beat(self) -> None:
        """Tell that the server is alive."""
        last = {"Nats_Last_Consumer": self.delivered, "Nats_Last_Stream": self.stream.last}
        self.send(str(self.config["deliver_subject"]), _status("100 Idle Heartbeat", **last), b"")


class NatsFarEnd:
    """The server, while `nats_far_end` lasts. What it has acknowledged outlives `kill`."""

    def __init__(self) -> None:
        self.port = 0
        self._streams: dict[str, _Stream] = {}
        self._consumers: list[_Consumer] = []
        self._visitors: dict[asyncio.StreamWriter, dict[str, str]] = {}
        self._awake = asyncio.Event()
        self._awake.set()
        self._is_there = True

    @property
    def url(self) -> str:
        """Its address."""
        return f"nats://127.0.0.1:{self.port}"

    def hang(self) -> None:
        """Keep connections and say nothing, until `wake`."""
        self._awake.clear()

    def wake(self) -> None:
        """Go on."""
        self._awake.set()

    def kill(self) -> None:
        """Break every connection, and take none until `start`."""
        self._is_there = False
        self._consumers.clear()
        for writer in tuple(self._visitors):
            writer.transport.abort()

    def start(self) -> None:
        """Take connections again."""
        self._is_there = True

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Talk with one client until it goes."""
        if self._is_there:
            self._visitors[writer] = {}
            with suppress(OSError, asyncio.IncompleteReadError):
                writer.write(b"INFO " + json.dumps(_GREETING).encode() + b"\r\n")
                while line := await reader.readline():
                    await self._awake.wait()
                    await self._take(line.decode(errors="replace").split(), reader, writer)
            del self._visitors[writer]
        writer.transport.abort()

    async def _take(self, words: list[str], reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        match words:
            case ["PING"]:
                writer.write(b"PONG\r\n")
            case ["SUB", subject, *_, number]:
                self._visitors[writer][number] = subject
                self._deliver()
            case ["UNSUB", number, *_]:
                self._visitors[writer].pop(number, None)
                self._deliver()
            case ["PUB" | "HPUB" as verb, subject, *more]:
                body = await reader.readexactly(int(more[-1]) + 2)
                head = int(more[-2]) if verb == "HPUB" else 0
                reply = more[0] if len(more) > (2 if verb == "HPUB" else 1) else ""
                self._published(subject, reply, body[:head], body[head:-2])

    def _published(self, subject: str, reply: str, headers: bytes, data: bytes) -> None:
        if subject.startswith(_API):
            self._answer(subject.removeprefix(_API), reply, data)
            return
        heard = self._send(subject, headers, data, reply=reply)
        stream = next((one for one in self._streams.values() if one.takes(subject)), None)
        if stream is not None:
            ack = json.dumps(stream.put(subject, headers, data)).encode()
            if reply:
                self._send(reply, b"", ack)
            self._deliver()
        elif reply and not heard:
            self._send(reply, _status("503"), b"")

    def _deliver(self) -> None:
        self._consumers = [one for one in self._consumers if not one.is_over()]
        for consumer in self._consumers:
            consumer.look()

    def _is_heard_at(self, subject: str) -> bool:
        return any(_matches(one, subject) for subscribed in self._visitors.values() for one in subscribed.values())

    def _send(self, to: str, headers: bytes, data: bytes, *, reply: str = "", subject: str = "") -> bool:
        """Send to whoever has subscribed `to`; return whether there was anybody."""
        is_heard = False
        for writer, subscribed in self._visitors.items():
            for number, pattern in subscribed.items():
                if _matches(pattern, to):
                    place = f"{subject or to} {number}{reply and ' '}{reply}"
                    sizes = f"{len(headers)} {len(headers) + len(data)}" if headers else f"{len(data)}"
                    begin = f"{'HMSG' if headers else 'MSG'} {place} {sizes}\r\n".encode()
                    writer.write(begin + headers + data + b"\r\n")
                    is_heard = True
        return is_heard

    def _answer(self, place: str, reply: str, data: bytes) -> None:
        """Answer a question to the streams."""
        if place.startswith("CONSUMER.MSG.NEXT."):
            self._pulled(place.rsplit(".", maxsplit=1)[-1], reply, json.loads(data))
        elif place.startswith("DIRECT.GET."):
            name, _, subject = place.removeprefix("DIRECT.GET.").partition(".")
            stream = self._streams.get(name)
            found = stream and stream.last_of(subject)
            if stream is None:
                self._send(reply, _status("503"), b"")
            elif found is None:
                self._send(reply, _status("404 Message Not Found"), b"")
            else:
                told = {"Nats_Stream": name, "Nats_Subject": subject, "Nats_Sequence": found.sequence}
                headers = _status("", **told)[:-2] + found.headers.partition(b"\r\n")[2]
                self._send(reply, headers if found.headers else headers + b"\r\n", found.data)
        else:
            asked = json.loads(data) if data else {}
            match place.split("."):
                case ["STREAM", verb, *more]:
                    answer = self._of_streams(verb, more, asked)
                case ["CONSUMER", verb, *more]:
                    answer = self._of_consumers(verb, more, asked)
                case _:
                    answer = {"memory": 0, "storage": 0}  # what JetStream has in use
            self._send(reply, b"", json.dumps(answer).encode())
            self._deliver()

    def _of_streams(self, verb: str, names: list[str], asked: dict[str, object]) -> dict[str, object]:
        if verb in ("NAMES", "LIST"):
            wanted = str(asked.get("subject") or ">")
            streams = [one for one in self._streams.values() if wanted == ">" or one.takes(wanted)]
            found = [one.config["name"] if verb == "NAMES" else one.info({}) for one in streams]
            return {"total": len(found), "offset": 0, "limit": 1024, "streams": found}
        name = names[-1]
        stream = self._streams.get(name)
        if verb == "CREATE":
            if stream is not None and stream.config != asked:
                return {"error": _EXISTS}
            stream = self._streams.setdefault(name, _Stream(asked))
        if stream is None:
            return {"error": _NOT_FOUND}
        if verb == "DELETE":
            del self._streams[name]
            self._consumers = [one for one in self._consumers if one.stream is not stream]
            return {"success": True}
        if verb == "MSG":
            found = stream.last_of(str(asked["last_by_subj"]))
            return {"message": _shown(found)} if found else {"error": _NO_MESSAGE}
        if verb == "PURGE":
            stream.messages.clear()
            return {"success": True, "purged": 0}
        if verb == "UPDATE":
            stream.config = asked
        return stream.info(asked)

    def _of_consumers(self, verb: str, names: list[str], asked: dict[str, object]) -> dict[str, object]:
        stream = self._streams.get(names[0])
        if verb == "CREATE" and stream is not None:
            config = dict(asked["config"])
            name = str(config.get("name") or f"c{next(_NUMBERS)}")
            consumer = _Consumer(name, stream, config, self._send, self._is_heard_at)
            self._consumers.append(consumer)
            if config.get("idle_heartbeat"):
                self._beat(consumer, int(config["idle_heartbeat"]) / 1e9)
            return _told(consumer)
        found = next((one for one in self._consumers if one.name == names[-1]), None)
        if stream is None or found is None:
            return {"error": _NOT_FOUND}
        if verb == "DELETE":
            self._consumers.remove(found)
            return {"success": True}
        return _told(found)

    def _beat(self, consumer: _Consumer, every: float) -> None:
        def beat() -> None:
            if consumer in self._consumers:
                if self._awake.is_set():
                    consumer.beat()
                self._beat(consumer, every)

        asyncio.get_running_loop().call_later(every, beat)

    def _pulled(self, name: str, reply: str, asked: dict[str, object]) -> None:
        consumer = next((one for one in self._consumers if one.name == name), None)
        if consumer is None:
            self._send(reply, _status("503"), b"")
            return
        consumer.asked.append((reply, int(asked["batch"])))
        consumer.look()
        if consumer.asked:  # a real server waits for more until the request expires
            consumer.asked.clear()
            self._send(reply, _status("408 Request Timeout"), b"")


_NUMBERS: Iterator[int] = itertools.count(1)


def _shown(message: _Message) -> dict[str, object]:
    body = {"data": base64.b64encode(message.data).decode(), "hdrs": base64.b64encode(message.headers).decode()}
    return {"subject": message.subject, "seq": message.sequence, "time": "2026-11-28T00:00:00Z", **body}


def _told(consumer: _Consumer) -> dict[str, object]:
    place = {"consumer_seq": 0, "stream_seq": 0}
    return {
        "name": consumer.name,
        "stream_name": consumer.stream.config["name"],
        "created": consumer.stream.created,
        "config": {**consumer.config, "name": consumer.name},
        "delivered": place,
        "ack_floor": place,
        "num_pending": len(consumer.waiting),
        "push_bound": True,
    }


@asynccontextmanager
async def nats_far_end() -> AsyncIterator[NatsFarEnd]:
    """A server that runs while the context lasts."""
    far_end = NatsFarEnd()
    server = await asyncio.start_server(far_end.serve, "127.0.0.1", 0, limit=2**21)
    far_end.port = server.sockets[0].getsockname()[1]
    try:
        yield far_end
    finally:
        far_end.wake()
        far_end.kill()
        server.close()
        await server.wait_closed()
