"""Proofs of an account, as cameras ask for them."""

from __future__ import annotations

import hashlib
import re

import pytest

from drivers.rtsp.client.accounts import Account, Challenge, Proofs, authorization, parse_challenges
from drivers.rtsp.client.habits import CameraHabits

MUFASA = Account("Mufasa", "Circle of Life")
FORMS = {
    "usual": 'Digest realm="cam", nonce="n1", stale=FALSE',
    "blanks around =": 'Digest realm = "cam", nonce\t=\t"n1" , stale = "FALSE"',
    "no blanks": 'digest realm="cam",nonce="n1",stale="false"',
    "not quoted": "Digest realm=cam, nonce=n1, algorithm=md5",
    "quoted algorithm": 'Digest algorithm="MD5", realm="cam", nonce="n1"',
    "Basic first": 'Basic realm="old", Digest realm="cam", nonce="n1"',
    "Basic last": 'Digest realm="cam", nonce="n1", Basic realm="old"',
    "others around": 'Negotiate, NTLM TlRM==, Digest realm="cam", nonce="n1", Bearer realm="x"',
    "a comma too many": 'Digest realm="cam",, nonce="n1",',
}


@pytest.mark.parametrize("form", FORMS)
def test_each_form_of_a_challenge_is_understood(form):
    first = parse_challenges(FORMS[form])[0]
    assert (first.scheme, first.realm, first.nonce, first.algorithm) == ("digest", "cam", "n1", "MD5")
    assert not first.stale


def test_the_words_of_a_quoted_realm_are_no_challenge():
    (only,) = parse_challenges('Digest realm="Basic, Digest nonce=2", nonce="n1", qop="auth-int,auth"')
    assert (only.realm, only.nonce, only.quality) == ("Basic, Digest nonce=2", "n1", "auth")


def test_the_strongest_challenge_comes_first():
    offered = parse_challenges(
        'Basic realm="c", Digest realm="c", nonce="1", Digest realm="c", nonce="2", algorithm=SHA-256, '
        'Digest realm="c", nonce="3", algorithm=SHA-999, Digest realm="c", nonce="4", algorithm=MD5-sess'
    )
    assert [(one.nonce, one.algorithm, one.of_session) for one in offered] == [
        ("2", "SHA-256", False), ("1", "MD5", False), ("4", "MD5", True), ("", "MD5", False),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("algorithm", "response"),
    [
        ("MD5", "8ca523f5e9506fed4657c9700eebdbec"),
        ("SHA-256", "753927fa0e85d155564e2e272a28d1802ca10daf4496794697cf8db5856cb6c1"),
    ],
)
def test_the_examples_of_the_standard(algorithm, response):
    """RFC 7616, 3.9.1."""
    challenge = Challenge(
        scheme="digest", realm="http-auth@example.org", nonce="7ypf/xlj9XXwfDPEoM4URrv/xwf94BcCAzFZH4GiTo0v",
        algorithm=algorithm, named=algorithm, opaque="FQhe/qaU925kfnzjCev0ciny7QMkPqMAFRtzCUYo5tdS", quality="auth",
    )  # fmt: skip
    header = authorization(
        challenge, MUFASA, method="GET", url="/dir/index.html", count=1,
        client_nonce="f2/wE4q74E6zIJEtWaHKaf5wv/H5QzzpXusqGemxURZJ",
    )  # fmt: skip
    assert f'response="{response}"' in header
    assert "qop=auth, nc=00000001" in header


@pytest.mark.parametrize(
    ("written", "back"), [("", ""), (", algorithm=md5", ", algorithm=md5"), (', algorithm="MD5"', ", algorithm=MD5")]
)
def test_an_algorithm_goes_back_as_it_was_named(written, back):
    (challenge,) = parse_challenges(f'Digest realm="c", nonce="1"{written}')
    header = authorization(challenge, MUFASA, method="PLAY", url="u", count=1, client_nonce="c")
    assert header.endswith(f'"{back}')


def test_a_hash_of_the_session_covers_both_nonces():
    """RFC 7616, 3.4.2."""
    (challenge,) = parse_challenges('Digest realm="cam", nonce="n1", algorithm=MD5-sess, qop="auth"')
    header = authorization(challenge, Account("u", "p"), method="PLAY", url="rtsp://c/", count=2, client_nonce="c1")

    def md5(text):
        return hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()

    known = md5(f"{md5('u:cam:p')}:n1:c1")
    assert f'response="{md5(f"{known}:n1:00000002:c1:auth:" + md5("PLAY:rtsp://c/"))}"' in header
    assert header.endswith("algorithm=MD5-sess")


def test_a_realm_goes_back_byte_by_byte():
    """A realm in GBK is no UTF-8; its bytes go into the hash, and back to the camera, as they came."""
    realm = "登录".encode("gbk").decode(errors="surrogateescape")
    (challenge,) = parse_challenges(f'Digest realm="{realm}", nonce="n1"')
    header = authorization(challenge, Account("u", "p"), method="PLAY", url="rtsp://c/", count=1, client_nonce="")
    assert "登录".encode("gbk") in header.encode(errors="surrogateescape")


def nonce_of(header: str) -> str:
    found = re.search(r' nonce="([^"]*)"', header)
    return found[1] if found else ""


def test_another_nonce_without_stale_is_tried_once():
    proofs = Proofs(MUFASA, CameraHabits())
    assert proofs.take('Digest realm="c", nonce="1"')
    assert nonce_of(proofs.proof("DESCRIBE", "u")) == "1"
    assert proofs.take('Digest realm="c", nonce="2"')
    assert nonce_of(proofs.proof("DESCRIBE", "u")) == "2"
    assert not proofs.take('Digest realm="c", nonce="3"')


def test_an_accepted_account_may_meet_a_new_nonce_at_every_request():
    proofs = Proofs(MUFASA, CameraHabits())
    assert proofs.take('Digest realm="c", nonce="0"')
    for number in range(1, 9):
        proofs.proof("PLAY", "u")
        proofs.accepted()
        proofs.proof("PLAY", "u")
        assert proofs.take(f'Digest realm="c", nonce="{number}"')
        assert nonce_of(proofs.proof("PLAY", "u")) == str(number)


def test_a_wrong_account_costs_one_attempt_more_in_all():
    habits = CameraHabits()
    attempts = []
    for connection in range(3):
        proofs = Proofs(MUFASA, habits)
        number = 0
        while proofs.take(f'Digest realm="c", nonce="{connection}-{number}"'):
            attempts.append(proofs.proof("DESCRIBE", "u"))
            number += 1
        proofs.refused()
    assert len(attempts) == 4


@pytest.mark.parametrize("again", ['Digest realm="c", nonce="1"', 'Basic realm="c"'])
def test_the_same_proof_is_not_sent_twice(again):
    proofs = Proofs(MUFASA, CameraHabits())
    assert proofs.take(again)
    proofs.proof("DESCRIBE", "u")
    assert not proofs.take(again)


def test_an_account_that_is_kept_for_md5_alone_is_proven_by_md5():
    both = 'Digest realm="c", nonce="{0}", algorithm=SHA-256, Digest realm="c", nonce="{0}", algorithm=MD5'
    proofs = Proofs(MUFASA, CameraHabits())
    assert proofs.take(both.format(1))
    assert "SHA-256" in proofs.proof("DESCRIBE", "u")
    assert proofs.take(both.format(2))
    assert "SHA-256" not in proofs.proof("DESCRIBE", "u")


def test_a_refused_digest_is_never_followed_by_the_password_itself():
    proofs = Proofs(MUFASA, CameraHabits())
    offered = 'Digest realm="c", nonce="{}", Basic realm="c"'
    number = 0
    while proofs.take(offered.format(number)):
        assert proofs.proof("DESCRIBE", "u").startswith("Digest")
        number += 1


def test_without_an_account_nothing_is_proven():
    proofs = Proofs(None, CameraHabits())
    assert not proofs.take('Digest realm="c", nonce="1"')
    assert proofs.proof("DESCRIBE", "u") == ""
