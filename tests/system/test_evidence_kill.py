"""Promise: evidence that was acknowledged over HTTP is there, byte for byte, after the gateway was killed."""

from __future__ import annotations

import asyncio
import hashlib
import os
import random

import pytest
from aiohttp import ClientError, ClientSession, ClientTimeout, FormData
from running_gateway import PASSWORD, SECRETS, SITE, RunningGateway

pytestmark = pytest.mark.long("three starts of a gateway; test_evidence_files kills what writes the files and rows")

CAMERA = '[[cameras]]\nid = 201\nname = "Gate"\nurl = "rtsp://127.0.0.1:1/main"\n[storage]\nevidence_per_event = 100\n'
UPLOADERS = 4


class Client:
    """A client of the gateway that runs now."""

    def __init__(self, http: ClientSession, port: int) -> None:
        self._http = http
        self.base = f"http://127.0.0.1:{port}"
        self.session = ""

    async def call(self, method: str, path: str, body: dict | None = None) -> dict:
        async with self._http.request(method, self.base + path, json=body, headers=self.headers) as answer:
            said = await answer.json()
            assert answer.status == 200, said
            return said

    @property
    def headers(self) -> dict[str, str]:
        return {"SessionID": self.session} if self.session else {}

    async def sign_in(self) -> None:
        self.session = (await self.call("POST", "/v1/auth/login", {"username": "chief", "password": PASSWORD}))[
            "session"
        ]

    async def upload(self, camera_event_id: int, content: bytes) -> dict:
        form = FormData()
        form.add_field("id", str(camera_event_id))
        form.add_field("file", content, filename="scene.bin")
        url = f"{self.base}/v1/camera/event/evidence"
        async with self._http.post(url, data=form, headers=self.headers) as answer:
            said = await answer.json()
            assert answer.status == 200, said
            return said["evidence"]

    async def file(self, evidence_id: int) -> bytes:
        """By a link, as whoever is to see it gets it."""
        link = await self.call("POST", f"/v1/camera/event/evidence/{evidence_id}/access", {})
        async with self._http.get(link["access"]["url"]) as answer:
            assert answer.status == 200
            return await answer.read()


async def upload_until_killed(client: Client, gateway: RunningGateway, event: int, enough: int) -> dict[int, str]:
    """Uploads side by side; the gateway is killed at the so-maniest that was acknowledged. Each id with its SHA-256."""
    acknowledged: dict[int, str] = {}

    async def uploading() -> None:
        while gateway.process.returncode is None:
            content = os.urandom(random.randint(1, 300_000))
            said = await client.upload(event, content)
            assert said["sha256"] == hashlib.sha256(content).hexdigest()
            acknowledged[said["id"]] = said["sha256"]
            if len(acknowledged) == enough:
                gateway.process.kill()

    ended = await asyncio.gather(*(uploading() for _ in range(UPLOADERS)), return_exceptions=True)
    assert all(isinstance(error, ClientError) for error in ended), ended
    return acknowledged


async def test_evidence_that_was_acknowledged_outlives_a_kill(tmp_path):
    (tmp_path / "site.toml").write_text(SITE + CAMERA)
    kept: dict[int, str] = {}
    event = 0
    async with ClientSession(timeout=ClientTimeout(total=30)) as http:
        for enough in (random.randint(1, 12), random.randint(1, 12), 0):
            with RunningGateway(tmp_path, **SECRETS) as gateway:
                client = Client(http, await asyncio.to_thread(gateway.serves))
                await client.sign_in()
                event = event or (await client.call("PUT", "/v1/camera/event", {"camera_id": 201}))["event"]["id"]
                listed = (await client.call("POST", "/v1/camera/event", {"id": event}))["event"]["evidence"]
                there = {item["id"]: item["sha256"] for item in listed}
                assert kept.items() <= there.items()
                for number, sha256 in there.items():
                    assert hashlib.sha256(await client.file(number)).hexdigest() == sha256
                files = [*(tmp_path / "data" / "media" / "evidence").glob("*")]
                assert len(files) == len(there), files
                if enough:
                    kept |= await upload_until_killed(client, gateway, event, enough)
    assert kept
