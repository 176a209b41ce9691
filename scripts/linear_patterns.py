"""Proof that no regular expression of the product takes more than linear time, whatever text it gets.

    python scripts/linear_patterns.py

Each pattern of `gateway` and `drivers` runs, in an interpreter of its own that counts steps (`pattern_steps`), against
the worst texts that its own parts suggest, at three lengths. Where steps grow faster than the text, the pattern and the
text are printed, and the command fails. Steps are counted, not seconds, so a busy machine changes nothing.
"""

from __future__ import annotations

import ast
import importlib
import random
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

from pattern_steps import OutOfSteps, Program, Single, Tree, sample, singles_and_loops

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("gateway", "drivers", "simulation")
SIZES = (24, 48, 96)
GROWTH = 3.0
"""As the text is doubled, the growth of linear steps doubles, too; that of quadratic ones is four times as large."""
FEW = 8
"""So few steps for each character of the longest text are linear at once: quadratic ones are more."""
WHOLE = frozenset({"match", "fullmatch"})
CALLS = WHOLE | {"compile", "search", "findall", "finditer", "sub", "subn", "split"}
BUILT_AT_RUN_TIME = {
    "gateway/runtime/redaction.py": "known secrets, escaped, side by side: no repetition",
    "gateway/site/formats.py": "a key's name in the owner's own site file",
    "drivers/settings.py": "a pattern of the site file's models, on a list of short examples",
}
USUAL = "aZfF09_- \t\n.:/\\\"'=,;@?#[]{}<>é\x00"


@dataclass(frozen=True, slots=True)
class Found:
    """A pattern of the product, and whether it is only ever tried at one place of a text."""

    place: str
    pattern: re.Pattern[str] | re.Pattern[bytes]
    method: str


def slow_text(pattern: str | bytes, flags: int = 0, method: str = "search") -> str | None:
    """Return a text that takes the pattern more than linear steps, with its pump once; None when there is none."""
    program = Program(pattern, flags, method)
    singles, loops = singles_and_loops(program.tree)
    if not loops:
        return None
    for head, pump, tail in _worst(program.tree, singles, loops):
        texts = [head + pump * size + tail for size in SIZES]
        try:
            longest = program.steps(texts[2])
            if longest <= FEW * len(texts[2]):
                continue
            short, middle = program.steps(texts[0]), program.steps(texts[1])
        except OutOfSteps:
            return repr((head, pump, tail))
        if longest - middle > GROWTH * (middle - short):
            return repr((head, pump, tail))
    return None


def _worst(tree: Tree, singles: list[Single], loops: list[Tree]) -> Iterator[tuple[str, str, str]]:
    """Yield texts as head, pump and tail: each loop's own characters and bodies, with what the pattern has before."""
    letters = _representatives(singles)
    in_loops = [letter for letter in letters if any(one.takes(letter) for one in singles if one.looped)]
    dice = random.Random(1)  # noqa: S311  # the same texts each time
    before = {
        head
        for loop in loops
        for head in sorted({sample(tree, dice, until=loop) for _ in range(8)}, key=lambda one: (len(one), one))[:2]
    }
    heads = sorted(before | {""})
    wholes = {sample(tree, dice) for _ in range(8)}
    bodies = {sample(body, dice) for body in loops for _ in range(6)} - {"", *letters}
    for pump in [*in_loops, *sorted(bodies)]:
        for head in heads:
            for tail in ("", *letters) if len(pump) == 1 else ("", "\x00"):
                yield head, pump, tail
    for pump in sorted(before | wholes | {whole[:-1] for whole in wholes} - {""}):
        for letter in ("", *letters):
            for tail in ("", "\x00"):
                yield "", pump + letter, tail
    for first in in_loops:
        for second in letters:
            for tail in ("", "\x00"):
                yield "", first + second, tail


def _representatives(singles: list[Single]) -> list[str]:
    """Return one character for each way in which the pattern's sets tell characters apart."""
    tried = dict.fromkeys([*USUAL, *(letter for one in singles for letter in one.mentioned)])
    known: dict[tuple[bool, ...], str] = {}
    for letter in tried:
        known.setdefault((letter.isalnum() or letter == "_", *(one.takes(letter) for one in singles)), letter)
    return list(known.values())


def patterns(module: ModuleType, source: str, name: str) -> Iterator[Found]:
    """Yield the patterns that a module's source builds or uses. Raises ValueError for one that cannot be told."""
    tree = ast.parse(source)
    methods: dict[str, set[str]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            methods.setdefault(node.value.id, set()).add(node.attr)
    assigned = {
        node.value: target.id
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign | ast.AnnAssign) and isinstance(node.value, ast.Call)
        for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
        if isinstance(target, ast.Name)
    }
    for node in ast.walk(tree):
        if not (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and isinstance(node.func.value, ast.Name)
            and node.func.value.id == "re"
            and node.func.attr in CALLS
        ):
            continue
        uses = methods.get(assigned.get(node, ""), {"search"}) if node.func.attr == "compile" else {node.func.attr}
        whole = uses - {"pattern", "flags"}
        method = next(iter(whole)) if len(whole) == 1 and whole <= WHOLE else "match" if whole <= WHOLE else "search"
        flags = next((word.value for word in node.keywords if word.arg == "flags"), None)
        if node.func.attr == "compile" and len(node.args) > 1:
            flags = node.args[1]
        try:
            text, given = (_value(part, module) if part is not None else 0 for part in (node.args[0], flags))
            yield Found(f"{name}:{node.lineno}", re.compile(text, given), method)
        except NameError:
            if name not in BUILT_AT_RUN_TIME:
                raise ValueError(f"{name}:{node.lineno}: the pattern is put together where it cannot be read") from None


def _value(node: ast.expr, module: ModuleType) -> object:
    return eval(compile(ast.Expression(node), module.__name__, "eval"), vars(module))  # noqa: S307  # our own source


def of_the_product() -> Iterator[Found]:
    """Yield every pattern of the product."""
    for package in PACKAGES:
        for file in sorted((ROOT / package).rglob("*.py")):
            source, name = file.read_text(), str(file.relative_to(ROOT))
            if "re." in source and re.search(r"^import re$", source, re.MULTILINE):
                module = importlib.import_module(name.removesuffix(".py").replace("/", "."))
                yield from patterns(module, source, name)


def main() -> int:
    """Try all patterns; return the exit status."""
    slow = count = 0
    for found in of_the_product():
        count += 1
        text = slow_text(found.pattern.pattern, found.pattern.flags, found.method)
        if text is not None:
            slow += 1
            print(f"{found.place}: more than linear for head, pump, tail {text}: {found.pattern.pattern!r}")
    print(f"{count} patterns, {slow} of them not linear")
    return 1 if slow or not count else 0


if __name__ == "__main__":
    sys.exit(main())
