"""Names of evidence files: their type from the bytes, and no name that misleads the gateway."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.domain.evidence import HEAD_BYTES, EvidenceLink, download_name, shown_in_place, shown_name, sniffed


@pytest.mark.parametrize(
    ("head", "media_type"),
    [
        (b"\xff\xd8\xff\xe0rest", "image/jpeg"),
        (b"\x89PNG\r\n\x1a\nrest", "image/png"),
        (b"GIF89arest", "image/gif"),
        (b"RIFF....WEBPVP8 ", "image/webp"),
        (b"RIFF....AVI LIST", "video/x-msvideo"),
        (b"RIFF....what", "text/plain"),
        (b"\x00\x00\x00\x18ftypheic", "image/heic"),
        (b"\x00\x00\x00\x18ftypqt  ", "video/quicktime"),
        (b"\x00\x00\x00\x18ftypisom", "video/mp4"),
        (b"\x1aE\xdf\xa3....webm", "video/webm"),
        (b"\x1aE\xdf\xa3....matroska", "video/x-matroska"),
        ((b"\x47" + b"\x00" * 187) * 3, "video/mp2t"),
        (b"%PDF-1.7", "application/pdf"),
        (b"<svg xmlns='http://www.w3.org/2000/svg'><script/></svg>", "text/plain"),
        (b"<!doctype html>", "text/plain"),
        (("x" + "ü" * HEAD_BYTES).encode()[:HEAD_BYTES], "text/plain"),
        (b"MZ\x90\x00", "application/octet-stream"),
        (b"\x7fELF", "application/octet-stream"),
        (b"", "application/octet-stream"),
    ],
)
def test_the_bytes_tell_the_type(head, media_type):
    assert sniffed(head) == media_type


@given(st.binary(max_size=64))
def test_nothing_that_a_browser_runs_is_ever_a_type(head):
    assert not {"html", "svg", "xml", "javascript"} & set(sniffed(head).replace("+", "/").split("/"))


@given(st.text(max_size=400))
def test_a_name_is_one_line_without_folders(given_name):
    name = shown_name(given_name)
    assert 0 < len(name) <= 120
    assert not set(name) & set("/\\\r\n\0\u202e\u200f")
    assert name not in {".", ".."}
    assert name.isprintable() or " " in name or any(letter.isspace() for letter in name)


@given(st.text(max_size=60), st.binary(max_size=40))
def test_a_saved_file_ends_with_what_it_is(given_name, head):
    media_type = sniffed(head)
    name = download_name(shown_name(given_name), media_type)
    assert not name.casefold().endswith((".exe", ".html", ".svg", ".js", ".bat", ".lnk"))
    assert download_name(name, media_type) == name


def test_only_what_shows_itself_is_shown_in_place():
    assert shown_in_place("image/jpeg")
    assert not shown_in_place("application/pdf")
    assert not shown_in_place("text/plain")


def test_a_link_is_good_until_it_ends_or_is_taken_back():
    link = EvidenceLink(1, 2, "chief", created_at=10, expires_at=20)
    assert link.is_good(now=19)
    assert not link.is_good(now=20)
    assert not EvidenceLink(1, 2, "chief", 10, 20, revoked_at=11).is_good(now=12)
