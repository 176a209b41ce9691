"""An interpreter of Python's regular expressions that counts its steps, as `re` backtracks but for short cuts.

Repetitions of up to LONG are unrolled; longer ones count as endless, which can only take more steps.
"""

from __future__ import annotations

import contextlib
import random
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from re import _constants as sre  # type: ignore[attr-defined]
from re import _parser  # type: ignore[attr-defined]
from typing import Any

LONG = 64
MOST_STEPS = 200_000
_SELDOM = 0.3

Node = tuple[Any, Any]


class OutOfSteps(Exception):  # an answer, not a fault
    """A text took more than MOST_STEPS."""


@dataclass(slots=True, eq=False)
class Single:
    """A part of a pattern that takes one character.

    Attributes:
        takes: tells whether it takes a character.
        mentioned: the characters that it names.
        looped: whether a long repetition is around it.
    """

    takes: Callable[[str], bool]
    mentioned: tuple[str, ...] = ()
    looped: bool = False


@dataclass(slots=True)
class Tree:
    """A parsed pattern with its flags."""

    nodes: Sequence[Node]
    flags: int


def single(op: Any, argument: Any, flags: int) -> Single:
    """Return the single of a node that takes one character."""
    one = _single(op, argument, flags)
    one.takes = cache(one.takes)
    return one


def _single(op: Any, argument: Any, flags: int) -> Single:
    ignores = bool(flags & re.IGNORECASE)
    if op is sre.ANY:
        return Single(lambda one: bool(flags & re.DOTALL) or one != "\n", ("\n",))
    if op is sre.IN:
        items = list(argument)
        negated = items[0][0] is sre.NEGATE
        parts = [_single(kind, value, flags) for kind, value in items[negated:]]
        mentioned = tuple(letter for part in parts for letter in part.mentioned)
        return Single(lambda one: any(part.takes(one) for part in parts) is not negated, mentioned)
    if op is sre.RANGE:
        low, high = argument

        def within(one: str) -> bool:
            cases = {one, one.lower(), one.upper()} if ignores else {one}
            return any(len(case) == 1 and low <= ord(case) <= high for case in cases)

        return Single(within, (chr(low), chr(high)))
    if op is sre.CATEGORY:
        return Single(_category(argument, ascii_only=bool(flags & re.ASCII)))
    letter = chr(argument)

    def same(one: str) -> bool:
        return one == letter or (ignores and one.lower() == letter.lower())

    return Single(same if op is sre.LITERAL else lambda one: not same(one), (letter,))


def _category(name: Any, *, ascii_only: bool) -> Callable[[str], bool]:
    word = str(name).rpartition("_")[2]
    kinds = {
        "DIGIT": lambda one: one.isdecimal(),
        "SPACE": lambda one: one.isspace(),
        "WORD": lambda one: one.isalnum() or one == "_",
    }
    negated = "NOT" in str(name)
    return lambda one: (kinds[word](one) and (one.isascii() or not ascii_only)) is not negated


_SINGLES = (sre.LITERAL, sre.NOT_LITERAL, sre.ANY, sre.IN)
_REPEATS = (sre.MAX_REPEAT, sre.MIN_REPEAT, sre.POSSESSIVE_REPEAT)


def singles_and_loops(tree: Any) -> tuple[list[Single], list[Any]]:
    """Return the parts that take one character, and the bodies of long repetitions, as trees."""
    singles: list[Single] = []
    loops: list[Any] = []

    def walk(nodes: Any, flags: int, *, looped: bool) -> None:
        for op, argument in nodes:
            if op in _SINGLES:
                one = single(op, argument, flags)
                one.looped = looped
                singles.append(one)
            elif op in _REPEATS:
                long = argument[1] is sre.MAXREPEAT or argument[1] > LONG
                if long:
                    loops.append(Tree(argument[2], flags))
                walk(argument[2], flags, looped=looped or long)
            else:
                for inner, changed in _inner(op, argument, flags):
                    walk(inner, changed, looped=looped)

    walk(tree.nodes, tree.flags, looped=False)
    return singles, loops


def _inner(op: Any, argument: Any, flags: int) -> list[tuple[Any, int]]:
    """Return the trees inside a node that takes no character itself, with their flags."""
    if op is sre.SUBPATTERN:
        _, added, removed, inner = argument
        return [(inner, (flags | added) & ~removed)]
    if op is sre.BRANCH:
        return [(inner, flags) for inner in argument[1]]
    if op in {sre.ASSERT, sre.ASSERT_NOT}:
        return [(argument[1], flags)]
    if op is sre.ATOMIC_GROUP:
        return [(argument, flags)]
    if op is sre.GROUPREF_EXISTS:
        return [(inner, flags) for inner in argument[1:] if inner is not None]
    return []


def _holds(nodes: Any, loop: Tree | None) -> bool:
    """Return whether the loop is in these nodes."""
    if loop is None:
        return False
    for op, argument in nodes:
        inner = [(argument[2], 0)] if op in _REPEATS else [] if op in _SINGLES else _inner(op, argument, 0)
        if any(one is loop.nodes or _holds(one, loop) for one, _ in inner):
            return True
    return False


class _Reached(Exception):  # an answer, not a fault
    """The part up to which a sample goes is reached."""


def sample(tree: Tree, dice: random.Random, until: Tree | None = None) -> str:
    """Return a short text that the pattern may take, as far as the loop `until`."""
    text: list[str] = []

    def of(nodes: Any, flags: int) -> None:
        for op, argument in nodes:
            if op in _SINGLES:
                one = single(op, argument, flags)
                usual = [*one.mentioned, *"aA0 =\"'-_.:/", "\x00", "\n", "é"]
                text.extend(dice.choice([letter for letter in usual if one.takes(letter)][:4] or [""]))
            elif op in _REPEATS:
                least, _, body = argument
                if until is not None and body is until.nodes:
                    raise _Reached
                for _ in range(max(min(least, LONG), _holds(body, until) or dice.random() < _SELDOM)):
                    of(body, flags)
            elif op is sre.BRANCH:
                ways = [way for way in argument[1] if _holds(way, until)] or argument[1]
                of(dice.choice(ways), flags)
            elif op is sre.GROUPREF:
                text.append("'")
            elif op not in {sre.ASSERT, sre.ASSERT_NOT}:
                for inner, changed in _inner(op, argument, flags)[:1]:
                    of(inner, changed)

    with contextlib.suppress(_Reached):
        of(tree.nodes, tree.flags)
    return "".join(text)


class Program:
    """A pattern as instructions, with a stack of the places to go back to."""

    def __init__(self, pattern: str | bytes, flags: int, method: str) -> None:
        text = pattern.decode("latin-1") if isinstance(pattern, bytes) else pattern
        flags = flags & ~re.DEBUG if isinstance(pattern, str) else flags | re.ASCII
        parsed = _parser.parse(text, flags & ~re.UNICODE if flags & re.ASCII else flags)
        self.tree = Tree(parsed, parsed.state.flags)
        self._method = method
        self._code: list[tuple[Any, ...]] = []
        self._registers = 0
        self._emit_all(parsed, self.tree.flags)
        if method == "fullmatch":
            self._code.append(("at", sre.AT_END_STRING, 0))
        self._code.append(("found",))
        self._taken = 0

    def steps(self, text: str) -> int:
        """Return the steps that the pattern's use takes: at the start, or all its matches one behind the other."""
        self._taken = 0
        if self._method in {"match", "fullmatch"}:
            self._run(text, 0, 0, {})
            return self._taken
        self.spans(text)
        return self._taken

    def spans(self, text: str) -> list[tuple[int, int]]:
        """Return the matches as `re.finditer` does."""
        spans = []
        place = 0
        barred = -1
        while place <= len(text):
            end = self._run(text, place, 0, {}, barred=barred)
            if end is None:
                place += 1
                continue
            spans.append((place, end))
            barred = end
            place = end
        return spans

    def _emit_all(self, nodes: Any, flags: int) -> None:
        for op, argument in nodes:
            self._emit(op, argument, flags)

    def _emit(self, op: Any, argument: Any, flags: int) -> None:  # noqa: C901, PLR0912  # one branch for each kind
        code = self._code
        if op in _SINGLES:
            code.append(("one", single(op, argument, flags).takes))
        elif op is sre.AT:
            code.append(("at", argument, flags))
        elif op is sre.BRANCH:
            ends = []
            for number, inner in enumerate(argument[1]):
                split = len(code)
                if number < len(argument[1]) - 1:
                    code.append(("split",))
                self._emit_all(inner, flags)
                ends.append(len(code))
                code.append(("jump",))
                if number < len(argument[1]) - 1:
                    code[split] = ("split", split + 1, len(code))
            for end in ends:
                code[end] = ("jump", len(code))
        elif op is sre.SUBPATTERN:
            group, added, removed, inner = argument
            if group is not None:
                code.append(("save", 2 * group))
            self._emit_all(inner, (flags | added) & ~removed)
            if group is not None:
                code.append(("save", 2 * group + 1))
        elif op in {sre.MAX_REPEAT, sre.MIN_REPEAT}:
            self._emit_repeat(*argument, flags, greedy=op is sre.MAX_REPEAT)
        elif op is sre.POSSESSIVE_REPEAT:
            self._emit_aside("atomic", [(sre.MAX_REPEAT, argument)], flags, 0)
        elif op is sre.ATOMIC_GROUP:
            self._emit_aside("atomic", argument, flags, 0)
        elif op in {sre.ASSERT, sre.ASSERT_NOT}:
            direction, inner = argument
            back = inner.getwidth()[0] if direction < 0 else 0
            self._emit_aside("ahead" if op is sre.ASSERT else "not_ahead", inner, flags, back)
        elif op is sre.GROUPREF:
            code.append(("again", argument))
        else:
            raise ValueError(f"a pattern with {op} is not understood")

    def _emit_aside(self, kind: str, nodes: Any, flags: int, back: int) -> None:
        here = len(self._code)
        self._code.append((kind,))
        self._emit_all(nodes, flags)
        self._code.append(("found",))
        self._code[here] = (kind, here + 1, len(self._code), back)

    def _emit_repeat(self, least: int, most: Any, body: Any, flags: int, *, greedy: bool) -> None:
        code = self._code
        for _ in range(min(least, LONG)):
            self._emit_all(body, flags)
        endless = most is sre.MAXREPEAT or most > LONG
        splits = []
        for _ in range(1 if endless else most - least):
            splits.append(len(code))
            code.append(("split",))
            self._registers += 1
            register = -self._registers
            code.append(("save", register))
            self._emit_all(body, flags)
            code.append(("moved", register))
        if endless:
            code.append(("jump", splits[0]))
        for split in splits:
            on, out = split + 1, len(code)
            code[split] = ("split", on, out) if greedy else ("split", out, on)

    def _run(  # noqa: C901, PLR0912  # one branch for each kind of instruction
        self, text: str, place: int, at: int, saved: dict[int, int], *, barred: int = -1
    ) -> int | None:
        """Return where a match from `place` ends; None when there is none. An empty match at `barred` is none."""
        code, begin, size = self._code, place, len(text)
        stack: list[tuple[int, int, dict[int, int]]] = [(at, place, saved)]
        while stack:
            at, place, saved = stack.pop()
            while True:
                self._taken += 1
                if self._taken > MOST_STEPS:
                    raise OutOfSteps
                step = code[at]
                kind, rest = step[0], step[1:]
                at += 1
                if kind == "one":
                    if place >= size or not step[1](text[place]):
                        break
                    place += 1
                elif kind == "split":
                    stack.append((step[2], place, saved))
                    at = step[1]
                elif kind == "jump":
                    at = rest[0]
                elif kind == "save":
                    saved = {**saved, rest[0]: place}
                elif kind == "moved":
                    if saved[rest[0]] == place:
                        break
                elif kind == "at":
                    if not _is_at(rest[0], rest[1], text, place):
                        break
                elif kind == "again":
                    told = text[saved.get(2 * rest[0], 0) : saved.get(2 * rest[0] + 1, 0)]
                    if not text.startswith(told, place):
                        break
                    place += len(told)
                elif kind == "found":
                    if place == begin == barred:
                        break
                    return place
                else:
                    inside, behind, back = rest
                    end = None if place < back else self._run(text, place - back, inside, saved)
                    if (end is None) is not (kind == "not_ahead"):
                        break
                    place = end if kind == "atomic" and end is not None else place
                    at = behind
        return None


def _is_at(kind: Any, flags: int, text: str, place: int) -> bool:
    lines = bool(flags & re.MULTILINE)
    if kind in {sre.AT_BEGINNING, sre.AT_BEGINNING_STRING}:
        return place == 0 or (lines and kind is sre.AT_BEGINNING and text[place - 1] == "\n")
    if kind is sre.AT_END_STRING:
        return place == len(text)
    if kind is sre.AT_END:
        return text[place:] in {"", "\n"} or (lines and text[place] == "\n")
    word = re.compile(r"\w")
    before = place > 0 and word.match(text[place - 1]) is not None
    behind = place < len(text) and word.match(text[place]) is not None
    return (before is not behind) is (kind is sre.AT_BOUNDARY)
