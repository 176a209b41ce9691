"""WHEP (draft-ietf-wish-whep) on the viewer's side: the offer of a WebRTC session and the camera's answer. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from drivers.contract import ProtocolViolation
from drivers.rtsp.sdp import Encoding, parse_description

_FIRST_PAYLOAD_TYPE = 96
_H264_PROFILES = ("42e034", "4d0034", "640034")
"""Baseline, main and high at level 5.2: nothing is decoded here, so no stream needs to be refused."""


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """The hash of one side's certificate (RFC 8122)."""

    algorithm: str
    value: str


@dataclass(frozen=True, slots=True)
class IceAccount:
    """The credentials of one side's connectivity checks (RFC 8445)."""

    user: str
    password: str


@dataclass(frozen=True, slots=True)
class WhepAnswer:
    """The camera's answer.

    Attributes:
        encodings: the encodings of its payload types.
        retransmits: the payload types of retransmissions (RFC 4588), each with the one that it repeats.
        ice: the credentials of the camera's connectivity checks.
        is_lite: whether the camera only answers connectivity checks (ICE lite).
        fingerprints: the hashes of its certificate.
        calls: whether the camera begins the DTLS handshake.
        candidates: its UDP addresses, each in the form of RFC 8839, 5.1.
    """

    encodings: Mapping[int, Encoding]
    retransmits: Mapping[int, int]
    ice: IceAccount
    is_lite: bool
    fingerprints: tuple[Fingerprint, ...]
    calls: bool
    candidates: tuple[str, ...]


def offer(*, ice: IceAccount, fingerprints: Sequence[Fingerprint], candidates: Sequence[str], session: int) -> str:
    """Return an offer (SDP) to receive one video, H.264 or H.265, with retransmissions and all candidates.

    Args:
        ice: the credentials of the gateway's connectivity checks.
        fingerprints: the hashes of the gateway's certificate.
        candidates: the gateway's addresses.
        session: a number that distinguishes this session from others.
    """
    codecs = [
        ("H264/90000", f"level-asymmetry-allowed=1;packetization-mode=1;profile-level-id={profile}")
        for profile in _H264_PROFILES
    ]
    codecs.append(("H265/90000", "level-id=186;profile-id=1;tier-flag=0;tx-mode=SRST"))
    lines: list[str] = []
    numbers: list[str] = []
    for at, (name, parameters) in enumerate(codecs):
        number = _FIRST_PAYLOAD_TYPE + 2 * at
        numbers += [str(number), str(number + 1)]
        lines += [
            f"a=rtpmap:{number} {name}",
            f"a=fmtp:{number} {parameters}",
            f"a=rtcp-fb:{number} nack",
            f"a=rtcp-fb:{number} nack pli",
            f"a=rtpmap:{number + 1} rtx/90000",
            f"a=fmtp:{number + 1} apt={number}",
        ]
    head = [
        "v=0",
        f"o=- {session} 1 IN IP4 0.0.0.0",
        "s=-",
        "t=0 0",
        "a=group:BUNDLE 0",
        f"m=video 9 UDP/TLS/RTP/SAVPF {' '.join(numbers)}",
        "c=IN IP4 0.0.0.0",
        "a=mid:0",
        "a=recvonly",
        "a=rtcp-mux",
        f"a=ice-ufrag:{ice.user}",
        f"a=ice-pwd:{ice.password}",
        "a=setup:actpass",
    ]
    prints = [f"a=fingerprint:{each.algorithm} {each.value}" for each in fingerprints]
    addresses = [f"a=candidate:{candidate}" for candidate in candidates]
    return "\r\n".join([*head, *prints, *lines, *addresses, "a=end-of-candidates", ""])


def parse_answer(body: bytes) -> WhepAnswer:
    """Parse the camera's answer.

    Raises:
        ProtocolViolation: ICE credentials or fingerprints are missing, so that no session is possible.
    """
    attributes: dict[str, str] = {}
    candidates: list[str] = []
    fingerprints: list[Fingerprint] = []
    is_lite = False
    for line in body.decode("utf-8", "replace").splitlines():
        name, _, value = line.strip().removeprefix("a=").partition(":")
        match name:
            case "ice-ufrag" | "ice-pwd" | "setup":
                attributes.setdefault(name, value.strip())
            case "ice-lite":
                is_lite = True
            case "fingerprint" if len(parts := value.split()) == 2:
                fingerprints.append(Fingerprint(parts[0].lower(), parts[1]))
            case "candidate" if _is_usable(value):
                candidates.append(value.strip())
            case _:
                continue
    # an answer that refuses the video may have nothing but a media line with port 0
    if not attributes.get("ice-ufrag") or not attributes.get("ice-pwd") or not fingerprints:
        raise ProtocolViolation("the camera's answer is none to a WebRTC offer")
    video = next((medium for medium in parse_description(body, base="") if medium.kind == "video"), None)
    encodings = dict(video.encodings) if video is not None else {}
    repeats = {number: encodings.pop(number) for number, each in list(encodings.items()) if each.name == "RTX"}
    retransmits = {
        number: int(of)
        for number, each in repeats.items()
        if (of := each.parameters.get("apt", "")).isdecimal() and int(of) in encodings
    }
    return WhepAnswer(
        encodings=encodings,
        retransmits=retransmits,
        ice=IceAccount(attributes["ice-ufrag"], attributes["ice-pwd"]),
        is_lite=is_lite,
        fingerprints=tuple(dict.fromkeys(fingerprints)),
        calls=attributes.get("setup", "active") == "active",
        candidates=tuple(dict.fromkeys(candidates)),
    )


def _is_usable(candidate: str) -> bool:
    """Return whether this candidate is an RTP address (component 1) over UDP."""
    fields = candidate.split()
    return (
        len(fields) >= 8
        and fields[1] == "1"
        and fields[2].lower() == "udp"
        and fields[3].isdecimal()
        and fields[5].isdecimal()
        and fields[6] == "typ"
    )
