"""Verification of a proof package, on any machine. Nothing is trusted unchecked; faults are sentences. Blocking."""

from __future__ import annotations

import hashlib
import os
import struct
import zipfile
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from pydantic import ValidationError

from gateway.domain.errors import GatewayError
from gateway.domain.footage import leaf_of, link_of, walked
from gateway.proof_package.package import MANIFEST, PUBLIC_KEY, SIGNATURE, ClipEntry, Manifest, SegmentEntry
from gateway.proof_package.seal import fingerprint_of

_MOST_FILES = 64
_LARGEST_TEXT = 8 * 1024 * 1024
_AT_A_TIME = 1 << 20
_END, _END_BYTES = b"PK\5\6", 22


@dataclass(frozen=True, slots=True)
class Verified:
    """A package that is unchanged since it was signed, and the fingerprint of the key that signed it.

    `notes` are sentences about what the package cannot prove, though nothing is wrong with it.
    """

    manifest: Manifest
    fingerprint: str
    notes: tuple[str, ...] = ()


class ProofBroken(GatewayError):
    """The package does not prove its contents; `faults` has a sentence for each reason."""

    def __init__(self, faults: tuple[str, ...]) -> None:
        super().__init__("; ".join(faults))
        self.faults = faults


def link_faults(clip: ClipEntry) -> Iterator[str]:
    """Yield a sentence for each link that is wrong."""
    for segment in clip.segments:
        parts = (segment.number, segment.previous, segment.link)
        if all(part is None for part in parts):
            continue
        if segment.previous is None or segment.link is None or segment.number is None:
            yield f"{clip.file}: the place of {segment.path} in the chain is not whole"
        elif link_of(segment.previous, leaf_of(path=segment.path, sha256=segment.sha256)) != segment.link:
            yield f"{clip.file}: {segment.path} is not what was recorded, or its link was changed"
    for before, after in pairwise(_linked(clip.segments)):
        if not _follows(before, after):
            yield f"{clip.file}: the chain does not lead from {before.path} to {after.path}"


def link_notes(clip: ClipEntry) -> Iterator[str]:
    """Yield a sentence for each part of a clip's chain that cannot be proven, though it is not wrong."""
    unlinked = sum(segment.link is None for segment in clip.segments)
    if unlinked:
        yield f"{clip.file}: {unlinked} of {len(clip.segments)} segments were not linked to the camera's chain yet"
    unknown = sum(segment.between is None for segment in clip.segments)
    if unknown:
        yield f"{clip.file}: {unknown} stretches of the camera's chain between its segments are not in the package"


def _linked(segments: Sequence[SegmentEntry]) -> list[SegmentEntry]:
    return sorted((one for one in segments if one.link is not None), key=lambda one: one.number or 0)


def _follows(before: SegmentEntry, after: SegmentEntry) -> bool:
    if after.between is None:
        return (after.number or 0) > (before.number or 0) + 1
    steps = (after.number or 0) - (before.number or 0) - 1
    return len(after.between) == steps and walked(before.link or "", after.between) == after.previous


def chain_ends(old: ClipEntry, new: ClipEntry) -> tuple[SegmentEntry, SegmentEntry]:
    """Return the last linked segment of the older clip, and the first of the newer clip at or after it in the chain.

    Raises ProofBroken if there are no such segments.
    """
    known, sought = _linked(old.segments), _linked(new.segments)
    if not known or not sought:
        raise ProofBroken((f"{new.camera}: one of the packages holds no link of this camera's chain",))
    last = known[-1]
    behind = [one for one in sought if (one.number or 0) >= (last.number or 0)]
    if not behind:
        raise ProofBroken((f"{new.camera}: the second package's footage was linked before the first one's",))
    return last, behind[0]


def check_chain(old: SegmentEntry, new: SegmentEntry, leaves: Iterable[str]) -> None:
    """Check that the chain leads from segment `old` over these leaves to segment `new`. Raises ProofBroken."""
    is_same = old.number == new.number and old.link == new.link
    if not is_same and walked(old.link or "", leaves) != new.previous:
        raise ProofBroken(
            (f"the chain does not lead from {old.path} to {new.path}: what was between them was changed or left out",)
        )


def verify(path: Path, *, fingerprint: str = "") -> Verified:
    """Verify a package; with `fingerprint`, also that the key with this fingerprint signed it. Raises ProofBroken.

    Without a fingerprint, this only proves that nothing was changed since the owner of the included key signed it.
    """
    try:
        with zipfile.ZipFile(path) as package:
            names = _names(package, path.stat().st_size)
            _refuse_more(path, names)
            text, key, signature = (_text(package, names, name) for name in (MANIFEST, PUBLIC_KEY, SIGNATURE))
            public = _signed(text, key, signature, wanted=fingerprint)
            manifest = _manifest(text)
            faults = tuple(_file_faults(package, names, manifest))
    except (zipfile.BadZipFile, EOFError, struct.error, ValueError, OverflowError) as error:
        raise ProofBroken(("this is no whole package: it is cut off or damaged",)) from error
    except (NotImplementedError, RuntimeError) as error:  # from zipfile: an unknown compression, or encryption
        raise ProofBroken(("the package is packed in a way that no package of a gateway is",)) from error
    except OSError as error:
        raise ProofBroken((f"the file cannot be read: {error.strerror or 'damaged'}",)) from error
    if faults:
        raise ProofBroken(faults)
    notes = (*_missing_notes(manifest), *(note for clip in manifest.clips for note in link_notes(clip)))
    return Verified(manifest, public, notes=notes)


def _missing_notes(manifest: Manifest) -> Iterator[str]:
    """Yield a sentence for each clip or part of a clip that is missing from the package."""
    for missing in manifest.missing:
        yield f"no clip of {missing.camera} for event {missing.event_id}: {missing.reason}"
    for clip in manifest.clips:
        for gap in clip.gaps:
            yield f"{clip.file}: {gap.micros / 1e6:.1f} s are missing from {gap.begin} on; {gap.reason}"


def _names(package: zipfile.ZipFile, size: int) -> dict[str, zipfile.ZipInfo]:
    """Check the archive's entries before anything is read: few, uncompressed, and in sum not larger than the file."""
    found = package.infolist()
    if len(found) > _MOST_FILES:
        raise ProofBroken((f"it holds {len(found)} files; a package holds at most {_MOST_FILES}",))
    if any(item.compress_type != zipfile.ZIP_STORED for item in found) or sum(item.file_size for item in found) > size:
        raise ProofBroken(("its files are packed in a way that no package of a gateway is",))
    twice = [name for name, times in Counter(item.filename for item in found).items() if times > 1]
    if twice:
        raise ProofBroken(tuple(f"it holds {name} twice" for name in twice))
    return {item.filename: item for item in found}


def _refuse_more(path: Path, names: dict[str, zipfile.ZipInfo]) -> None:
    """Refuse bytes before the first entry of a package or after its end."""
    if names and min(item.header_offset for item in names.values()) > 0:
        raise ProofBroken(("something was put in front of the package",))
    with path.open("rb") as file:
        file.seek(-_END_BYTES, os.SEEK_END)
        end = file.read(_END_BYTES)
    if not end.startswith(_END) or end[-2:] != b"\0\0":
        raise ProofBroken(("something was put behind the end of the package",))


def _text(package: zipfile.ZipFile, names: dict[str, zipfile.ZipInfo], name: str) -> bytes:
    if name not in names:
        raise ProofBroken((f"{name} is missing",))
    if names[name].file_size > _LARGEST_TEXT:
        raise ProofBroken((f"{name} is too large",))
    return package.read(names[name])


def _signed(text: bytes, key: bytes, signature: bytes, *, wanted: str) -> str:
    """Check the signature of the manifest, and return the key's fingerprint. `wanted`: the expected one, "" for any."""
    from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm  # noqa: PLC0415  # 9 MB, and seldom used
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey  # noqa: PLC0415  # 9 MB, and seldom used
    from cryptography.hazmat.primitives.serialization import load_pem_public_key  # noqa: PLC0415  # 9 MB, and seldom used

    try:
        public = load_pem_public_key(key)
    except (ValueError, UnsupportedAlgorithm) as error:
        raise ProofBroken((f"{PUBLIC_KEY} is no key",)) from error
    if not isinstance(public, Ed25519PublicKey):
        raise ProofBroken((f"{PUBLIC_KEY} is a key of another kind",))
    try:
        public.verify(signature, text)
    except InvalidSignature as error:
        raise ProofBroken(
            ("the signature does not fit: the manifest, the key or the signature was changed",)
        ) from error
    found = fingerprint_of(public)
    if wanted and "".join(wanted.split()).lower() != found.replace(" ", ""):
        raise ProofBroken((f"another key signed it: {found}",))
    return found


def _manifest(text: bytes) -> Manifest:
    try:
        return Manifest.model_validate_json(text)
    except ValidationError as error:
        raise ProofBroken(("its manifest is of a kind that this version does not know",)) from error


def _file_faults(package: zipfile.ZipFile, names: dict[str, zipfile.ZipInfo], manifest: Manifest) -> Iterator[str]:
    listed = {clip.file for clip in manifest.clips} | {MANIFEST, SIGNATURE, PUBLIC_KEY}
    for name in names.keys() - listed:
        yield f"{name} was added: the manifest does not know it"
    for clip in manifest.clips:
        if clip.file not in names:
            yield f"{clip.file} is missing"
        elif not _is_whole(package, names[clip.file], clip):
            yield f"{clip.file} was changed"
        yield from link_faults(clip)


def _is_whole(package: zipfile.ZipFile, item: zipfile.ZipInfo, clip: ClipEntry) -> bool:
    if item.file_size != clip.size:
        return False
    digest = hashlib.sha256()
    try:
        with package.open(item) as file:
            while data := file.read(_AT_A_TIME):
                digest.update(data)
    except (zipfile.BadZipFile, EOFError, struct.error):
        return False
    return digest.hexdigest() == clip.sha256
