"""`python -m gateway.central.pull.card_process`: read pages of central's card list on stdin, write cards on stdout.

It is a process of its own because parsing a long list takes seconds, in which the interpreter lock would keep the lanes
waiting.

Stdin has one line of JSON, `{"fields", "zone"}`, then pages as central sent them. For each page stdout has the ids that
it lists, then its cards, `CARDS_AT_ONCE` at a time. Pages and answers are blobs, each after its length in
`LENGTH_BYTES`; see `card_pages`.
"""

from __future__ import annotations

import contextlib
import fcntl
import gc
import json
import marshal
import os
import sys
from http import HTTPStatus
from typing import Any, BinaryIO
from zoneinfo import ZoneInfo

from gateway.central.client.answers import judge_read
from gateway.central.client.json_stream import read_whole
from gateway.central.client.list_proof import Listing, read_listing
from gateway.central.pull.field_map import CardFieldMap, CardMapper
from gateway.domain.writes import JsonObject
from gateway.store.cards.rows import CardRecord, ready
from gateway.store.outbox.record_kinds import record_text

RESOURCE = "access_cards"
CARDS_AT_ONCE = 40
"""Number of cards in a blob: few enough for the event loop to unpack in a fraction of a millisecond."""
LENGTH_BYTES = 4

_NICENESS = 10
_PIPE_BYTES = 1024 * 1024


def listing_of(raw: bytes) -> Listing | None:
    """Parse a page; return None when it is not a successful answer with a list of cards."""
    answer = read_whole(raw)
    if answer is None or not isinstance(judge_read("", HTTPStatus.OK, answer), dict):
        return None
    return read_listing(answer, RESOURCE)


def answer_page(raw: bytes, mapper: CardMapper, out: BinaryIO) -> None:
    """Write the ids and the count of a page, then its cards; write None for an unusual page."""
    listing = listing_of(raw)
    if listing is None:
        _write(out, None)
        return
    _write(out, (listing.ids, listing.count))
    records = list(listing.records.items())
    for start in range(0, len(records), CARDS_AT_ONCE):
        _write(out, [_card(mapper, *item) for item in records[start : start + CARDS_AT_ONCE]])


def _card(mapper: CardMapper, card_id: int, record: JsonObject) -> tuple[object, ...]:
    mapped = mapper.map(card_id, record)
    return (*ready(CardRecord(mapped.card, record_text(record))), bool(mapped.unread))


def _write(out: BinaryIO, value: Any) -> None:
    blob = marshal.dumps(value)
    out.write(len(blob).to_bytes(LENGTH_BYTES))
    out.write(blob)
    out.flush()


def main() -> int:
    """Parse pages from stdin until there are no more."""
    with contextlib.suppress(PermissionError):  # the shipped unit forbids it, and sets priorities itself
        os.nice(_NICENESS)
    for pipe in (sys.stdin, sys.stdout):
        with contextlib.suppress(OSError):  # usual pipes do as well: then each side waits for the other within a page
            fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, _PIPE_BYTES)
    gc.disable()  # nothing here forms cycles, so reference counts free every page
    pages, out = sys.stdin.buffer, sys.stdout.buffer
    settings = json.loads(pages.readline() or b"{}")
    mapper = CardMapper(CardFieldMap(**settings["fields"]), ZoneInfo(settings["zone"]))
    while length := pages.read(LENGTH_BYTES):
        answer_page(pages.read(int.from_bytes(length)), mapper, out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
