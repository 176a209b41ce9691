"""The models of a profile file, which describes a device on a serial line."""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import Discriminator, Field, PlainValidator, Tag, model_validator

from drivers.contract import GatePosition, ProtocolViolation
from drivers.gates.profile_parts import Commands, LimitPosition, Output, why_equal, why_gives_command
from drivers.profile_file import Part, PartName, profile_of, read_file
from drivers.serial_line.frames import FixedBytes, FrameSplitter, Framing, Sealing, Template, template_of
from drivers.serial_line.status import StatusPoint, ValuePosition

LONGEST_TAG = 64
Written = Annotated[Template, PlainValidator(template_of)]


class Tags(Part):
    """The places of tags in a frame.

    Attributes:
        first: the place where the first tag begins.
        length: the length of each tag in bytes; `prefixed` when a byte before each tag gives its length; `rest` for a
            single tag that takes all bytes up to the tail.
        count_at: the place of the byte that gives the number of tags; left out for one tag.
        after_each: how many bytes follow each tag that are no part of it, such as the signal's strength.
        tail: how many bytes at the frame's end are no tags, such as checks.
        text: whether a tag is characters instead of bits.
    """

    first: int = Field(ge=0, le=511)
    length: int | Literal["prefixed", "rest"]
    count_at: int | None = Field(default=None, ge=0, le=511)
    after_each: int = Field(default=0, ge=0, le=8)
    tail: int = Field(default=0, ge=0, le=16)
    text: bool = False

    @model_validator(mode="after")
    def _sensible(self) -> Self:
        if isinstance(self.length, int) and not 1 <= self.length <= LONGEST_TAG:
            raise ValueError(f"a tag has 1 to {LONGEST_TAG} bytes")
        if self.length == "rest" and self.count_at is not None:
            raise ValueError("of tags that take the rest of the frame there is one")
        return self

    def of(self, frame: bytes) -> tuple[bytes, ...]:
        """Return the tags of a frame. Raises ProtocolViolation when they do not fill it exactly."""
        end = len(frame) - self.tail
        if self.count_at is not None and self.count_at >= end:
            raise ProtocolViolation(f"a frame of {len(frame)} bytes without the number of its tags")
        count = 1 if self.count_at is None else frame[self.count_at]
        tags: list[bytes] = []
        place = self.first
        for _ in range(count):
            length, place = self._length_at(place, frame, end)
            if not 1 <= length <= LONGEST_TAG or place + length > end:
                raise ProtocolViolation(f"a frame of {len(frame)} bytes whose tags do not fit into it")
            tags.append(frame[place : place + length])
            place += length + self.after_each
        if place != end:
            raise ProtocolViolation(f"a frame of {len(frame)} bytes with something behind its tags")
        return tuple(tags)

    def _length_at(self, place: int, frame: bytes, end: int) -> tuple[int, int]:
        """Return the length of the tag at `place`, and the place where its own bytes begin."""
        match self.length:
            case "prefixed":
                return (frame[place] if place < end else 0), place + 1
            case "rest":
                return end - self.after_each - place, place
            case int():
                return self.length, place


class Acknowledgement(StrEnum):
    """The acknowledgement of a command by something else than a certain frame: nothing, or the command's echo."""

    NONE = "none"
    ECHO = "echo"


def _answer(written: object) -> Acknowledgement | Template:
    if isinstance(written, Acknowledgement):
        return written
    if isinstance(written, str) and written in set(Acknowledgement):
        return Acknowledgement(written)
    return template_of(written)


Answer = Annotated[Acknowledgement | Template, PlainValidator(_answer)]


class Line(Part):
    """Conditions on the line before each frame.

    Attributes:
        break_us: microseconds for which the line is held in its break condition.
        silence_ms: milliseconds without a byte on the line.
    """

    break_us: int = Field(default=0, ge=0, le=5_000)
    silence_ms: int = Field(default=0, ge=0, le=200)


class Command(Part):
    """A frame that commands the gate.

    Attributes:
        send: the frame.
        answer: the bytes that an acknowledgement begins with; `echo` when the device repeats the frame; `none` when it
            never answers, so that it is only known that the frame was sent.
        idempotent: whether sending it twice has the same effect as sending it once. False for step-by-step commands.
        only_from: the positions from which the command may be sent; empty for any. Required for a command that is not
            idempotent, which is also not repeated until the gate has left that position or 2 s have passed.
        release: the frame that switches the output off, for a device that does not do so by itself. It is sent after
            `pulse_ms`. That is the last resort: a gateway that dies in between leaves the output on until it is back.
        pulse_ms: the length of that pulse.
    """

    send: Written
    answer: Answer
    idempotent: bool
    only_from: tuple[GatePosition, ...] = ()
    release: Written | None = None
    pulse_ms: int | None = Field(default=None, ge=50, le=5_000)

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if (self.release is None) != (self.pulse_ms is None):
            raise ValueError("'release' and 'pulse_ms' go together")
        if not self.idempotent and not self.only_from:
            raise ValueError("a command that is not idempotent is safe only from known positions: give 'only_from'")
        if GatePosition.UNKNOWN in self.only_from:
            raise ValueError("nothing is safe from an unknown position")
        if self.send.has_any or (self.release is not None and self.release.has_any):
            raise ValueError("every byte that is sent must be given")
        return self


class Query(Part):
    """A frame that asks for something, and the bytes that the answer begins with."""

    send: Written
    answer: Written

    @model_validator(mode="after")
    def _whole(self) -> Self:
        if self.send.has_any:
            raise ValueError("every byte that is sent must be given")
        return self


class Example(Part):
    """An example of bytes on the line for one unit. Loading the profile checks it, so that mistakes are found.

    Attributes:
        of: the frame's place in the file: `status`, `poll`, `commands.open`.
        unit: the unit's address.
        sends: the whole frame that must be sent.
        reply: a whole answer to a query, which must be recognised; None for none.
    """

    of: str
    unit: int = Field(ge=0, le=255)
    sends: FixedBytes
    reply: FixedBytes | None = None


class DeviceProfile(Part):
    """The common part of all profiles of this family.

    Attributes:
        family: always `serial-line`.
        name: the device's name for people.
        line: the conditions on the line before each frame.
        reply_ms: how long an answer may take.
        requests: the size and the checks that complete the gateway's frames.
        replies: the form of the device's frames; left out for a device that never answers.
        refusals: the beginnings of answers that refuse a request.
        examples: examples of frames, which are checked when the profile is loaded.
        unproven: the parts of this profile that were never tried on a device, for people; "" for none.
    """

    family: Literal["serial-line"]
    name: str = Field(min_length=1)
    line: Line = Line()
    reply_ms: int = Field(default=300, ge=20, le=900)
    requests: Sealing = Sealing()
    replies: Framing | None = None
    refusals: tuple[Written, ...] = ()
    examples: tuple[Example, ...] = ()
    unproven: str = ""

    def request(self, template: Template, *, unit: int) -> bytes:
        """Build a complete frame for that unit."""
        return self.requests.sealed(template.filled(unit=unit))

    def queries(self) -> Iterator[tuple[str, Query]]:
        """Iterate over the queries that are polled, each with its place in the file."""
        yield from ()

    def sends(self) -> Iterator[tuple[str, Template]]:
        """Iterate over the frames that may be sent, each with its place in the file."""
        yield from ((name, query.send) for name, query in self.queries())

    @property
    def sends_unasked(self) -> bool:
        """True when its devices send by themselves, so that they share a line with nobody."""
        return False

    @property
    def names_unit(self) -> bool:
        """True when its devices have addresses, so that several can share a line."""
        return any(template.names_unit for _, template in self.sends())

    @model_validator(mode="after")
    def _sendable(self) -> Self:
        for name, template in self.sends():
            try:
                self.request(template, unit=1)
            except ValueError as error:
                raise ValueError(f"{name}: {error}") from error
        if self.replies is None and any(True for _ in self.queries()):
            raise ValueError("'replies' must say what answers look like")
        return self

    @model_validator(mode="after")
    def _as_its_examples(self) -> Self:
        for number, example in enumerate(self.examples):
            fault = self._fault_of(example)
            if fault:
                raise ValueError(f"examples[{number}]: {fault}")
        return self

    def _fault_of(self, example: Example) -> str:
        template = dict(self.sends()).get(example.of)
        if template is None:
            return f"there is no {example.of!r}"
        sent = self.request(template, unit=example.unit)
        if sent != example.sends:
            return f"{example.of} comes out as {sent.hex(' ').upper()}"
        if example.reply is None:
            return ""
        query = dict(self.queries()).get(example.of)
        if self.replies is None or query is None:
            return f"{example.of} has no reply"
        if FrameSplitter(self.replies).feed(example.reply) != (example.reply,):
            return "the reply is no frame"
        return "" if query.answer.matches(example.reply, unit=example.unit) else "the reply does not answer the query"


class GateProfile(DeviceProfile):
    """A profile of a gate.

    Attributes:
        poll_ms: the interval between two status queries.
        status: the query for the state; left out for a device that cannot be asked.
        position: the place of the position in the answer; without it the position is UNKNOWN.
        points: the named inputs in the answer.
        commands: the commands that the device takes.
    """

    kind: Literal["gate"]
    poll_ms: int = Field(default=200, ge=20, le=500)
    status: Query | None = None
    position: (
        Annotated[
            Annotated[ValuePosition, Tag("value")] | Annotated[LimitPosition, Tag("limits")],
            Discriminator(lambda raw: "limits" if isinstance(raw, dict) and "closed_point" in raw else "value"),
        ]
        | None
    ) = None
    points: dict[PartName, StatusPoint] = Field(default_factory=dict)
    commands: Commands[Command]

    def queries(self) -> Iterator[tuple[str, Query]]:
        """Iterate over the status query, if there is one."""
        if self.status is not None:
            yield "status", self.status

    def sends(self) -> Iterator[tuple[str, Template]]:
        """Iterate over the status query, the commands and their releases, each with its place in the file."""
        yield from super().sends()
        for name, command in self.commands.named():
            yield f"commands.{name}", command.send
            if command.release is not None:
                yield f"commands.{name}.release", command.release

    def stale_seconds(self) -> dict[str, float]:
        """Return the age limits, in seconds, of the points that set their own."""
        return {name: point.stale_ms / 1000 for name, point in self.points.items() if point.stale_ms is not None}

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.status is None and (self.position is not None or self.points):
            raise ValueError("without a status query there are no points and no position")
        if isinstance(self.position, LimitPosition):
            self.position.check(self.points)
        for name, command in self.commands.named():
            if command.only_from and self.position is None:
                raise ValueError(f"commands.{name}: 'only_from' needs a position")
            if isinstance(command.answer, Template) and self.replies is None:
                raise ValueError(f"commands.{name}: 'replies' must say what answers look like")
        outputs = [
            Output(
                name,
                self.request(command.send, unit=1),
                None if command.release is None else self.request(command.release, unit=1),
                is_step=not command.idempotent,
            )
            for name, command in self.commands.named()
        ]
        others = ((name, self.request(query.send, unit=1)) for name, query in self.queries())
        fault = why_equal(outputs) or why_gives_command(outputs, others)
        if fault:
            raise ValueError(fault)
        return self


class TagReaderProfile(DeviceProfile):
    """A profile of a reader of cards or tags.

    Attributes:
        poll_ms: the interval between two queries.
        poll: the query for tags; left out for a reader that sends by itself.
        readings: the beginnings of frames that hold tags; other frames hold none.
        tags: the places of the tags in such a frame.
    """

    kind: Literal["tag-reader"]
    poll_ms: int = Field(default=100, ge=20, le=500)
    poll: Query | None = None
    replies: Framing
    readings: tuple[Written, ...] = Field(min_length=1)
    tags: Tags

    @property
    def sends_unasked(self) -> bool:
        """True when the reader is not polled."""
        return self.poll is None

    def queries(self) -> Iterator[tuple[str, Query]]:
        """Iterate over the query for tags, if there is one."""
        if self.poll is not None:
            yield "poll", self.poll


def load_gate_profile(path: Path) -> GateProfile:
    """Read the profile file of a gate. Raises ProfileError with every fault in it."""
    return profile_of(path, read_file(path), GateProfile)


def load_tag_reader_profile(path: Path) -> TagReaderProfile:
    """Read the profile file of a reader. Raises ProfileError with every fault in it."""
    return profile_of(path, read_file(path), TagReaderProfile)
