"""Checks of the SDP that viewers send, before WebRTC's library sees it. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass

_LONGEST = 64 * 1024
_LONGEST_LINE = 1024
_MOST_LINES = 1000
_MOST_SECTIONS = 16
_DIRECTIONS = frozenset({"a=sendrecv", "a=recvonly", "a=sendonly", "a=inactive"})
_LEVEL = re.compile(r"[0-9a-f]{6}")
_CANDIDATE = re.compile(r"a=candidate:(\S+ \d+ \S+ \d+ (\S+) \d+ typ .*)")
_UFRAG = re.compile(r"^a=ice-ufrag:(\S+)\s*$", re.MULTILINE)
_FINGERPRINT = re.compile(r"^a=fingerprint:[\w-]+ [0-9A-Fa-f]{2}(:[0-9A-Fa-f]{2})+\s*$", re.MULTILINE)
_MID = re.compile(r"^a=mid:(\S+)\s*$")


class SdpRefused(ValueError):
    """SDP that is invalid, or does not ask for what the gateway can send."""


class NothingInCommon(SdpRefused):
    """Valid SDP of a viewer that does not accept H.264 as the gateway sends it."""


@dataclass(frozen=True, slots=True)
class Trickle:
    """A fragment of SDP (RFC 8840).

    Attributes:
        candidates: pairs of a media section's identification tag (mid, "" for none) and a candidate.
        ufrag: the viewer's ICE user fragment, "" when it is not given.
        complete: whether these are the last candidates.
    """

    candidates: tuple[tuple[str, str], ...]
    ufrag: str
    complete: bool


def checked_offer(offer: str) -> str:
    """Check an offer, and drop candidates whose names only the viewer's machine can resolve (mDNS).

    A viewer that hides its addresses in this way is still reached, through its own connectivity checks. A section
    without a direction gets the one that it has by RFC 8866, 6.7.

    Raises:
        SdpRefused: it is no offer to receive video.
        NothingInCommon: it does not accept H.264 as the gateway sends it.
    """
    _check_size(offer)
    if not offer.startswith("v=0") or "\x00" in offer:
        raise SdpRefused("the body is no SDP: it must begin with v=0")
    head, *sections = _sections(offer)
    if len(sections) > _MOST_SECTIONS:
        raise SdpRefused("the offer has too many sections")
    usual = _direction(head) or "sendrecv"
    videos = [section for section in sections if section[0].startswith("m=video ")]
    if not videos:
        raise SdpRefused("the offer has no video section")
    if not any((_direction(section) or usual) in {"recvonly", "sendrecv"} for section in videos):
        raise SdpRefused("the offer does not ask to receive video (a=recvonly)")
    if not _UFRAG.search(offer) or not _FINGERPRINT.search(offer):
        raise SdpRefused("the offer has no ICE user fragment or no fingerprint: it is not of WebRTC")
    taken = [parameters for section in videos for parameters in _h264(section)]
    if not taken:
        raise NothingInCommon("the viewer does not take H.264, and cameras' pictures are not transcoded")
    if not any(map(_is_baseline, taken)):
        raise NothingInCommon("the viewer takes H.264, but not of the baseline profile with packetization-mode=1")
    for section in sections:
        if not _direction(section):
            section.append(f"a={usual}")
    visible = [line for section in (head, *sections) for line in section if not _hidden(line)]
    return "\r\n".join(visible) + "\r\n"


def _sections(offer: str) -> list[list[str]]:
    """Return the lines before the first section (`m=`), and those of each section."""
    found: list[list[str]] = [[]]
    for line in offer.splitlines():
        if line.startswith("m="):
            found.append([])
        found[-1].append(line)
    return found


def _direction(section: list[str]) -> str:
    """Return the section's own direction; "" when it has none."""
    return next((line.strip()[2:] for line in section if line.strip() in _DIRECTIONS), "")


def _h264(section: list[str]) -> list[dict[str, str]]:
    """Return the format parameters of each payload type of H.264 (RFC 6184, 8.1)."""
    formats: dict[str, dict[str, str]] = {}
    for line in section:
        kind, _, rest = line.partition(":")
        number, _, text = rest.partition(" ")
        if kind == "a=rtpmap" and text.strip().lower() == "h264/90000":
            formats.setdefault(number, {})
    for line in section:
        kind, _, rest = line.partition(":")
        number, _, text = rest.partition(" ")
        if kind == "a=fmtp" and number in formats:
            pairs = (part.partition("=") for part in text.split(";"))
            formats[number] = {name.strip().lower(): value.strip().lower() for name, _, value in pairs}
    return list(formats.values())


def _is_baseline(parameters: dict[str, str]) -> bool:
    """Return whether these parameters are of the (constrained) baseline profile, the only one that is answered."""
    level = parameters.get("profile-level-id", "42e01f")
    if parameters.get("packetization-mode", "0") != "1" or not _LEVEL.fullmatch(level):
        return False
    profile, constraints = int(level[:2], 16), int(level[2:4], 16)
    # Table 5 of RFC 6184; the first constraint makes the main and the extended profile a baseline too
    return not constraints & 0x0F and (profile == 0x42 or (profile in {0x4D, 0x58} and constraints >= 0x80))


def user_fragment(offer: str) -> str:
    """Return the offer's first ICE user fragment, "" when it has none."""
    found = _UFRAG.search(offer)
    return found[1] if found else ""


def trickle(fragment: str) -> Trickle:
    """Parse a trickle ICE fragment.

    Raises SdpRefused when a candidate is invalid, or when it has no candidate, no end-of-candidates and no user
    fragment.
    """
    _check_size(fragment)
    mid = ""
    candidates: list[tuple[str, str]] = []
    complete = False
    for line in fragment.splitlines():
        if found := _MID.match(line):
            mid = found[1]
        elif found := _candidate(line):
            if not _hidden(line):
                candidates.append((mid, found[1]))
        elif line.startswith("a=candidate:"):
            raise SdpRefused("a candidate of the fragment makes no sense")
        elif line.strip() == "a=end-of-candidates":
            complete = True
    ufrag = user_fragment(fragment)
    if not (candidates or complete or ufrag or "a=candidate:" in fragment):
        raise SdpRefused("the body is no fragment of SDP with ICE candidates")
    return Trickle(tuple(candidates), ufrag, complete)


def _check_size(text: str) -> None:
    """Refuse what is longer than any viewer's, before a pattern sees it: strangers write these texts."""
    lines = text.splitlines() if len(text) <= _LONGEST else []
    if not 0 < len(lines) <= _MOST_LINES or max(map(len, lines)) > _LONGEST_LINE:
        raise SdpRefused("the body is longer than SDP of a viewer is, or has a line that is too long")


def _candidate(line: str) -> re.Match[str] | None:
    return _CANDIDATE.fullmatch(line.rstrip())


def _hidden(line: str) -> bool:
    found = _candidate(line)
    return found is not None and found[2].lower().endswith(".local")
