"""Our WHEP source against aiortc's own sender, which misbehaves by a script."""

from __future__ import annotations

import asyncio
import datetime as dt
import ssl
import threading
import time
from collections import deque
from contextlib import closing
from itertools import chain, pairwise

import aioice.ice
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from first_frames import decoded, first_frames
from hostile_camera import TICKS, film, joined
from waiting import GENEROUS, until
from whep_camera import WhepCamera, WhepScript

from drivers.rtsp import h264, h265
from drivers.rtsp.errors import CameraEnded, CameraRefused, CameraStalled, CameraUnreachable
from drivers.rtsp.video_track import FootageLost
from drivers.video_sources import source_at
from drivers.webrtc.whep_source import WhepSource

PACE = 4.0


def script(**more) -> WhepScript:
    return WhepScript(**{"film": film(), "pace": PACE, **more})


def read(url, count, **more):
    return first_frames(WhepSource(url=url, **{"stall_seconds": 1.0, "open_seconds": 5.0, **more}), count)


async def seen(told: WhepScript, count=30, account="", **more):
    async with WhepCamera(told) as camera:
        return await asyncio.to_thread(read, camera.url(account), count, **more)


def units(frames) -> list[list[bytes]]:
    """Return the encoded bytes without their separators."""
    return [list(h264.nal_units(frame.data)) for frame in frames]


async def test_each_picture_comes_through_as_it_was_encoded_and_the_session_is_ended():
    async with WhepCamera(script()) as camera:
        source = source_at(camera.url())
        assert isinstance(source, WhepSource)
        source.close()
        frames = await asyncio.to_thread(read, camera.url(), 45)
        assert camera.deleted == 1
        assert camera.last.plis == camera.last.naks == 0
    assert units(frames) == units(film()[:45])
    assert {after.pts - before.pts for before, after in pairwise(frames)} == {TICKS}
    assert decoded(frames) == 45


async def test_h265_is_taken_as_it_comes():
    frames = await seen(script(film=film("h265")), 30)
    assert {frame.codec for frame in frames} == {"h265"}
    assert units(frames)[:30] == [
        [unit for unit in each if h265.nal_type(unit) != h265.DELIMITER] for each in units(film("h265")[:30])
    ]


async def test_over_https_with_a_certificate_that_the_camera_signed_itself(tmp_path):
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "camera")])
    now = dt.datetime(2020, 1, 1, tzinfo=dt.UTC)
    certificate = (
        x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
        .serial_number(1).not_valid_before(now).not_valid_after(now + dt.timedelta(days=9_000))
        .sign(key, hashes.SHA256())
    )  # fmt: skip
    secret = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    (tmp_path / "both.pem").write_bytes(secret + certificate.public_bytes(serialization.Encoding.PEM))
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(tmp_path / "both.pem")
    async with WhepCamera(script(token="s3cret"), tls=context) as camera:
        assert len(await asyncio.to_thread(read, camera.url(":s3cret@"), 2)) == 2
        assert camera.deleted == 1


@pytest.mark.parametrize(
    ("known", "account", "wrong"),
    [
        ({"token": "s3cret"}, ":s3cret@", ":other@"),
        ({"basic": ("cam", "p@ss")}, "cam:p%40ss@", "cam:n0t@"),
        ({"digest": ("cam", "p@ss")}, "cam:p%40ss@", "cam:n0t@"),
    ],
)
async def test_each_way_to_prove_an_account(known, account, wrong):
    async with WhepCamera(script(**known)) as camera:
        await asyncio.to_thread(read, camera.url(account), 2)
        assert camera.deleted == 1
        for bad in ("", wrong):
            with pytest.raises(CameraRefused, match="account") as caught:
                await asyncio.to_thread(read, camera.url(bad), 1)
            assert "n0t" not in str(caught.value)


async def test_an_account_stays_with_the_host_it_was_given_for():
    async with WhepCamera(script(token="s3cret")) as camera, WhepCamera(script(token="s3cret")) as other:
        camera.script.redirect = "/elsewhere"
        await asyncio.to_thread(read, camera.url(":s3cret@"), 1)
        assert ("POST", "/elsewhere") in camera.requests
        camera.script.redirect = other.url().replace("whep", "http", 1)
        with pytest.raises(CameraRefused, match="account"):
            await asyncio.to_thread(read, camera.url(":s3cret@"), 1)
        assert len(other.requests) == 1


@pytest.mark.parametrize(
    ("status", "says"),
    [(409, "just now"), (503, "no more viewers"), (404, "no stream"), (403, "account"), (406, "H.265"), (500, "500")],
)
async def test_each_refusal_says_what_is_wrong(status, says):
    async with WhepCamera(script(statuses=[status])) as camera:
        with pytest.raises(CameraRefused, match=says):
            await asyncio.to_thread(read, camera.url(), 1)
        assert len(await asyncio.to_thread(read, camera.url(), 1)) == 1


async def test_a_lost_packet_is_asked_for_again_and_costs_nothing():
    async with WhepCamera(script(loses=lambda picture, times, _last: picture % 7 == 3 and times == 1)) as camera:
        frames = await asyncio.to_thread(read, camera.url(), 45)
        assert camera.last.lost > 5
        assert camera.last.naks >= camera.last.lost - 1
    assert units(frames) == units(film()[:45])


async def test_a_loss_for_good_has_a_keyframe_asked_for():
    told = script(film=film(frames=100, gop=100), loses=lambda picture, _times, _last: picture == 30)
    async with WhepCamera(told) as camera:
        frames = await asyncio.to_thread(read, camera.url(), 95)
        assert camera.last.naks >= 2  # what stays away is asked for more than once
        assert camera.last.plis == 1
    assert not [frame for frame in frames if isinstance(frame, FootageLost)]
    again = [at for at, frame in enumerate(frames) if frame.keyframe][1]
    assert 50 < again < 90


async def test_a_lost_keyframe_is_a_loss_and_another_is_asked_for():
    told = script(loses=lambda picture, _times, last: picture == 21 and last, heeds_pli=False)
    async with WhepCamera(told) as camera:
        frames = await asyncio.to_thread(read, camera.url(), 60)
        assert camera.last.plis >= 1
    lost = [at for at, frame in enumerate(frames) if isinstance(frame, FootageLost)]
    assert frames[lost[0]] == FootageLost(by_network=True)
    assert frames[lost[0] + 1].keyframe
    assert decoded(frames[: lost[0]]) == lost[0]


async def test_keyframes_are_asked_for_ever_less_often_while_none_comes_through():
    """A keyframe is a burst of packets; asking for one after the other may be what keeps them from coming through."""
    told = script(film=film(frames=50, gop=50), loses=lambda _picture, _times, last: last)
    async with WhepCamera(told) as camera:
        with pytest.raises(CameraStalled):
            await asyncio.to_thread(read, camera.url(), 99, stall_seconds=20.0, monotonic=lambda: 20 * time.monotonic())
        assert 1 <= camera.last.plis <= 6  # half a minute; it would be 60, if they were asked for all the time


async def test_a_burst_that_a_slow_reader_is_late_for_is_not_lost():
    large = film(frames=25, gop=25, width=1280, height=720)
    assert len(large[0].data) > 150_000
    async with WhepCamera(script(film=large, pace=1.0)) as camera:

        def late():
            with closing(WhepSource(url=camera.url(), stall_seconds=2.0)) as source:
                source.open()
                found = []
                for frame in chain.from_iterable(source.batches()):
                    found.append(frame)
                    if len(found) == 20:
                        time.sleep(0.3)  # noqa: TID251  # what a busy machine does to a thread
                    if len(found) == 40:
                        break
                return found

        frames = await asyncio.to_thread(late)
    assert not [frame for frame in frames if isinstance(frame, FootageLost)]
    assert {after.pts - before.pts for before, after in pairwise(frames)} == {TICKS}


async def test_the_picture_changes_its_size_in_the_middle():
    frames = await seen(script(film=joined(film(frames=20), film(frames=20, width=320, height=192))), 35)
    assert decoded(frames) == 35
    assert sum(frame.keyframe for frame in frames) == 4


@pytest.mark.parametrize(
    ("ends_by", "error"), [("session", CameraEnded), ("network", CameraStalled), ("stall", CameraStalled)]
)
async def test_each_end_of_a_session_is_told_apart(ends_by, error):
    with pytest.raises(error):
        await seen(script(ends_after=12, ends_by=ends_by), 99)


async def test_media_that_find_no_way_are_named():
    with pytest.raises(CameraUnreachable, match="UDP"):
        await seen(script(deaf=True), 1, open_seconds=1.0)
    with pytest.raises(CameraUnreachable, match="none of the 0 addresses"):
        await seen(script(answer=lambda sdp: sdp.replace("a=candidate", "a=x")), 1, open_seconds=600.0)
    with pytest.raises(CameraUnreachable, match="DTLS"):
        await seen(
            script(answer=lambda sdp: sdp.replace("a=fingerprint:sha-256 ", "a=fingerprint:sha-256 00:")),
            1,
            open_seconds=1.0,
        )


async def test_answers_that_are_none():
    for rubbish in (lambda _sdp: "", lambda _sdp: "\x00v=0\r\nm=\r\na=", lambda sdp: sdp.replace("a=ice-pwd", "a=x")):
        with pytest.raises(CameraUnreachable, match="none to a WebRTC offer"):
            await seen(script(answer=rubbish), 1)
    with pytest.raises(CameraRefused, match="VP8"):
        await seen(script(answer=lambda sdp: sdp.replace("H264/", "VP8/")), 1)
    with pytest.raises(CameraRefused, match="no video"):
        await seen(script(answer=lambda sdp: sdp.replace("m=video", "m=audio")), 1)


async def test_silence_and_nobody_there():
    with pytest.raises(CameraUnreachable, match="in time"):
        await seen(script(answer_seconds=2.0), 1, open_seconds=0.3)
    with pytest.raises(CameraUnreachable, match="nothing listens"):
        await asyncio.to_thread(read, "whep://127.0.0.1:9/cam", 1)


@pytest.mark.parametrize("told", [{"ends_after": 5, "ends_by": "stall"}, {"answer_seconds": 600.0}])
async def test_reading_ends_at_once_from_another_thread(told):
    async with WhepCamera(script(**told)) as camera:
        source = WhepSource(url=camera.url(), stall_seconds=600.0, open_seconds=600.0)
        came, failed = deque(), []

        def run():
            with closing(source):
                try:
                    source.open()
                    came.extend(chain.from_iterable(source.batches()))
                except CameraUnreachable as error:
                    failed.append(str(error))

        thread = threading.Thread(target=run)
        thread.start()
        await until(lambda: camera.requests)
        if "ends_after" in told:
            await until(lambda: came)
        source.interrupt()
        await asyncio.to_thread(thread.join, GENEROUS)
        assert failed


@pytest.mark.parametrize("told_as", ["127.0.0.1", "localhost"])
async def test_a_camera_on_this_machine_alone_is_reached(monkeypatch, told_as):
    real, cameras = aioice.ice.get_host_addresses, threading.main_thread()

    def addresses(use_ipv4, use_ipv6):
        return ["127.0.0.1"] if threading.current_thread() is cameras else real(use_ipv4, use_ipv6)

    monkeypatch.setattr(aioice.ice, "get_host_addresses", addresses)
    frames = await seen(script(answer=lambda sdp: sdp.replace(" 127.0.0.1 ", f" {told_as} ")))
    assert len(frames) == 30


async def test_a_camera_on_this_machine_needs_no_network(monkeypatch):
    cameras = threading.main_thread()
    monkeypatch.setattr(
        aioice.ice, "get_host_addresses", lambda **_: ["127.0.0.1"] if threading.current_thread() is cameras else []
    )
    assert len(await seen(script())) == 30
