"""Logging, with secrets masked: fields to systemd's journal, colours on a terminal, JSON elsewhere.

Lines are formatted by the caller and written by a thread, because a stuck reader of standard error must not hold up the
event loop. Repeated lines are limited in rate, and each error has a code that `docs/log-codes.md` explains. systemd's
journal takes fields by its native protocol (https://systemd.io/JOURNAL_NATIVE_PROTOCOL/).
"""

from __future__ import annotations

import json
import logging
import os
import queue
import re
import socket
import struct
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self, TextIO

import structlog
from structlog.typing import EventDict, Processor, WrappedLogger

from gateway.runtime.clock import MachineClock
from gateway.runtime.log_codes import code_of
from gateway.runtime.redaction import Redaction

_QUEUED_LINES = 10_000
_LAST_WAIT_SECONDS = 2.0
_TAIL_LINES = 1000
_LONGEST_TAIL_LINE = 2000
_THIRD_PARTY_LEVEL = logging.WARNING
_CODED = ("error", "critical")
_NUMBER = re.compile(r"\[Errno -?\d+\] ")
_MINUTE = 60.0
_MOST_LINES = 30
_MOST_KEYS = 500
_OTHERS = ("", "")

_SOCKET = Path("/run/systemd/journal/socket")
_PRIORITIES = {"debug": 7, "info": 6, "warning": 4, "error": 3, "critical": 2}
_LONGEST = 16_000
"""The greatest number of characters of a value, because a datagram has to hold the whole line."""
_MOST_FIELDS = 40
_MACHINE = ("event", "level", "logger", "timestamp", "exception")


class Logs:
    """The process's logging within this context, for structlog and the standard library's loggers."""

    def __init__(
        self,
        *,
        redaction: Redaction,
        debug: bool = False,
        stream: TextIO | None = None,
        monotonic: Callable[[], float] | None = None,
    ) -> None:
        """Keep the settings.

        Args:
            redaction: masks secrets.
            debug: whether to write lines of all levels, without a rate limit.
            stream: the stream to write to; None: standard error.
            monotonic: returns monotonic seconds, for the rate limit.
        """
        self._redaction = redaction
        self._debug = debug
        self._stream = stream or sys.stderr
        self._monotonic = monotonic or MachineClock().monotonic
        self._lines = _Lines(stream=self._stream)
        self._tail: deque[str] = deque(maxlen=_TAIL_LINES)

    def __enter__(self) -> Self:
        level = logging.DEBUG if self._debug else logging.INFO
        shared: list[Processor] = [
            structlog.contextvars.merge_contextvars,
            structlog.stdlib.add_log_level,
            structlog.stdlib.add_logger_name,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
        ]
        rate = None if self._debug else LogRate()
        handler = _Handler(self._lines, self._tail, rate=rate, monotonic=self._monotonic)
        handler.setFormatter(
            structlog.stdlib.ProcessorFormatter(
                foreign_pre_chain=[*shared, structlog.stdlib.ExtraAdder()],
                processors=[
                    structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                    # Tracebacks become text before secrets are masked, and never show the values of variables.
                    structlog.processors.StackInfoRenderer(),
                    structlog.processors.format_exc_info,
                    _with_code,
                    _without_numbers,
                    self._hide,
                    self._renderer(),
                ],
            )
        )
        root = logging.getLogger()
        root.handlers[:] = [handler]
        root.setLevel(level if self._debug else _THIRD_PARTY_LEVEL)
        for own in ("gateway", "drivers"):
            logging.getLogger(own).setLevel(level)
        logging.captureWarnings(capture=True)
        structlog.configure(
            processors=[
                structlog.stdlib.filter_by_level,
                *shared,
                structlog.stdlib.PositionalArgumentsFormatter(),
                structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
            ],
            logger_factory=structlog.stdlib.LoggerFactory(),
            wrapper_class=structlog.stdlib.BoundLogger,
        )
        self._lines.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        logging.captureWarnings(capture=False)
        logging.getLogger().handlers.clear()
        structlog.reset_defaults()
        self._lines.stop()

    def tail(self) -> tuple[str, ...]:
        """Return the last lines, oldest first, with secrets masked."""
        return tuple(self._tail)

    def _renderer(self) -> Processor:
        if self._stream.isatty():
            return structlog.dev.ConsoleRenderer(exception_formatter=structlog.dev.plain_traceback)
        return structlog.processors.JSONRenderer(default=str, ensure_ascii=False)

    def _hide(self, _logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
        return {name: self._redaction.value(name, value) for name, value in event.items()}


def _with_code(_logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
    if event.get("level") in _CODED:
        event["code"] = code_of(event.get("event")).code
    return event


def _without_numbers(_logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
    """Remove the operating system's error numbers ("[Errno 2]") from texts, because the page shows the texts."""
    return {name: _NUMBER.sub("", value) if isinstance(value, str) else value for name, value in event.items()}


class _Handler(logging.Handler):
    def __init__(
        self, lines: _Lines, tail: deque[str], *, rate: LogRate | None, monotonic: Callable[[], float]
    ) -> None:
        super().__init__()
        self._lines = lines
        self._tail = tail
        self._rate = rate
        self._monotonic = monotonic

    def emit(self, record: logging.LogRecord) -> None:
        if self._rate is not None:
            happening = _happening(record)
            admitted, before = self._rate.admits(record.name, happening, now=self._monotonic())
            if before:
                words = {"event": "log_lines_held_back", "level": "warning", "logger": record.name}
                self._write(json.dumps({**words, "like": happening, "count": before}))
            if not admitted:
                return
        try:
            line = self.format(record)
        except Exception:  # noqa: BLE001  # any value may be logged; one that cannot be shown must not end the work that mentions it
            line = f'{{"event": "log_line_failed", "logger": "{record.name}", "line": {record.lineno}}}'
        self._write(line)

    def _write(self, line: str) -> None:
        self._lines.put(line)
        self._tail.append(line[:_LONGEST_TAIL_LINE])


def _happening(record: logging.LogRecord) -> str:
    """Return what identifies a line among those of its logger: its event, or a library's text without its values."""
    return str(record.msg.get("event", "")) if isinstance(record.msg, dict) else str(record.msg)


def is_journal(stream: TextIO, environ: Mapping[str, str] = os.environ) -> bool:
    """Return whether this stream goes to the journal: systemd sets JOURNAL_STREAM to its device and inode."""
    try:
        found = os.fstat(stream.fileno())
    except (OSError, ValueError):
        return False
    return environ.get("JOURNAL_STREAM") == f"{found.st_dev}:{found.st_ino}"


class SystemdJournal:
    """The journal's socket, to which JSON lines are written. `write` blocks while the journal is slow: use a thread."""

    def __init__(self, path: Path = _SOCKET) -> None:
        self._path = path
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC)

    def write(self, line: str) -> None:
        """Send a line. Raises OSError if there is no journal at present or it refuses the line."""
        self._socket.sendto(datagram(line), str(self._path))

    def close(self) -> None:
        """Close the socket."""
        self._socket.close()


def datagram(line: str) -> bytes:
    """Convert a JSON line to the journal's protocol: a sentence for people, and each value as a field."""
    try:
        values = json.loads(line)
    except ValueError:
        values = {"event": line}
    return b"".join(_field(name, text) for name, text in _fields(values))


def _fields(values: Mapping[str, object]) -> Iterator[tuple[str, str]]:
    yield "MESSAGE", _sentence(values)
    yield "PRIORITY", str(_PRIORITIES.get(str(values.get("level")), 6))
    yield "SYSLOG_IDENTIFIER", "edge-gateway"
    names = {"event": "EG_EVENT", "logger": "EG_LOGGER", "exception": "EG_EXCEPTION", "code": "EG_CODE"}
    for key in list(values)[:_MOST_FIELDS]:
        if key not in ("level", "timestamp"):
            yield names.get(key) or _name(key), _text(values[key])


def _sentence(values: Mapping[str, object]) -> str:
    """Return the sentence that `journalctl` shows: the event, its code, and its values."""
    parts = [str(values.get("event", ""))]
    if code := values.get("code"):
        parts.append(f"[{code}]")
    parts += [f"{key}={_text(value)}" for key, value in values.items() if key not in (*_MACHINE, "code")]
    trace = values.get("exception")
    return (" ".join(parts) + (f"\n{trace}" if trace else ""))[:_LONGEST]


def _text(value: object) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    return text[:_LONGEST]


def _name(key: str) -> str:
    """Return a valid name of a journal field: upper-case letters, digits and underscores, at most 64 characters."""
    return "EG_" + re.sub(r"[^A-Z0-9_]", "_", key.upper())[:60]


def _field(name: str, text: str) -> bytes:
    data = text.encode("utf-8", "replace")
    if b"\n" not in data:
        return name.encode() + b"=" + data + b"\n"
    return name.encode() + b"\n" + struct.pack("<Q", len(data)) + data + b"\n"


class _Lines:
    """Bounded queue of log lines with a thread that writes them. Lines that do not fit are dropped and counted."""

    def __init__(self, *, stream: TextIO) -> None:
        self._stream = stream
        self._journal = SystemdJournal() if is_journal(stream) else None
        self._queue: queue.Queue[str | None] = queue.Queue(_QUEUED_LINES)
        self._thread = threading.Thread(target=self._write_all, name="logs", daemon=True)
        self._dropped = 0

    def start(self) -> None:
        self._thread.start()

    def put(self, line: str) -> None:
        try:
            self._queue.put_nowait(line)
        except queue.Full:
            self._dropped += 1

    def stop(self) -> None:
        """Write what is queued, for at most 2 s."""
        try:
            self._queue.put(None, timeout=_LAST_WAIT_SECONDS)
        except queue.Full:  # nobody reads standard error; the thread is a daemon and ends with the process
            return
        self._thread.join(_LAST_WAIT_SECONDS)
        if self._journal is not None and not self._thread.is_alive():
            self._journal.close()

    def _write_all(self) -> None:
        while (line := self._queue.get()) is not None:
            dropped, self._dropped = self._dropped, 0
            if dropped:
                self._write(f'{{"event": "log_lines_dropped", "level": "warning", "count": {dropped}}}')
            self._write(line)

    def _write(self, line: str) -> None:
        if self._journal is not None:
            try:
                self._journal.write(line)
            except OSError:  # the journal restarts, or the line is too long: the stream leads to the journal, too
                pass
            else:
                return
        try:
            self._stream.write(line + "\n")
            self._stream.flush()
        except (OSError, ValueError):  # standard error is closed, so this cannot be reported
            self._dropped += 1


@dataclass(slots=True)
class _Minute:
    """The minute that began at `since`: the numbers of lines that were written and that were held back."""

    since: float
    written: int = 0
    held_back: int = 0


class LogRate:
    """A limit of `most` lines a minute for each logger and event. Thread-safe."""

    def __init__(self, *, most: int = _MOST_LINES) -> None:
        self._most = most
        self._minutes: dict[tuple[str, str], _Minute] = {}
        self._lock = threading.Lock()

    def admits(self, logger: str, event: str, *, now: float) -> tuple[bool, int]:
        """Return whether a line may be written, and how many lines like it were held back in the minute before.

        `now`: monotonic seconds.
        """
        with self._lock:
            key = (logger, event)
            if key not in self._minutes and len(self._minutes) >= _MOST_KEYS:
                self._forget(now)
                key = key if len(self._minutes) < _MOST_KEYS else _OTHERS
            minute = self._minutes.setdefault(key, _Minute(now))
            before = 0
            if now - minute.since >= _MINUTE:
                before = minute.held_back
                minute = self._minutes[key] = _Minute(now)
            if minute.written >= self._most:
                minute.held_back += 1
                return False, 0
            minute.written += 1
            return True, before

    def _forget(self, now: float) -> None:
        """Forget minutes that are over and in which no line was held back."""
        for key in [key for key, one in self._minutes.items() if now - one.since >= _MINUTE and not one.held_back]:
            del self._minutes[key]
