"""The desk that takes commands of the fleet: a lane with a real driver, and accounts that may and may not."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from functools import cache, partial

import nats
import nkeys
from at_work import running
from far_end_site import a_barrier, alive
from fleet_scene import NAME, connection

from drivers.contract import GatePosition
from gateway.fleet.commands_down import CommandDesk, CommandsDown
from gateway.fleet.offered_files import FileMaker
from gateway.proof_package.of_events import ProofPackages
from gateway.runtime.clock import SystemClock
from gateway.runtime.supervision import Supervisor
from gateway.site.edits import Edit
from gateway.site.running_site import Reloaded, TrialEnd
from gateway.support.bundle import Bundle


def key() -> tuple[str, str]:
    """The seed and the public key of a new sender."""
    pair = nkeys.from_seed(nkeys.encode_seed(os.urandom(32), nkeys.PREFIX_BYTE_USER))
    return pair.seed.decode(), pair.public_key.decode()


ANNA, GUARD, GONE = key(), key(), key()
RIGHTS = {"anna": frozenset({"*"}), "guard": frozenset({"can_view_devices"})}
BUNDLE = bytes(range(250)) * 4000


class Desk:
    """A gateway's lane with a real driver, and what commands reach besides."""

    def __init__(self, lane, supervisor, *, recording=None, folder=None) -> None:
        """`recording`: its footage; `folder`: where its proof packages are made."""
        self.lane = lane
        self.rights = dict(RIGHTS)
        proofs = partial(ProofPackages.of, lane.store, recording=recording, folder=folder, clock=SystemClock())
        self.reloaded_by: list[str] = []
        self.down = CommandsDown(
            fleet_name=NAME,
            senders={ANNA[1]: "anna", GUARD[1]: "guard", GONE[1]: "gone"},
            desk=CommandDesk(
                permissions=self._permissions,
                lanes=lane.lanes,
                reload=self._reload,
                edit=self._edit,
                tried=self._tried,
                files=FileMaker(
                    bundle=self._bundle, recording=recording, proofs=cache(partial(proofs, site_name=lambda: "North"))
                ),
                start=supervisor.once,
                notices=lambda: None,
            ),
            commands=lane.store.commands,
            changes=lane.store.changes,
            snapshot=lambda: {"headline": "All lanes work"},
            clock=SystemClock(),
            seal_key=b"this desk",
        )

    async def _permissions(self, account: str) -> frozenset[str] | None:
        return self.rights.get(account)

    async def _reload(self, by: str) -> Reloaded:
        self.reloaded_by.append(by)
        return Reloaded()

    async def _edit(self, by: str, edits: Sequence[Edit]) -> tuple[Reloaded, tuple[Edit, ...]]:
        return Reloaded(refused=("this desk has no site file",)), ()

    async def _tried(self) -> TrialEnd:
        return TrialEnd(confirmed=True, why="")

    async def _bundle(self) -> Bundle:
        return Bundle(name="bundle.tar.gz", content=BUNDLE)

    async def commands(self) -> int:
        rows = await self.lane.store.database.read(lambda one: one.execute("SELECT count(*) FROM command").fetchone())
        return rows[0]


@asynccontextmanager
async def desk_at(url: str | list[str], folder, *parts, **more) -> AsyncIterator[Desk]:
    """Take commands over a line to these servers; further parts and options are those of `connection`."""
    folder.mkdir(exist_ok=True)
    async with (
        a_barrier() as (barrier, _, port),
        alive(folder, barrier=barrier, port=port) as lane,
        Supervisor(clock=SystemClock()) as supervisor,
    ):
        desk = Desk(lane, supervisor)
        await lane.sees(lambda shown: shown.position is GatePosition.CLOSED)
        async with running(connection(url, desk.down, *parts, **more).run()):
            yield desk


async def listens(client: nats.NATS) -> bool:
    """Return whether the gateway answers to this client."""
    try:
        return bool(await client.request(NAME.commands, b'{"action":"nonce"}', timeout=5))
    except nats.errors.NoRespondersError:
        return False
