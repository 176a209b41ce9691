"""systemd's journal, which takes log lines with fields (its native protocol: https://systemd.io/JOURNAL_NATIVE_PROTOCOL)."""

from __future__ import annotations

import json
import os
import re
import socket
import struct
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TextIO

_SOCKET = Path("/run/systemd/journal/socket")
_PRIORITIES = {"debug": 7, "info": 6, "warning": 4, "error": 3, "critical": 2}
_LONGEST = 16_000
"""The greatest number of characters of a value, because a datagram has to hold the whole line."""
_MOST_FIELDS = 40
_MACHINE = ("event", "level", "logger", "timestamp", "exception")


def is_journal(stream: TextIO, environ: Mapping[str, str] = os.environ) -> bool:
    """Return whether this stream goes to the journal: systemd sets JOURNAL_STREAM to its device and inode."""
    try:
        found = os.fstat(stream.fileno())
    except (OSError, ValueError):
        return False
    return environ.get("JOURNAL_STREAM") == f"{found.st_dev}:{found.st_ino}"


class Journal:
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
