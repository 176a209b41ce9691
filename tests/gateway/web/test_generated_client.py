"""A client that a generator makes of the description signs in and lists events and cards."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path

import pytest
from lacks import lacks

pytestmark = pytest.mark.long("a client generated anew")

ROOT = Path(__file__).parents[3]
GENERATOR = ROOT / ".venv-client" / "bin"

PROGRAM = """
import json, sys
from generated import AuthenticatedClient, Client
from generated.api.access.post_v1_access_list import sync as list_cards
from generated.api.auth.post_v1_auth_login import sync as sign_in
from generated.api.event.post_v1_event_list import sync as list_events
from generated.models.card_list_body import CardListBody
from generated.models.event_kind import EventKind
from generated.models.event_list_body import EventListBody
from generated.models.login_body import LoginBody

url = sys.argv[1]
answer = sign_in(client=Client(base_url=url), body=LoginBody(username="chief", password="chief"))
client = AuthenticatedClient(base_url=url, token=answer.session)
events = list_events(client=client, body=EventListBody(page_limit=50))
cards = list_cards(client=client, body=CardListBody(page_limit=50))
print(json.dumps({
    "events": [event.id for event in events.events],
    "signed_in": answer.success,
    "kinds": [isinstance(event.type_, EventKind) for event in events.events],
    "cards": [card.to_dict()["number"] for card in cards.access_cards],
}))
"""


@pytest.fixture
def generator() -> Path:
    """The generator's programs; a missing one fails under CI and skips elsewhere."""
    if not (GENERATOR / "openapi-python-client").is_file():
        lacks("the client generator is missing: make test-all installs it")
    return GENERATOR


async def run(program: str, *words: str | Path, folder: Path) -> str:
    """Run a program of the generator's environment and return what it prints; the loop goes on serving."""
    child = await asyncio.create_subprocess_exec(
        str(GENERATOR / program),
        *map(str, words),
        cwd=folder,
        env=os.environ | {"PATH": f"{GENERATOR}:{os.environ['PATH']}"},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    said, complaints = await child.communicate()
    assert child.returncode == 0, f"{said.decode()}\n{complaints.decode()}"
    return said.decode()


async def listed(gateway, path: str, name: str) -> list[dict]:
    body = {"page_limit": 50}
    async with gateway.client.post(gateway.url + path, json=body, headers=await gateway.sign_in()) as answer:
        return (await answer.json())[name]


async def test_a_generated_client_signs_in_and_lists(gateway, generator, tmp_path):
    async with gateway.client.get(f"{gateway.url}/openapi.json") as answer:
        (tmp_path / "openapi.json").write_text(await answer.text())
    await run(
        "openapi-python-client",
        *("generate", "--path", "openapi.json", "--meta", "none", "--output-path", "generated", "--fail-on-warning"),
        *("--config", ROOT / "config" / "openapi-python-client.yaml"),
        folder=tmp_path,
    )
    (tmp_path / "program.py").write_text(PROGRAM)
    told = json.loads(await run("python", "program.py", gateway.url, folder=tmp_path))
    events = await listed(gateway, "/v1/event/list", "events")
    assert told["signed_in"] is True
    assert told["events"]
    assert set(told["events"]) <= {event["id"] for event in events}
    assert all(told["kinds"])
    assert told["cards"] == [card["number"] for card in await listed(gateway, "/v1/access/list", "access_cards")]
