"""Commands that ask the gateway that runs here: whatever answers at its port, people get a sentence."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from gateway.cli import client
from gateway.cli.client import RunningGatewayClient, save
from gateway.domain.errors import ConfigError, GatewayError
from gateway.web.answers import AnswerPart


class Books(AnswerPart):
    waiting: int


@contextmanager
def answering(said: bytes) -> Iterator[str]:
    """An address at which every request is answered with these bytes."""

    class Far(BaseHTTPRequestHandler):
        def do_POST(self):
            self.rfile.read(int(self.headers.get("Content-Length", 0)))
            self.wfile.write(said)

        def do_GET(self):
            self.do_POST()

        def log_message(self, *_):
            return

    with HTTPServer(("127.0.0.1", 0), Far) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


def whole(body: bytes, *, length: int | None = None) -> bytes:
    return b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(body) if length is None else length, body)


def test_what_is_not_needed_is_passed_over():
    with answering(whole(b'{"waiting": 3, "success": true}')) as address:
        assert RunningGatewayClient.remote(address).answer_of(Books, "/status", {}).waiting == 3


class Card(AnswerPart):
    holder: str


def test_a_name_cannot_command_the_terminal():
    """Central, and programs that may add cards, write names that technicians list as root."""
    names = ["\x1b]0;x\x07", "\x9b31m", "\x7f", "tab\tline\n", "\\u001b", "é停", "\\\x1b"]
    wanted = ["\ufffd]0;x\ufffd", "\ufffd31m", "\ufffd", "tab\tline\n", "\\u001b", "é停", "\\\ufffd"]
    for ascii_alone in (True, False):
        shown = []
        for name in names:
            with answering(whole(json.dumps({"holder": name}, ensure_ascii=ascii_alone).encode())) as address:
                shown.append(RunningGatewayClient.remote(address).answer_of(Card, "/status", {}).holder)
        assert shown == wanted


def test_a_package_that_is_not_whole_is_the_gateways_fault_and_not_the_disks(tmp_path):
    with answering(whole(b"PK", length=4000)) as address, pytest.raises(GatewayError, match="broke off"):
        save(RunningGatewayClient.remote(address), "/status", tmp_path / "event.zip")
    assert list(tmp_path.iterdir()) == []


def test_a_file_stays_as_it_was_when_its_new_content_is_not_whole(tmp_path):
    file = tmp_path / "event.zip"
    file.write_bytes(b"of yesterday")
    with answering(whole(b"PK", length=4000)) as address, pytest.raises(GatewayError, match="broke off"):
        save(RunningGatewayClient.remote(address), "/status", file)
    assert [(path.name, path.read_bytes()) for path in tmp_path.iterdir()] == [("event.zip", b"of yesterday")]


def test_a_file_gets_its_new_content_and_keeps_its_mode(tmp_path):
    file = tmp_path / "event.zip"
    file.write_bytes(b"of yesterday")
    file.chmod(0o600)
    with answering(whole(b"PK")) as address:
        save(RunningGatewayClient.remote(address), "/status", file)
    assert (file.read_bytes(), file.stat().st_mode & 0o777) == (b"PK", 0o600)


def test_a_request_that_the_gateway_calls_wrong_is_wrong_use():
    body = b'{"success": false, "error": "search: must have at most 1000 characters"}'
    refusal = whole(body).replace(b"200 OK", b"400 Bad Request")
    with answering(refusal) as address, pytest.raises(ConfigError, match="refused: search: must have at most"):
        RunningGatewayClient.remote(address).asked("/v1/event/list", {})


@pytest.mark.parametrize(
    ("said", "told"),
    [
        (whole(b"<html>a printer</html>"), "does not fit this command's release"),
        (whole(b'{"success": true}'), "does not fit this command's release"),
        (whole(b'{"waiting":', length=4000), "broke off"),
        (b"SSH-2.0-OpenSSH_9.2\r\n", "no gateway answers"),
        (b"", "no gateway answers"),
    ],
    ids=["another program", "another release", "cut off", "another protocol", "nothing"],
)
def test_whatever_answers_is_told_in_a_sentence(said, told):
    with answering(said) as address, pytest.raises(GatewayError, match=told):
        RunningGatewayClient.remote(address).answer_of(Books, "/status", {})


def test_a_gateway_that_hangs_in_its_answer_is_told(monkeypatch):
    monkeypatch.setattr(client, "SECONDS", 0.2)
    go_on = threading.Event()

    with socket.create_server(("127.0.0.1", 0)) as server:

        def half() -> None:
            connection, _ = server.accept()
            with connection:
                connection.recv(4096)
                connection.sendall(whole(b"{", length=10))
                go_on.wait(30)

        thread = threading.Thread(target=half)
        thread.start()
        try:
            with pytest.raises(GatewayError, match="broke off"):
                RunningGatewayClient.remote(f"http://127.0.0.1:{server.getsockname()[1]}").answer_of(
                    Books, "/status", {}
                )
        finally:
            go_on.set()
            thread.join()
