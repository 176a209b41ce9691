"""Stores with as many rows as a large site gathers in years; for benchmarks."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from gateway.domain.credentials import Card, h10301_alias
from gateway.runtime.clock import SystemClock
from gateway.runtime.supervision import Supervisor
from gateway.store import Store, StoredCard

FIRST_AT = 1_700_000_000_000_000
APART = 3_000_000
"""When the first event was, and how far apart they are, in micros."""

_AT_ONCE = 5_000

_FILL = """
WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < :events),
 kinds (k, type, severity, name) AS (VALUES (0, 101, 0, 'Vehicle arrived'), (1, 102, 0, 'Access granted'),
  (2, 104, 0, 'Gate opened'), (3, 106, 0, 'Vehicle passed'), (4, 105, 0, 'Gate closed'), (5, 103, 1, 'Access denied'),
  (6, 110, 1, 'Closing held by a safety point'), (7, 202, 3, 'Device lost'))
INSERT INTO event SELECT i, 101 + (i / 8) % :devices, type, 1, severity, name,
 name || CASE WHEN type IN (102, 103) THEN ' to card 00' || ((i * 7919) % 5000) ELSE ' at lane ' || (i % 10) END
 || CASE type WHEN 106 THEN ' with plate ' || printf('DM%05d', (i * 7919) % 20000) ELSE '' END || '.',
 :first + i * :apart, 1, 'lane' || (i % 10), '{"card_id":' || ((i * 7919) % 5000) || ',"credential":"0042"}',
 NULL, NULL
 FROM n JOIN kinds ON k = CASE WHEN i % 5000 = 0 THEN 7 WHEN i % 97 = 0 THEN 6 WHEN i % 41 = 0 THEN 5 ELSE i % 5 END
"""


async def fill_events(folder: Path, *, events: int, devices: int) -> None:
    """Fill a new store with so many events of so many devices and 8 kinds, the rarest one in 5,000.

    They are written at once, without triggers and indexes; then the schema's own words make what follows from the rows.
    """
    store = Store(folder=folder, site_name="North", sends=False)
    await store.open()
    await store.close()
    with closing(sqlite3.connect(folder / "site.db", isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode = OFF")
        connection.execute("PRAGMA cache_size = -400000")
        again = connection.execute(
            "SELECT type, name, sql FROM sqlite_master WHERE tbl_name = 'event' AND type IN ('index', 'trigger')"
        ).fetchall()
        for kind, name, _ in again:
            connection.execute(f"DROP {kind} {name}")
        connection.execute(_FILL, {"events": events, "devices": devices, "first": FIRST_AT, "apart": APART})
        fill_ranges(connection)
        for _, _, sql in again:
            connection.execute(sql)
        connection.execute("PRAGMA journal_mode = WAL")


def fill_ranges(connection: sqlite3.Connection) -> None:
    """Count the events of each range of ids, as the triggers of a store do while events come one by one."""
    for span in (12, 17):
        connection.execute(
            f"INSERT INTO event_range SELECT {span}, id >> {span}, count(*), min(date_at), max(date_at)"
            " FROM event GROUP BY 2"
        )
        for device, kind in (("device_id", "type"), ("device_id", "-1"), ("-1", "type")):
            connection.execute(
                f"INSERT INTO event_range_count SELECT {span}, id >> {span}, {device}, {kind}, count(*) FROM event"
                " GROUP BY 2, 3, 4"
            )


async def fill_cards(folder: Path, *, cards: int) -> None:
    """Put so many cards into a store, which is made if it is not there; card n has the number n - 1."""
    folder.mkdir(exist_ok=True)
    store = Store(folder=folder, site_name="bench", sends=False)
    await store.open()
    async with Supervisor(clock=SystemClock()) as supervisor:
        supervisor.keep("store", store.run)
        for start in range(0, cards, _AT_ONCE):
            numbers = range(start, min(start + _AT_ONCE, cards))
            await store.cards.apply(
                put=[
                    StoredCard(Card(n + 1, str(n), aliases=(h10301_alias(n >> 16, n & 0xFFFF),)), "{}") for n in numbers
                ],
                now=0,
            )
    await store.close()
