"""Devices on serial lines as their profiles describe them: a barrier behind frames, and a tag reader."""

from __future__ import annotations

from collections.abc import Mapping

from drivers.gates.profile_parts import LimitPosition
from drivers.serial_line.frames import Framing, Template
from drivers.serial_line.profile import Acknowledgement, Command, DeviceProfile, GateProfile, TagReaderProfile
from drivers.serial_line.status import Number, ShownPosition, ValuePosition
from simulation.far_ends.barrier import Barrier, BarrierState, Wish


class SerialBarrier:
    """A barrier behind the frames of a profile.

    Points with the names of a barrier's terminals (`closed_limit`, `photocell`, …) show those; others are off.

    Args:
        profile: the profile of its frames.
        barrier: the machine that it controls.
    """

    def __init__(self, *, profile: GateProfile, barrier: Barrier) -> None:
        self._profile = profile
        self._barrier = barrier

    def requests(self, *, unit: int) -> Mapping[bytes, str]:
        """Return the frames of the status query and of all commands, with their places in the profile."""
        return _requests(self._profile, unit)

    def answer(self, what: str, *, unit: int, refuses: bool, now: float) -> bytes:
        """Obey a command unless it refuses; return the answer, which for the status query is the state."""
        if refuses and self._profile.refusals and self._profile.replies:
            return _padded(self._profile.refusals[0], self._profile.replies, unit)
        if what == "status":
            return self._status(unit, self._barrier.state(now=now))
        _, name, *released = what.split(".")
        if not released:
            self._barrier.command(Wish(name), now=now)
        command = dict(self._profile.commands.named())[name]
        return self._acknowledged(command, dict(self._profile.sends())[what], unit, now)

    def _acknowledged(self, command: Command, sent: Template, unit: int, now: float) -> bytes:
        match command.answer:
            case Acknowledgement.NONE:
                return b""
            case Acknowledgement.ECHO:
                return self._profile.request(sent, unit=unit)
            case answer:
                status = self._profile.status
                if status is not None and status.answer == answer:
                    return self._status(unit, self._barrier.state(now=now))
                return b"" if self._profile.replies is None else _padded(answer, self._profile.replies, unit)

    def _status(self, unit: int, state: BarrierState) -> bytes:
        profile = self._profile
        if profile.status is None or profile.replies is None:
            return b""
        frame = bytearray(_unsealed(profile.status.answer, profile.replies, unit, at_least=self._length()))
        shown = state.points
        for point in profile.points.values():
            _put(frame, point, 0)
        if isinstance(profile.position, ValuePosition):
            _put(frame, profile.position, _number_for(profile.position, state))
        for name, point in profile.points.items():
            if point.equals is None and shown.get(name, False) != point.inverted:
                _put(frame, point, (point.of(bytes(frame)) or 0) | (point.mask or 1))
        return profile.replies.sealed(bytes(frame))

    def _length(self) -> int:
        """Return the length of a status frame that holds everything that the profile reads, and its tail."""
        numbers: list[Number] = [*self._profile.points.values()]
        if not isinstance(self._profile.position, LimitPosition | None):
            numbers.append(self._profile.position)
        framing = self._profile.replies
        tail = 0 if framing is None else _tail(framing)
        return max((number.at + number.width for number in numbers), default=0) + tail


class SerialTags:
    """A tag reader that is polled. Tests and the demo put tags into its field.

    Args:
        profile: the profile of its frames, with a `poll`, counted tags and prefixed lengths.
    """

    def __init__(self, *, profile: TagReaderProfile) -> None:
        self._profile = profile
        self.field: tuple[bytes, ...] = ()

    def requests(self, *, unit: int) -> Mapping[bytes, str]:
        """Return the frame of the query, with its place in the profile."""
        return _requests(self._profile, unit)

    def answer(self, what: str, *, unit: int, refuses: bool, now: float) -> bytes:  # noqa: ARG002 (as every device)
        """Return a frame with the tags in the field, or a frame of another kind when there are none."""
        profile = self._profile
        reading, places = profile.readings[0], profile.tags
        head = bytearray(reading.filled(unit=unit))
        if not self.field:
            head[-1] = 0xFB
            return profile.replies.sealed(bytes(head) + bytes(places.tail))
        head += bytes(places.first - len(head))
        if places.count_at is not None:
            head[places.count_at] = len(self.field)
        for tag in self.field:
            head += (bytes((len(tag),)) if places.length == "prefixed" else b"") + tag + bytes(places.after_each)
        return profile.replies.sealed(bytes(head) + bytes(places.tail))


def _requests(profile: DeviceProfile, unit: int) -> dict[bytes, str]:
    return {profile.request(template, unit=unit): what for what, template in profile.sends()}


def _number_for(position: ValuePosition, state: BarrierState) -> int:
    by_meaning = {shown: number for number, shown in reversed(position.values.items())}
    return by_meaning.get(ShownPosition(state.position), by_meaning.get(ShownPosition.MOVING, 0))


def _padded(template: Template, framing: Framing, unit: int) -> bytes:
    return framing.sealed(_unsealed(template, framing, unit, at_least=0))


def _unsealed(template: Template, framing: Framing, unit: int, *, at_least: int) -> bytes:
    """Return the template's bytes with the framing's terminator, extended to a frame's length."""
    body = template.filled(unit=unit)
    if framing.terminator is not None:
        padding = b"0" * (at_least - len(framing.terminator) - len(body))
        return body if body.endswith(framing.terminator) else body + padding + framing.terminator
    return body + bytes(max(framing.length or 0, at_least, len(body) + _tail(framing)) - len(body))


def _tail(framing: Framing) -> int:
    """Return how many bytes at the end of each frame hold no values: its terminator, checks or repeated size."""
    if framing.terminator is not None:
        return len(framing.terminator)
    ends = [-check.at for check in framing.checks if check.at < 0]
    if framing.size is not None and framing.size.again_at is not None:
        ends.append(-framing.size.again_at)
    return max(ends, default=0)


def _put(frame: bytearray, place: Number, number: int) -> None:
    raw = f"{number:0{place.width}X}".encode("ascii") if place.digits else number.to_bytes(place.width, "big")
    frame[place.at : place.at + place.width] = raw
