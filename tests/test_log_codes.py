"""Every error in the log has a code of its own, which a page explains."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from gateway.runtime.log_codes import FOREIGN, LOG_CODES

ROOT = Path(__file__).resolve().parents[1]
ERRORS = {"error", "exception", "critical", "fatal"}
CALL = re.compile(rf"\.(?:{'|'.join(ERRORS)})\(")


def errors(source: str) -> Iterator[str]:
    """The events that a module logs as errors; "?" for one that is not written there."""
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute) or node.func.attr not in ERRORS:
            continue
        if isinstance(node.func.value, ast.Name) and node.func.value.id in {"log", "logger", "_log"}:
            first = node.args[0] if node.args else None
            yield first.value if isinstance(first, ast.Constant) and isinstance(first.value, str) else "?"


def logged() -> set[str]:
    files = [path for package in ("gateway", "drivers") for path in (ROOT / package).rglob("*.py")]
    sources = [source for path in files if CALL.search(source := path.read_text("utf-8"))]
    return {event for source in sources for event in errors(source)}


def test_each_error_has_a_code_and_each_code_an_error():
    assert logged() == set(LOG_CODES)


def test_an_error_without_a_code_is_found_however_it_is_logged():
    assert list(errors("log.error('a_b', x=1)\nlog.exception('c')\nlog.warning('d')\nlog.error(name)")) == [
        "a_b",
        "c",
        "?",
    ]


def test_codes_are_unique_and_explained_in_sentences():
    codes = [FOREIGN, *LOG_CODES.values()]
    assert len({one.code for one in codes}) == len(codes)
    assert all(re.fullmatch(r"EG\d{3}", one.code) for one in codes)
    assert all(text[0].isupper() and text.endswith(".") for one in codes for text in (one.means, one.do))
