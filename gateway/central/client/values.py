"""Plain values of central's records, which come as text, numbers, or either. Pure."""

from __future__ import annotations

from pydantic import JsonValue


def text_of(value: JsonValue) -> str:
    """A plain value as text; lists, objects and nothing are ""."""
    if isinstance(value, str):
        return " ".join(value.split())
    return "" if value is None or isinstance(value, dict | list) else str(value)


def whole_of(value: JsonValue) -> int | None:
    """A number, or digits, of 0 and above."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value if value >= 0 else None
    text = text_of(value)
    return int(text) if text.isascii() and text.isdigit() and len(text) <= 18 else None
