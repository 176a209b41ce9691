"""Hostile heads of viewers: refused or read, never thrown, never slow."""

from __future__ import annotations

import hashlib

import pytest

from drivers.contract import ProtocolViolation
from drivers.rtsp.server.messages import (
    Credentials,
    Proof,
    RtspAnswer,
    RtspRequest,
    parse_request,
    parse_transport,
    proof_of,
)

ACCOUNT = Credentials("nvr", "right")


def md5(text):
    return hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()


def request(authorization):
    return RtspRequest(method="DESCRIBE", url="rtsp://x/", path="/", headers={"authorization": authorization})


def response(password, *, user="nvr", nonce="n"):
    return md5(f"{md5(f'{user}:r:{password}')}:{nonce}:{md5('DESCRIBE:/')}")


@pytest.mark.parametrize(
    ("given", "worth"),
    [
        (f'Digest username="nvr", realm="r", nonce="n", uri="/", response="{response("right")}"', Proof.RIGHT),
        (f'digest Username = "nvr",realm="r" ,nonce=n, uri="/",response={response("right")}', Proof.RIGHT),
        (f'Digest username="nvr", realm="r", nonce="n", uri="/", response="{response("wrong")}"', Proof.WRONG),
        ('Digest username="nvr", realm="r", nonce="n", uri="/", response="é"', Proof.WRONG),
        (f'Digest username="x", realm="r", nonce="n", uri="/", response="{response("right", user="x")}"', Proof.WRONG),
        ('Digest username="nvr", realm="r", nonce="older", uri="/", response="0"', Proof.NONE),
        ("Digest", Proof.NONE),
        ("Basic bnZyOnJpZ2h0", Proof.NONE),
        ("", Proof.NONE),
    ],
)
def test_a_proof_is_right_or_a_guess_or_nothing(given, worth):
    assert proof_of(request(given), ACCOUNT, realm="r", nonce="n") is worth


@pytest.mark.parametrize(
    "head",
    [
        b"DESCRIBE rtsp://x/ RTSP/1.0\r\nAuthorization: Digest " + b"a" * 5_000,
        b"DESCRIBE rtsp://x/" + b"a" * 5_000 + b" RTSP/1.0",
        b"DESCRIBE rtsp://x/ RTSP/1.0" + b"\r\nA: b" * 70,
    ],
)
def test_a_request_longer_than_requests_are_is_refused(head):
    with pytest.raises(ProtocolViolation):
        parse_request(head)


@pytest.mark.parametrize("pair", ["²", "1-²", "\u0661-\u0662", "9" * 5_000, "-", "0-999999", ""])
def test_a_transport_with_odd_numbers_is_none(pair):
    assert parse_transport(f"RTP/AVP;unicast;client_port={pair}") is None


@pytest.mark.parametrize("sequence", ["1\nX: y", "", "é", "²"])
def test_an_odd_sequence_number_is_not_repeated(sequence):
    assert b"CSeq: 0\r\n" in RtspAnswer(200).to_bytes(sequence)
