"""A package proves what it says, and every way of changing it is found out."""

from __future__ import annotations

import hashlib
import io
import json
import stat
import zipfile
from pathlib import Path

import pytest

from gateway.domain.errors import StoreError
from gateway.domain.footage import leaf_of, link_of
from gateway.proof_package import (
    Clip,
    EventEntry,
    GapEntry,
    MissingEntry,
    ProofBroken,
    SegmentEntry,
    SiteKey,
    chain_ends,
    check_chain,
    verify,
    write_package,
)

EVENT = EventEntry(
    id=4711,
    type=103,
    name="Access denied",
    description="card 0007: the card has expired",
    lane_id="entry",
    device_id=101,
    date_at="2026-11-21T04:00:00.000Z",
    clock_trusted=True,
    data="{}",
    trace=("known: passed (card 7)", "validity: FAILED (until 2026-11-20)"),
)
MADE = ("2026-11-21T05:00:00.000Z", "chief", True)


@pytest.fixture
def key(tmp_path):
    return SiteKey.of(tmp_path)


@pytest.fixture
def package(tmp_path, key):
    (tmp_path / "a.mp4").write_bytes(b"clip" * 1000)
    (tmp_path / "1.ts").write_bytes(b"segment")
    segment = SegmentEntry(
        path="201/2026112104/1_2.ts",
        started_at="2026-11-21T03:59:58.000Z",
        duration_micros=2_000_000,
        clock_trusted=True,
        gap_before="none",
        sha256="0" * 64,
    )
    clip = Clip(201, "North", tmp_path / "a.mp4", ((tmp_path / "1.ts", segment),))
    path = tmp_path / "out" / "event-4711.zip"
    write_package(path, event=EVENT, clips=[clip], site="North Yard", made=MADE, gateway="1", key=key)
    return path


def rewritten(package: Path, change) -> Path:
    """The package with its files put through `change(name, data)`: a list of what takes each one's place."""
    target = package.with_name("changed.zip")
    with zipfile.ZipFile(package) as source, zipfile.ZipFile(target, "w") as out:
        for name in source.namelist():
            for name_after, data in change(name, source.read(name)):
                out.writestr(name_after, data)
    return target


def faults(path, **wanted) -> str:
    with pytest.raises(ProofBroken) as raised:
        verify(path, **wanted)
    return str(raised.value)


def test_what_was_written_is_proven(package, key):
    found = verify(package, fingerprint=key.fingerprint.upper())
    assert found.manifest.event == EVENT
    (clip,) = found.manifest.clips
    assert (clip.size, clip.file, len(clip.segments)) == (4000, "clip-201.mp4", 1)
    assert clip.segments[0].sha256 == hashlib.sha256(b"segment").hexdigest()
    assert found.fingerprint == key.fingerprint
    assert found.manifest.made_by == "chief"


def test_the_visit_and_what_is_missing_are_told(tmp_path, key):
    (tmp_path / "a.mp4").write_bytes(b"clip")
    gap = GapEntry(begin="2026-11-21T04:00:02.000Z", micros=3_400_000, reason="the machine could not keep up")
    clips = [
        Clip(201, "North", tmp_path / "a.mp4", (), event_id=4711, gaps=(gap,)),
        Clip(201, "North", tmp_path / "a.mp4", (), event_id=4700),
    ]
    earlier = EVENT.model_copy(update={"id": 4700})
    missing = [MissingEntry(camera_id=202, camera="Under", event_id=4711, reason="there is no footage")]
    path = tmp_path / "out.zip"
    write_package(
        path, event=EVENT, clips=clips, site="North Yard", made=MADE, gateway="1", key=key,
        visit=[earlier, EVENT], missing=missing,
    )  # fmt: skip
    found = verify(path)
    assert found.manifest.visit == (earlier, EVENT)
    assert [clip.file for clip in found.manifest.clips] == ["clip-201.mp4", "clip-201-4700.mp4"]
    assert found.notes == (
        "no clip of Under for event 4711: there is no footage",
        "clip-201.mp4: 3.4 s are missing from 2026-11-21T04:00:02.000Z on; the machine could not keep up",
    )


def test_a_package_of_an_earlier_gateway_is_judged_as_ever(package, key):
    with zipfile.ZipFile(package) as source:
        told = json.loads(source.read("manifest.json"))
    told["format"] = "edge-gateway evidence 1"
    del told["visit"], told["missing"]
    for clip in told["clips"]:
        for name in ("event_id", "begin", "end", "gaps"):
            del clip[name]
    text = json.dumps(told).encode()
    changed = {"manifest.json": text, "manifest.sig": key.sign(text)}
    found = verify(rewritten(package, lambda n, d: [(n, changed.get(n, d))]))
    assert (found.manifest.event, found.manifest.visit) == (EVENT, ())


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        (lambda n, d: [(n, d.replace(b"clip", b"clop", 1) if n.endswith("mp4") else d)], "clip-201.mp4 was changed"),
        (lambda n, d: [(n, d + b"x" if n.endswith("mp4") else d)], "clip-201.mp4 was changed"),
        (lambda n, d: [] if n.endswith("mp4") else [(n, d)], "clip-201.mp4 is missing"),
        (
            lambda n, d: [(n, d.replace(b"expired", b"is good") if n == "manifest.json" else d)],
            "signature does not fit",
        ),
        (lambda n, d: [(n, b"\0" * 64 if n == "manifest.sig" else d)], "signature does not fit"),
        (lambda n, d: [] if n == "manifest.sig" else [(n, d)], "manifest.sig is missing"),
        (lambda n, d: [(n, b"no key" if n == "site-key.pem" else d)], "site-key.pem is no key"),
        (lambda n, d: [(n, d), *([("more.mp4", b"x")] if n == "manifest.json" else [])], "more.mp4 was added"),
    ],
)
def test_every_change_is_found_out(package, change, fault):
    assert fault in faults(rewritten(package, change))


@pytest.fixture
def chained(tmp_path, key):
    """`chained(**changes of segment i)`: a package whose clip has three segments: 4 and 5, then one late, 8."""

    def make(changes=None, on_disk=None):
        (tmp_path / "a.mp4").write_bytes(b"clip")
        link, segments, between = "1" * 64, [], ()
        for number in range(4, 9):
            path, data = f"201/2026112104/{number}_2.ts", f"segment {number}".encode()
            leaf = leaf_of(path=path, sha256=hashlib.sha256(data).hexdigest())
            previous, link = link, link_of(link, leaf)
            if number in (6, 7):
                between += (leaf,)
                continue
            (tmp_path / f"{number}.ts").write_bytes((on_disk or {}).get(number, data))
            fields = {"path": path, "number": number, "previous": previous, "link": link, "between": between}
            entry = SegmentEntry(
                started_at="2026-11-21T03:59:58.000Z", duration_micros=2, clock_trusted=True, gap_before="none",
                sha256="0" * 64, **fields | (changes or {}).get(number, {}),
            )  # fmt: skip
            segments.append((tmp_path / f"{number}.ts", entry))
        clip = Clip(201, "North", tmp_path / "a.mp4", tuple(segments))
        path = tmp_path / "chained.zip"
        write_package(path, event=EVENT, clips=[clip], site="North Yard", made=MADE, gateway="1", key=key)
        return path

    return make


def test_the_links_of_the_chain_are_proven(chained):
    assert verify(chained()).notes == ()
    unlinked = {"number": None, "previous": None, "link": None, "between": ()}
    assert verify(chained({8: unlinked})).notes == (
        "clip-201.mp4: 1 of 3 segments were not linked to the camera's chain yet",
    )
    (note,) = verify(chained({8: {"between": None}})).notes
    assert "1 stretches" in note


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({5: {"link": "2" * 64}}, "5_2.ts is not what was recorded"),
        ({4: {"previous": "2" * 64}}, "4_2.ts is not what was recorded"),
        ({5: {"path": "201/2026112104/6_2.ts"}}, "6_2.ts is not what was recorded"),
        ({8: {"between": ()}}, "the chain does not lead from 201/2026112104/5_2.ts to 201/2026112104/8_2.ts"),
        ({8: {"between": ("2" * 64, "2" * 64)}}, "the chain does not lead"),
        ({5: {"between": None}}, "the chain does not lead"),
        ({5: {"number": 4}}, "the chain does not lead"),
        ({5: {"number": None}}, "the place of 201/2026112104/5_2.ts in the chain is not whole"),
    ],
)
def test_a_link_that_does_not_fit_is_told(chained, changes, fault):
    assert fault in faults(chained(changes))


def test_footage_that_was_changed_on_the_sites_disk_is_told(chained):
    assert "201/2026112104/5_2.ts is not what was recorded" in faults(chained(on_disk={5: b"other"}))


def test_two_packages_are_of_one_chain(chained):
    (clip,) = verify(chained()).manifest.clips
    first, _, last = clip.segments
    old, new = (clip.model_copy(update={"segments": (one,)}) for one in (first, last))
    assert chain_ends(old, new) == (first, last)
    assert chain_ends(old, clip) == (first, first), "the same segment is in both"
    leaves = [leaf_of(path=clip.segments[1].path, sha256=clip.segments[1].sha256), *last.between]
    check_chain(first, last, leaves)
    check_chain(first, first, [])
    for wrong in (leaves[1:], leaves[::-1], []):
        with pytest.raises(ProofBroken, match=r"does not lead from \S+4_2.ts to \S+8_2.ts"):
            check_chain(first, last, wrong)
    with pytest.raises(ProofBroken, match="changed or left out"):
        check_chain(first, first.model_copy(update={"link": "0" * 64}), [])
    with pytest.raises(ProofBroken, match="linked before the first"):
        chain_ends(new, old)
    with pytest.raises(ProofBroken, match="no link of this camera's chain"):
        chain_ends(old, clip.model_copy(update={"segments": ()}))


def test_a_file_twice_is_refused(package):
    with pytest.warns(UserWarning, match="Duplicate"):
        path = rewritten(package, lambda n, d: [(n, d)] * (2 if n == "manifest.json" else 1))
    assert "manifest.json twice" in faults(path)


def test_every_byte_counts(package):
    """After a change of any byte the package is refused, or proves the same to the letter."""
    whole = package.read_bytes()
    before = verify(package).manifest
    refused = 0
    for place in range(0, len(whole), 7):
        package.write_bytes(whole[:place] + bytes((whole[place] ^ 0x41,)) + whole[place + 1 :])
        try:
            assert verify(package).manifest == before
        except ProofBroken:
            refused += 1
    assert refused > len(whole) / 7 * 0.9


def test_what_was_put_before_or_behind_is_told(package):
    whole = package.read_bytes()
    for before, behind, fault in ((b"x", b"", "in front"), (b"", b"x", "behind"), (b"", b"\0" * 22, "behind")):
        package.write_bytes(before + whole + behind)
        assert fault in faults(package)


def test_every_damage_of_a_small_package_is_a_sentence(package):
    """A part of its middle is left out: never an error of another kind."""
    whole = package.read_bytes()
    for place in range(0, len(whole), 101):
        package.write_bytes(whole[:place] + whole[place + 60 :])
        faults(package)


@pytest.mark.parametrize("share", [0.0, 0.2, 0.5, 0.99])
def test_a_cut_off_file_is_told(package, share):
    whole = package.read_bytes()
    package.write_bytes(whole[: int(len(whole) * share)])
    assert "cut off or damaged" in faults(package)


def test_another_sites_key_is_told(package, tmp_path):
    other = SiteKey.of(tmp_path / "out")
    assert "another key signed it" in faults(package, fingerprint=other.fingerprint)


def test_a_resigned_package_bears_the_forgers_fingerprint(package, tmp_path, key):
    forger = SiteKey.of(tmp_path / "out")
    with zipfile.ZipFile(package) as source:
        text = source.read("manifest.json").replace(b"expired", b"is good")
    changed = {"manifest.json": text, "manifest.sig": forger.sign(text), "site-key.pem": forger.public_pem}
    forged = rewritten(package, lambda n, d: [(n, changed.get(n, d))])
    assert verify(forged).fingerprint == forger.fingerprint
    assert "another key signed it" in faults(forged, fingerprint=key.fingerprint)


def test_packed_bombs_are_refused_unread(tmp_path):
    path = tmp_path / "bomb.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as out:
        out.writestr("manifest.json", b"\0" * 50_000_000)
    assert "packed in a way" in faults(path)
    many = io.BytesIO()
    with zipfile.ZipFile(many, "w") as out:
        for number in range(65):
            out.writestr(str(number), b"")
    path.write_bytes(many.getvalue())
    assert "65 files" in faults(path)
    path.write_bytes(json.dumps({}).encode())
    assert "cut off or damaged" in faults(path)


def test_the_key_is_made_once_and_for_this_user_alone(tmp_path, key):
    file = tmp_path / "site-key.pem"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert SiteKey.of(tmp_path).fingerprint == key.fingerprint
    file.write_bytes(b"no key")
    with pytest.raises(StoreError, match="put the right one back"):
        SiteKey.of(tmp_path)
    assert file.read_bytes() == b"no key", "a key is never made anew over another"
