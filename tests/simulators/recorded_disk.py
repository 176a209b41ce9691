"""A disk that loses power: rebuilt from recorded calls, and cut at any moment into one of the states it may be left in.

What was flushed is there. Of what was not, each write may be there, missing or torn into its sectors of 512 bytes, and
later ones without earlier ones. Names are made, changed and removed in a folder likewise, until the folder is flushed.
A rename is there or not, never half. A sector is old or new, and zeros where the file was shorter. Programs write into
the system's memory, and sectors go from there to the disk: one with a later write has the earlier writes to it as well.
"""

from __future__ import annotations

import json
import os
import random
import struct
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

MARKS = "marks"
"""The recorded program's own file of what it was promised; it is no part of the disk."""

OPENED, WRITTEN, CUT, RENAMED, UNLINKED, MADE, REMOVED, SYNCING, SYNCED, CLOSED, DOUBLED = range(1, 12)
_HEAD = struct.Struct("<BIiqqI")
_SECTOR = 512
_EFFECTS = frozenset({OPENED, WRITTEN, CUT, RENAMED, UNLINKED, MADE, REMOVED, SYNCED})

Mark = dict[str, object]


@dataclass(frozen=True, slots=True)
class Call:
    """A recorded call."""

    kind: int
    process: int
    descriptor: int
    number: int
    data: bytes


@dataclass(slots=True)
class Piece:
    """A write that is not flushed, or where the file was cut (`data` None)."""

    turn: int
    at: int
    data: bytes | None

    def put(
        self, content: bytearray, *, sectors: Callable[[], bool] | None = None, earlier: Sequence[Piece] = ()
    ) -> None:
        """Apply it, or only those of its sectors that the disk took; they hold the `earlier` writes to them as well."""
        if self.data is None:
            if len(content) > self.at:
                del content[self.at :]
            content.extend(bytes(self.at - len(content)))
            return
        end = self.at + len(self.data)
        content.extend(bytes(max(0, end - len(content))))
        if sectors is None and not earlier:
            content[self.at : end] = self.data
            return
        low = self.at
        while low < end:
            sector = low // _SECTOR * _SECTOR
            high = min(end, sector + _SECTOR)
            if sectors is None or sectors():
                if high - low < _SECTOR:
                    for piece in earlier:
                        piece.put_part(content, sector, sector + _SECTOR)
                content[low:high] = self.data[low - self.at : high - self.at]
            low = high

    def put_part(self, content: bytearray, begin: int, end: int) -> None:
        """Apply what it wrote between two places."""
        if self.data is None:
            return
        low, high = max(begin, self.at), min(end, self.at + len(self.data))
        if low < high:
            content[low:high] = self.data[low - self.at : high - self.at]


@dataclass(eq=False, slots=True)
class File:
    """A file: its flushed content, and what came since."""

    content: bytearray = field(default_factory=bytearray)
    waiting: list[Piece] = field(default_factory=list)

    def flush(self, before: int) -> None:
        """Make durable what was written before a turn."""
        for piece in self.waiting:
            if piece.turn < before:
                piece.put(self.content)
        self.waiting = [piece for piece in self.waiting if piece.turn >= before]

    def live(self) -> bytes:
        """Return the content as programs see it."""
        if not self.waiting:
            return bytes(self.content)
        content = bytearray(self.content)
        for piece in self.waiting:
            piece.put(content)
        return bytes(content)


@dataclass(eq=False, slots=True)
class Folder:
    """A folder: its names as programs see them, those that are flushed, and the changes since."""

    live: dict[str, File | Folder] = field(default_factory=dict)
    names: dict[str, File | Folder] = field(default_factory=dict)
    waiting: list[Change] = field(default_factory=list)

    def flush(self, before: int) -> None:
        """Make durable the changes before a turn."""
        for change in [change for change in self.waiting if change.turn < before]:
            change.settle()


@dataclass(eq=False, slots=True)
class Change:
    """Names that change together: which name of which folder means what, None for nothing."""

    turn: int
    steps: tuple[tuple[Folder, str, File | Folder | None], ...]

    def begin(self) -> None:
        """Let programs see it."""
        for folder, name, node in self.steps:
            _point(folder.live, name, node)
            if self not in folder.waiting:
                folder.waiting.append(self)

    def settle(self) -> None:
        """Make it durable, with those before it that concern the same names."""
        for folder, name, _ in self.steps:
            earlier = folder.waiting[: folder.waiting.index(self)] if self in folder.waiting else []
            for change in earlier:
                if any(of is folder and called == name for of, called, _ in change.steps):
                    change.settle()
        for folder, name, node in self.steps:
            _point(folder.names, name, node)
            if self in folder.waiting:
                folder.waiting.remove(self)


def _point(names: dict[str, File | Folder], name: str, node: File | Folder | None) -> None:
    if node is None:
        names.pop(name, None)
    else:
        names[name] = node


def read_calls(log: Path) -> list[Call]:
    """Read a recording."""
    data, at, calls = memoryview(log.read_bytes()), 0, list[Call]()
    while at < len(data):
        kind, process, descriptor, number, _, length = _HEAD.unpack_from(data, at)
        at += _HEAD.size
        calls.append(Call(kind, process, descriptor, number, bytes(data[at : at + length])))
        at += length
    return calls


class Disk:
    """The disk after so many of the recorded calls."""

    def __init__(self, *, root: Path, calls: list[Call], forget: Callable[[str], bool] = lambda _: False) -> None:
        """`forget` says of which files or folders, by their path below the root, a flush does nothing: a planted
        fault.
        """
        self._root = str(root)
        self._calls = calls
        self._forget = forget
        self._top = Folder()
        self._made: dict[str, File] = {}
        self._open: dict[tuple[int, int], tuple[str, File | Folder]] = {}
        self._begun: dict[tuple[int, int], int] = {}
        self._heard = bytearray()
        self._marks: list[Mark] = []
        self.turn = 0

    def advance(self, turn: int) -> None:
        """Go on until this many calls have taken effect."""
        while self.turn < turn:
            self._take(self._calls[self.turn])
            self.turn += 1

    def state(self, into: Path, chance: random.Random, style: str) -> None:
        """Write one of the states in which a cut may leave the disk now."""
        keeps, tears = _STYLES[style](chance, self.turn)
        names = _Names()
        folders = list(_folders(self._top))
        for change in sorted({change for folder in folders for change in folder.waiting}, key=lambda one: one.turn):
            if keeps(change.turn):
                for folder, name, node in change.steps:
                    _point(names.of(folder), name, node)
        self._write(self._top, into, names, chance, keeps, tears)

    def new_marks(self) -> list[Mark]:
        """Return the marks that were written since this was asked last."""
        marks, self._marks = self._marks, []
        return marks

    def written(self, below: str) -> dict[str, bytes]:
        """Return every file that was ever made below a folder, by its first path, as programs saw it last."""
        return {path: node.live() for path, node in self._made.items() if path.startswith(below)}

    def _write(
        self,
        folder: Folder,
        into: Path,
        names: _Names,
        chance: random.Random,
        keeps: Callable[[int], bool],
        tears: Callable[[], bool] | None,
    ) -> None:
        into.mkdir(exist_ok=True)
        for name, node in names.of(folder).items():
            if isinstance(node, Folder):
                self._write(node, into / name, names, chance, keeps, tears)
                continue
            content = bytearray(node.content)
            for number, piece in enumerate(node.waiting):
                if keeps(piece.turn):
                    piece.put(content, sectors=tears, earlier=node.waiting[:number])
            if name.endswith("-shm"):  # memory shared by processes that are gone: anything may stand there
                content = bytearray(chance.choice((bytes(len(content)), chance.randbytes(len(content)))))
            (into / name).write_bytes(content)

    def _take(self, call: Call) -> None:
        key = call.process, call.descriptor
        match call.kind:
            case kind if kind == OPENED:
                self._opened(key, self._below(call.data), call.number)
            case kind if kind == CLOSED:
                self._open.pop(key, None)
            case kind if kind == DOUBLED:
                self._open[call.process, call.number] = self._open[key]
            case kind if kind in (WRITTEN, CUT):
                self._wrote(key, call)
            case kind if kind == SYNCING:
                self._begun[call.process, call.number] = self.turn
            case kind if kind == SYNCED:
                path, node = self._open[key]
                begun = self._begun.pop((call.process, call.number))
                if not self._forget(path):
                    node.flush(begun)
            case kind if kind == RENAMED:
                source, _, target = call.data.partition(b"\0")
                self._renamed(self._below(source), self._below(target))
            case kind if kind in (UNLINKED, REMOVED):
                folder, name = self._place(self._below(call.data))
                Change(self.turn, ((folder, name, None),)).begin()
            case kind if kind == MADE:
                folder, name = self._place(self._below(call.data))
                Change(self.turn, ((folder, name, Folder()),)).begin()

    def _opened(self, key: tuple[int, int], path: str, flags: int) -> None:
        if path == ".":
            self._open[key] = path, self._top
            return
        folder, name = self._place(path)
        node = folder.live.get(name)
        if node is None:
            node = self._made[path] = File()
            Change(self.turn, ((folder, name, node),)).begin()
        elif flags & os.O_TRUNC and isinstance(node, File):
            node.waiting.append(Piece(self.turn, 0, None))
        self._open[key] = path, node

    def _wrote(self, key: tuple[int, int], call: Call) -> None:
        path, node = self._open[key]
        if path == MARKS:
            self._heard += call.data
            *lines, rest = self._heard.split(b"\n")
            self._heard = bytearray(rest)
            self._marks += map(json.loads, lines)
        elif isinstance(node, File):
            node.waiting.append(Piece(self.turn, call.number, call.data if call.kind == WRITTEN else None))

    def _renamed(self, source: str, target: str) -> None:
        folder, name = self._place(source)
        other, to = self._place(target)
        Change(self.turn, ((folder, name, None), (other, to, folder.live[name]))).begin()

    def _below(self, path: bytes) -> str:
        return os.path.relpath(os.fsdecode(path), self._root)

    def _place(self, path: str) -> tuple[Folder, str]:
        *parents, name = PurePosixPath(path).parts
        folder = self._top
        for part in parents:
            inner = folder.live[part]
            if not isinstance(inner, Folder):
                raise NotADirectoryError(path)
            folder = inner
        return folder, name


class _Names:
    """Each folder's names in one state; folders that nobody asked for have the flushed ones."""

    def __init__(self) -> None:
        self._of: dict[int, dict[str, File | Folder]] = {}

    def of(self, folder: Folder) -> dict[str, File | Folder]:
        return self._of.setdefault(id(folder), {name: node for name, node in folder.names.items() if name != MARKS})


def _folders(top: Folder) -> Iterator[Folder]:
    """Every folder that has a name, or had one that a cut may bring back."""
    seen, waiting = set[int](), [top]
    while waiting:
        folder = waiting.pop()
        if id(folder) in seen:
            continue
        seen.add(id(folder))
        yield folder
        changed = [node for change in folder.waiting for _, _, node in change.steps]
        waiting += [
            node for node in (*folder.names.values(), *folder.live.values(), *changed) if isinstance(node, Folder)
        ]


Keeps = tuple[Callable[[int], bool], Callable[[], bool] | None]


def _in_order(chance: random.Random, turn: int) -> Keeps:
    """Return what a disk keeps that writes in order, up to some moment: what came last is torn."""
    until = turn - int(chance.expovariate(1 / 40))
    return (lambda at: at < until), None


def _by_chance(chance: random.Random, _: int) -> Keeps:
    share = chance.choice((0.2, 0.5, 0.8))
    kept: dict[int, bool] = {}
    return (lambda at: kept.setdefault(at, chance.random() < share)), None


def _torn(chance: random.Random, _: int) -> Keeps:
    share = chance.choice((0.3, 0.7, 0.95))
    return (lambda _: chance.random() < 0.9), (lambda: chance.random() < share)


_STYLES: dict[str, Callable[[random.Random, int], Keeps]] = {
    "lost": lambda *_: ((lambda _: False), None),
    "kept": lambda *_: ((lambda _: True), None),
    "in order": _in_order,
    "by chance": _by_chance,
    "torn": _torn,
}
STYLES = tuple(_STYLES)


def cut_points(calls: list[Call]) -> list[int]:
    """Return after how many calls a cut makes a difference."""
    return [turn + 1 for turn, call in enumerate(calls) if call.kind in _EFFECTS]
