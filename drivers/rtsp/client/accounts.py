"""Proof of an account to a camera: Basic, and Digest by RFC 2617 and RFC 7616. No I/O."""

from __future__ import annotations

import base64
import hashlib
import re
import secrets
import ssl
from dataclasses import dataclass, field, replace

from drivers.rtsp.client.habits import CameraHabits

_ESCAPES = "surrogateescape"
_WORD = re.compile(r'([\w!#$%&*+.^`|~-]+)(?:\s*(=)\s*(?:"((?:[^"\\]|\\.)*)"|([^\s,]*)))?')
"""A scheme, or a parameter and its value, quoted or plain, with or without blanks around the `=`."""
_HASHES = {
    named: hashed
    for named, hashed in (("MD5", "md5"), ("SHA-256", "sha256"), ("SHA-512-256", "sha512_256"))
    if hashed in hashlib.algorithms_available
}
_STRENGTHS = ("SHA-256", "SHA-512-256", "MD5")
"""The algorithms in the order of preference: the first is the one that every device of RFC 7616 knows."""
_OF_SESSION = "-SESS"
_SCHEMES = frozenset({"basic", "digest"})

_OLDER_CIPHERS = "ALL:!aNULL:!eNULL:@SECLEVEL=0"
_LEGACY_SERVER_CONNECT = 0x4
"""OpenSSL's option for servers without secure renegotiation (RFC 5746); Python names it from 3.12 on."""
_NO_TLS = frozenset({"WRONG_VERSION_NUMBER", "HTTP_REQUEST", "RECORD_LAYER_FAILURE"})


@dataclass(frozen=True, slots=True)
class Account:
    """The account with which the gateway signs in to the camera."""

    user: str = ""
    password: str = field(default="", repr=False)


@dataclass(frozen=True, slots=True)
class Challenge:
    """An authentication challenge of the camera."""

    scheme: str
    realm: str = ""
    nonce: str = ""
    algorithm: str = "MD5"
    """The hash, without `-sess`."""
    named: str = ""
    """The algorithm as the camera writes it; empty when it names none. It goes back as it came."""
    of_session: bool = False
    """True when the hash of the account covers both nonces too (`-sess`)."""
    opaque: str = ""
    quality: str = ""
    """The protection to use, `auth` or `auth-int`; empty when the challenge offers none (RFC 2617, 3.2.2.1)."""
    stale: bool = False
    """True if the account was right and only the nonce was old."""


def parse_challenges(value: str) -> list[Challenge]:
    """Return the challenges in `WWW-Authenticate` that this client supports, the strongest first."""
    offered: list[tuple[str, dict[str, str]]] = []
    for name, equals, quoted, plain in _WORD.findall(value):
        if not equals:
            offered.append((name.lower(), {}))
        elif offered:
            offered[-1][1].setdefault(name.lower(), quoted or plain)
    found = (_challenge(scheme, given) for scheme, given in offered if scheme in _SCHEMES)
    return sorted(
        (each for each in found if each is not None),
        key=lambda one: (one.scheme != "digest", _STRENGTHS.index(one.algorithm) if one.scheme == "digest" else 0),
    )


def _challenge(scheme: str, given: dict[str, str]) -> Challenge | None:
    named = given.get("algorithm", "").upper() or "MD5"
    algorithm = named.removesuffix(_OF_SESSION)
    if scheme == "digest" and algorithm not in _HASHES:
        return None
    qualities = re.split(r"[,\s]+", given.get("qop", "").lower())
    return Challenge(
        scheme=scheme,
        realm=given.get("realm", ""),
        nonce=given.get("nonce", ""),
        algorithm=algorithm,
        named=given.get("algorithm", ""),
        of_session=named.endswith(_OF_SESSION),
        opaque=given.get("opaque", ""),
        quality=next((each for each in ("auth", "auth-int") if each in qualities), ""),
        stale=given.get("stale", "").lower() == "true",
    )


def authorization(
    challenge: Challenge, account: Account, *, method: str, url: str, count: int, client_nonce: str
) -> str:
    """Compute the `Authorization` header that answers a challenge, for a request without a body.

    `count` counts the uses of its nonce from 1, and `client_nonce` stays the same for all of them: the hash of a
    session (`-sess`) covers that of the first use (RFC 7616, 3.4.2).
    """
    user = account.user
    if challenge.scheme == "basic":
        return "Basic " + base64.b64encode(f"{user}:{account.password}".encode()).decode()

    def digest(text: str) -> str:
        hashed = hashlib.new(_HASHES[challenge.algorithm], text.encode(errors=_ESCAPES), usedforsecurity=False)
        return hashed.hexdigest()

    known = digest(f"{user}:{challenge.realm}:{account.password}")
    if challenge.of_session:
        known = digest(f"{known}:{challenge.nonce}:{client_nonce}")
    asked = digest(f"{method}:{url}" + (f":{digest('')}" if challenge.quality == "auth-int" else ""))
    quoted_user = user.replace("\\", "\\\\").replace('"', '\\"')
    parts = {"username": quoted_user, "realm": challenge.realm, "nonce": challenge.nonce, "uri": url}
    if challenge.quality:
        counted = f"{count:08x}"
        parts["response"] = digest(f"{known}:{challenge.nonce}:{counted}:{client_nonce}:{challenge.quality}:{asked}")
    else:
        parts["response"] = digest(f"{known}:{challenge.nonce}:{asked}")
    if challenge.opaque:
        parts["opaque"] = challenge.opaque
    if challenge.quality or challenge.of_session:
        parts["cnonce"] = client_nonce
    text = ", ".join(f'{name}="{value}"' for name, value in parts.items())
    if challenge.quality:
        text += f", qop={challenge.quality}, nc={counted}"
    return f"Digest {text}" + (f", algorithm={challenge.named}" if challenge.named else "")


class Proofs:
    """The proofs of an account on one connection.

    A refused proof is repeated once if the camera sends another nonce with the refusal, even without `stale`. Before
    the camera has accepted the account, this is done on one connection only, because many lock an account after a few
    wrong attempts.
    """

    def __init__(self, account: Account | None, habits: CameraHabits) -> None:
        self._account = account
        self._habits = habits
        self._challenge: Challenge | None = None
        self._client_nonce = ""
        self._count = 0
        self._is_accepted = self._is_repeated = False
        self._unfit: set[str] = set()

    def proof(self, method: str, url: str) -> str:
        """Return the `Authorization` header of the next request; "" before a challenge, and without an account."""
        if self._challenge is None or self._account is None:
            return ""
        self._count += 1
        return authorization(
            self._challenge,
            self._account,
            method=method,
            url=url,
            count=self._count,
            client_nonce=self._client_nonce,
        )

    def take(self, header: str) -> bool:
        """Take the challenge of a 401 (`WWW-Authenticate`); return whether another attempt makes sense."""
        offered = parse_challenges(header)
        if self._account is None or not offered:
            return False
        before, is_refused = self._challenge, self._count > 0 and not any(one.stale for one in offered)
        digests = [one for one in offered if one.scheme == "digest"]
        if before is not None and is_refused and not self._is_accepted and len(digests) > 1:
            self._unfit.add(before.algorithm)  # some cameras keep the account for the older algorithm only
        fit = [one for one in digests if one.algorithm not in self._unfit]
        chosen = (fit or digests or offered)[0]
        self._challenge = replace(chosen, stale=False)
        self._client_nonce = secrets.token_hex(8)
        self._count = 0
        if before is None or not is_refused:
            return True
        may_repeat = not self._is_repeated and (self._is_accepted or not self._habits.refuses_account)
        self._is_repeated = True
        return may_repeat and replace(before, stale=False) != self._challenge

    def accepted(self) -> None:
        """Note that a request was answered otherwise than with 401."""
        self._is_repeated = False
        if self._count:
            self._is_accepted = True
            self._habits.refuses_account = False

    def refused(self) -> None:
        """Note that the camera refused the account for good."""
        self._habits.refuses_account = self._account is not None


def camera_context(*, older: bool) -> ssl.SSLContext:
    """Return a context that trusts every certificate.

    `older`: for a camera that refuses today's TLS; TLS 1.2 alone, also with RSA key exchange, CBC suites, short keys.
    """
    if older:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = False
        context.maximum_version = ssl.TLSVersion.TLSv1_2
        context.set_ciphers(_OLDER_CIPHERS)
        context.options |= _LEGACY_SERVER_CONNECT
    else:
        context = ssl.create_default_context()
        context.check_hostname = False
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.verify_mode = ssl.CERT_NONE
    return context


def may_be_older(error: OSError) -> bool:
    """Return whether a handshake that failed so may succeed with the context for older cameras."""
    if isinstance(error, ssl.SSLError):
        return getattr(error, "reason", None) not in _NO_TLS
    return isinstance(error, ConnectionError)
