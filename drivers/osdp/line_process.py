"""The process of one OSDP line: it polls the readers, reports on stdout and takes messages from stdin.

`line.OsdpLine` starts it as `python -m drivers.osdp.line_process`. The setup is the first line of stdin, so that keys
stand in no argument and no environment variable. The process ends when stdin ends, and stores nothing.
"""

from __future__ import annotations

import os
import select
import sys
import time

from pydantic import ValidationError

from drivers.backoff import Reconnects
from drivers.contract import LinkError
from drivers.osdp.channel import LineChannel, OpenLine, open_line
from drivers.osdp.messages import LONGEST_LINE, Beat, Happening, LineSeen, Lost, Polled, Setup, Show
from drivers.osdp.panel import Panel

_TURN_SECONDS = 0.01
_BEAT_SECONDS = 1.0
_LONGEST_REOPEN = 2.0
_DEAF_SECONDS = 60.0
"""Seconds without a reply after which the line is opened again: a converter may have lost the connection."""

_MOST_OPENINGS = 200
"""Openings of the line after which the process ends and is started again: libosdp leaks some kilobytes with each."""

_MOST_UNHANDLED = 64 * 1024


class _ParentGone(Exception):
    """The parent has closed its side of the pipes, or sends lines that are too long."""


class Conversation:
    """The pipes to the parent, line by line. Writing blocks until the parent reads; reading does not block."""

    def __init__(self, *, hears: int, says: int) -> None:
        self._hears = hears
        self._says = says
        self._held = b""
        self._next_beat = 0.0
        os.set_blocking(hears, False)

    def setup(self) -> Setup:
        """Wait for the first line and parse it. Raises ValidationError, which does not show the keys, for no setup."""
        while not (lines := self.lines(wait=None)):
            pass
        return Setup.model_validate_json(lines[0])

    def lines(self, *, wait: float | None) -> list[bytes]:
        """Wait up to `wait` seconds for bytes, None for ever; return the lines that they complete, perhaps none."""
        ready, _, _ = select.select([self._hears], [], [], wait)
        if not ready:
            return []
        data = os.read(self._hears, LONGEST_LINE)
        if not data or len(self._held) > _MOST_UNHANDLED:
            raise _ParentGone
        *lines, self._held = (self._held + data).split(b"\n")
        return lines

    def say(self, happening: Happening) -> None:
        """Send a message to the parent."""
        data = happening.to_line()
        while data:
            try:
                data = data[os.write(self._says, data) :]
            except BrokenPipeError as error:
                raise _ParentGone from error

    def beat(self, now: float) -> None:
        """Send a heartbeat if the last one was a second ago. Called often."""
        if now >= self._next_beat:
            self._next_beat = now + _BEAT_SECONDS
            self.say(Beat())


def serve(conversation: Conversation) -> None:
    """Keep the line open and poll its readers. Returns after 200 openings, so that the process is started again."""
    setup = conversation.setup()
    reason_reported = ""
    reconnects, openings = Reconnects(longest=_LONGEST_REOPEN), 0
    while openings < _MOST_OPENINGS:
        opened_at = time.monotonic()
        try:
            line = open_line(setup)
            try:
                reason_reported = ""
                reconnects.opened()
                openings += 1
                conversation.say(LineSeen(down=""))
                _go_round(setup, line, conversation)
            finally:
                line.close()
        except LinkError as error:
            reconnects.failed()
            if str(error) != reason_reported:
                reason_reported = str(error)
                conversation.say(LineSeen(down=reason_reported[:300]))
                for reader in setup.readers:
                    conversation.say(Lost(address=reader.address, reason=reason_reported[:300]))
        until = opened_at + reconnects.wait()
        while (left := until - time.monotonic()) > 0:
            conversation.beat(time.monotonic())
            conversation.lines(wait=min(left, _BEAT_SECONDS))  # dropped: no reader is connected to show anything


def _go_round(setup: Setup, line: OpenLine, conversation: Conversation) -> None:
    """Poll the readers of an open line. Returns when no reader answers for long; raises LinkError when it is lost."""
    channel = LineChannel(line)
    panel = Panel(setup=setup, channel=channel)
    opened_at = next_told = time.monotonic()
    try:
        while True:
            for text in conversation.lines(wait=_TURN_SECONDS):
                show = Show.model_validate_json(text)
                panel.show(show.address, show.feedback)
            for happening in panel.turn():
                conversation.say(happening)
            now = time.monotonic()
            conversation.beat(now)
            if now >= next_told:
                next_told = now + _BEAT_SECONDS
                for address, outcomes in channel.taken_outcomes():
                    conversation.say(Polled(address=address, outcomes=outcomes))
            if channel.lost or line.is_hung_up:
                raise LinkError(f"{setup.url} hung up" + (f": {channel.lost}" if channel.lost else ""))
            if now - max((opened_at, *(reply.at for reply in channel.last_replies.values()))) > _DEAF_SECONDS:
                return
    finally:
        panel.close()


def main() -> None:
    """Serve the parent. The standard streams lead nowhere, since libosdp's logger writes to them and cannot be off."""
    hears, says = os.dup(0), os.dup(1)
    last_words = os.dup(2)
    silence = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(silence, stream)
    sys.stderr = os.fdopen(last_words, "w", buffering=1)
    try:
        serve(Conversation(hears=hears, says=says))
    except _ParentGone:
        # The line is closed already, and a regular end of the interpreter would take many times as long.
        os._exit(0)
    except ValidationError as error:
        raise SystemExit(f"the parent said what nobody understands: {error.title}") from None


if __name__ == "__main__":
    main()
