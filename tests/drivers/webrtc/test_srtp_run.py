"""Encryption by the binding is that of the library, whose private names it uses."""

from __future__ import annotations

import pytest
from pylibsrtp import Policy, Session

from drivers.webrtc.picture_sender import SrtpRun

PROFILES = [
    (Policy.SRTP_PROFILE_AES128_CM_SHA1_80, 30),
    (Policy.SRTP_PROFILE_AEAD_AES_128_GCM, 28),
    (Policy.SRTP_PROFILE_AEAD_AES_256_GCM, 44),
]


def session(profile: int, key: bytes) -> Session:
    return Session(Policy(key=key, ssrc_type=Policy.SSRC_ANY_OUTBOUND, srtp_profile=profile))


def packet(number: int, payload: bytes) -> bytes:
    return b"\x80\x60" + number.to_bytes(2, "big") + bytes(8) + payload


@pytest.mark.parametrize(("profile", "length"), PROFILES)
def test_packets_are_those_of_the_library(profile, length):
    key = bytes(range(length))
    packets = [packet(number, bytes([number]) * 1_300) for number in range(31)] + [packet(31, b"end")]
    library = session(profile, key)
    expected = [library.protect(each) for each in packets]
    run = SrtpRun(size=65_000)
    ours = session(profile, key)
    for part in (slice(0, 20), slice(20, 32)):
        data, size = run.encrypt(packets[part], ours)
        assert bytes(data) == b"".join(expected[part])
        assert size == len(expected[0])


def test_too_many_packets_are_refused_and_nothing_is_overwritten():
    profile, length = PROFILES[0]
    run = SrtpRun(size=2_000)
    with pytest.raises(ValueError, match="too large"):
        run.encrypt([packet(number, bytes(1_300)) for number in range(2)], session(profile, bytes(length)))


def test_a_packet_that_the_library_refuses_is_an_error():
    profile, length = PROFILES[0]
    with pytest.raises(ValueError, match="cannot be encrypted"):
        SrtpRun(size=2_000).encrypt([b"short"], session(profile, bytes(length)))
