"""The writing of a vehicle's plate: one normal form for cameras, card lists and searches. Pure.

Letters are written in capitals, the digits of all scripts as 0 to 9, wide forms as narrow ones. Blanks, dashes and
other separators do not count.
"""

from __future__ import annotations

import unicodedata
from typing import Final

from drivers.contract import ProtocolViolation
from drivers.texts import raw_bytes

LONGEST_PLATE: Final = 16
_NO_PLATE: Final = frozenset({"UNKNOWN", "NOPLATE", "NONE", "NULL", "UNLICENSED", "NOTDETECTED", "无车牌", "无牌车"})
_SEPARATORS: Final = frozenset(".,·•・‧∙⋅:;'`\"/\\|()[]")
_SEPARATING: Final = frozenset({"Zs", "Zl", "Zp", "Pd", "Cf", "Mn", "Mc"})
_RAISED: Final = ("<super>", "<sub>", "<circle>", "<fraction>")
_CHINESE: Final = frozenset(
    "京津沪渝冀豫云辽黑湘皖鲁新苏浙赣鄂桂甘晋蒙陕吉闽贵粤青藏川宁琼使领警学港澳挂试超临应急民航军空海北沈兰济南广成消防"
)
"""The characters of Chinese plates besides letters and digits (GA 36)."""


def plain_plate(text: str) -> str:
    """Write a plate in its normal form; characters that are no letters and no digits are left out."""
    if not text.isascii():
        text = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).upper())
        return "".join(_digit(one) for one in text if one.isalnum())
    plate = text.upper()
    return plate if plate.isalnum() else "".join(one for one in plate if one.isalnum())


def camera_plate(text: str, *, usual: str = "") -> str:
    """Return the normal form of a plate as a camera gives it; "" when the camera says that it read none.

    A character that a camera could not read may not be left out, since the rest may be another vehicle's plate.

    Args:
        text: the text as `drivers.texts.decoded` gives it.
        usual: the encoding of the make's Chinese cameras, whatever they declare; "" for none.

    Raises ProtocolViolation for a text that is no plate, or not in a known encoding.
    """
    if usual and not text.isascii():
        text = _chinese(text, usual) or text
    plate = plain_plate(text)
    if plate in _NO_PLATE:
        return ""
    if unread := unread_in(text):
        raise ProtocolViolation(f"a plate with a character that cannot be read (U+{ord(unread):04X})")
    if len(plate) > LONGEST_PLATE:
        raise ProtocolViolation(f"a plate of {len(plate)} characters")
    return plate


def unread_in(text: str) -> str:
    """Return the first character that no plate bears, such as a control or a mark for an unread letter; "" for none."""
    return next((one for one in text if not _is_of_a_plate(one)), "")


def _chinese(text: str, encoding: str) -> str:
    """Return the Chinese plate that the bytes of this text give in this encoding; "" when they give none.

    Some of those bytes are valid UTF-8 too, of characters that no plate bears.
    """
    try:
        read = raw_bytes(text).decode(encoding)
    except UnicodeError:
        return ""
    foreign = [one for one in read if not one.isascii()]
    return read if foreign and all(one in _CHINESE for one in foreign) else ""


def _is_of_a_plate(one: str) -> bool:
    if one in _SEPARATORS or unicodedata.category(one) in _SEPARATING:
        return True
    return one.isalnum() and not unicodedata.decomposition(one).startswith(_RAISED)


def _digit(one: str) -> str:
    return str(unicodedata.decimal(one)) if one.isdecimal() else one
