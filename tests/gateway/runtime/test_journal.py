"""Log lines with fields, as systemd's journal takes them."""

from __future__ import annotations

import io
import json
import os
import socket
import struct
import subprocess
import sys

import pytest

from gateway.runtime.logs import SystemdJournal, datagram, is_journal


def fields(data: bytes) -> dict[str, str]:
    """Read a datagram as the journal does."""
    found = {}
    while data:
        head, _, rest = data.partition(b"\n")
        name, equals, value = head.partition(b"=")
        if not equals:
            (size,) = struct.unpack("<Q", rest[:8])
            value, rest = rest[8 : 8 + size], rest[9 + size :]
        found[name.decode()] = value.decode()
        data = rest
    return found


def test_each_value_is_a_field_and_the_message_is_for_people():
    line = {"event": "store_failing", "level": "error", "logger": "gateway.store", "timestamp": "2026", "code": "EG302"}
    found = fields(datagram(json.dumps({**line, "file": "site.db", "tries": 3, "exception": "Traceback\n  é"})))
    assert found == {
        "MESSAGE": "store_failing [EG302] file=site.db tries=3\nTraceback\n  é",
        "PRIORITY": "3",
        "SYSLOG_IDENTIFIER": "edge-gateway",
        "EG_EVENT": "store_failing",
        "EG_LOGGER": "gateway.store",
        "EG_CODE": "EG302",
        "EG_FILE": "site.db",
        "EG_TRIES": "3",
        "EG_EXCEPTION": "Traceback\n  é",
    }


@pytest.mark.parametrize("key", ["lane-id", "a" * 100, "__x", "1"])
def test_any_key_makes_a_name_that_the_journal_takes(key):
    (name,) = set(fields(datagram(json.dumps({"event": "e", key: "v"})))) - {
        "MESSAGE", "PRIORITY", "SYSLOG_IDENTIFIER", "EG_EVENT",
    }  # fmt: skip
    assert len(name) <= 64
    assert name.startswith("EG_")
    assert set(name) <= set("ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_")


def test_a_line_that_is_no_json_is_a_message():
    assert fields(datagram("plain"))["MESSAGE"] == "plain"


def test_a_long_value_is_cut_so_that_the_line_fits():
    assert len(datagram(json.dumps({"event": "e", "text": "x" * 1_000_000}))) < 60_000


def test_the_journal_is_known_by_the_file_behind_the_stream(tmp_path):
    with (tmp_path / "stream").open("w") as stream:
        told = os.fstat(stream.fileno())
        assert is_journal(stream, {"JOURNAL_STREAM": f"{told.st_dev}:{told.st_ino}"})
        assert not is_journal(stream, {"JOURNAL_STREAM": "1:2"})
        assert not is_journal(stream, {})
    assert not is_journal(io.StringIO(), {"JOURNAL_STREAM": "1:2"})


def test_the_program_writes_to_the_journal_and_to_its_stream_when_there_is_none(tmp_path):
    """A program whose standard error is the journal's; the socket is one of our own, then none."""
    program = (
        "import os, sys, structlog\n"
        "from pathlib import Path\n"
        "import gateway.runtime.logs as logs\n"
        "from gateway.runtime.logs import SystemdJournal\n"
        "from gateway.runtime.redaction import Redaction\n"
        f"logs.SystemdJournal = lambda: SystemdJournal(Path({str(tmp_path / 'journal')!r}))\n"
        "told = os.fstat(2)\n"
        "os.environ['JOURNAL_STREAM'] = f'{told.st_dev}:{told.st_ino}'\n"
        "with logs.Logs(redaction=Redaction()):\n"
        "    structlog.get_logger('gateway').error('store_failing', password='hunter2', file='site.db')\n"
    )
    words = [sys.executable, "-c", program]
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as journal:
        journal.bind(str(tmp_path / "journal"))
        journal.settimeout(30)
        done = subprocess.run(words, stderr=subprocess.PIPE, timeout=50, check=True)
        assert done.stderr == b""
        found = fields(journal.recv(100_000))
    assert found["EG_CODE"] == "EG302"
    assert found["EG_PASSWORD"] == "***"
    (tmp_path / "journal").unlink()
    done = subprocess.run(words, stderr=subprocess.PIPE, timeout=50, check=True)
    assert json.loads(done.stderr)["event"] == "store_failing"


def test_without_a_journal_the_writer_says_so(tmp_path):
    journal = SystemdJournal(tmp_path / "nothing")
    with pytest.raises(OSError, match="No such file"):
        journal.write("{}")
    journal.close()
