"""Every parser of what comes from outside, fed with bytes: a table for `tests/test_parsers.py` and `fuzz_parsers.py`.

A parser reads its input or refuses it with its own kind of error. Anything else is a fault, and so is taking long.
"""

from __future__ import annotations

import io
import json
import os
import re
import tarfile
import tempfile
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC
from functools import partial
from pathlib import Path

from pydantic import ValidationError
from pydantic_core import from_json

from drivers.contract import DeviceFault, ProtocolViolation
from drivers.discovery import camera_of
from drivers.hikvision.isapi import check_answer, read_position
from drivers.modbus.frames import (
    Read,
    Request,
    Table,
    Values,
    Write,
    Written,
    decode_request,
    encode_reply,
    encode_request,
    parse_reply,
)
from drivers.osdp.channel import ReplyFrames, reply_of
from drivers.osdp.messages import happening_of
from drivers.plates.axis import AXIS
from drivers.plates.dahua import DAHUA
from drivers.plates.hikvision import HIKVISION
from drivers.plates.multipart import BodyPart, PartSplitter
from drivers.plates.plate_recognizer import plate_recognizer
from drivers.rtsp import formats, h264, h265
from drivers.rtsp.audio_track import packets_of
from drivers.rtsp.client.accounts import parse_challenges
from drivers.rtsp.client.messages import (
    begins_request,
    parse_request_head,
    parse_response_head,
    parse_rtp_info,
    parse_session,
    reply,
)
from drivers.rtsp.depacketizer import Depacketizer
from drivers.rtsp.frames import VideoCodec
from drivers.rtsp.rtp_reception import RtpReception
from drivers.rtsp.sdp import parse_description
from drivers.rtsp.server.messages import parse_request, parse_transport
from drivers.serial_line.frames import FrameSplitter
from drivers.serial_line.profile import load_tag_reader_profile
from drivers.serial_line.splitter import LineSplitter
from drivers.webrtc.whep_dialogue import parse_answer
from drivers.xml_texts import read_xml
from gateway.backup.archive import read_manifest
from gateway.camera_worker.salvage import whole_frames
from gateway.camera_worker.sdp import SdpRefused, checked_offer, trickle
from gateway.camera_worker.transport_stream import access_units, picture_times
from gateway.central.client.answers import Unreadable, judge, read_object
from gateway.central.client.values import record_id
from gateway.central.field_map import CardFieldMap, CardMapper
from gateway.domain.errors import ConfigError, GatewayError, StoreError
from gateway.fleet.commands_down import Notice
from gateway.fleet.signed_commands import SENDER, FleetCommand, sender_of, signed
from gateway.fleet.signed_commands import SIGNATURE as FLEET_SIGNATURE
from gateway.mqtt.packets import Answers, MalformedPacket
from gateway.proof_package.package import MANIFEST, PUBLIC_KEY, SIGNATURE
from gateway.proof_package.verify import ProofBroken, verify
from gateway.site.load import load
from gateway.site.secrets import Secrets
from gateway.web.catalogue import OPERATIONS
from gateway.web.http.bodies import validated
from gateway.web.http.errors import RequestRefused

_ROOT = Path(__file__).resolve().parents[2]
_CAPTURES = _ROOT / "tests" / "drivers" / "plates" / "captures"
_PROFILES = _ROOT / "drivers" / "profiles"


@dataclass(frozen=True, slots=True)
class Parser:
    """A parser.

    Attributes:
        name: of its folder of kept inputs too.
        read: feeds it; what it raises beside `refusals` is a fault.
        refusals: how it refuses an input.
        seeds: good inputs, from which others are made.
        longest: bytes of an input.
        seconds: of its thread, at most, for one input.
        examples: how many inputs the suite makes.
    """

    name: str
    read: Callable[[bytes], object]
    refusals: tuple[type[Exception], ...]
    seeds: tuple[bytes, ...]
    longest: int = 2048
    seconds: float = 0.05
    examples: int = 60

    def feed(self, data: bytes) -> None:
        """Let it read; raises what is a fault."""
        try:
            self.read(data)
        except self.refusals:
            return


def _head(data: bytes) -> tuple[int, bytes]:
    """Take a choice from the first byte."""
    return (data[0] if data else 0), data[1:]


# --- lines

_REQUESTS: tuple[Request, ...] = (
    Read(Table.COIL, 0, 16),
    Read(Table.HOLDING_REGISTER, 100, 3),
    Write(Table.COIL, 0x0200, 7),
)


def _modbus_seeds(framing: str) -> tuple[bytes, ...]:
    seeds = []
    for number, request in enumerate(_REQUESTS):
        asked = decode_request(framing, encode_request(framing, unit=1, tag=1, request=request))
        reply = Values(tuple([1] * request.count)) if isinstance(request, Read) else Written()
        seeds.append(bytes([number]) + encode_reply(framing, asked=asked, reply=reply))
    return tuple(seeds)


def _modbus(framing: str) -> Callable[[bytes], object]:
    def read(data: bytes) -> None:
        choice, received = _head(data)
        parse_reply(framing, unit=1, tag=1, request=_REQUESTS[choice % len(_REQUESTS)], received=received)

    return read


def _modbus_request(data: bytes) -> None:
    choice, received = _head(data)
    decode_request("rtu" if choice % 2 else "tcp", received)


_TAG_READER = load_tag_reader_profile(_PROFILES / "uhf-iqrfid-5102.toml")


def _serial_frames(data: bytes) -> None:
    splitter = FrameSplitter(_TAG_READER.replies)
    for at in range(0, len(data), 7):
        for frame in splitter.feed(data[at : at + 7]):
            _TAG_READER.tags.of(frame)
    splitter.end_of_silence()


def _serial_lines(data: bytes) -> None:
    splitter = LineSplitter(terminator=b"\r\n", longest=64)
    for at in range(0, len(data), 5):
        splitter.feed(data[at : at + 5])
    splitter.end_of_silence()


_POLL = bytes.fromhex("53 05 08 00 05 60 4f ad")


def _osdp(data: bytes) -> None:
    frames = ReplyFrames()
    frames.expect(_POLL)
    for at in range(0, len(data), 9):
        frames.feed(data[at : at + 9])
    reply_of(data)


# --- video


def _rtsp_answer(data: bytes) -> None:
    response = parse_response_head(data)
    _ = response.sequence
    parse_challenges(response.headers.get("www-authenticate", ""))
    parse_session(response.headers.get("session", ""))
    parse_rtp_info(response.headers.get("rtp-info", ""))


def _camera_request(data: bytes) -> None:
    if begins_request(data):
        answer = reply(parse_request_head(data))
        assert answer.count(b"\r\n\r\n") == 1, "nothing of the camera's ends the head of our answer"
        assert parse_response_head(answer).status in {200, 501}


def _units_of_segment(data: bytes) -> None:
    """Read a segment both ways, which must name the same pictures."""
    times = picture_times(data)
    assert [unit.pts for unit in access_units(data) if not unit.is_sound] == times


def _rtsp_request(data: bytes) -> None:
    request = parse_request(data)
    parse_transport(request.headers.get("transport", ""))


def _sdp(data: bytes) -> None:
    for media in parse_description(data, base="rtsp://camera/main"):
        for encoding in media.encodings.values():
            for name in ("sprop-parameter-sets", "sprop-vps", "sprop-sps", "sprop-pps"):
                encoding.sets(name)
            packets_of(encoding)


def _rtp(data: bytes) -> None:
    choice, rest = _head(data)
    reception = RtpReception(payload_types={96}, retransmits={97: 96})
    depacketizer = Depacketizer(codec=VideoCodec.H265 if choice % 2 else VideoCodec.H264)
    sound = packets_of(_AAC)
    at, now = 0, 0.0
    while at < len(rest):  # a byte of length before each packet
        packet = rest[at + 1 : at + 1 + rest[at]]
        at, now = at + 1 + rest[at], now + 0.01
        reception.push(packet, now)
        reception.missing(now)
        for ordered in reception.take():
            depacketizer.push(ordered)
        sound.push(packet)


_AAC = next(
    iter(
        parse_description(
            b"v=0\r\nm=audio 0 RTP/AVP 97\r\na=rtpmap:97 mpeg4-generic/16000/1\r\n"
            b"a=fmtp:97 mode=AAC-hbr;config=1408;sizelength=13;indexlength=3;indexdeltalength=3\r\n",
            base="rtsp://camera/main",
        )[0].encodings.values()
    )
)
_SPS = bytes.fromhex("6742c01ed9005005bb0110000003001000000303c8f162e480")
_PPS = bytes.fromhex("68cb83cb20")
_H265_SETS = (
    bytes.fromhex("40010c01ffff01600000030090000003000003005d959809"),
    bytes.fromhex("42010101600000030090000003000003005da00280802d165959a4932bc05a02000003000200000300328"[:82]),
    bytes.fromhex("4401c172b46240"),
)


def _packets(*packets: bytes) -> bytes:
    return b"".join(bytes([len(packet)]) + packet for packet in packets)


def _rtp_packet(number: int, payload: bytes) -> bytes:
    return b"\x80\xe0" + number.to_bytes(2, "big") + bytes(4) + b"\0\0\0\1" + payload


def _units(data: bytes) -> None:
    choice, stream = _head(data)
    codec = VideoCodec.H265 if choice % 2 else VideoCodec.H264
    for step in (formats.of_units, formats.entry_of):
        try:
            step(codec, stream)
        except ProtocolViolation:
            continue
    for unit in h264.nal_units(stream):
        h264.recovery_frames(unit)
        h264.is_bidirectional(unit)
        h265.recovery_pictures(unit)


def _whep(data: bytes) -> None:
    choice, text = _head(data)
    if choice % 3 == 0:
        parse_answer(text)
    elif choice % 3 == 1:
        checked_offer(text.decode("utf-8", "replace"))
    else:
        trickle(text.decode("utf-8", "replace"))


# --- cameras and barriers over HTTP


_GBK_ALERT = (
    '<?xml version="1.0" encoding="GB2312"?><EventNotificationAlert><eventType>ANPR</eventType>'
    "<n>a & b\x01&#2;</n><licensePlate>京A12345</licensePlate></EventNotificationAlert>"
).encode("gbk")


def _plates(data: bytes) -> None:
    choice, body = _head(data)
    dialect = (AXIS, DAHUA, HIKVISION, plate_recognizer())[choice % 4]
    content_type = ("multipart/mixed", "application/json", "application/octet-stream")[choice // 4 % 3]
    splitter = PartSplitter(element=dialect.element, content_type=content_type)
    parts = [BodyPart("", body), BodyPart("application/x-www-form-urlencoded", body, charset="gb2312")]
    try:
        for at in range(0, len(body), 50):
            parts += splitter.feed(body[at : at + 50])
        parts += splitter.end(cut=choice % 2 == 1)
    finally:
        for part in parts:
            try:
                dialect.read(part)
            except ProtocolViolation:
                continue


def _barrier_xml(data: bytes) -> None:
    choice, body = _head(data)
    (read_xml, read_position, check_answer)[choice % 3](body)


# --- people, programs and central

_MODELS = tuple({item.body: None for item in OPERATIONS if isinstance(item.body, type)})


def _body(data: bytes) -> None:
    choice, raw = _head(data)
    try:
        sent = from_json(raw)
    except ValueError:
        return
    validated(sent, _MODELS[choice % len(_MODELS)])


def _central_json(data: bytes) -> None:
    try:
        read = read_object(data)
    except Unreadable:
        return
    if not _MENDED.search(data) and read != json.loads(data.decode()):
        raise AssertionError("central's JSON is read otherwise than Python does")
    _CARDS.map(record_id(read) or 1, read)


_MENDED = re.compile(rb"\\u[dD]|NaN|Infinity|[eE]\+?\d{3}|\d{300}")
"""Parts of a body that cannot be kept as values."""
_CARDS = CardMapper(CardFieldMap(), UTC)


def _central_answer(data: bytes) -> None:
    choice, body = _head(data)
    judge("card/update", (200, 400, 404, 500)[choice % 4], body)


def _fleet_message(data: bytes) -> None:
    """Read a message of the fleet, signed or not; a signature counts for its own bytes alone."""
    choice, raw = _head(data)
    key, signature, body = (*raw.split(b"\n", 2), b"", b"")[:3]
    headers = {SENDER: key.decode("latin-1"), FLEET_SIGNATURE: signature.decode("latin-1")}
    if sender_of(headers, _SUBJECT, body) == _SIGNED[SENDER] and body != _COMMAND:
        raise AssertionError("a message counts as signed that nobody signed")
    (Notice, FleetCommand)[choice % 2].model_validate_json(body)


_SUBJECT, _SEED = "cmd.north.gate-1", "SUAAAAICAMCAKBQHBAEQUCYMBUHA6EARCIJRIFIWC4MBSGQ3DQOR4H776Y"
_COMMAND = b'{"id": "0123-abcd", "action": "open", "lane": "entry", "nonce": "1.a.b", "seconds": 9.5}'
_SIGNED = signed(_SEED, _SUBJECT, _COMMAND)


_FOLDER = Path(tempfile.mkdtemp(prefix="parsers-"))
_NO_SECRETS = Secrets(folder=_FOLDER)


def _site_file(data: bytes) -> None:
    load(_FOLDER / "site.toml", text=data, secrets=_NO_SECRETS)


def _as_file(read: Callable[[Path], object], name: str) -> Callable[[bytes], object]:
    """Feed a reader of files from memory: a file written anew waits for the disk each time."""
    path = Path(f"/proc/self/fd/{os.memfd_create(name)}")

    def feed(data: bytes) -> None:
        path.write_bytes(data)
        read(path)

    return feed


def _zipped() -> bytes:
    """Make a package whose manifest is signed by nobody."""
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w") as package:
        for name in (MANIFEST, SIGNATURE, PUBLIC_KEY):
            package.writestr(name, b"{}")
    return held.getvalue()


def _packed() -> bytes:
    """Make a backup whose manifest lacks everything, its proof too: to judge one takes the key's 0.2 s."""
    held = io.BytesIO()
    with tarfile.open(fileobj=held, mode="w:gz") as tar:
        entry = tarfile.TarInfo("manifest.json")
        entry.size = 2
        tar.addfile(entry, io.BytesIO(b"{}"))
    return held.getvalue()


def _capture(choice: int, name: str) -> bytes:
    return bytes([choice]) + (_CAPTURES / name).read_bytes()


_DEVICE_ERRORS = (ProtocolViolation,)
_CARD = json.dumps(
    {"id": 7, "number": "17", "status": "active", "valid_until": "2027-01-31", "zones": ["main"]}
).encode()
_RTSP_ANSWER = (
    b'RTSP/1.0 401 Unauthorized\r\nCSeq: 3\r\nWWW-Authenticate: Digest realm="cam", nonce="1", qop="auth"\r\n'
    b"Session: 12;timeout=60\r\nRTP-Info: url=rtsp://c/1;seq=4;rtptime=5"
)
_CAMERA_REQUEST = b"OPTIONS * RTSP/1.0\r\nCSeq: 5\r\nSession: 12\r\n\r\n"
_RTSP_REQUEST = b"SETUP rtsp://gate/1/track1 RTSP/1.0\r\nCSeq: 2\r\nTransport: RTP/AVP/TCP;unicast;interleaved=0-1"
_SDP = (
    b"v=0\r\nm=video 0 RTP/AVP 96\r\na=control:track1\r\na=rtpmap:96 H264/90000\r\n"
    b"a=fmtp:96 packetization-mode=1;sprop-parameter-sets=Z0LAHtkAUAW7ARAAAAMAEAAAAwPI8WLkgA==,aMuDyyA=\r\n"
    b"m=audio 0 RTP/AVP 97\r\na=rtpmap:97 mpeg4-generic/16000/1\r\na=fmtp:97 config=1408;sizelength=13\r\n"
)
_OFFER = (
    "v=0\r\no=- 1 1 IN IP4 127.0.0.1\r\ns=-\r\nt=0 0\r\nm=video 9 UDP/TLS/RTP/SAVPF 96\r\nc=IN IP4 0.0.0.0\r\n"
    "a=rtpmap:96 H264/90000\r\na=recvonly\r\na=mid:0\r\na=ice-ufrag:abcd\r\na=ice-pwd:0123456789012345678901\r\n"
    "a=fingerprint:sha-256 " + ":".join(["AB"] * 32) + "\r\na=setup:passive\r\n"
    "a=candidate:1 1 udp 1 192.0.2.1 5000 typ host\r\na=end-of-candidates\r\n"
).encode()
_XML = b'<?xml version="1.0"?><ResponseStatus><statusCode>1</statusCode><status>opened</status></ResponseStatus>'
_ANNEX_B = b"\0\0\0\1" + _SPS + b"\0\0\0\1" + _PPS + b"\0\0\0\1\x65\x88\x84\0\x10"
_PES_HEAD = b"\0\0\1\xe0\0\0\x84\x80\x05\x21\0\1\0\1"
_SEGMENT = b"".join(
    head + rest.ljust(188 - len(head), b"\x5a")
    for head, rest in (
        (b"\x47\x41\0\x30\1\x40", _PES_HEAD + _ANNEX_B),  # an entry point with its parameter sets
        (b"\x47\1\0\x11", b""),
        (b"\x47\1\0\x32\x50\0", b""),  # stuffing ends the picture
        (b"\x47\x41\1\x10", _PES_HEAD + b"\xff\xf1\x50\x80\x17\xff\xfc"),  # sound
        (b"\x47\x41\0\x13", _PES_HEAD + b"\0\0\0\1\x41\x9a"),
    )
)
_ANNEX_B_H265 = b"".join(b"\0\0\0\1" + unit for unit in _H265_SETS) + b"\0\0\0\1\x26\1\xaf"

PARSERS = (
    Parser("modbus-rtu", _modbus("rtu"), _DEVICE_ERRORS, _modbus_seeds("rtu"), 300),
    Parser("modbus-tcp", _modbus("tcp"), _DEVICE_ERRORS, _modbus_seeds("tcp"), 300),
    Parser("modbus-request", _modbus_request, _DEVICE_ERRORS, _modbus_seeds("tcp"), 300),
    Parser("serial-frames", _serial_frames, _DEVICE_ERRORS, (bytes.fromhex("05 00 01 fb f2 3d"),), 400),
    Parser("serial-lines", _serial_lines, (), (b"!01\r\nOPEN 1\r\n",), 400),
    Parser("osdp-replies", _osdp, (), (bytes.fromhex("ff 53 85 08 00 05 40 e3 a5"), _POLL), 600),
    Parser("osdp-messages", happening_of, _DEVICE_ERRORS, (b'{"kind": "beat"}', b'{"kind": "lost", "address": 1}')),
    Parser("rtsp-answer", _rtsp_answer, _DEVICE_ERRORS, (_RTSP_ANSWER,)),
    Parser("camera-request", _camera_request, _DEVICE_ERRORS, (_CAMERA_REQUEST,)),
    Parser("rtsp-request", _rtsp_request, _DEVICE_ERRORS, (_RTSP_REQUEST,)),
    Parser("sdp", _sdp, _DEVICE_ERRORS, (_SDP,)),
    Parser(
        "rtp",
        _rtp,
        _DEVICE_ERRORS,
        (
            b"\0" + _packets(_rtp_packet(1, _SPS), _rtp_packet(2, b"\x7c\x85\x88"), _rtp_packet(3, b"\x7c\x45\x10")),
            b"\1" + _packets(*(_rtp_packet(number, unit) for number, unit in enumerate(_H265_SETS))),
        ),
    ),
    Parser("video-headers", _units, _DEVICE_ERRORS, (b"\0" + _ANNEX_B, b"\1" + _ANNEX_B_H265)),
    Parser("webrtc-sdp", _whep, (ProtocolViolation, SdpRefused), tuple(bytes([n]) + _OFFER for n in range(3))),
    Parser("transport-stream", whole_frames, (), (bytes([0x47, 0x41, 0, 0x10]) + bytes(184),), 188 * 40),
    Parser("segment-units", _units_of_segment, (), (_SEGMENT,), 188 * 40),
    Parser(
        "plates",
        _plates,
        _DEVICE_ERRORS,
        (
            _capture(0, "axis-update.json"),
            _capture(1, "dahua-stream.bin"),
            _capture(2, "hikvision-anpr.xml"),
            _capture(2, "hikvision-push.bin"),
            _capture(3, "plate-recognizer.json"),
            _capture(6, "hikvision-anpr.xml"),
            _capture(10, "hikvision-push.bin"),
            b"\x06" + _GBK_ALERT,
            b'\x06{"EventNotificationAlert": {"eventType": "ANPR", "ANPR": {"licensePlate": "AB12"}}}',
        ),
        4096,
    ),
    Parser("barrier-xml", _barrier_xml, (ProtocolViolation, DeviceFault), (b"\0" + _XML, b"\1" + _XML, b"\2" + _XML)),
    Parser("onvif", lambda data: camera_of(data, message="m"), (), (_XML,)),
    Parser("api-bodies", _body, (RequestRefused,), (b"\0" + _CARD, b'\1{"id": 1, "page": 2}')),
    Parser("central-json", _central_json, (), (_CARD, b'{"cards": [' + _CARD + b'], "next_cursor": 1.5e3}')),
    Parser(
        "central-answers", _central_answer, (GatewayError,), (b'\0{"success": true}', b'\1{"error": "no such card"}')
    ),
    Parser(
        "fleet-messages",
        _fleet_message,
        (ValidationError,),
        (
            b"\1" + f"{_SIGNED[SENDER]}\n{_SIGNED[FLEET_SIGNATURE]}\n".encode() + _COMMAND,
            b'\0\n\n{"ids": [4002, 7], "number": 17}',
        ),
    ),
    Parser(
        "mqtt-answers",
        lambda data: list(Answers().feed(data)),
        (MalformedPacket,),
        (bytes.fromhex("20 0b 00 00 08 21 00 14 27 00 10 00 00"), bytes.fromhex("40 02 00 07 d0 00 e0 02 8b 00")),
        600,
    ),
    Parser("site-file", _site_file, (ConfigError,), ((_ROOT / "config" / "site.example.toml").read_bytes(),), 60_000),
    Parser("proof-package", _as_file(verify, "package.zip"), (ProofBroken,), (_zipped(),), 20_000),
    Parser(
        "backup",
        _as_file(partial(read_manifest, passphrase="fuzz"), "backup.tar.gz"),
        (ConfigError, StoreError),
        (_packed(),),
        20_000,
    ),
)
