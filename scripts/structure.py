"""Print the size and the shape of each package: lines, imports, names passed on, narrow modules, shared class names.

Run: python scripts/structure.py [FOLDER ...], by default `gateway drivers simulation tests`.
"""

from __future__ import annotations

import ast
import io
import sys
import tokenize
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).parents[1]
FOLDERS = ("gateway", "drivers", "simulation", "tests")
NARROW_LINES = 100
_NO_CODE = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENCODING}


@dataclass
class Figures:
    """The counts of one package or folder."""

    files: int = 0
    lines: int = 0
    code: int = 0
    imports: int = 0
    passed_on: int = 0
    functions: list[int] = field(default_factory=list)

    def add(self, other: Figures) -> None:
        """Add another's counts to these."""
        self.files += other.files
        self.lines += other.lines
        self.code += other.code
        self.imports += other.imports
        self.passed_on += other.passed_on
        self.functions += other.functions

    def row(self, name: str) -> str:
        """Format the counts as a row of the table."""
        mean = sum(self.functions) / max(1, len(self.functions))
        imports, passed = self.imports / max(1, self.code), self.passed_on / max(1, self.code)
        return f"| {name} | {self.files} | {self.lines:,} | {self.code:,} | {imports:.1%} | {passed:.1%} | {mean:.1f} |"


def code_lines(text: str, tree: ast.Module) -> int:
    """Count the lines that hold code: no comment, no docstring, not blank."""
    held: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in _NO_CODE and token.type != tokenize.ENDMARKER:
            held.update(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            held.difference_update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    return len(held)


def span(node: ast.stmt | ast.expr) -> int:
    """Count the lines of a node."""
    return (node.end_lineno or node.lineno) - node.lineno + 1


def measured(text: str, tree: ast.Module) -> Figures:
    """Count one module."""
    found = Figures(files=1, lines=text.count("\n"), code=code_lines(text, tree))
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            found.imports += span(node)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            found.functions.append(span(node))
        elif isinstance(node, ast.Call):
            found.passed_on += sum(
                isinstance(keyword.value, ast.Name) and keyword.value.id == keyword.arg for keyword in node.keywords
            )
    return found


def module_of(path: Path) -> str:
    """Name the module of a file."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imported(tree: ast.Module, known: set[str]) -> Iterator[str]:
    """List the project's modules that a module imports."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in known)
        elif isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                whole = f"{node.module}.{alias.name}"
                yield whole if whole in known else node.module


def main(folders: tuple[str, ...]) -> None:
    """Print the table, then modules with one importer and class names that are used twice."""
    packages: dict[str, Figures] = defaultdict(Figures)
    totals: dict[str, Figures] = defaultdict(Figures)
    trees: dict[str, tuple[Path, ast.Module, int]] = {}
    for folder in folders:
        for path in sorted((ROOT / folder).rglob("*.py")):
            if "node_modules" in path.parts:
                continue
            text = path.read_text()
            tree = ast.parse(text)
            figures = measured(text, tree)
            parts = path.relative_to(ROOT).parts
            packages["/".join(parts[:2]) if len(parts) > 2 else folder].add(figures)
            totals[folder].add(figures)
            if folder != "tests":
                trees[module_of(path)] = (path, tree, figures.lines)
    print("| package | files | lines | code lines | imports | passed on | mean function |")
    print("|---|---|---|---|---|---|---|")
    for name, figures in packages.items():
        print(figures.row(name))
    for name, figures in totals.items():
        print(figures.row(f"**{name}**"))
    report_modules(trees)


def report_modules(trees: dict[str, tuple[Path, ast.Module, int]]) -> None:
    """Print how many modules have one importer, and which class names mean two things."""
    importers: dict[str, set[str]] = defaultdict(set)
    classes: Counter[str] = Counter()
    known = set(trees)
    for name, (_, tree, _) in trees.items():
        for other in imported(tree, known):
            importers[other].add(name)
        classes.update(node.name for node in ast.walk(tree) if isinstance(node, ast.ClassDef))
    single = [name for name, (path, _, _) in trees.items() if len(importers[name]) == 1 and path.name != "__init__.py"]
    narrow = [name for name in single if trees[name][2] < NARROW_LINES]
    twice = {name: count for name, count in classes.items() if count > 1}
    print(
        f"\nmodules with one importer: {len(single)} of {len(trees)}; of them under {NARROW_LINES} lines: {len(narrow)}"
    )
    print("  " + ", ".join(narrow))
    print(f"class names used twice or more: {len(twice)} of {len(classes)}")
    print("  " + ", ".join(f"{name} {count}" for name, count in sorted(twice.items(), key=lambda item: -item[1])))


if __name__ == "__main__":
    main(tuple(sys.argv[1:]) or FOLDERS)
