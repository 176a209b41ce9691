"""Faults of the gateway itself, its files and its disk: told everywhere alike within seconds, and over when mended."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
import subprocess
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest
from aiohttp import ClientSession, UnixConnector, web
from certificates import write_pair
from fault_rounds import MACHINES_OWN, Fault, Looking, all_tried, faulty
from forked import Forked, done
from lacks import lacks
from s3_store import S3Store
from tried_backups import TriedBackups
from waiting import until

from gateway.domain.problems import ProblemKind as K
from gateway.problems.problem import SitePart
from gateway.runtime.unix_sockets import INTERFACE_SOCKET
from simulation.far_ends.http_device import on_loopback

pytestmark = [pytest.mark.long("dozens of faults at a running site, in real time-outs"), pytest.mark.alone]

_JOURNAL_SECONDS = 25.0
"""So long the store may still write into the room that its journal has."""


class Receiver:
    """A receiver of webhooks. It takes them, says that it is gone for good, or that it has failed."""

    def __init__(self) -> None:
        self.status = 204
        self.port = 0

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[None]:
        """Answer on a free port."""
        app = web.Application()
        app.router.add_post("/hook", self._take)
        async with on_loopback(app) as self.port:
            yield

    async def _take(self, _: web.Request) -> web.Response:
        return web.Response(status=self.status)


class BareGateway:
    """A gateway without lanes on a disk of its own, whose port somebody else holds at first."""

    def __init__(self, disk: Path) -> None:
        self.folder = disk
        self.data = disk / "data"
        self.site = disk / "site.toml"
        self.pair = write_pair(disk, days=2)
        self.receiver = Receiver()
        self.taken = socket.create_server(("127.0.0.1", 0))
        self.http: ClientSession
        self.hook = ""
        self.process: Forked

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Run it, with its receiver, and ask it over its local socket."""
        self.site.write_text(self._text())
        async with AsyncExitStack() as stack:
            await stack.enter_async_context(self.receiver.serving())
            stack.callback(self.taken.close)
            with (self.folder / "gateway.log").open("ab") as log:
                words = ("gateway", "run", self.site, "--data", self.data)
                self.process = Forked(*words, output=log.fileno(), errors=log.fileno(), env=dict(os.environ))
            stack.push_async_callback(asyncio.to_thread, self.process.wait, timeout=20)
            stack.callback(self.process.terminate)
            path = self.data / "run" / INTERFACE_SOCKET
            try:
                await until(path.exists)
            except AssertionError as error:
                error.add_note((self.folder / "gateway.log").read_text())
                raise
            self.http = await stack.enter_async_context(
                ClientSession("http://localhost", connector=UnixConnector(str(path)))
            )
            yield

    def _text(self) -> str:
        return f"""
[site]
name = "Bare"
[api]
port = {self.taken.getsockname()[1]}
public_url = "https://bare.example"
{self.pair.section()}
[webhooks]
private_receivers = ["127.0.0.1"]
[storage]
media_gigabytes = 0.01
free_floor_gigabytes = 0.002
"""

    def faults(self) -> list[list[Fault]]:
        """Return its faults, by the part that each strikes."""
        text = self._text()
        broken = f"{text}\n[[lanes]]\nid = 5\n"

        port = Fault(
            kind=K.INTERFACE_NOT_SERVED,
            part=SitePart.GATEWAY,
            make=lambda: None,  # somebody else has it from the start on
            mend=self.taken.close,
        )
        certificate = Fault(
            kind=K.CERTIFICATE_ENDS,
            part=SitePart.GATEWAY,
            make=lambda: None,  # it ends in two days
            mend=lambda: write_pair(self.folder, days=300),
        )
        unusable = Fault(
            kind=K.CERTIFICATE_UNUSABLE,
            part=SitePart.GATEWAY,
            make=lambda: Path(self.pair.certificate).write_text("half a file"),
            mend=lambda: write_pair(self.folder, days=300),
            after=2.0,  # files are read so often
        )
        file = Fault(
            kind=K.SITE_FILE_NOTICE,
            part=SitePart.GATEWAY,
            make=lambda: self._reload(broken),
            mend=lambda: self._reload(text),
        )
        single = Fault(
            kind=K.ACCOUNT_SINGLE_FACTOR,
            part=SitePart.GATEWAY,
            make=lambda: self._account(do="add", password="never guessed 7", role="operator"),
            mend=lambda: self._account(do="disable"),
            after=2.0,  # rows are read so often
        )
        read_only = Fault(
            kind=K.DISK_READ_ONLY, part=SitePart.GATEWAY, make=self._make_read_only, mend=self._make_writable
        )
        held = Fault(
            kind=K.LOOP_HELD,
            part=SitePart.GATEWAY,
            make=self._stand_still,
            mend=lambda: None,  # it is over after half a minute
        )
        failing = Fault(
            kind=K.WEBHOOK_FAILING,
            part=SitePart.GATEWAY,
            make=lambda: self._lose_receiver(broken, status=500),
            mend=lambda: self._enable(text),
            after=3.0 + 6.0,  # until the file's problem is an event, and until it is sent for the second time
        )
        hook = Fault(
            kind=K.WEBHOOK_DISABLED,
            part=SitePart.GATEWAY,
            make=lambda: self._lose_receiver(broken, status=410),
            mend=lambda: self._enable(text),
            after=3.0,  # until the file's problem is an event
        )
        return [[port, certificate, unusable], [file, failing, hook], [read_only], [held], [single]]

    async def _account(self, **change: str) -> None:
        body = {"username": "ada", **change}
        async with self.http.post("/status/settings/account", json=body) as answer:
            assert answer.status == 200, await answer.text()

    async def _stand_still(self) -> None:
        """Let the gateway have no processor for a second, three times; between them it goes on until it answers."""
        for _ in range(3):
            self.process.send_signal(signal.SIGSTOP)
            await asyncio.sleep(1)  # for so long it stands still
            self.process.send_signal(signal.SIGCONT)
            async with self.http.get("/health/live") as answer:
                assert answer.status == 200

    def _make_read_only(self) -> None:
        """Mount the media folder over itself so that it takes nothing, as Linux does with a disk that fails."""
        media = str(self.data / "media")
        subprocess.run(["mount", "--bind", media, media], check=True)
        subprocess.run(["mount", "-o", "remount,bind,ro", media], check=True)

    def _make_writable(self) -> None:
        subprocess.run(["umount", "-l", str(self.data / "media")], check=True)

    async def _reload(self, text: str) -> None:
        self.site.write_text(text)
        await asyncio.to_thread(done, "gateway", "reload", "--data", self.data)

    async def _lose_receiver(self, broken: str, *, status: int) -> None:
        if not self.hook:
            url = f"http://127.0.0.1:{self.receiver.port}/hook"
            body = {"url": url, "events": ["alert.triggered"], "secret": "x" * 32}
            async with self.http.post("/api/v1/webhooks", json=body) as answer:
                assert answer.status in {200, 201}, await answer.text()
                self.hook = (await answer.json())["id"]
        self.receiver.status = status
        await self._reload(broken)  # whose problem is what is sent

    async def _enable(self, text: str) -> None:
        self.receiver.status = 204
        await self._reload(text)
        async with self.http.post("/status/webhook/enable", json={"id": self.hook}) as answer:
            assert answer.status == 200, await answer.text()

    def of_the_disk(self) -> list[Fault]:
        """Return the faults of a disk without room, where something is recorded all the time."""
        filler = self.folder / "filler"

        def fill() -> None:
            with filler.open("wb", buffering=0) as file:
                for size in (65536, 4096, 1):
                    with contextlib.suppress(OSError):
                        while True:
                            file.write(b"\0" * size)

        return [
            Fault(kind=K.FOOTAGE_AT_RISK, part=SitePart.GATEWAY, make=fill, mend=filler.unlink),
            Fault(kind=K.STORE_FAILING, part=SitePart.GATEWAY, make=fill, mend=filler.unlink, after=_JOURNAL_SECONDS),
        ]

    async def happens(self) -> None:
        """Let something happen that is recorded, again and again, until cancelled."""
        while True:
            body = {"kind": K.FOOTAGE_AT_RISK, "part": "gateway", "silent_hours": 1}  # without it, once is enough
            async with self.http.post("/status/problem/acknowledge", json=body) as answer:
                await answer.read()
            await asyncio.sleep(0.05)  # the pace of the site


def of_backups(backups: TriedBackups, full: Path) -> list[Fault]:
    """Return what can be wrong with the nightly backup; the next good one mends each."""
    makes = {
        K.BACKUP_FOLDER_REFUSES: backups.to_no_folder,
        K.BACKUP_NO_ROOM: lambda: backups.without_room(full),
        K.BACKUP_REFUSED: backups.refused,
        K.BACKUP_UNREACHABLE: backups.unreachable,
        K.BACKUP_FAILED: backups.failing,
        K.BACKUP_OVERDUE: backups.overdue,
    }
    rows = 2.0  # files are read so often
    return [
        Fault(kind=kind, part=SitePart.GATEWAY, make=make, mend=backups.good, after=rows)
        for kind, make in makes.items()
    ]


@pytest.fixture
def full_disk(tmp_path):
    """A disk without room; only root can have one."""
    place = tmp_path / "full"
    place.mkdir()
    words = ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(place)]
    if subprocess.run(words, capture_output=True, check=False).returncode:
        lacks("a small disk cannot be mounted here")
    yield place
    subprocess.run(["umount", "-l", str(place)], check=True)


async def test_each_fault_of_a_backup_is_told_alike_everywhere_and_over_after_a_good_one(
    small_disk, full_disk, tmp_path
):
    gateway = BareGateway(small_disk)
    with S3Store().served() as store:
        async with gateway.running(), asyncio.TaskGroup() as group:
            looking = Looking(http=gateway.http, data=gateway.data)
            eyes = group.create_task(looking.run())
            await looking.until(lambda _: True, within=30)
            backups = TriedBackups(tmp_path, data=gateway.data, store=store)
            table = await all_tried([of_backups(backups, full_disk)], looking)
            eyes.cancel()
    assert faulty(table) == []


async def test_each_fault_of_the_gateway_is_told_alike_everywhere_and_over_when_mended(small_disk):
    gateway = BareGateway(small_disk)
    async with gateway.running(), asyncio.TaskGroup() as group:
        looking = Looking(http=gateway.http, data=gateway.data, passed_over=MACHINES_OWN - {K.LOOP_HELD})
        eyes = group.create_task(looking.run())
        await looking.until(lambda _: True, within=30)
        table = await all_tried(gateway.faults(), looking)
        happening = group.create_task(gateway.happens())
        table += await all_tried([gateway.of_the_disk()], looking)
        happening.cancel()
        eyes.cancel()
    assert faulty(table) == []
