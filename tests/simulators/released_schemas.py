"""Databases as each released schema left them: one SQL file per family and schema, with rows of every kind.

After a new migration, run `python tests/simulators/released_schemas.py` once: it writes the files of the newest schema.
It never touches an older one, which is what programs in the field have on their disks.
"""

from __future__ import annotations

import asyncio
import sqlite3
import tempfile
from contextlib import closing
from pathlib import Path

from gateway.domain.commands import Command, CommandState, GateAction
from gateway.domain.credentials import Card, plate_alias
from gateway.domain.events import Event, EventKind
from gateway.domain.footage import GapReason, SegmentFinished
from gateway.domain.passages import Moment, Passage, PassageOutcome
from gateway.domain.presence import Movement, Way
from gateway.domain.writes import CARD_UPDATE, ENTRY_CREATE
from gateway.store import Entry, KnownRecord, Session, Store, StoredCard, Webhook
from gateway.store.engine.migrations import FAMILIES, Family, migrations

FOLDER = Path(__file__).resolve().parents[1] / "gateway" / "store" / "released"
NOON = 1_767_268_800_000_000
"""2026-01-01 12:00 UTC, in micros."""


def file_of(family: Family, number: int) -> Path:
    """The file of a schema."""
    return FOLDER / f"{family}-{number:04}.sql"


def newest(family: Family) -> int:
    """The schema of this program."""
    return migrations(family)[-1].number


async def fill(store: Store) -> None:
    """Put rows of every kind into a store that is open."""
    await store.devices.declare([KnownRecord(101, "Entry barrier", "modbus-gate", at_site=True)], now=NOON)
    await store.cameras.declare([KnownRecord(201, "Entry camera", "", at_site=True)], now=NOON)
    card = Card(41, "FLT1041", aliases=(plate_alias("FLT1041"),))
    await store.cards.apply(put=[StoredCard(card, '{"id": 41, "name": "Élodie"}')], now=NOON)
    await store.webhooks.add(
        Webhook(
            id="till", url="https://till.example/hook", types=("vehicle.passed",), secret="s", created_at=NOON,
            created_by="chief",
        ),
        most=10,
    )  # fmt: skip
    moment = Moment(201, "Vehicle passed", "A vehicle passed.", NOON - 5_000_000, NOON + 5_000_000, clock_trusted=True)
    await store.journal.record(
        Entry(
            events=(_event(EventKind.VEHICLE_PASSED, "A vehicle passed.", data={"plate": "FLT1041"}),),
            passage=Passage(
                lane_id="entry", direction="entry", outcome=PassageOutcome.PASSED, started_at=NOON - 9_000_000,
                ended_at=NOON, clock_trusted=True, card_id=41, credential="FLT1041", reason="granted", plate="FLT1041",
                holder="card 41",
            ),
            moments=(moment,),
            commands=(
                Command(
                    command_id="b-1", device_id=101, lane_id="entry", action=GateAction.OPEN, source="lane",
                    requested_at=NOON, deadline_at=NOON + 5_000_000, state=CommandState.DONE,
                ),
            ),
            movements=(Movement(Way(leaves="", enters="yard"), NOON, holder="card 41"),),
        )
    )  # fmt: skip
    await store.segments.add(
        [
            SegmentFinished(
                camera_id=201, path=f"201/2026010112/{NOON}_10000000.ts", started_at=NOON, clock_trusted=True,
                duration=10_000_000, size=9, gap=GapReason.NETWORK,
            )
        ]
    )  # fmt: skip
    await store.pending_writes.hold(ENTRY_CREATE, None, {"device_id": 101}, now=NOON, sends=True)
    await store.pending_writes.hold(CARD_UPDATE, 41, {"note": "x"}, now=NOON, sends=True)
    await store.accounts.put_role("guard", frozenset({"can_view_devices"}))
    await store.accounts.add("guard", password_hash="hash-of-guard", role="guard", now=NOON)
    await store.api_keys.add(
        "till", key_hash=b"\x01" * 32, permissions=frozenset({"can_view_devices"}), now=NOON, expires_at=None
    )
    await store.sessions.add("token", Session("guard", NOON, NOON, NOON + 3_600_000_000))


def _event(kind: EventKind, text: str, **more: object) -> Event:
    return Event(kind=kind, date_at=NOON, clock_trusted=True, text=text, device_id=101, lane_id="entry", **more)


def dumped(database: Path) -> str:
    """A database as SQL, its number included."""
    with closing(sqlite3.connect(database)) as connection:
        (number,) = connection.execute("PRAGMA user_version").fetchone()
        return "\n".join([*connection.iterdump(), f"PRAGMA user_version = {number};", ""])


def restored(text: str, database: Path) -> None:
    """Make a database of SQL, as it was closed cleanly."""
    with closing(sqlite3.connect(database)) as connection:
        connection.executescript(text)
    database.with_name(f"{database.name}.closed").touch()


def schema(database: Path) -> dict[str, str]:
    """Everything that is defined in a database, by its name."""
    with closing(sqlite3.connect(database)) as connection:
        found = connection.execute("SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL").fetchall()
    return {name: " ".join(sql.split()) for name, sql in found if not name.startswith("sqlite_")}


async def main() -> None:
    """Write the files of the newest schema, where they are missing."""
    with tempfile.TemporaryDirectory() as folder:
        store = Store(folder=Path(folder), site_name="North", sends=True)
        await store.open()
        try:
            await fill(store)
        finally:
            await store.close()
        for family in FAMILIES:
            path = file_of(family, newest(family))
            if not path.exists():
                path.write_text(dumped(Path(folder) / f"{family}.db"), "utf-8")
                print(f"{path.name}: written")


if __name__ == "__main__":
    asyncio.run(main())
