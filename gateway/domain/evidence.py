"""Evidence: files that people attach to a camera event. Their bytes decide their type, not their names. Pure."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import PurePath
from types import MappingProxyType

HEAD_BYTES = 4096
"""Number of a file's first bytes by which its type is found."""

FILE_LOST = "its file"
"""The begin of the sentence for people that says why a file is gone or cannot be read."""

UNKNOWN_TYPE = "application/octet-stream"
_LONGEST_NAME = 120
_LONGEST_SUFFIX = 10
_NAMELESS = "evidence"
_DRIVE = re.compile(r"(?<!\s)\s*[A-Za-z]:")
_AT_START: tuple[tuple[bytes, str], ...] = (
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
    (b"%PDF-", "application/pdf"),
    (b"\x1aE\xdf\xa3", "video/x-matroska"),
    (b"PK\x03\x04", "application/zip"),
    (b"OggS", "audio/ogg"),
    (b"ID3", "audio/mpeg"),
    (b"fLaC", "audio/flac"),
)
_IN_RIFF: Mapping[bytes, str] = MappingProxyType(
    {b"WEBP": "image/webp", b"AVI ": "video/x-msvideo", b"WAVE": "audio/wav"}
)
_HEIF_BRANDS = frozenset({b"heic", b"heix", b"mif1", b"msf1", b"hevc"})
_SUFFIXES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "image/jpeg": (".jpg", ".jpeg"),
        "image/png": (".png",),
        "image/gif": (".gif",),
        "image/webp": (".webp",),
        "image/heic": (".heic", ".heif"),
        "image/avif": (".avif",),
        "application/pdf": (".pdf",),
        "video/mp4": (".mp4", ".m4v"),
        "video/quicktime": (".mov",),
        "video/x-matroska": (".mkv",),
        "video/webm": (".webm",),
        "video/mp2t": (".ts",),
        "video/x-msvideo": (".avi",),
        "audio/mp4": (".m4a",),
        "audio/ogg": (".ogg",),
        "audio/mpeg": (".mp3",),
        "audio/flac": (".flac",),
        "audio/wav": (".wav",),
        "application/zip": (".zip", ".docx", ".xlsx", ".odt", ".ods"),
        "text/plain": (".txt", ".csv", ".log"),
        UNKNOWN_TYPE: (".bin",),
    }
)
_SHOWN_IN_PLACE = frozenset(
    {"image/jpeg", "image/png", "image/gif", "image/webp", "video/mp4", "video/webm", "audio/mpeg", "audio/ogg"}
)


class KeptAs(StrEnum):
    """Retention class of evidence, as for footage."""

    TRANSACTION = "transaction"
    INCIDENT = "incident"


@dataclass(frozen=True, slots=True)
class Evidence:
    """A file on disk that belongs to a camera event.

    Attributes:
        id: the site's id, from 2,000,000,000 up.
        camera_event_id: the site's id of its camera event.
        name: the uploader's name for it, cleaned by `shown_name`.
        media_type: its media type, found from its bytes.
        size: its size in bytes.
        sha256: the SHA-256 of its bytes, hexadecimal.
        file: its file name in the folder of evidence.
        created_at: wall micros UTC.
        username: who uploaded it.
        central_id: central's id for it, None while central has given none.
        delivered: whether central has it.
        missing: whether the file is no longer in its folder.
    """

    id: int
    camera_event_id: int
    name: str
    description: str
    kept_as: KeptAs
    media_type: str
    size: int
    sha256: str
    file: str
    created_at: int
    clock_trusted: bool
    username: str
    central_id: int | None = None
    delivered: bool = False
    missing: bool = False


@dataclass(frozen=True, slots=True)
class Labels:
    """Labels of evidence for people: a displayable `name`, and the uploader's `username`."""

    name: str
    description: str
    kept_as: KeptAs
    username: str


class TooLarge(Exception):
    """A file is larger than the limit."""


class Maker(StrEnum):
    """Kinds of callers who make links to evidence. Names of one kind say nothing about those of another."""

    SITE = "site"
    CENTRAL = "central"
    LOCAL = "local"


@dataclass(frozen=True, slots=True)
class EvidenceLink:
    """A link that gives access to evidence without a session. Times are wall micros UTC.

    Attributes:
        username: who made it.
        revoked_at: when it was revoked, None if it was not.
        maker: the kind of caller whose right it has.
    """

    id: int
    evidence_id: int
    username: str
    created_at: int
    expires_at: int
    revoked_at: int | None = None
    maker: Maker = Maker.SITE

    def is_good(self, *, now: int) -> bool:
        """Return whether the link gives access, if its maker still has the right."""
        return self.revoked_at is None and now < self.expires_at


def sniffed(head: bytes) -> str:
    """Return the media type found from a file's first bytes. A program or web page counts as plain text or bytes."""
    for start, media_type in _AT_START:
        if head.startswith(start):
            if media_type == "video/x-matroska" and b"webm" in head[:64]:
                return "video/webm"
            return media_type
    if head[:4] == b"RIFF" and head[8:12] in _IN_RIFF:
        return _IN_RIFF[head[8:12]]
    if head[4:8] == b"ftyp":
        return _of_brand(head[8:12])
    if len(head) >= 3 * 188 and all(head[place] == 0x47 for place in (0, 188, 376)):
        return "video/mp2t"
    return "text/plain" if _is_text(head) else UNKNOWN_TYPE


def shown_in_place(media_type: str) -> bool:
    """Return whether a browser may display this media type instead of saving the file."""
    return media_type in _SHOWN_IN_PLACE


def shown_name(given: str) -> str:
    """Clean a name for display and storage: one line, no folders, nothing that hides its ending."""
    last = _DRIVE.sub("", given.replace("\\", "/").rpartition("/")[2])
    text = "".join(letter if unicodedata.category(letter)[0] != "C" else " " for letter in last)
    text = " ".join(text.split()).strip(". ")
    if len(text) > _LONGEST_NAME:
        path = PurePath(text)
        suffix = path.suffix if len(path.suffix) <= _LONGEST_SUFFIX else ""
        text = text[: _LONGEST_NAME - len(suffix)] + suffix
    return text or _NAMELESS


def download_name(name: str, media_type: str) -> str:
    """Return the file name for a download. Its suffix fits the type of the bytes, so that opening it runs nothing."""
    suffixes = _SUFFIXES.get(media_type, _SUFFIXES[UNKNOWN_TYPE])
    return name if PurePath(name).suffix.casefold() in suffixes else name + suffixes[0]


def _of_brand(brand: bytes) -> str:
    if brand in _HEIF_BRANDS:
        return "image/heic"
    if brand == b"avif":
        return "image/avif"
    if brand == b"qt  ":
        return "video/quicktime"
    return "audio/mp4" if brand == b"M4A " else "video/mp4"


def _is_text(head: bytes) -> bool:
    if not head:
        return False
    for cut in range(4 if len(head) == HEAD_BYTES else 1):  # a head that was cut off may end within a character
        try:
            text = head[: len(head) - cut].decode()
        except UnicodeDecodeError:
            continue
        return all(letter in "\t\r\n\f" or unicodedata.category(letter) != "Cc" for letter in text)
    return False
