"""Log lines as they leave the process: whole, in JSON, without secrets, and never holding the caller."""

import errno
import io
import json
import logging
import os
import pty
import subprocess
import sys
import threading
import warnings

import pytest
import structlog

from gateway.runtime.logs import Logs
from gateway.runtime.redaction import Redaction

SECRET = "hunter2-Geheim"


@pytest.fixture(autouse=True)
def _loggers_as_before():
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)
    for name in ("gateway", "drivers"):
        logging.getLogger(name).setLevel(logging.NOTSET)


def fail_with(error):
    raise error


def lines_of(say, *, redaction=None, debug=False):
    stream = io.StringIO()
    with Logs(redaction=redaction or Redaction(), stream=stream, debug=debug):
        say()
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def test_a_line_is_one_json_object():
    def say():
        structlog.get_logger("gateway.lanes").info("gate_opened", lane="north", device=103)

    (line,) = lines_of(say)
    assert line.pop("timestamp").endswith("Z")
    assert line == {"event": "gate_opened", "lane": "north", "device": 103, "level": "info", "logger": "gateway.lanes"}


def test_the_system_s_error_has_no_number():
    def say():
        error = OSError(errno.ENOSPC, "No space left on device", "/data/media")
        structlog.get_logger("gateway.recording").warning("footage_not_thinned", error=str(error))

    (line,) = lines_of(say)
    assert line["error"] == "No space left on device: '/data/media'"


def test_secrets_are_hidden_in_values_events_and_tracebacks():
    redaction = Redaction()
    redaction.hide(SECRET)

    def say():
        log = structlog.get_logger("gateway.central")
        log.info("signed_in", session="abc", url="https://u:p@central/", answer={"token": "t", "note": SECRET})
        log.warning("refused for %s", SECRET)
        try:
            fail_with(OSError(f"cannot open rtsp://viewer:other@camera/ with {SECRET}"))
        except OSError:
            log.exception("task_failed", task="camera")

    signed_in, refused, failed = lines_of(say, redaction=redaction)
    assert signed_in["session"] == "***"
    assert signed_in["url"] == "https://***@central/"
    assert signed_in["answer"] == {"token": "***", "note": "***"}
    assert refused["event"] == "refused for ***"
    assert "Traceback" in failed["exception"]
    assert "cannot open rtsp://***@camera/ with ***" in failed["exception"]
    assert SECRET not in json.dumps([signed_in, refused, failed])


def test_the_standard_librarys_loggers_and_warnings_come_the_same_way():
    def say():
        logging.getLogger("aiohttp.server").error("bad request from %s", "http://a:b@c/")
        logging.getLogger("aiohttp.access").info("too quiet to be kept")
        warnings.warn("old thing", DeprecationWarning, stacklevel=1)

    with warnings.catch_warnings():
        warnings.simplefilter("always")
        request, warning = lines_of(say)
    assert request["event"] == "bad request from http://***@c/"
    assert request["logger"] == "aiohttp.server"
    assert "old thing" in warning["event"]


@pytest.mark.parametrize(("debug", "events"), [(False, ["kept"]), (True, ["quiet", "kept"])])
def test_debug_lines_only_when_asked_for(debug, events):
    def say():
        log = structlog.get_logger("drivers.bus.bus")
        log.debug("quiet")
        log.info("kept")

    # A library's thread of an earlier test may still say a last word at this level.
    own = [line for line in lines_of(say, debug=debug) if line["logger"] == "drivers.bus.bus"]
    assert [line["event"] for line in own] == events


def test_an_error_has_its_code_and_a_library_s_error_has_one_too():
    def say():
        structlog.get_logger("gateway.store").error("store_failing", file="site.db")
        structlog.get_logger("gateway.store").warning("checkpoint_failed")
        logging.getLogger("asyncio").error("a callback failed in %s", "x")

    codes = {line["event"]: line.get("code") for line in lines_of(say)}
    assert codes == {"store_failing": "EG302", "checkpoint_failed": None, "a callback failed in x": "EG001"}


def test_equal_lines_are_bounded_and_the_rest_is_counted():
    stream, now = io.StringIO(), [0.0]
    with Logs(redaction=Redaction(), stream=stream, monotonic=lambda: now[0]) as logs:
        log = structlog.get_logger("drivers.bus")
        for number in range(100):
            log.warning("garbled", number=number)
        log.info("other")
        now[0] = 61.0
        log.warning("garbled", number=100)
        tail = logs.tail()
    lines = [json.loads(line) for line in stream.getvalue().splitlines()]
    assert [line["event"] for line in lines] == ["garbled"] * 30 + ["other", "log_lines_held_back", "garbled"]
    assert (lines[-2]["like"], lines[-2]["count"]) == ("garbled", 70)
    assert [json.loads(line) for line in tail] == lines


def test_a_value_that_cannot_be_shown_ends_nothing():
    class Broken:
        def __str__(self):
            raise RuntimeError("no text")

    (line,) = lines_of(lambda: structlog.get_logger("gateway").info("seen", thing=Broken()))
    assert line["event"] == "log_line_failed"


def test_a_stuck_reader_holds_nobody_and_drops_are_counted():
    class Stuck(io.StringIO):
        free = threading.Event()

        def write(self, text):
            assert self.free.wait(170)
            return super().write(text)

    stream = Stuck()
    with Logs(redaction=Redaction(), stream=stream, debug=True):
        log = structlog.get_logger("gateway")
        for number in range(12_000):
            log.info("line", number=number)
        stream.free.set()
    lines = [json.loads(line) for line in stream.getvalue().splitlines()]
    dropped = sum(line["count"] for line in lines if line["event"] == "log_lines_dropped")
    written = sum(line["event"] == "line" for line in lines)
    assert dropped > 0
    assert dropped + written == 12_000


def test_people_get_colours_on_a_terminal_and_a_closed_one_is_no_fault():
    program = (
        "import structlog\n"
        "from gateway.runtime.logs import Logs\n"
        "from gateway.runtime.redaction import Redaction\n"
        "with Logs(redaction=Redaction()):\n"
        "    log = structlog.get_logger('gateway')\n"
        "    try:\n"
        "        raise OSError('rtsp://a:hunter2@b/')\n"
        "    except OSError:\n"
        "        log.exception('task_failed', password='hunter2')\n"
    )
    master, slave = pty.openpty()
    with subprocess.Popen([sys.executable, "-W", "error", "-c", program], stderr=slave) as child:
        os.close(slave)
        shown = b""
        while True:
            try:
                piece = os.read(master, 4096)
            except OSError:
                break
            if not piece:
                break
            shown += piece
        assert child.wait(20) == 0
    os.close(master)
    assert b"\x1b[" in shown
    assert b"task_failed" in shown
    assert b"rtsp://***@b/" in shown
    assert b"hunter2" not in shown
