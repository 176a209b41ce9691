"""Requests to one unit on a shared line. They return its answer or raise driver errors."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from drivers.bus.bus import Bus, UnitRequests
from drivers.bus.transactions import Exchange, Prelude, Priority, TimedAnswer
from drivers.contract import DeviceFault, Forbidden, MonotonicSeconds
from drivers.serial_line.frames import FrameSplitter, Template
from drivers.serial_line.profile import Acknowledgement, Command, DeviceProfile, Query

_TELLING = 4
"""Bytes from which on a request that comes back is taken for an echo; fewer may stand in an answer by chance."""


@dataclass(frozen=True, slots=True)
class Reply:
    """A frame of the device, which may be a refusal; empty when the device never answers that request."""

    frame: bytes
    is_refusal: bool = False


class FrameRequests(UnitRequests):
    """Queries and commands of one unit."""

    def __init__(self, *, bus: Bus, profile: DeviceProfile, unit: int) -> None:
        super().__init__(bus=bus, unit=unit, timeout=profile.reply_ms / 1000)
        self._profile = profile
        line = profile.line
        self._shows_echoes = any(self._is_unlike(query.send, query.answer) for _, query in profile.queries())
        self._prelude = Prelude(silence=line.silence_ms / 1000, break_seconds=line.break_us / 1e6)

    async def ask(self, query: Query, *, deadline: MonotonicSeconds) -> tuple[bytes, MonotonicSeconds]:
        """Send a query behind waiting commands; return the answer and when it was asked for, so that it is no older.

        Raises LinkError, DeviceFault when the device refuses, DeadlinePassed and ProtocolViolation.
        """
        answer = await self._send(query.send, query.answer, Priority.POLL, deadline)
        return answer.reply.frame, answer.written_at

    async def command(
        self, command: Command, *, deadline: MonotonicSeconds, forbidden: Forbidden | None = None
    ) -> None:
        """Send a command before waiting polls, and return once the device acknowledged it.

        For a device that acknowledges nothing, return once the frame was sent.

        Raises LinkError when the device does not answer or its answer is garbled (it may have obeyed), and DeviceFault
        when it refuses. Raises LineDown, DeadlinePassed or, when `forbidden` gave a reason, NotPermitted when nothing
        was sent.
        """
        await self._send(command.send, command.answer, Priority.COMMAND, deadline, forbidden)

    async def release(self, command: Command, *, deadline: MonotonicSeconds) -> None:
        """Send the command's release, which switches its output off; nothing without one. Raises as `command` does."""
        if command.release is not None:
            await self._send(command.release, command.answer, Priority.COMMAND, deadline)

    async def _send(
        self,
        template: Template,
        wanted: Template | Acknowledgement,
        priority: Priority,
        deadline: MonotonicSeconds,
        forbidden: Forbidden | None = None,
    ) -> TimedAnswer[Reply]:
        request = self._profile.request(template, unit=self._unit)
        exchange: Exchange[Reply] = Exchange(
            unit=self._unit,
            request=request,
            parse=partial(_parse, self._profile, self._unit, request, wanted),
            tagged=False,
            answered=wanted is not Acknowledgement.NONE,
            prelude=self._prelude if self._prelude != Prelude() else None,
            is_repeated=self._is_repeated(template, wanted),
        )
        answer = await self._transact(exchange, priority, deadline, forbidden)
        if answer.reply.is_refusal:
            raise DeviceFault(f"unit {self._unit} refused {request.hex(' ')}: {answer.reply.frame.hex(' ')}")
        return answer

    def _is_repeated(self, template: Template, wanted: Template | Acknowledgement) -> bool | None:
        """Return whether the device repeats the request; None where nothing tells its answer from an echo.

        Where no query can show that the line echoes, an echo must count: the device acknowledges by nothing else.
        """
        if isinstance(wanted, Template):
            return False if self._is_unlike(template, wanted) else None
        return True if wanted is Acknowledgement.ECHO and self._shows_echoes else None

    def _is_unlike(self, template: Template, answer: Template) -> bool:
        """Return whether the answer cannot begin like the request."""
        request = self._profile.request(template, unit=self._unit)
        size = min(len(request), len(answer))
        begins_alike = Template(answer.parts[:size]).matches(request, unit=self._unit)
        return len(request) >= _TELLING and not begins_alike


def _parse(
    profile: DeviceProfile,
    unit: int,
    request: bytes,
    wanted: Template | Acknowledgement,
    received: bytes,
) -> Reply | None:
    """Find the answer in all bytes since the request; None while more are needed. Skip noise and other frames."""
    if wanted is Acknowledgement.NONE:
        return Reply(b"")
    frames = () if profile.replies is None else FrameSplitter(profile.replies).feed(received)
    for frame in frames:
        if any(refusal.matches(frame, unit=unit) for refusal in profile.refusals):
            return Reply(frame, is_refusal=True)
        if isinstance(wanted, Template) and wanted.matches(frame, unit=unit):
            return Reply(frame)
    return Reply(request) if wanted is Acknowledgement.ECHO and request in received else None
