"""The chain over a camera's segments can be proven from any link on, whatever was deleted, lost or adopted since."""

from __future__ import annotations

import hashlib
import random

import pytest

from gateway.domain.footage import GENESIS, SegmentFinished, leaf_of, link_of, segment_path, walked
from gateway.recording import chain as chains
from gateway.recording.chain import FootageChain
from gateway.recording.index import FootageIndex, utc_hour
from gateway.store import Choice, Segment

START = 1_767_268_800_000_000


def content(camera_id: int, n: int) -> bytes:
    return f"{camera_id}-{n}".encode().ljust(188, b"G")


@pytest.fixture
def media(tmp_path):
    (tmp_path / "media").mkdir()
    return tmp_path / "media"


@pytest.fixture
def chain(store, media):
    return FootageChain(links=store.chain_links, media=media)


@pytest.fixture
def index(store, media, clock, chain):
    return FootageIndex(segments=store.segments, journal=store.journal, media=media, clock=clock, chain=chain)


@pytest.fixture
def put(media):
    """A segment's file and its report; `told=False`: a report without the hash, as of an adopted file."""

    def write(n: int, *, camera_id: int = 7, told: bool = True) -> SegmentFinished:
        start, data = START + n * 2_000_000, content(camera_id, n)
        path = segment_path(camera_id, start, 2_000_000, utc_hour(start))
        (media / path).parent.mkdir(parents=True, exist_ok=True)
        (media / path).write_bytes(data)
        return SegmentFinished(
            camera_id=camera_id, path=path, started_at=start, clock_trusted=True, duration=2_000_000, size=len(data),
            sha256=hashlib.sha256(data).hexdigest() if told else "",
        )  # fmt: skip

    return write


def link(segment: Segment) -> str:
    return link_of(segment.place.previous, leaf_of(path=segment.path, sha256=segment.sha256))


async def test_each_row_is_linked_to_the_one_before_and_cameras_have_chains_of_their_own(store, put):
    await store.segments.add([put(n, camera_id=7 + n % 2) for n in range(6)])
    for camera_id in (7, 8):
        rows = await store.segments.between(camera_id, 0, 2**60)
        assert [row.place.number for row in rows] == [1, 2, 3]
        assert [row.place.previous for row in rows] == [GENESIS, link(rows[0]), link(rows[1])]
        assert await store.chain_links.head(camera_id) == (3, link(rows[2]))
    assert await store.segments.add([put(0)]) == 0, "told twice, linked once"
    assert (await store.chain_links.head(7))[0] == 3


async def test_adopted_files_are_hashed_and_linked_beside_the_recording(store, index, chain, media, put):
    await store.segments.add([put(0)])
    for n in range(1, 50):
        put(n)
    await index.recover((7,))
    await store.segments.add([put(60)])
    rows = await store.segments.between(7, 0, 2**60)
    assert [row.place for row in rows[1:-1]] == [None] * 49
    (media / rows[5].path).unlink()
    assert await chain.link_all() == 48
    rows = await store.segments.between(7, 0, 2**60)
    assert all(row.place for row in rows if row.path != rows[5].path)
    assert rows[-1].place.number == 2, "what was recorded meanwhile did not wait"
    assert rows[3].sha256 == hashlib.sha256(content(7, 3)).hexdigest()
    leaves = await chain.leaves(7, after=1, before=51)
    assert walked(link(rows[0]), leaves) == (await store.chain_links.head(7))[1]


async def test_any_two_links_are_proven_of_one_chain_whatever_was_deleted_between(store, index, chain, media, put, pin):
    await pin(7, before=4, after=4, at=START + 40_000_000)
    await store.segments.add([put(n) for n in range(40)])
    anchors = {row.place.number: link(row) for row in await store.segments.between(7, 0, 2**60)}
    await index.delete(await store.segments.discard(Choice(at_least=9 * 188)))
    (media / (await store.segments.after(0))[-1].path).unlink()
    await index.recover((7,))  # one was lost
    await store.segments.add([put(n) for n in range(40, 45)])
    rows = await store.segments.between(7, 0, 2**60)
    assert len(rows) < 40
    number, head = await store.chain_links.head(7)
    assert number == 45
    for anchor, proven in anchors.items():
        leaves = await chain.leaves(7, after=anchor, before=number + 1)
        assert walked(proven, leaves) == head
    # Deleted to the last one, the chain goes on.
    await store.outbox.delivered((await store.outbox.due(now=2**60))[0], central_id=1)
    await index.delete(
        await store.segments.discard(Choice(at_least=10**9, transactions_from=2**60, incidents_from=2**60))
    )
    assert await store.segments.paths() == frozenset()
    await store.segments.add([put(99)])
    (last,) = await store.segments.between(7, 0, 2**60)
    assert (last.place.number, last.place.previous) == (46, head)
    assert walked(GENESIS, await chain.leaves(7, after=0, before=47)) == link(last)
    assert await chain.leaves(7, after=0, before=48) is None, "what nobody knows is not made up"


async def test_a_deletion_done_twice_changes_nothing(store, index, media, put):
    await store.segments.add([put(n) for n in range(5)])
    gone = await store.segments.discard(Choice(at_least=10**9))
    chains.keep_leaves(media, gone[:3])  # as before a power cut
    await index.delete(gone)
    leaves = chains.kept_leaves(media, 7, 1, 9)
    assert leaves == {one.place.number: leaf_of(path=one.path, sha256=one.sha256) for one in gone}


def test_leaves_lie_in_files_of_bounded_number(tmp_path, put, monkeypatch):
    monkeypatch.setattr(chains, "LEAVES_PER_FILE", 10)
    monkeypatch.setattr(chains, "MOST_FILES", 3)
    from gateway.domain.footage import ChainPlace, GapReason

    numbers = list(range(1, 60))
    random.Random(1).shuffle(numbers)

    def segment(number):
        return Segment(
            id=number, camera_id=7, path=put(number).path, started_at=0, duration=1, size=1, clock_trusted=True,
            gap=GapReason.NONE, codec="", width=0, height=0, sha256="ab" * 32, place=ChainPlace(number, GENESIS),
        )  # fmt: skip

    for number in sorted(numbers[:30]) + sorted(numbers[30:]):
        chains.keep_leaves(tmp_path, [segment(number)])
    assert len(list(tmp_path.glob("chain/7/*.leaves"))) == 3
    kept = chains.kept_leaves(tmp_path, 7, 0, 100)
    assert all(kept[number] == leaf_of(path=segment(number).path, sha256="ab" * 32) for number in kept)
    assert set(kept) >= set(range(51, 60))
