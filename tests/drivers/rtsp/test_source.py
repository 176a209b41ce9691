"""Our source against a camera that misbehaves: what comes through is whole, in order, and what is lost is told."""

from __future__ import annotations

import asyncio
import threading
import time
from collections import deque
from contextlib import closing
from itertools import chain, islice, pairwise

import pytest
from first_frames import assert_whole, decoded, first_frames
from hostile_camera import TICKS, HostileCamera, Script, film, joined
from waiting import GENEROUS, until

from drivers.rtsp.client.accounts import parse_challenges
from drivers.rtsp.client.habits import CameraHabits
from drivers.rtsp.client.source import RtspSource
from drivers.rtsp.errors import CameraEnded, CameraRefused, CameraStalled, CameraUnreachable
from drivers.rtsp.video_track import FootageLost

PACE = 8.0


def script(**more) -> Script:
    return Script(**{"film": film(), "pace": PACE, **more})


def read(url, count, **more):
    return first_frames(RtspSource(url=url, **{"stall_seconds": 1.0, "open_seconds": 2.0, **more}), count)


async def seen(told: Script, count=30, account="", **more):
    async with HostileCamera(told) as camera:
        return await asyncio.to_thread(read, camera.url(account), count, **more)


@pytest.mark.parametrize("codec", ["h264", "h265"])
@pytest.mark.parametrize("b_frames", [0, 2])
@pytest.mark.parametrize("transport", ["tcp", "udp"])
async def test_both_codecs_with_and_without_reordering(codec, b_frames, transport):
    frames = await seen(script(film=film(codec, b_frames=b_frames)), transport=transport)
    assert_whole(frames)
    shown = sorted(frame.pts for frame in frames)[:20]
    assert {after - before for before, after in pairwise(shown)} == {TICKS}


@pytest.mark.parametrize("scheme", ["basic", "digest-old", "digest-md5", "digest-sha256"])
async def test_each_way_to_prove_an_account(scheme):
    told = script(account=("cam", 'p@s s"w'), scheme=scheme)
    if scheme == "basic":
        told.account = ("cam", "p@ss:w")
    quoted = {"basic": "cam:p%40ss%3Aw@"}.get(scheme, "cam:p%40s%20s%22w@")
    assert_whole(await seen(told, 3, quoted))
    for wrong in ("", "cam:n0t-this@", "other:p%40s%20s%22w@"):
        with pytest.raises(CameraRefused, match="account") as caught:
            await seen(told, 1, wrong)
        assert "n0t" not in str(caught.value)


def test_a_challenge_that_nobody_can_meet_is_none():
    assert parse_challenges("Bearer") == parse_challenges("") == []


async def test_a_nonce_may_be_stale_at_every_request():
    assert_whole(await seen(script(account=("cam", "word"), nonce_serves=1), 3, "cam:word@"))


async def test_a_camera_may_hang_up_on_whoever_has_not_proven_its_account():
    told = script(account=("cam", "word"), hangs_up=True)
    assert_whole(await seen(told, 3, "cam:word@"))
    with pytest.raises(CameraRefused, match="account"):
        await seen(told, 1, "cam:wrong@")


@pytest.mark.parametrize("sets_in", ["sdp", "band", "both"])
@pytest.mark.parametrize("codec", ["h264", "h265"])
async def test_parameter_sets_wherever_they_are(sets_in, codec):
    assert_whole(await seen(script(film=film(codec), sets_in=sets_in)))


async def test_udp_refused_means_tcp():
    assert_whole(await seen(script(refuses_udp=True), transport="udp"))


async def test_a_redirect_is_followed_and_the_account_goes_along_to_the_same_host_only():
    async with HostileCamera(script(account=("cam", "word"))) as target:
        told = script(redirect=target.url)
        assert_whole(await seen(told, 3, "cam:word@"))
        told.redirect = lambda: target.url().replace("127.0.0.1", "localhost")
        with pytest.raises(CameraRefused, match="account"):
            await seen(told, 3, "cam:word@")
    async with HostileCamera(script()) as circle:
        circle.script.redirect = circle.url
        with pytest.raises(CameraRefused, match="from one address to the next"):
            await asyncio.to_thread(read, circle.url(), 1)


@pytest.mark.parametrize("method", ["OPTIONS", "DESCRIBE", "SETUP", "PLAY"])
@pytest.mark.parametrize("status", [301, 302, 305])
async def test_a_redirect_is_followed_at_each_request(method, status):
    async with HostileCamera(script(account=("cam", "word"))) as target, HostileCamera(script()) as first:
        first.script.answers = lambda asked: (
            (status, {"Location": target.url()}, b"") if asked.method == method else None
        )
        assert_whole(await asyncio.to_thread(read, first.url("cam:word@"), 3))
        assert not first.sessions, "none is left behind"
        first.script.answers = lambda asked: (
            (status, {"Location": first.url()}, b"") if asked.method == method else None
        )
        with pytest.raises(CameraRefused, match="from one address to the next"):
            await asyncio.to_thread(read, first.url(), 1)


async def test_a_description_need_not_name_its_length():
    assert_whole(await seen(script(names_length=False), 3))


JUMPS = {
    "forward": lambda index, pts: pts + (index > 15) * 50_000_000,
    "a little forward": lambda index, pts: pts + (index > 15) * 400_000,
    "back": lambda index, pts: pts - (index > 15) * 900_000_000,
    "repeated": lambda index, pts: pts - (index % 5 == 0) * TICKS,
    "backwards": lambda index, pts: 500_000_000 - pts,
    "still": lambda index, pts: 5,
    "wild": lambda index, pts: (pts * 2_654_435_761) & 0xFFFFFFFF,
}


@pytest.mark.parametrize("jump", JUMPS)
async def test_timestamps_that_cannot_be_true_cost_no_picture(jump):
    frames = await seen(script(timestamp=JUMPS[jump], pace=2.0), 40)
    assert_whole(frames)
    lasted = (frames[-1].pts - frames[0].pts) / 90_000
    held_up = frames[-1].arrived - frames[0].arrived - 39 * TICKS / 2 / 90_000
    assert 0.4 < lasted < 2.5 + max(held_up, 0.0), "a busy machine brings pictures late"


async def test_a_lost_part_costs_its_picture_and_a_lost_keyframe_what_depends_on_it():
    def lose(index, packets):
        return packets[:-1] if index in (13, 20) else packets

    frames = await seen(script(packets=lose), 40)
    lost = [at for at, frame in enumerate(frames) if isinstance(frame, FootageLost)]
    assert frames[lost[0]] == FootageLost(by_network=False)
    assert len(lost) == 1
    assert frames[lost[0] + 1].keyframe
    # picture 13 is gone, and that after it, since the mark between them is gone too; 20 to 29 hang on a lost keyframe
    assert [frame.pts for frame in frames[: lost[0]]][-1] - frames[0].pts == 19 * TICKS
    assert frames[lost[0] + 1].pts - frames[0].pts == 30 * TICKS


async def test_datagrams_out_of_order_and_twice_are_put_right():
    def shuffle(index, packets):
        mixed = [*packets[1::2], *packets[0::2]]
        return [packet for packet in mixed for _ in range(1 + index % 2)]

    assert_whole(await seen(script(packets=shuffle), transport="udp", count=40))


async def test_lost_datagrams_are_the_networks():
    frames = await seen(
        script(packets=lambda index, packets: packets[:-1] if index == 20 else packets), 40, transport="udp"
    )
    assert FootageLost(by_network=True) in frames


async def test_a_connection_on_which_nothing_comes_through_whole_is_given_up():
    told = script(sets_in="band", packets=lambda _index, packets: packets[-1:])
    with pytest.raises(CameraStalled, match="whole"):
        await seen(told, stall_seconds=1_000.0, open_seconds=1_000.0, monotonic=lambda: 20 * time.monotonic())


@pytest.mark.parametrize(
    ("other_channel", "names"),
    [
        ("port", lambda port: f";server_port={port}-{port + 1}"),
        ("port", lambda port: f";server_port={port}"),
        ("ssrc", lambda _: ";ssrc=00000007"),
        ("ssrc", lambda port: f";server_port={port}-{port + 1};ssrc=7"),
    ],
)
async def test_another_channel_of_the_same_recorder_does_not_mix_in(other_channel, names):
    """RFC 2326, 12.39: the answer to SETUP names the port and the SSRC that packets come from."""
    frames = await seen(script(other_channel=other_channel, names_sender=names), transport="udp", count=40)
    assert_whole(frames)


@pytest.mark.parametrize("named", ["", ";server_port=0-0;ssrc=00000000", ";ssrc=none;server_port=?"])
async def test_a_camera_need_not_name_its_port_or_ssrc(named):
    assert_whole(await seen(script(names_sender=lambda _: named), transport="udp"))


@pytest.mark.parametrize("named", [";server_port=9-10", ";ssrc=0000000A"])
async def test_packets_from_elsewhere_than_the_camera_named_are_told_apart_from_silence(named):
    with pytest.raises(CameraStalled, match="another port or with another SSRC than it named"):
        await seen(script(names_sender=lambda _: named), 1, transport="udp")


async def test_rubbish_is_passed_over():
    def spoil(index, packets):
        head = packets[0][:12]
        return [*(head[:2] + packets[0][2:12] + junk for junk in ()), *packets, b"\x80\x60", b"", b"\xff" * 40]

    flood = b"$\x01\x00\x08\x80\xc8\x00\x01\x00\x00\x00\x07" * 50
    assert_whole(await seen(script(packets=spoil, between=flood)))
    assert_whole(await seen(script(between=b"\x00rubbish\xff$\x09\x00\x05")))


ENDS = {
    "close": CameraEnded, "mid_frame": CameraEnded, "bye": CameraEnded, "stall": CameraStalled,
    "reset": (CameraUnreachable, CameraEnded),
}  # fmt: skip


@pytest.mark.parametrize("ends_by", ENDS)
async def test_each_end_of_a_stream_is_told_apart(ends_by):
    with pytest.raises(ENDS[ends_by]):
        await seen(script(ends_after=12, ends_by=ends_by), 99)


async def test_silence_and_slowness():
    with pytest.raises(CameraUnreachable, match="in time"):
        await seen(script(silent=True), 1, open_seconds=0.5)
    assert_whole(await seen(script(describe_seconds=1.0), 3))


async def test_the_pace_of_a_camera_is_remembered_for_its_next_connection():
    ahead = 0.0
    habits = CameraHabits(pace=0.5)
    async with HostileCamera(script()) as camera:
        source = RtspSource(url=camera.url(), habits=habits, monotonic=lambda: time.monotonic() + ahead)
        with closing(source):
            await asyncio.to_thread(source.open)
            first, second, *_ = await asyncio.to_thread(lambda: list(islice(chain.from_iterable(source.batches()), 2)))
            assert second.pts - first.pts == TICKS // 2
            habits.pace = 1.0
            ahead = 60.0  # until then it has held
        assert habits.pace == 0.5


async def test_a_full_camera_says_so_and_a_session_that_ended_well_makes_room():
    async with HostileCamera(script(most_sessions=1)) as camera:
        for _ in range(2):
            assert_whole(await asyncio.to_thread(read, camera.url(), 3))
            await until(lambda: not camera.sessions)
        camera.sessions["stale"] = asyncio.get_running_loop().time() + 60
        with pytest.raises(CameraRefused, match="no more viewers"):
            await asyncio.to_thread(read, camera.url(), 1)


async def test_a_camera_that_is_busy_sending_hears_that_its_viewer_leaves():
    async with HostileCamera(script(hears_after=0.2, pace=50.0)) as camera:
        assert_whole(await asyncio.to_thread(read, camera.url(), 3))
        assert camera.requests[-1] == "TEARDOWN"
        assert not camera.sessions


@pytest.mark.parametrize("method", ["GET_PARAMETER", "OPTIONS"])
async def test_kept_alive_as_the_camera_wants_it(method):
    frames = await seen(script(kept_alive_by=method, session_seconds=1.0, pace=2.0), 70)
    assert_whole(frames)


@pytest.mark.parametrize("codecs", [("h264", "h265"), ("h264", "h264")])
async def test_the_picture_changes_in_the_middle(codecs):
    """Another size within a connection; another codec on the next one."""
    before, after = film(codecs[0], frames=20), film(codecs[1], frames=20, width=320, height=192)
    if codecs[0] == codecs[1]:
        frames = await seen(script(film=joined(before, after)), 30)
        assert_whole_but_for_times(frames)
        return
    async with HostileCamera(script(film=before)) as camera:
        assert_whole(await asyncio.to_thread(read, camera.url(), 3))
        camera.script.film = after
        frames = await asyncio.to_thread(read, camera.url(), 3)
        assert_whole(frames)
        assert frames[0].codec == "h265"


async def test_another_codec_by_another_payload_type_costs_nothing():
    frames = await seen(script(film=joined(film(frames=20), film("h265", frames=20))), 60)
    assert [frame.codec for frame in frames[::20]] == ["h264", "h265", "h264"]
    assert not [frame for frame in frames if isinstance(frame, FootageLost)]
    assert all(before.dts < after.dts for before, after in pairwise(frames))
    for at in (0, 20, 40):
        assert frames[at].keyframe
        assert decoded(frames[at : at + 20], frames[at].codec) == 20


def assert_whole_but_for_times(frames):
    assert_whole(frames)
    assert sum(frame.keyframe for frame in frames) == 3


async def test_reading_ends_at_once_from_another_thread():
    async with HostileCamera(script(ends_after=5, ends_by="stall")) as camera:
        source = RtspSource(url=camera.url(), stall_seconds=600.0)
        came = deque()

        def run():
            with closing(source):
                source.open()
                with pytest.raises(CameraUnreachable):
                    came.extend(chain.from_iterable(source.batches()))

        thread = threading.Thread(target=run)
        thread.start()
        await until(lambda: came)
        source.interrupt()
        await asyncio.to_thread(thread.join, GENEROUS)
        assert not thread.is_alive()
