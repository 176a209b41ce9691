"""A linter of HLS playlists and MPEG-TS segments, written from RFC 8216 (and bis) and Apple's authoring rules.

It knows nothing of what made them: it reads text and bytes as a player gets them, and gives one sentence per fault.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from itertools import pairwise

KNOWN = {
    "EXTM3U", "EXT-X-VERSION", "EXT-X-TARGETDURATION", "EXT-X-MEDIA-SEQUENCE", "EXT-X-DISCONTINUITY-SEQUENCE",
    "EXT-X-PLAYLIST-TYPE", "EXT-X-INDEPENDENT-SEGMENTS", "EXT-X-ENDLIST", "EXTINF", "EXT-X-DISCONTINUITY",
    "EXT-X-PROGRAM-DATE-TIME", "EXT-X-GAP", "EXT-X-STREAM-INF", "EXT-X-SERVER-CONTROL", "EXT-X-PART-INF", "EXT-X-PART",
    "EXT-X-PRELOAD-HINT", "EXT-X-START",
}  # fmt: skip
ONCE = {
    "EXTM3U", "EXT-X-VERSION", "EXT-X-TARGETDURATION", "EXT-X-MEDIA-SEQUENCE", "EXT-X-DISCONTINUITY-SEQUENCE",
    "EXT-X-PLAYLIST-TYPE", "EXT-X-INDEPENDENT-SEGMENTS", "EXT-X-ENDLIST", "EXT-X-SERVER-CONTROL", "EXT-X-PART-INF",
    "EXT-X-START",
}  # fmt: skip
TICKS = 90_000


@dataclass(frozen=True)
class Part:
    """One part of a segment as a media playlist names it."""

    uri: str
    seconds: float
    independent: bool


@dataclass
class Entry:
    """One segment as a media playlist names it."""

    uri: str
    seconds: float
    number: int
    discontinuity: int
    breaks: bool = False
    gap: bool = False
    date: datetime | None = None
    parts: list[Part] = field(default_factory=list)


@dataclass
class MediaPlaylist:
    """A media playlist's values, and the faults in its text."""

    entries: list[Entry] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
    target: int = 0
    kind: str = ""
    ended: bool = False
    text: str = ""
    growing: list[Part] = field(default_factory=list)
    hints: list[dict[str, str]] = field(default_factory=list)
    control: dict[str, str] = field(default_factory=dict)
    part_target: float = 0.0

    @property
    def is_live(self) -> bool:
        return not self.kind and not self.ended


def _split(line: str) -> tuple[str, str]:
    name, _, value = line[1:].partition(":")
    return name, value


def _head(text: str) -> list[str]:
    faults = []
    if not text.startswith("#EXTM3U\n"):
        faults.append("it does not begin with #EXTM3U")
    if not text.endswith("\n"):
        faults.append("its last line has no end")
    names = [_split(line)[0] for line in text.splitlines() if line.startswith("#EXT")]
    faults += [f"{name} is no tag of HLS" for name in sorted(set(names) - KNOWN)]
    faults += [f"{name} stands there {names.count(name)} times" for name in sorted(ONCE) if names.count(name) > 1]
    return faults


def parse_media(text: str) -> MediaPlaylist:
    """Read a media playlist."""
    found = MediaPlaylist(text=text, faults=_head(text))
    version, number, discontinuity = 1, 0, 0
    seconds: float | None = None
    breaks = gap = False
    date: datetime | None = None
    parts: list[Part] = []
    needs = 1
    for line in text.splitlines():
        if not line.strip():
            continue
        if not line.startswith("#"):
            if seconds is None:
                found.faults.append(f"{line} has no EXTINF")
            discontinuity += breaks
            found.entries.append(
                Entry(line, seconds or 0.0, number + len(found.entries), discontinuity, breaks, gap, date, parts)
            )
            seconds, breaks, gap, date, parts = None, False, False, None, []
            continue
        name, value = _split(line)
        if name == "EXT-X-VERSION":
            version = int(value)
        elif name == "EXT-X-TARGETDURATION":
            if not re.fullmatch(r"[0-9]+", value):
                found.faults.append("TARGETDURATION is no whole number")
            found.target = int(float(value))
        elif name in ("EXT-X-MEDIA-SEQUENCE", "EXT-X-DISCONTINUITY-SEQUENCE"):
            if found.entries or breaks:
                found.faults.append(f"{name} stands after a segment")
            elif name == "EXT-X-MEDIA-SEQUENCE":
                number = int(value)
            else:
                discontinuity = int(value)
        elif name == "EXT-X-PLAYLIST-TYPE":
            found.kind = value
            if value not in ("VOD", "EVENT"):
                found.faults.append(f"there is no playlist type {value}")
        elif name == "EXT-X-ENDLIST":
            found.ended = True
        elif name == "EXTINF":
            duration = value.partition(",")[0]
            needs = max(needs, 3 if "." in duration else 1)
            seconds = float(duration)
            if "," not in value:
                found.faults.append("an EXTINF has no comma")
        elif name == "EXT-X-DISCONTINUITY":
            breaks = True
        elif name == "EXT-X-GAP":
            gap = True
            needs = 8
        elif name == "EXT-X-PROGRAM-DATE-TIME":
            date = datetime.fromisoformat(value)
            if date.tzinfo is None:
                found.faults.append("a PROGRAM-DATE-TIME has no zone")
        elif name == "EXT-X-STREAM-INF":
            found.faults.append("a media playlist names a variant")
        elif name == "EXT-X-SERVER-CONTROL":
            found.control = _attributes(value)
        elif name == "EXT-X-PART-INF":
            found.part_target = float(_attributes(value).get("PART-TARGET", "0"))
        elif name == "EXT-X-PART":
            told = _attributes(value)
            if not {"URI", "DURATION"} <= told.keys():
                found.faults.append("a part has no URI or no DURATION")
            independent = told.get("INDEPENDENT", "") == "YES"
            parts.append(Part(told.get("URI", ""), float(told.get("DURATION", "0")), independent))
            if found.hints:
                found.faults.append("a part stands after a hint")
        elif name == "EXT-X-PRELOAD-HINT":
            found.hints.append(_attributes(value))
    found.growing = parts
    if version < needs:
        found.faults.append(f"it says version {version} and needs {needs}")
    if "#EXT-X-TARGETDURATION:" not in text:
        found.faults.append("it has no TARGETDURATION")
    return found


def _lint_parts(read: MediaPlaylist) -> list[str]:
    """The faults of the parts of a playlist and of what goes with them (RFC 8216bis)."""
    faults = []
    listed = [*(part for entry in read.entries for part in entry.parts), *read.growing]
    if listed and not read.part_target:
        faults.append("it has parts and no PART-TARGET")
    if read.part_target and float(read.control.get("PART-HOLD-BACK", "0")) < 3 * read.part_target - 0.0005:
        faults.append("PART-HOLD-BACK is under three part targets")
    for name, most in (("HOLD-BACK", 3), ("CAN-SKIP-UNTIL", 6)):
        if name in read.control and float(read.control[name]) < most * read.target:
            faults.append(f"{name} is under {most} target durations")
    behind = sum(part.seconds for part in read.growing)
    segments = [(entry.seconds, entry.parts) for entry in read.entries]
    for seconds, parts in [*reversed(segments)]:
        if parts and behind > 3 * read.target:
            faults.append(f"{parts[0].uri} is more than three target durations from the end")
        if parts and abs(sum(part.seconds for part in parts) - seconds) > read.part_target:
            faults.append(f"the parts of {parts[0].uri} do not last as long as their segment")
        behind += seconds
    for seconds, parts in [*segments, (None, read.growing)]:
        faults += [f"{part.uri} is longer than a part may be" for part in parts if part.seconds > read.part_target]
        faults += [f"{part.uri} is too short" for part in parts[:-1] if part.seconds < 0.85 * read.part_target]
        faults += [f"{part.uri} lasts no time" for part in parts if part.seconds <= 0]
        if parts and not parts[0].independent and "#EXT-X-INDEPENDENT-SEGMENTS" in read.text:
            faults.append(f"{parts[0].uri} begins a segment and is not independent")
        if seconds is None and int(sum(part.seconds for part in parts) + 0.5) > read.target:
            faults.append("the parts at the end are longer than a segment may be")
    kinds = [hint.get("TYPE", "") for hint in read.hints]
    if len(set(kinds)) < len(kinds) or not set(kinds) <= {"PART", "MAP"}:
        faults.append("its hints are not one of a type")
    uris = [part.uri for part in listed] + [hint.get("URI", "") for hint in read.hints]
    if len(set(uris)) < len(uris):
        faults.append("a part or hint stands there twice")
    if read.ended and (read.hints or read.growing):
        faults.append("it has ended and tells of more parts")
    return faults


def lint_media(text: str, *, steady: bool = True) -> list[str]:
    """The faults of one media playlist. `steady`: the stream has run for a while, so a live one must be long enough."""
    read = parse_media(text)
    faults = read.faults + _lint_parts(read)
    for entry in read.entries:
        if int(entry.seconds + 0.5) > read.target:
            faults.append(f"{entry.uri} lasts {entry.seconds} s, over the target duration of {read.target}")
        if entry.seconds <= 0:
            faults.append(f"{entry.uri} lasts no time")
        if entry.breaks and entry.date is None and not entry.gap:
            faults.append(f"the discontinuity at {entry.uri} has no PROGRAM-DATE-TIME")
    if len({entry.uri for entry in read.entries}) != len(read.entries):
        faults.append("a segment stands there twice")
    dated = [entry.date for entry in read.entries if entry.date]
    if read.entries and read.entries[0].date is None:
        faults.append("the first segment has no PROGRAM-DATE-TIME")
    if dated != sorted(dated):
        faults.append("its dates go back")
    if read.kind == "VOD" and not read.ended:
        faults.append("a VOD playlist has no ENDLIST")
    if read.is_live:
        for tag in ("EXT-X-MEDIA-SEQUENCE", "EXT-X-DISCONTINUITY-SEQUENCE"):
            if f"#{tag}:" not in text:
                faults.append(f"a live playlist has no {tag}")
        if steady and len(read.entries) < 6:
            faults.append(f"a live playlist has {len(read.entries)} segments, fewer than 6")
        if steady and sum(entry.seconds for entry in read.entries) < 3 * read.target:
            faults.append("a live playlist is shorter than three target durations")
    return faults


def lint_update(before: str, after: str) -> list[str]:
    """The faults of a playlist beside what the same address gave before."""
    old, new = parse_media(before), parse_media(after)
    faults = []
    if old.target != new.target:
        faults.append(f"TARGETDURATION went from {old.target} to {new.target}")
    if (old.part_target, old.control) != (new.part_target, new.control) and not new.ended:
        faults.append("PART-TARGET or SERVER-CONTROL changed")
    if old.kind == "EVENT" and not after.startswith(before.replace("EVENT", new.kind or "EVENT")):
        faults.append("an EVENT playlist was not only added to")
    if old.ended and before != after:
        faults.append("a playlist changed after its end")
    if old.entries and new.entries:
        if new.entries[0].number < old.entries[0].number:
            faults.append("MEDIA-SEQUENCE went back")
        if new.entries[-1].number < old.entries[-1].number:
            faults.append("segments at its end went away")
    known = {entry.number: entry for entry in old.entries}
    for entry in new.entries:
        was = known.get(entry.number)
        if was and not entry.gap and was.uri != entry.uri:
            faults.append(f"segment {entry.number} was {was.uri} and is {entry.uri}")
        if was and was.discontinuity != entry.discontinuity:
            faults.append(f"segment {entry.number} had discontinuity {was.discontinuity}, now {entry.discontinuity}")
    faults += _lint_updated_parts(old, new)
    return faults


def _lint_updated_parts(old: MediaPlaylist, new: MediaPlaylist) -> list[str]:
    faults = []
    grown = _parts_by_number(new)
    for number, parts in _parts_by_number(old).items():
        now = grown.get(number, [])
        if now and now[: len(parts)] != parts:
            faults.append(f"parts of segment {number} changed or went away")
        if not now and number > (new.entries[-1].number if new.entries else 0) and not new.ended:
            faults.append(f"the parts of segment {number} went away before it was whole")
    return faults


def _parts_by_number(read: MediaPlaylist) -> dict[int, list[Part]]:
    found = {entry.number: entry.parts for entry in read.entries if entry.parts}
    if read.growing:
        found[read.entries[-1].number + 1 if read.entries else 0] = read.growing
    return found


def attributes(text: str) -> dict[str, str]:
    """Those of the first variant of a master playlist."""
    return _attributes(next((line for line in text.splitlines() if line.startswith("#EXT-X-STREAM-INF:")), ""))


def _attributes(text: str) -> dict[str, str]:
    return {name: value.strip('"') for name, value in re.findall(r'([A-Z-]+)=("[^"]*"|[^,]*)', text)}


def lint_master(text: str) -> list[str]:
    """The faults of a master playlist."""
    faults = _head(text)
    told = attributes(text)
    if not told:
        faults.append("it has no variant")
    for name in ("BANDWIDTH", "AVERAGE-BANDWIDTH", "CODECS", "RESOLUTION", "FRAME-RATE"):
        if name not in told:
            faults.append(f"its variant has no {name}")
    if "#EXT-X-INDEPENDENT-SEGMENTS" not in text:
        faults.append("it does not say INDEPENDENT-SEGMENTS")
    if int(told.get("AVERAGE-BANDWIDTH", 0)) > int(told.get("BANDWIDTH", 0)):
        faults.append("AVERAGE-BANDWIDTH is over BANDWIDTH")
    if "RESOLUTION" in told and not re.fullmatch(r"[1-9]\d*x[1-9]\d*", told["RESOLUTION"]):
        faults.append("its RESOLUTION is none")
    # each format that is present in the variant is named (RFC 8216, 4.3.4.2), so pictures that changed have several
    names = r"(avc1\.[0-9a-f]{6}|hvc1\.[\w.]+)"
    if "CODECS" in told and not re.fullmatch(rf"{names}(,{names})*(,mp4a\.40\.2)?", told["CODECS"]):
        faults.append(f"its CODECS {told['CODECS']} are no names of RFC 6381")
    lines = text.splitlines()
    for number, line in enumerate(lines):
        if line.startswith("#EXT-X-STREAM-INF:") and (number + 1 == len(lines) or lines[number + 1].startswith("#")):
            faults.append("a variant has no address")
    return faults


@dataclass
class Packets:
    """The video of an MPEG-TS file, read packet by packet."""

    faults: list[str] = field(default_factory=list)
    counters: dict[int, tuple[int, int]] = field(default_factory=dict)  # first and last by PID
    times: list[int] = field(default_factory=list)  # DTS, or PTS where there is no other, of each access unit
    units: list[bytes] = field(default_factory=list)


def read_segment(data: bytes) -> Packets:
    """Take a segment apart (ISO 13818-1)."""
    found = Packets()
    if len(data) % 188 or not data:
        found.faults.append("it is no whole number of packets")
        return found
    pmt_pid = video_pid = -1
    seen: list[str] = []
    for start in range(0, len(data), 188):
        packet = data[start : start + 188]
        if packet[0] != 0x47:
            found.faults.append(f"there is no sync byte at {start}")
            return found
        pid, begins = (packet[1] & 0x1F) << 8 | packet[2], bool(packet[1] & 0x40)
        adaptation, counter = packet[3] >> 4 & 3, packet[3] & 15
        body = packet[5 + packet[4] :] if adaptation & 2 else packet[4:]
        if not adaptation & 1:
            continue
        if pid in found.counters and counter != (found.counters[pid][1] + 1) % 16:
            found.faults.append(f"the continuity counter of PID {pid} jumps at {start}")
        found.counters[pid] = (found.counters.get(pid, (counter, 0))[0], counter)
        if pid == 0 and begins:
            seen.append("PAT")
            table = body[1 + body[0] :]
            pmt_pid = (table[10] & 0x1F) << 8 | table[11]
        elif pid == pmt_pid and begins:
            seen.append("PMT")
            video_pid = _video_pid(body[1 + body[0] :])
        elif video_pid < 0 and pid != 0x11:  # 0x11: names of services
            seen.append("something else")
        elif pid == video_pid:
            if begins:
                seen.append("video")
                head = 9 + body[8]
                found.times.append(_time(body))
                found.units.append(body[head:])
            elif found.units:
                found.units[-1] += body
    if seen[:3] != ["PAT", "PMT", "video"]:
        found.faults.append(f"it begins with {', '.join(seen[:3]) or 'nothing'}, not with PAT, PMT and a picture")
    return found


def _video_pid(table: bytes) -> int:
    length = (table[1] & 15) << 8 | table[2]
    at = 12 + ((table[10] & 15) << 8 | table[11])
    while at < length - 1:
        kind, pid = table[at], (table[at + 1] & 0x1F) << 8 | table[at + 2]
        if kind in (0x1B, 0x24):
            return pid
        at += 5 + ((table[at + 3] & 15) << 8 | table[at + 4])
    return -1


def _time(pes: bytes) -> int:
    at = 14 if pes[7] & 0x40 else 9
    told = pes[at : at + 5]
    return (told[0] >> 1 & 7) << 30 | told[1] << 22 | (told[2] >> 1) << 15 | told[3] << 7 | told[4] >> 1


def lint_segment(data: bytes, *, seconds: float | None = None) -> list[str]:
    """The faults of one segment. `seconds`: what its playlist says that it lasts."""
    read = read_segment(data)
    faults = list(read.faults)
    if not read.units:
        return [*faults, "it has no picture"]
    kinds = {unit[0] & 0x1F if unit else 0 for unit in re.split(b"\x00\x00\x01", read.units[0])[1:]}
    h265 = {unit[0] >> 1 & 0x3F if unit else 0 for unit in re.split(b"\x00\x00\x01", read.units[0])[1:]}
    if not ({5, 7, 8} <= kinds or ({32, 33, 34} <= h265 and h265 & {16, 17, 18, 19, 20, 21})):
        faults.append("it does not begin with parameter sets and a keyframe")
    if seconds is not None and len(read.times) > 1:
        spans = [after - before for before, after in pairwise(read.times)]
        lasts = (read.times[-1] - read.times[0]) / TICKS
        longest = max(spans) / TICKS
        if not lasts - 0.01 <= seconds <= lasts + 2 * longest + 0.01:
            faults.append(f"its pictures last {lasts:.3f} s and one more, and the playlist says {seconds}")
    return faults


def lint_pair(before: bytes, after: bytes) -> list[str]:
    """The faults of a segment beside the one before it, where the playlist tells of no discontinuity."""
    old, new = read_segment(before), read_segment(after)
    faults = []
    for pid, (first, _) in new.counters.items():
        if pid in old.counters and first != (old.counters[pid][1] + 1) % 16:
            faults.append(f"the continuity counter of PID {pid} does not run on")
    if old.times and new.times:
        step = (new.times[0] - old.times[-1]) % 2**33
        if not 0 < step < 10 * TICKS:
            faults.append("its timestamps do not run on")
    return faults


def lint_all(master: str, playlist: str, fetch: Callable[[str], bytes], *, steady: bool = True) -> list[str]:
    """The faults of a master playlist, its media playlist, and all that that names."""
    faults = [f"master: {fault}" for fault in lint_master(master)]
    faults += [f"playlist: {fault}" for fault in lint_media(playlist, steady=steady)]
    told = attributes(master)
    before: bytes | None = None
    for entry in parse_media(playlist).entries:
        if entry.gap:
            before = None
            continue
        data = fetch(entry.uri)
        if entry.parts and b"".join(fetch(part.uri) for part in entry.parts) != data:
            faults.append(f"{entry.uri}: its parts are not its bytes")
        faults += [f"{entry.uri}: {fault}" for fault in lint_segment(data, seconds=entry.seconds)]
        if before is not None and not entry.breaks:
            faults += [f"{entry.uri}: {fault}" for fault in lint_pair(before, data)]
        if entry.seconds > parse_media(playlist).target / 2 and len(data) * 8 / entry.seconds > 1.001 * int(
            told.get("BANDWIDTH", 0)
        ):
            faults.append(f"{entry.uri}: its rate is over BANDWIDTH")
        before = data
    return faults
