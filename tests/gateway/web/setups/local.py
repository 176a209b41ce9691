"""Requests on a gateway's local socket."""

from __future__ import annotations

from pathlib import Path

from aiohttp import ClientSession, UnixConnector

from gateway.runtime.unix_sockets import INTERFACE_SOCKET
from gateway.web.register.changes import REGISTER_PATH, Answer, Change


async def local(folder: Path, path: str, body: object = None, *, method: str = "POST") -> tuple[int, dict]:
    """Ask the gateway of this data folder."""
    connector = UnixConnector(str(folder / "run" / INTERFACE_SOCKET))
    async with (
        ClientSession(connector=connector) as client,
        client.request(method, f"http://localhost{path}", json=body) as answer,
    ):
        return answer.status, await answer.json()


async def ask(change: Change, *, run_folder: Path) -> Answer:
    """Change the register as `edge-gateway users` does beside a running gateway."""
    status, answer = await local(run_folder.parent, REGISTER_PATH, change.model_dump(mode="json"))
    assert status == 200, answer
    return Answer.model_validate(answer)
