"""Logging: one line per happening to standard error, JSON for journals and colours for people, secrets hidden.

Lines are made by the caller and written by a thread: a stuck reader of standard error must not hold the event loop.
"""

from __future__ import annotations

import logging
import queue
import sys
import threading
from collections import deque
from types import TracebackType
from typing import Self, TextIO

import structlog
from structlog.typing import EventDict, Processor, WrappedLogger

from gateway.runtime.redaction import Redaction

_QUEUED_LINES = 10_000
_LAST_WAIT_SECONDS = 2.0
_TAIL_LINES = 1000
_LONGEST_TAIL_LINE = 2000
_THIRD_PARTY_LEVEL = logging.WARNING


class Logs:
    """The process's logging for as long as its context lasts: structlog and the standard library's loggers alike."""

    def __init__(self, *, redaction: Redaction, debug: bool = False, stream: TextIO | None = None) -> None:
        self._redaction = redaction
        self._debug = debug
        self._stream = stream or sys.stderr
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
        handler = _Handler(self._lines, self._tail)
        handler.setFormatter(
            structlog.stdlib.ProcessorFormatter(
                foreign_pre_chain=[*shared, structlog.stdlib.ExtraAdder()],
                processors=[
                    structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                    # Tracebacks become text before anything is hidden, and never show the values of variables.
                    structlog.processors.StackInfoRenderer(),
                    structlog.processors.format_exc_info,
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
        """Return the last lines, secrets hidden, oldest first."""
        return tuple(self._tail)

    def _renderer(self) -> Processor:
        if self._stream.isatty():
            return structlog.dev.ConsoleRenderer(exception_formatter=structlog.dev.plain_traceback)
        return structlog.processors.JSONRenderer(default=str, ensure_ascii=False)

    def _hide(self, _logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
        return {name: self._redaction.value(name, value) for name, value in event.items()}


class _Handler(logging.Handler):
    def __init__(self, lines: _Lines, tail: deque[str]) -> None:
        super().__init__()
        self._lines = lines
        self._tail = tail

    def emit(self, record: logging.LogRecord) -> None:
        try:
            line = self.format(record)
        except Exception:  # noqa: BLE001  # any value may be logged; one that cannot be shown must not end the work that mentions it
            line = f'{{"event": "log_line_failed", "logger": "{record.name}", "line": {record.lineno}}}'
        self._lines.put(line)
        self._tail.append(line[:_LONGEST_TAIL_LINE])


class _Lines:
    """Bounded queue of log lines with a thread that writes them. Lines that do not fit are counted and reported
    later.
    """

    def __init__(self, *, stream: TextIO) -> None:
        self._stream = stream
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
        except queue.Full:  # nobody reads standard error; the thread is a daemon and goes with the process
            return
        self._thread.join(_LAST_WAIT_SECONDS)

    def _write_all(self) -> None:
        while (line := self._queue.get()) is not None:
            dropped, self._dropped = self._dropped, 0
            if dropped:
                self._write(f'{{"event": "log_lines_dropped", "level": "warning", "count": {dropped}}}')
            self._write(line)

    def _write(self, line: str) -> None:
        try:
            self._stream.write(line + "\n")
            self._stream.flush()
        except (OSError, ValueError):  # standard error is closed: there is nobody left to tell
            self._dropped += 1
