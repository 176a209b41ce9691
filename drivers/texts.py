"""Texts in the bytes of devices, whose encoding is often another than they declare. Pure."""

from __future__ import annotations

from typing import Final

BLANKS: Final = " \t\r\n"
"""The characters that stand around the texts of messages; `str.strip` takes others away too, such as VT and NEL."""
_KNOWN: Final = {
    "gb2312": "gb18030",
    "gbk": "gb18030",
    "gb18030": "gb18030",
    "big5": "big5",
    "shift_jis": "shift_jis",
    "euc-kr": "euc-kr",
    "koi8-r": "koi8-r",
    **{f"iso-8859-{number}": f"iso-8859-{number}" for number in (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 13, 14, 15, 16)},
    **{f"windows-{number}": f"cp{number}" for number in range(1250, 1259)},
}
"""The encodings that a device may declare besides Unicode's, each with the codec that reads it."""


def decoded(body: bytes, *, declared: str = "") -> str:
    """Decode a text: by its byte order mark, else as UTF-8, else as it is declared.

    Bytes of neither are kept as lone surrogates (PEP 383), so that `raw_bytes` gives them back.
    """
    if body.startswith((b"\xff\xfe", b"\xfe\xff")):
        return body.decode("utf-16", errors="replace")
    if body[:2] in {b"<\0", b"{\0"}:
        return body.decode("utf-16-le", errors="replace")
    if body[:2] in {b"\0<", b"\0{"}:
        return body.decode("utf-16-be", errors="replace")
    body = body.removeprefix(b"\xef\xbb\xbf")
    for encoding in ("utf-8", _KNOWN.get(declared.strip().lower(), "")):
        if encoding:
            try:
                return body.decode(encoding)
            except UnicodeDecodeError:
                pass
    return body.decode("utf-8", errors="surrogateescape")


def raw_bytes(text: str) -> bytes:
    """Return the bytes of a text that `decoded` gave, where it was UTF-8 or of an unknown encoding."""
    return text.encode("utf-8", errors="surrogateescape")


def replaced(text: str) -> str:
    """Return a text with a replacement mark for each of its lone surrogates, so that it can be written anywhere."""
    return text if text.isascii() else text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
