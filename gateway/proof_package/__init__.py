"""Proof packages: an event with its decision and its footage in one signed file that can be verified anywhere."""

from gateway.proof_package.package import (
    MOST_BETWEEN,
    MOST_CLIPS,
    Clip,
    ClipEntry,
    EventEntry,
    GapEntry,
    Manifest,
    MissingEntry,
    SegmentEntry,
    write_package,
)
from gateway.proof_package.seal import SiteKey, fingerprint_of
from gateway.proof_package.verify import ProofBroken, Verified, chain_ends, check_chain, verify

__all__ = [
    "MOST_BETWEEN",
    "MOST_CLIPS",
    "Clip",
    "ClipEntry",
    "EventEntry",
    "GapEntry",
    "Manifest",
    "MissingEntry",
    "ProofBroken",
    "SegmentEntry",
    "SiteKey",
    "Verified",
    "chain_ends",
    "check_chain",
    "fingerprint_of",
    "verify",
    "write_package",
]
