"""An index for searches in the text of events (tables `event_text`, `event_text_block`).

Ids are divided into blocks of 2**14. A block is indexed once, when its last event is recorded, and is then only removed
as a whole. For every three successive letters or digits of a text it lists the events that have them. The index gives
candidates: the search reads their text and decides. Events of blocks that are not indexed are all read.

A block is built in short portions with pauses, so that neither the loop nor the writer waits for it.
"""

from __future__ import annotations

import asyncio
import json
import sqlite3
import struct
import zlib
from array import array
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache, partial

import structlog

from gateway.domain.errors import StoreError
from gateway.domain.text_search import folded_plate
from gateway.store.engine.database import Database
from gateway.store.events.id_ranges import FINE, IdRange, one_value

BLOCK = 14
_LENGTH = 3
_HASH_BITS = 20
_MOST_ASKED = 6
_BITMAP_BYTES = (1 << BLOCK) // 8
_AT_A_TIME = 32  # texts: about half a millisecond of the interpreter lock
_PACKED_AT_A_TIME = 8192
_ROWS_AT_A_TIME = 256  # a commit of about 2 ms
_PAUSE_SECONDS = 0.005
_LOOK_SECONDS = 60.0

_Found = defaultdict[int, "array[int]"]

log = structlog.get_logger(__name__)


class TextIndex:
    """The builder of the index."""

    def __init__(self, *, database: Database) -> None:
        self._database = database

    async def run(self) -> None:
        """Index blocks as they become full, newest first, and forget those that have expired, until cancelled."""
        while True:
            await asyncio.sleep(_LOOK_SECONDS)
            try:
                while await self.build_block(pause=_PAUSE_SECONDS):
                    pass
                while await self.forget_expired(pause=_PAUSE_SECONDS):
                    pass
            except StoreError as error:
                log.debug("events_not_indexed", error=str(error))  # the store reports its own failure

    async def build_block(self, *, pause: float = 0.0, portion: int = _AT_A_TIME) -> bool:
        """Index the newest full block that is not indexed; return whether there was one. Raises StoreError.

        `pause`: seconds between portions. `portion`: the number of events that are read at a time.
        """
        number = await self._database.read(_next_block, lengthy=True)
        if number is None:
            return False
        found: _Found = defaultdict(lambda: array("H"))
        low = number << BLOCK
        for first in range(low, low + (1 << BLOCK), portion):
            some = range(first, first + portion)
            await self._database.read(partial(_gather, numbers=some, low=low, into=found), lengthy=True)
            await asyncio.sleep(pause)
        rows, packed = list[tuple[int, bytes]](), 0
        for key in sorted(found):
            rows.append((number << _HASH_BITS | key, _packed(found[key])))
            packed += len(found[key])
            if packed >= _PACKED_AT_A_TIME:
                packed = 0
                await asyncio.sleep(pause)
            if len(rows) == _ROWS_AT_A_TIME:
                await self._put(rows)
                rows = []
                await asyncio.sleep(pause)
        await self._put(rows)
        await self._database.write(
            lambda connection: connection.execute("INSERT OR IGNORE INTO event_text_block VALUES (?)", (number,))
        )
        return True

    async def _put(self, rows: Sequence[tuple[int, bytes]]) -> None:
        await self._database.write(
            lambda connection: connection.executemany("INSERT OR REPLACE INTO event_text VALUES (?, ?)", rows)
        )

    async def forget_expired(self, *, pause: float = 0.0) -> bool:
        """Remove a portion of the blocks below the oldest event; return whether there was any. Raises StoreError.

        `pause`: seconds to wait first.
        """
        await asyncio.sleep(pause)

        def job(connection: sqlite3.Connection) -> int:
            end = (one_value(connection, "SELECT coalesce(min(id), 0) FROM event", ())) >> BLOCK
            connection.execute("DELETE FROM event_text_block WHERE number < ?", (end,))
            return connection.execute(
                "DELETE FROM event_text WHERE place IN (SELECT place FROM event_text WHERE place < ? LIMIT ?)",
                (end << _HASH_BITS, _ROWS_AT_A_TIME),
            ).rowcount

        return await self._database.write(job) > 0


class Candidates:
    """Candidates for the matches of one search, in one snapshot."""

    def __init__(self, connection: sqlite3.Connection, search: str) -> None:
        """Read which blocks are indexed. A search of less than three letters or digits has no candidates."""
        self._connection = connection
        self._hashes = _asked(search)
        numbers = "SELECT json_group_array(number) FROM event_text_block"
        self._blocks = frozenset(json.loads(one_value(connection, numbers, ()))) if self._hashes else frozenset[int]()

    def serves(self, within: IdRange) -> bool:
        """Return whether all of a range is indexed."""
        return bool(self._hashes) and all(number in self._blocks for number in _blocks_of(within))

    def within(self, within: IdRange) -> Iterator[int]:
        """Yield the candidates of a range that is indexed, newest first."""
        numbers = _blocks_of(within)
        places = [number << _HASH_BITS | key for number in numbers for key in self._hashes]
        listed = one_value(
            self._connection,
            "SELECT json_group_array(json_array(number, lists)) FROM (SELECT place >> ? AS number,"
            " group_concat(hex(ids)) AS lists FROM event_text WHERE place IN (SELECT value FROM json_each(?))"
            " GROUP BY 1 HAVING count(*) = ?)",
            (_HASH_BITS, json.dumps(places), len(self._hashes)),
        )
        for number, lists in sorted(json.loads(listed), reverse=True):
            low = number << BLOCK
            for place in sorted(_common(map(bytes.fromhex, lists.split(","))), reverse=True):
                if within.low <= low + place < within.high:
                    yield low + place


def _blocks_of(within: IdRange) -> range:
    return range(within.low >> BLOCK, ((within.high - 1) >> BLOCK) + 1)


def _next_block(connection: sqlite3.Connection) -> int | None:
    shift = BLOCK - FINE
    found: int | None = one_value(
        connection,
        f"SELECT max(number >> {shift}) FROM event_range WHERE span = {FINE} AND count > 0"
        f" AND number >> {shift} < (SELECT max(id) FROM event) >> {BLOCK}"
        f" AND number >> {shift} NOT IN (SELECT number FROM event_text_block)",
        (),
    )
    return found


def _gather(connection: sqlite3.Connection, *, numbers: range, low: int, into: _Found) -> None:
    """Note what the events with these ids have; `low` is the first id of the block."""
    texts = one_value(
        connection,
        "SELECT json_group_array(json_array(id, name, description)) FROM event NOT INDEXED WHERE id >= ? AND id < ?",
        (numbers.start, numbers.stop),
    )
    for number, name, description in json.loads(texts):
        for key in set(map(_hash, _parts(name) | _parts(description))):
            into[key].append(number - low)


def _parts(text: str) -> set[str]:
    """Return every three successive letters or digits of a text, as searches for plates read it."""
    plain = folded_plate(text)
    return {plain[place : place + _LENGTH] for place in range(len(plain) - _LENGTH + 1)}


def _asked(search: str) -> tuple[int, ...]:
    """Return the hashes to look for: of parts that together cover the search, those with digits first, as rarer."""
    plain = folded_plate(search)
    last = len(plain) - _LENGTH
    if last < 0:
        return ()
    parts = {plain[place : place + _LENGTH] for place in (*range(0, last, _LENGTH), last)}
    rarest = sorted(parts, key=lambda part: (not any(map(str.isdecimal, part)), part))
    return tuple({_hash(part) for part in rarest[:_MOST_ASKED]})


@lru_cache(maxsize=1 << 14)
def _hash(part: str) -> int:
    return zlib.crc32(part.encode()) & ((1 << _HASH_BITS) - 1)


def _packed(places: array[int]) -> bytes:
    """Pack places within a block as 16-bit numbers, or as a bitmap if that is not longer."""
    if 2 * len(places) < _BITMAP_BYTES:
        return struct.pack(f"<{len(places)}H", *places)
    bits = bytearray(_BITMAP_BYTES)
    for place in places:
        bits[place >> 3] |= 1 << (place & 7)
    return bytes(bits)


def _common(packed: Iterable[bytes]) -> Iterator[int]:
    """Yield the places that are in all of the lists."""
    bitmaps, lists = list[bytes](), list[set[int]]()
    for one in packed:
        if len(one) == _BITMAP_BYTES:
            bitmaps.append(one)
        else:
            lists.append(set(struct.unpack(f"<{len(one) // 2}H", one)))
    if lists:
        lists.sort(key=len)
        for place in lists[0].intersection(*lists[1:]):
            if all(bits[place >> 3] >> (place & 7) & 1 for bits in bitmaps):
                yield place
        return
    both = -1
    for bits in bitmaps:
        both &= int.from_bytes(bits, "little")
    for at, byte in enumerate(both.to_bytes(_BITMAP_BYTES, "little")):
        if byte:
            yield from (at << 3 | bit for bit in range(8) if byte >> bit & 1)
