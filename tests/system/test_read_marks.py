"""Read-marks through a real kill: none on disk is beyond what its program fetched, and a new one is there in time."""

from __future__ import annotations

import json
import socket
import sqlite3
from contextlib import closing
from random import Random

from running_gateway import PASSWORD, SECRETS, SITE, RunningGateway

TILL = """
[[api.accounts]]
username = "till"
password = "chief"
"""


class Program:
    """Reads events by cursor, one at a time, over whatever gateway runs."""

    def __init__(self, folder, api_of) -> None:
        self.folder = folder
        self.api_of = api_of
        self.fetched: set[int] = set()
        self.sessions: dict[str, str] = {}

    def runs(self) -> RunningGateway:
        return RunningGateway(self.folder, "--data", "data", **SECRETS)

    def meet(self, port: int) -> None:
        """Sign in once, also as the till, which is only there for events to happen."""
        self.port = port
        self.api, self.till = self.api_of(port), self.api_of(port)
        for api, name in ((self.api, "chief"), (self.till, "till")):
            if name not in self.sessions:
                self.sessions[name] = api.call("/v1/auth/login", username=name, password=PASSWORD)["session"]
            api.session = self.sessions[name]

    def something_happens(self) -> None:
        self.till.call("/v1/event/list", cursor_id=0, page_limit=1)
        self.api.call("/status/consumer/forget", account="till")

    def send(self, cursor: int) -> socket.socket:
        """Ask for a page, and do not wait for it."""
        body = json.dumps({"cursor_id": cursor, "page_limit": 1})
        head = (
            f"POST /v1/event/list HTTP/1.1\r\nHost: localhost\r\nSessionID: {self.api.session}\r\nConnection: close\r\n"
        )
        asked = socket.create_connection(("127.0.0.1", self.port), timeout=30)
        asked.sendall(f"{head}Content-Length: {len(body)}\r\n\r\n{body}".encode())
        return asked

    def ask(self, cursor: int) -> int:
        """Ask for a page and take it; the cursor to the next one, 0 at the end."""
        with self.send(cursor) as asked, asked.makefile("rb") as answer:
            told = json.loads(answer.read().partition(b"\r\n\r\n")[2])
        self.fetched |= {event["id"] for event in told["events"]}
        return (told["next_cursor"] or 0) if told["events"] else 0

    def mark(self) -> int | None:
        """Its mark as it is on disk."""
        with closing(sqlite3.connect(self.folder / "data" / "site.db")) as connection:
            row = connection.execute("SELECT read_to FROM read_cursor WHERE account = 'chief'").fetchone()
            return None if row is None else row[0]

    def missed(self, began: int) -> set[int]:
        """Events that its mark says it has, and it has not."""
        with closing(sqlite3.connect(self.folder / "data" / "site.db")) as connection:
            rows = connection.execute("SELECT id FROM event WHERE id > ? AND id <= ?", (began, self.mark()))
            return {number for (number,) in rows} - self.fetched


def killed(gateway: RunningGateway) -> None:
    gateway.process.kill()
    gateway.process.wait(timeout=30)


def test_a_mark_on_disk_is_never_beyond_what_was_fetched_and_there_before_the_first_answer(
    tmp_path, api_of, wait_until
):
    (tmp_path / "site.toml").write_text(SITE + TILL)
    program, chance = Program(tmp_path, api_of), Random(16)
    with program.runs() as gateway:
        program.meet(gateway.serves())
        program.something_happens()
        assert program.mark() is None
        with program.send(0) as asked:
            assert asked.recv(1) == b"H"
            killed(gateway)
    began = program.mark()
    assert began is not None, "whoever has an answer has a mark"
    assert program.missed(began) == set()
    with program.runs() as gateway:
        program.meet(gateway.serves())
        for _ in range(3):
            program.something_happens()
        cursor = program.ask(0)
        while cursor > began + 1:
            cursor = program.ask(cursor)
            assert program.missed(began) == set()
        program.ask(0)
        wait_until(lambda: program.mark() > began, within=30, why="what was fetched moves the mark")
        assert program.missed(began) == set()
        for _ in range(4):
            program.something_happens()
        cursor = program.ask(0)
        for _ in range(chance.randint(0, 2)):
            cursor = program.ask(cursor)
        with program.send(cursor):
            killed(gateway)
    assert program.mark() > began
    assert program.missed(began) == set()
