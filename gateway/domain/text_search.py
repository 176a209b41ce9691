"""Text search that ignores case, and the spelling of plates. Pure."""

from __future__ import annotations

import unicodedata
from typing import Final

from drivers.plate_text import plain_plate

LONGEST_PLATE: Final = 16
"""The most characters of a plate, without blanks and dashes."""


def folded(text: str) -> str:
    """Fold a text so that differences in case and Unicode form disappear.

    The dotted and the dotless i both become `i`: which of them is the small form of `I` depends on the language.
    """
    if text.isascii():
        return text.lower()
    whole = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    return whole.replace("i\u0307", "i").replace("\u0131", "i")


def folded_plate(text: str) -> str:
    """Fold a text and keep only letters and digits, so that all spellings of a plate become equal."""
    return plain_plate(folded(text))


def searched_plate(search: str) -> str:
    """Return a search among plates as a folded plate; "" if it has characters other than separators in a plate.

    Blanks, dashes and dots may separate the plate's parts.
    """
    if any(not (character.isalnum() or _separates(character)) for character in folded(search)):
        return ""
    return folded_plate(search)


def plate_in_text(search: str) -> str:
    """Return a search in any text as a folded plate, "" if it is none. A plate has a letter and a digit at least."""
    plate = searched_plate(search)
    if len(plate) > LONGEST_PLATE or plate.isalpha() or not any(map(str.isalpha, plate)):
        return ""
    return plate


def holds(text: object, wanted: str, plate: str) -> bool:
    """Return whether a text contains `wanted`, which is folded, or the folded `plate` unless that is ""."""
    if not isinstance(text, str):
        return False
    return wanted in folded(text) or (plate != "" and plate in folded_plate(text))


def _separates(character: str) -> bool:
    return character in ".·" or unicodedata.category(character) in ("Zs", "Pd")
