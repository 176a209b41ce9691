"""Sample descriptions of an MP4 whose video changes its format (ISO/IEC 14496-12, 8.5.2). Pure.

libav writes one description for a track. Players that set up their decoder by it freeze or show green where a picture
of another size follows. So each format gets a description, and each chunk says which one its pictures have.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import groupby, islice, repeat
from typing import NamedTuple

from drivers.contract import ProtocolViolation

_BOX = struct.Struct(">I4s")
_NUMBER = struct.Struct(">I")
_LONG = struct.Struct(">Q")
_CHUNKS = struct.Struct(">III")
_FULL_HEAD = 4
"""The version and flags at the begin of a full box (4.2)."""
_CONTAINERS = frozenset({b"moov", b"trak", b"mdia", b"minf", b"stbl"})
_HANDLER_AT = 8

Edits = Mapping[bytes, Callable[[bytes], bytes]]
"""By the type of a box: a function that makes its new content from its old one."""


class Run(NamedTuple):
    """Pictures that follow one another in one format: the number of its description, from 1 on, and their count."""

    description: int
    pictures: int


def first_description(movie: bytes) -> bytes:
    """Return the first sample description of the only track of an MP4.

    Raises:
        ProtocolViolation: there is none.
    """
    table = _found(movie, b"stsd")
    (size,) = _NUMBER.unpack_from(table, _FULL_HEAD + 4)
    return table[_FULL_HEAD + 4 : _FULL_HEAD + 4 + size]


def movie_with(movie: bytes, *, more: Sequence[bytes], runs: Sequence[Run]) -> bytes:
    """Return a movie box (moov) whose video track has `more` descriptions behind its own, used as `runs` say.

    The places of chunks are those in a file in which the movie box stands before the data, and grows.

    Raises:
        ProtocolViolation: the box is not as libav writes it, or has other pictures.
    """
    try:
        changed = _edited(movie, {b"trak": lambda track: _described(track, more, runs)})
        grown = len(changed) - len(movie)
        return _edited(changed, {kind: partial(_moved, number=number, by=grown) for kind, number in _PLACES.items()})
    except struct.error as error:
        raise ProtocolViolation("a movie box is cut short") from error


def boxes(data: bytes) -> Iterator[tuple[bytes, int, int]]:
    """Iterate over the boxes of a container: type, begin of the content, and end.

    Raises:
        ProtocolViolation: a box does not fit into the container.
    """
    at = 0
    while at + _BOX.size <= len(data):
        size, kind = _BOX.unpack_from(data, at)
        begin = at + _BOX.size
        if size == 1 and begin + _LONG.size <= len(data):
            (size,) = _LONG.unpack_from(data, begin)
            begin += _LONG.size
        end = at + size if size else len(data)
        if not begin <= end <= len(data):
            raise ProtocolViolation("a box does not fit into its container")
        yield kind, begin, end
        at = end


def _edited(data: bytes, edits: Edits) -> bytes:
    """Return the boxes of a container with these edits, which are looked for in the containers that it holds too."""
    pieces: list[bytes] = []
    for kind, begin, end in boxes(data):
        content = data[begin:end]
        if kind in edits:
            content = edits[kind](content)
        elif kind in _CONTAINERS:
            content = _edited(content, edits)
        pieces += _BOX.pack(_BOX.size + len(content), kind), content
    return b"".join(pieces)


def _found(data: bytes, wanted: bytes) -> bytes:
    """Return the content of the first box of this type."""
    for kind, begin, end in boxes(data):
        if kind == wanted:
            return data[begin:end]
        if kind in _CONTAINERS:
            try:
                return _found(data[begin:end], wanted)
            except ProtocolViolation:
                continue
    raise ProtocolViolation(f"there is no box {wanted.decode('ascii')}")


def _described(track: bytes, more: Sequence[bytes], runs: Sequence[Run]) -> bytes:
    if _found(track, b"hdlr")[_HANDLER_AT : _HANDLER_AT + 4] != b"vide":
        return track
    kind = next(kind for kind in _PLACES if kind in track)
    number = _PLACES[kind]
    sizes = _sizes(_found(track, b"stsz"))
    described = [run.description for run in runs for _ in range(run.pictures)]
    if len(described) != len(sizes):
        raise ProtocolViolation("a movie box holds another number of pictures")
    chunks = list(_chunks(_found(track, b"stsc"), _places(_found(track, kind), number), sizes, described))
    table = [_CHUNKS.pack(first, pictures, description) for first, pictures, description in _runs_of(chunks)]
    edits: Edits = {
        b"stsd": lambda old: (
            old[:_FULL_HEAD]
            + _NUMBER.pack(_NUMBER.unpack_from(old, _FULL_HEAD)[0] + len(more))
            + old[_FULL_HEAD + 4 :]
            + b"".join(more)
        ),
        b"stsc": lambda old: old[:_FULL_HEAD] + _NUMBER.pack(len(table)) + b"".join(table),
        kind: lambda old: (
            old[:_FULL_HEAD] + _NUMBER.pack(len(chunks)) + b"".join(number.pack(chunk.place) for chunk in chunks)
        ),
    }
    return _edited(track, edits)


class _Chunk(NamedTuple):
    place: int
    pictures: int
    description: int


_PLACES = {b"stco": _NUMBER, b"co64": _LONG}
"""The boxes of the chunks' places, and how each is written (8.7.5)."""


def _chunks(table: bytes, places: Sequence[int], sizes: Sequence[int], described: Sequence[int]) -> Iterator[_Chunk]:
    """Iterate over the chunks, divided where the description changes."""
    (count,) = _NUMBER.unpack_from(table, _FULL_HEAD)
    entries = [_CHUNKS.unpack_from(table, _FULL_HEAD + 4 + number * _CHUNKS.size) for number in range(count)]
    ends = [first for first, _, _ in entries[1:]] + [len(places) + 1]
    counts = [
        pictures
        for (first, pictures, _), end in zip(entries, ends, strict=True)
        for pictures in repeat(pictures, end - first)
    ]
    pictures = iter(zip(described, sizes, strict=True))
    for begin, held in zip(places, counts, strict=True):
        place = begin
        for description, same in groupby(islice(pictures, held), key=lambda picture: picture[0]):
            lengths = [size for _, size in same]
            yield _Chunk(place, len(lengths), description)
            place += sum(lengths)


def _runs_of(chunks: Sequence[_Chunk]) -> Iterator[tuple[int, int, int]]:
    """Iterate over the runs of like chunks: number of the first, pictures in each, description (8.7.4)."""
    number = 1
    for (pictures, description), same in groupby(chunks, key=lambda chunk: (chunk.pictures, chunk.description)):
        yield number, pictures, description
        number += sum(1 for _ in same)


def _sizes(table: bytes) -> list[int]:
    same, count = struct.unpack_from(">II", table, _FULL_HEAD)
    return [same] * count if same else list(struct.unpack_from(f">{count}I", table, _FULL_HEAD + 8))


def _places(table: bytes, number: struct.Struct) -> list[int]:
    (count,) = _NUMBER.unpack_from(table, _FULL_HEAD)
    return [number.unpack_from(table, _FULL_HEAD + 4 + place * number.size)[0] for place in range(count)]


def _moved(table: bytes, *, number: struct.Struct, by: int) -> bytes:
    moved = (number.pack(place + by) for place in _places(table, number))
    return table[: _FULL_HEAD + 4] + b"".join(moved)
