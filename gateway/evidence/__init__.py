"""Evidence packages: an event with its decision and its footage in one signed file that can be judged anywhere."""

from gateway.evidence.faults import EvidenceBroken
from gateway.evidence.links import judge_stretch, stretch_between
from gateway.evidence.manifest import (
    MOST_BETWEEN,
    MOST_CLIPS,
    ClipEntry,
    EventEntry,
    GapEntry,
    Manifest,
    MissingEntry,
    SegmentEntry,
)
from gateway.evidence.package import Clip, write_package
from gateway.evidence.seal import SiteKey, fingerprint_of
from gateway.evidence.verify import Verified, verify

__all__ = [
    "MOST_BETWEEN",
    "MOST_CLIPS",
    "Clip",
    "ClipEntry",
    "EventEntry",
    "EvidenceBroken",
    "GapEntry",
    "Manifest",
    "MissingEntry",
    "SegmentEntry",
    "SiteKey",
    "Verified",
    "fingerprint_of",
    "judge_stretch",
    "stretch_between",
    "verify",
    "write_package",
]
