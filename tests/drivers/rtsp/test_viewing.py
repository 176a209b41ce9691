"""Sessions with cameras that depart from RTSP: each is recorded, and what it taught is kept for the next connection."""

from __future__ import annotations

import asyncio
import re
import ssl
import warnings
from contextlib import closing
from itertools import chain

import pytest
from certificates import write_pair
from first_frames import assert_whole, first_frames
from hostile_camera import TICKS, HostileCamera, Script, film, sound

from drivers.rtsp import formats
from drivers.rtsp.client.habits import CameraHabits
from drivers.rtsp.client.source import RtspSource
from drivers.rtsp.errors import AccountRefused, CameraEnded, CameraRefused, CameraStalled, CameraUnreachable
from drivers.rtsp.sdp import parse_description, session_control
from drivers.rtsp.server.messages import session_description

PACE = 8.0


def read(url, count, **more):
    return first_frames(RtspSource(url=url, **{"stall_seconds": 1.0, "open_seconds": 2.0, **more}), count)


async def seen(camera, count=6, account="", **more):
    frames = await asyncio.to_thread(read, camera.url(account), count, **more)
    assert len(frames) == count
    assert_whole(frames)
    return frames


def script(**more) -> Script:
    return Script(**{"film": film(), "pace": PACE, **more})


def on(method, told):
    """Answer one method so, and all others as usual."""
    return lambda request: (
        told(request) if callable(told) and request.method == method else (told if request.method == method else None)
    )


@pytest.mark.parametrize("number", [lambda _: "0", lambda number: str(int(number) - 1), lambda _: ""])
async def test_answers_are_known_without_their_number(number):
    async with HostileCamera(script(sequence=number)) as camera:
        await seen(camera)


@pytest.mark.parametrize(
    "asks", [b"OPTIONS * RTSP/1.0\r\nCSeq: 1\r\n\r\n", b"SET_PARAMETER * RTSP/1.0\r\nCSeq: 1\r\n\r\n"]
)
async def test_a_camera_that_asks_whether_we_are_there_is_answered(asks):
    async with HostileCamera(script(asks=asks)) as camera:
        await seen(camera, 40)
    assert camera.heard[0].startswith(b"RTSP/1.0 200 OK\r\nCSeq: 1\r\n")
    assert len(camera.heard) >= 3


async def test_lines_that_end_with_lf():
    async with HostileCamera(script(line_end="\n")) as camera:
        await seen(camera)


async def test_a_camera_that_hangs_up_at_options_is_not_asked_again():
    habits = CameraHabits()
    async with HostileCamera(script(answers=on("OPTIONS", "close"))) as camera:
        for _ in range(2):
            await seen(camera, habits=habits)
        assert camera.requests.count("OPTIONS") == 1
        assert camera.connections == 3


async def test_a_camera_that_hangs_up_after_its_answer_to_options_is_read():
    habits = CameraHabits()
    before = []

    def answer(request):
        asked, before[:] = list(before), [request.method]
        return "close" if asked == ["OPTIONS"] and request.method == "DESCRIBE" else None

    async with HostileCamera(script(answers=answer)) as camera:
        await seen(camera, habits=habits)
        before.clear()
        await seen(camera, habits=habits)
        assert camera.requests.count("OPTIONS") == 1


async def test_a_camera_that_hangs_up_at_options_is_not_kept_alive_by_it():
    habits = CameraHabits()
    told = script(answers=on("OPTIONS", "close"), session_seconds=1.0, pace=2.0)
    async with HostileCamera(told) as camera:
        await seen(camera, 60, habits=habits)
        assert camera.requests.count("OPTIONS") == 1
        assert "GET_PARAMETER" in camera.requests


async def test_a_camera_that_hangs_up_at_every_question_is_not_asked_for_ever():
    async with HostileCamera(script(answers=lambda _request: "close")) as camera:
        with pytest.raises((CameraEnded, CameraUnreachable)):
            await seen(camera)
        assert camera.connections == 2


async def test_sound_that_makes_the_camera_hang_up_is_given_up_for_its_pictures():
    habits = CameraHabits()
    told = script(sound=sound("pcmu"), answers=lambda request: "close" if request.url.endswith("trackID=1") else None)
    async with HostileCamera(told) as camera:
        with pytest.raises((CameraEnded, CameraUnreachable)):
            await seen(camera, audio=True, habits=habits)
        await seen(camera, audio=True, habits=habits)


@pytest.mark.parametrize("transport", ["tcp", "udp"])
async def test_the_next_sound_is_taken_where_the_first_one_is_refused(transport):
    """A talk-back section without a direction may stand before the microphone's."""

    def answer(request):
        if request.method == "DESCRIBE":
            loudspeaker = b"m=audio 0 RTP/AVP 0\r\na=control:loudspeaker\r\n"
            return 200, {"Content-Base": request.url + "/"}, description() + loudspeaker + sound("pcmu").description()
        return (455, {}, b"") if request.url.endswith("loudspeaker") else None

    async with HostileCamera(script(sound=sound("pcmu"), answers=answer)) as camera:

        def listen():
            with closing(RtspSource(url=camera.url(), audio=True, transport=transport)) as source:
                source.open()
                return source.why_silent, next(one for one in chain.from_iterable(source.batches()) if one.data)

        assert (await asyncio.to_thread(listen))[0] == ""


async def test_pictures_without_an_answer_to_play_are_read():
    async with HostileCamera(script(answer_to_play=False)) as camera:
        await seen(camera, open_seconds=0.3)


async def test_a_camera_that_does_not_answer_options_is_asked_for_its_description_next_time():
    habits = CameraHabits()
    async with HostileCamera(script(answers=on("OPTIONS", "none"))) as camera:
        with pytest.raises(CameraUnreachable, match="in time"):
            await seen(camera, habits=habits, open_seconds=0.2)
        await seen(camera, habits=habits)


@pytest.mark.parametrize("told", [(501, {}, b""), (400, {}, b""), (405, {}, b"")])
async def test_options_may_be_refused(told):
    async with HostileCamera(script(answers=on("OPTIONS", told))) as camera:
        await seen(camera)


@pytest.mark.parametrize("method", ["OPTIONS", "DESCRIBE"])
async def test_a_redirect_may_answer_any_question_and_be_relative(method):
    async with HostileCamera(script(account=("cam", "word"))) as camera:

        def moved(request):
            return (302, {"Location": "/moved"}, b"") if not request.url.endswith("/moved") else None

        camera.script.answers = on(method, moved)
        await seen(camera, account="cam:word@")
        assert camera.addresses[-1].split("/", 3)[3].startswith("moved")


async def test_the_account_is_kept_on_the_way_back_to_its_own_host_and_goes_nowhere_else():
    async with HostileCamera(script(account=("cam", "word"))) as home, HostileCamera(script()) as other:
        proofs = []

        def back(request):
            proofs.append(request.headers.get("authorization"))
            return 302, {"Location": home.url() + "?back"}, b""

        other.script.answers = back
        elsewhere = other.url("x:y@").replace("127.0.0.1", "localhost")
        home.script.answers = lambda request: None if "?back" in request.url else (302, {"Location": elsewhere}, b"")
        await seen(home, account="cam:word@")
        assert set(proofs) == {None}


@pytest.mark.parametrize(
    "location", ["http://127.0.0.1/", "rtsp://[::1/", "rtsp://127.0.0.1:99999/", "rtsp:///x", "mailto:x"]
)
async def test_a_redirect_to_no_address_is_refused(location):
    async with HostileCamera(script(answers=on("DESCRIBE", (302, {"Location": location}, b"")))) as camera:
        with pytest.raises((CameraRefused, CameraUnreachable)):
            await seen(camera)


def description(session="", control="trackID=0"):
    body = session_description(formats.told_by(film()[0]), host="127.0.0.1").decode()
    body = "\r\n".join(line for line in body.splitlines() if line != "a=control:*")
    head, mark, media = body.partition("m=")
    return (head + session + mark + media.replace("a=control:trackID=0", f"a=control:{control}") + "\r\n").encode()


PATHS = {
    "usual": (None, "", "trackID=0", "/cam", "/cam/trackID=0"),
    "session control": (None, "a=control:rtsp://HOST/all\r\n", "rtsp://HOST/all/video", "/all", "/all/video"),
    "relative to the session": (None, "a=control:rtsp://HOST/all/\r\n", "video", "/all/", "/all/video"),
    "session control is a star": ("rtsp://HOST/base/", "a=control:*\r\n", "video", "/base/", "/base/video"),
    "query in the base": ("rtsp://HOST/cam?a=1&b=2/", "", "track1", "/cam?a=1&b=2/", "/cam?a=1&b=2/track1"),
    "query in the control": (None, "", "rtsp://HOST/cam/t=1?mode=unicast", "/cam", "/cam/t=1?mode=unicast"),
    "base without scheme": ("HOST/cam/", "", "trackID=0", "/cam", "/cam/trackID=0"),
    "base without host": ("/other/", "", "trackID=0", "/other/", "/other/trackID=0"),
    "empty base": ("", "", "trackID=0", "/cam", "/cam/trackID=0"),
    "base twice": ("rtsp://HOST/b/, rtsp://HOST/b/", "", "trackID=0", "/b/", "/b/trackID=0"),
    "absolute path": ("rtsp://HOST/cam/", "", "/tracks/1", "/cam/", "/tracks/1"),
    "no control": (None, "", "", "/cam", "/cam"),
    "capitals": (None, "", "RTSP://HOST/cam/trackID=0", "/cam", "/cam/trackID=0"),
}


@pytest.mark.parametrize("name", PATHS)
async def test_addresses_of_a_description(name):
    base, session, control, playing, setting_up = PATHS[name]
    async with HostileCamera(script()) as camera:

        def described(request):
            host = f"127.0.0.1:{camera.port}"
            headers = {} if base is None else {"Content-Base": base.replace("HOST", host)}
            return 200, headers, description(session.replace("HOST", host), control.replace("HOST", host))

        camera.script.answers = on("DESCRIBE", described)
        await seen(camera)
        asked = dict(
            zip(camera.requests, (url.partition(str(camera.port))[2] for url in camera.addresses), strict=True)
        )
    assert (asked["PLAY"], asked["SETUP"]) == (playing, setting_up)


def test_media_without_an_address_have_that_of_the_session():
    body = b"v=0\na=control:rtsp://c/all\nm=video 0 RTP/AVP 96\na=rtpmap:96 H264/90000\n"
    assert parse_description(body, base=session_control(body, base="rtsp://c/x"))[0].control == "rtsp://c/all"


TRANSPORTS = {
    "blanks and capitals": "RTP/AVP/TCP; Unicast; Interleaved = 0 - 1; SSRC=1",
    "no channels": "RTP/AVP/TCP;unicast",
    "one channel": "RTP/AVP/TCP;unicast;interleaved=0",
    "others than it uses": "RTP/AVP/TCP;unicast;interleaved=4-5",
    "impossible ones": "RTP/AVP/TCP;unicast;interleaved=900-901",
    "nothing": "",
}


@pytest.mark.parametrize("name", TRANSPORTS)
async def test_each_form_of_a_granted_transport(name):
    async with HostileCamera(script(grants=TRANSPORTS[name])) as camera:
        await seen(camera)


@pytest.mark.parametrize(
    "form", ["{session}", "{session} ; Timeout = 1 ;x", "{session};timeout=60, {session};timeout=60"]
)
async def test_each_form_of_a_session(form):
    asked = []
    async with HostileCamera(script(names_session=form)) as camera:
        camera.script.answers = lambda request: asked.append(request.headers.get("session"))
        await seen(camera)
    assert [one for one in asked if one]
    assert all(re.fullmatch("[0-9a-f]{8}", one) for one in asked if one)


async def test_udp_that_does_not_come_through_means_tcp_on_the_next_connection():
    habits = CameraHabits()
    async with HostileCamera(script(names_sender=lambda _: ";server_port=9-10")) as camera:
        with pytest.raises(CameraStalled):
            await seen(camera, transport="udp", habits=habits, stall_seconds=0.3)
        assert habits.udp_fails
        await seen(camera, transport="udp", habits=habits)


async def test_tcp_that_is_refused_after_udp_failed_means_udp_again():
    habits = CameraHabits(udp_fails=True)
    told = script(answers=lambda request: (461, {}, b"") if "TCP" in request.headers.get("transport", "") else None)
    async with HostileCamera(told) as camera:
        await seen(camera, transport="udp", habits=habits)


@pytest.mark.parametrize("transport", ["tcp", "udp"])
async def test_packets_of_a_session_that_was_cut_off_do_not_mix_in(transport):
    """Older servers go on sending them on the next connection, until that session is over."""
    count = iter(range(100_000))

    def mixed(_index, packets):
        old = [
            packet[:2] + (next(count) & 0xFFFF).to_bytes(2, "big") + packet[4:8] + b"old!" + packet[12:]
            for packet in packets
        ]
        return [each for pair in zip(old, packets, strict=True) for each in pair]

    told = script(packets=mixed, names_sender=lambda port: f";server_port={port}-{port + 1}")
    async with HostileCamera(told) as camera:
        frames = await seen(camera, 40, transport=transport)
    assert frames[-1].pts - frames[1].pts == 38 * TICKS


async def test_the_bye_of_another_session_ends_nothing():
    async with HostileCamera(script(between=b"$\x01\x00\x08\x81\xcb\x00\x01old!")) as camera:
        await seen(camera, 40)


@pytest.mark.parametrize("status", [400, 404, 405])
async def test_play_may_be_refused_for_a_slash_or_for_the_address_of_the_description(status):
    for good in ("/other", "/cam"):

        def answer(request, good=good):
            if request.method == "PLAY" and not request.url.endswith(good):
                return status, {}, b""
            if request.method == "DESCRIBE":
                return 200, {"Content-Base": "/other/"}, description()
            return None

        async with HostileCamera(script(answers=answer)) as camera:
            await seen(camera)


@pytest.mark.parametrize("status", [400, 406, 461, 500, 501])
async def test_the_other_transport_is_tried_where_the_first_one_is_refused(status):
    for wanted, refused in (("tcp", "TCP"), ("udp", "client_port")):
        told = script(
            answers=lambda request, refused=refused: (
                (status, {}, b"") if refused in request.headers.get("transport", "") else None
            )
        )
        async with HostileCamera(told) as camera:
            await seen(camera, transport=wanted)


@pytest.mark.parametrize("status", [457, 459])
async def test_play_may_be_refused_for_its_range_or_for_all_media_at_once(status):
    def refused(request):
        if request.method != "PLAY":
            return None
        good = "range" not in request.headers if status == 457 else request.url.endswith("trackID=0")
        return None if good else (status, {}, b"")

    async with HostileCamera(script(answers=refused)) as camera:
        await seen(camera)


async def test_a_session_that_the_camera_ends_at_its_time_out_is_kept_alive_better():
    habits = CameraHabits()
    told = script(kept_alive_by="GET_PARAMETER", session_seconds=1.0, pace=2.0)
    told.answers = on("OPTIONS", (200, {"Public": "PLAY"}, b""))
    async with HostileCamera(told) as camera:
        with pytest.raises(CameraEnded):
            await seen(camera, 200, habits=habits)
        assert habits.keepalive.ends_after


@pytest.fixture
def tls(tmp_path):
    """A context of a camera that knows these versions and suites alone."""

    def make(version=ssl.TLSVersion.TLSv1_2, ciphers="ECDHE-ECDSA-AES256-SHA"):
        pair = write_pair(tmp_path)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.set_ciphers(f"{ciphers}:@SECLEVEL=0")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            context.minimum_version = context.maximum_version = version
        context.load_cert_chain(pair.certificate, pair.key)
        return context

    return make


async def test_a_camera_of_old_suites_is_read_and_remembered(tls):
    habits = CameraHabits()
    async with HostileCamera(script(), tls=tls()) as camera:
        await seen(camera, habits=habits)
        assert habits.older_tls
        before = camera.connections
        await seen(camera, habits=habits)
        assert camera.connections == before + 1


async def test_a_camera_that_was_renewed_is_read_with_todays_tls(tls):
    habits = CameraHabits(older_tls=True)
    async with HostileCamera(script(), tls=tls(ssl.TLSVersion.TLSv1_3)) as camera:
        await seen(camera, habits=habits)
    assert not habits.older_tls


async def test_a_camera_that_hangs_at_a_handshake_gets_the_other_one_next_time():
    habits = CameraHabits()
    async with HostileCamera(script(silent=True)) as camera:
        for older in (True, False):
            with pytest.raises(CameraUnreachable):
                await asyncio.to_thread(
                    read, camera.url().replace("rtsp:", "rtsps:"), 1, open_seconds=0.2, habits=habits
                )
            assert habits.older_tls is older


async def test_tls_that_is_too_old_is_named(tls):
    async with HostileCamera(script(), tls=tls(ssl.TLSVersion.TLSv1)) as camera:
        with pytest.raises(CameraUnreachable, match=r"only TLS 1\.0 or 1\.1"):
            await seen(camera)


async def test_an_encrypted_account_does_not_go_over_a_connection_that_is_not(tls):
    async with HostileCamera(script(account=("cam", "word"), scheme="basic")) as plain:
        told = script(answers=lambda _request: (302, {"Location": plain.url()}, b""))
        async with HostileCamera(told, tls=tls(ciphers="ALL")) as camera:
            with pytest.raises(AccountRefused):
                await seen(camera, account="cam:word@")
