"""The comparison of the site's and central's records after an outage. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from pydantic import JsonValue

from gateway.domain.writes import alike, site_id_in
from gateway.store import Books
from simulation.far_ends.central.answers import JsonObject
from simulation.far_ends.central.record_counts import RecordCounts
from simulation.virtual_site.outage.people import Promised

_SHOWN = 5


@dataclass(frozen=True, slots=True)
class SiteHolds:
    """The records in the site's own files.

    Attributes:
        camera_events: central's id of each camera event, by the site's id.
        entries: central's id and the status of each entry, by the site's id.
        files: the camera event and the SHA-256 of each piece of evidence.
        cards: the record of each card.
        books: the counts of the outbox.
        drop_events: the number of events of a person dropping a record.
        fields: the fields that central must have of a camera event or an entry, by kind and the site's id.
    """

    camera_events: Mapping[int, int | None]
    entries: Mapping[int, tuple[int | None, str]]
    files: frozenset[tuple[int, str]]
    cards: Mapping[int, JsonObject]
    books: Books
    drop_events: int
    fields: Mapping[tuple[str, int], JsonObject]


@dataclass(frozen=True, slots=True)
class CentralHolds:
    """The records in central's tables."""

    counts: RecordCounts
    camera_events: Mapping[int, JsonObject]
    entries: Mapping[int, JsonObject]
    cards: Mapping[int, JsonObject]


@dataclass(frozen=True, slots=True)
class Acknowledged:
    """The acknowledged camera events by the site's ids, and the changes accepted from people."""

    camera_events: frozenset[int]
    promised: Promised


def faults_between(site: SiteHolds, central: CentralHolds, acknowledged: Acknowledged) -> tuple[str, ...]:
    """Return the differences between both sides, each in one sentence."""
    return tuple(
        sentence
        for judge in (_camera_events, _entries, _files, _cards, _promises, _books)
        for sentence in judge(site, central, acknowledged)
    )


def _camera_events(site: SiteHolds, central: CentralHolds, acknowledged: Acknowledged) -> Iterator[str]:
    held: dict[int, tuple[int, ...]] = {}
    for (_, source), ids in central.counts.camera_events.items():
        number = site_id_in(source)
        held[number] = (*held.get(number, ()), *ids)
    let_go = {number for kind, number in acknowledged.promised.let_go if kind == "camera_event"}
    yield from _list(
        "acknowledged camera events are not on the site's disk", acknowledged.camera_events - site.camera_events.keys()
    )
    yield from _list("camera events are not at central", site.camera_events.keys() - held.keys() - let_go)
    yield from _list("camera events are at central though they were let go of", let_go & held.keys())
    yield from _list("camera events are at central and not at the site", held.keys() - site.camera_events.keys())
    yield from _list("camera events are at central more than once", {n for n, ids in held.items() if len(ids) > 1})
    wrong = {n for n, known in site.camera_events.items() if n in held and known not in held[n]}
    yield from _list("camera events have another id at the site than at central", wrong)
    yield from _differing("camera event", site, site.camera_events, central.camera_events)


def _entries(site: SiteHolds, central: CentralHolds, _: Acknowledged) -> Iterator[str]:
    yield from _list(
        "entries are at central more than once", {n for (_, n), ids in central.counts.entries.items() if len(ids) > 1}
    )
    known = {central_id for central_id, _ in site.entries.values()}
    yield from _list(
        "entries are not at central", {n for n, (at, _) in site.entries.items() if at not in central.entries}
    )
    yield from _list("entries are at central and not at the site", central.entries.keys() - known)
    differ = {
        number
        for number, (central_id, status) in site.entries.items()
        if central_id is not None and not _same_status(status, central.entries.get(central_id, {}).get("status"))
    }
    yield from _list("entries have another status at central", differ)
    yield from _differing("entry", site, {n: at for n, (at, _) in site.entries.items()}, central.entries)


def _differing(
    noun: str, site: SiteHolds, central_ids: Mapping[int, int | None], records: Mapping[int, JsonObject]
) -> Iterator[str]:
    """Compare the records of both sides field by field; iterate over the differences, each in one sentence."""
    differ = {
        number
        for number, central_id in central_ids.items()
        if (record := records.get(central_id or 0)) is not None
        and any(
            not _same(value, record.get(name))
            for name, value in site.fields.get((noun.replace(" ", "_"), number), {}).items()
        )
    }
    yield from _list(f"{noun.replace('entry', 'entrie')}s differ", differ)


def _same(ours: JsonValue, theirs: JsonValue) -> bool:
    return alike(ours, theirs) or (ours in (None, "") and theirs in (None, ""))


def _same_status(ours: str, theirs: object) -> bool:
    return ours == theirs or (theirs is None and ours in {"open", "exit_only"})  # a new entry says it by its type


def _files(site: SiteHolds, central: CentralHolds, acknowledged: Acknowledged) -> Iterator[str]:
    of_event = {central_id: number for number, central_id in site.camera_events.items()}
    held = {(of_event.get(event, -event), sha): ids for (event, sha), ids in central.counts.evidence.items()}
    yield from _list("acknowledged files are not on the site's disk", acknowledged.promised.files - site.files)
    let_go = {number for kind, number in acknowledged.promised.let_go if kind == "camera_event"}
    yield from _list("files are not at central", {file for file in site.files - held.keys() if file[0] not in let_go})
    yield from _list("files are at central and not at the site", held.keys() - site.files)
    yield from _list("files are at central more than once", {file for file, ids in held.items() if len(ids) > 1})


def _cards(site: SiteHolds, central: CentralHolds, _: Acknowledged) -> Iterator[str]:
    yield from _list("cards are only at central", central.cards.keys() - site.cards.keys())
    yield from _list("cards are only at the site", site.cards.keys() - central.cards.keys())
    both = site.cards.keys() & central.cards.keys()
    yield from _list("cards differ", {n for n in both if site.cards[n] != central.cards[n]})
    numbers = [str(card.get("number")) for card in central.cards.values()]
    yield from _list("card numbers are at central more than once", {n for n in numbers if numbers.count(n) > 1})


def _promises(_: SiteHolds, central: CentralHolds, acknowledged: Acknowledged) -> Iterator[str]:
    promised = acknowledged.promised
    notes = {str(card.get("number")): card.get("note") for card in central.cards.values()}
    doubtful = promised.unsure | promised.contested
    sure = promised.notes.keys() - doubtful - promised.gone
    yield from _list(
        "cards lack at central what was changed last at the site",
        {n for n in sure if notes.get(n) != promised.notes[n]},
    )
    yield from _list("cards that the site deleted are at central", (promised.gone - doubtful) & notes.keys())


def _books(site: SiteHolds, _central: CentralHolds, acknowledged: Acknowledged) -> Iterator[str]:
    books, let_go = site.books, len(acknowledged.promised.let_go)
    if books.dropped < let_go:
        yield f"{let_go} records were let go of, and {books.dropped} rows counted as dropped"
    if site.drop_events != let_go:
        yield f"{let_go} records were let go of, and {site.drop_events} events tell so"
    if not books.balance():
        yield f"the books do not balance: {books}"
    if books.waiting or books.parked:
        yield f"{books.waiting} rows still wait and {books.parked} are parked"


def _list(
    what: str, numbers: set[int] | frozenset[int] | set[str] | set[tuple[int, str]] | frozenset[tuple[int, str]]
) -> Iterator[str]:
    if numbers:
        first = ", ".join(map(str, sorted(numbers)[:_SHOWN]))
        yield f"{len(numbers)} {what}: {first}{', …' if len(numbers) > _SHOWN else ''}"
