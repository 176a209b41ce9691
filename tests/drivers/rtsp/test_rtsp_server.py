"""Our server seen by ffmpeg, by GStreamer and by our own source."""

from __future__ import annotations

import asyncio
import shutil
from contextlib import asynccontextmanager, closing, suppress
from itertools import chain, pairwise

import pytest
from lacks import lacks

from drivers.rtsp.client.source import RtspSource
from drivers.rtsp.errors import CameraEnded, CameraRefused, CameraStalled, CameraUnreachable
from drivers.rtsp.server import testcard
from drivers.rtsp.server.fanout import Fanout
from drivers.rtsp.server.messages import Credentials
from drivers.rtsp.server.server import RtspServer, ServedStream


@asynccontextmanager
async def serving(credentials=None, **limits):
    feed = Fanout()
    stream = ServedStream(feed=feed, credentials=credentials)
    card = testcard.TestCard(name="Gate 1", time_code=lambda: "12:34", width=320, height=180, keyframe_seconds=0.4)
    async with asyncio.TaskGroup() as group:
        running = group.create_task(card.run(feed))
        async with RtspServer(streams={"/gate": stream}, **limits) as server:
            yield server, stream
        running.cancel()


async def run(program, *arguments, package):
    if shutil.which(program) is None:
        text = f"{program} is missing (Debian package {package})"
        lacks(text)
    process = await asyncio.create_subprocess_exec(
        program, *arguments, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
    )
    try:
        async with asyncio.timeout(30):
            output, _ = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    return process.returncode, output.decode()


def read(source, count):
    with closing(source):
        announced = source.open()
        frames = chain.from_iterable(source.batches())
        return announced, [next(frames) for _ in range(count)]


@pytest.mark.parametrize("transport", ["tcp", "udp"])
@pytest.mark.long("ffmpeg and GStreamer")
async def test_ffmpeg_and_gstreamer_and_our_source_play_it(transport):
    async with serving() as (server, _stream):
        url = server.url("/gate")
        played, pulled, (announced, frames) = await asyncio.gather(
            run(
                "ffmpeg", "-v", "error", "-rtsp_transport", transport, "-i", url, "-frames:v", "12", "-f", "null", "-",
                package="ffmpeg",
            ),
            run(
                "gst-launch-1.0", "-q", "rtspsrc", f"location={url}", f"protocols={transport}", "!", "rtph264depay",
                "!", "h264parse", "!", "openh264dec", "!", "fakesink", "num-buffers=12",
                package="gstreamer1.0-tools",
            ),
            asyncio.to_thread(read, RtspSource(url=url, transport=transport), 12),
        )  # fmt: skip
        assert played == (0, "")
        assert pulled == (0, "")
        assert (announced.width, announced.height) == (320, 180)
        assert frames[0].keyframe
        steps = {after.pts - before.pts for before, after in pairwise(frames)}
        assert steps == {7200}


async def test_a_viewer_must_know_the_password():
    async with serving(Credentials(user="guard", password="right")) as (server, _stream):
        url = server.url("/gate")
        for account in ("", "guard:wr0ng@", "other:right@"):
            with pytest.raises(CameraRefused, match="account") as caught:
                await asyncio.to_thread(read, RtspSource(url=url.replace("//", f"//{account}")), 1)
            assert "wr0ng" not in str(caught.value)
        await asyncio.to_thread(read, RtspSource(url=url.replace("//", "//guard:right@")), 1)


async def test_each_fault_of_a_camera_is_told_apart():
    async with serving() as (server, stream):
        url = server.url("/gate")
        with pytest.raises(CameraRefused, match="path"):
            await asyncio.to_thread(read, RtspSource(url=server.url("/none")), 1)
        stream.refuse_with = 503
        with pytest.raises(CameraRefused):
            await asyncio.to_thread(read, RtspSource(url=url), 1)
        stream.refuse_with = None

        async def after_frames(fault):
            with closing(RtspSource(url=url, stall_seconds=0.5)) as source:
                await asyncio.to_thread(source.open)
                frames = chain.from_iterable(source.batches())
                await asyncio.to_thread(next, frames)
                fault()
                await asyncio.to_thread(lambda: [frame for frame in frames if frame is None])

        with pytest.raises((CameraEnded, CameraUnreachable)):
            await after_frames(stream.drop_viewers)
        with pytest.raises(CameraStalled):
            await after_frames(lambda: setattr(stream, "stalled", True))
    with pytest.raises(CameraUnreachable, match="nothing listens") as caught:
        await asyncio.to_thread(read, RtspSource(url=url.replace("//", "//u:s3cret@")), 1)
    assert "s3cret" not in str(caught.value)
    assert caught.value.__suppress_context__


@pytest.mark.parametrize("reports", [True, False])
async def test_a_viewer_that_sends_reports_alone_is_there(reports):
    """RFC 2326, A.2: reports of a receiver keep its session."""
    asked = ("SETUP", "/trackID=0", "\r\nTransport: RTP/AVP/TCP;unicast;interleaved=0-1"), ("PLAY", "", "")
    session = ""
    async with serving(idle_seconds=1.0) as (server, _stream):
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        with closing(writer.transport):
            for number, (method, track, more) in enumerate(asked, start=1):
                line = f"{method} {server.url('/gate')}{track} RTSP/1.0"
                writer.write(f"{line}\r\nCSeq: {number}{session}{more}\r\n\r\n".encode())
                head = (await reader.readuntil(b"\r\n\r\n")).decode()
                assert "200 OK" in head
                session = "\r\nSession: " + head.partition("Session: ")[2].partition(";")[0]
            with suppress(TimeoutError):
                async with asyncio.timeout(1.8 if reports else 30):
                    while await reader.read(65_536):
                        if reports:
                            writer.write(b"$\x01\x00\x08\x80\xc9\x00\x01\x00\x00\x00\x01")
            assert reader.at_eof() is not reports


async def test_rubbish_ends_that_connection_alone():
    async with serving() as (server, _stream):
        for sent in (
            b"GET / HTTP/1.1\r\n\r\n",
            b"\xff" * 70_000,
            b"DESCRIBE rtsp://h/gate RTSP/1.0\r\nContent-Length: -1\r\n\r\n",
            b"DESCRIBE rtsp://[bad/gate RTSP/1.0\r\nCSeq: 1\r\n\r\n",
            "OPTIONS * RTSP/1.0\r\nContent-Length: ²\r\n\r\n".encode(),
            b"DESCRIBE rtsp://h/gate RTSP/1.0\r\nAuthorization: Digest " + b"a" * 45_000 + b"\r\n\r\n",
        ):
            reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
            writer.write(sent)
            async with asyncio.timeout(30):
                with suppress(ConnectionError):
                    assert b"200 OK" not in await reader.read()
            writer.close()
        await asyncio.to_thread(read, RtspSource(url=server.url("/gate")), 1)


async def told(reader, writer, headers=""):
    writer.write(f"DESCRIBE rtsp://h/gate RTSP/1.0\r\nCSeq: 1\r\n{headers}\r\n".encode())
    async with asyncio.timeout(30):
        return (await reader.readuntil(b"\r\n\r\n")).decode()


async def test_wrong_passwords_make_their_address_wait_on_new_connections_too():
    """Five are free; a right password must wait like the others, because it may be the next guess."""
    async with serving(Credentials(user="guard", password="right")) as (server, _stream):
        answers = []
        for _ in range(8):
            reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
            with closing(writer.transport):
                nonce = (await told(reader, writer)).partition('nonce="')[2].partition('"')[0]
                proof = f'username="guard", realm="edge-gateway", nonce="{nonce}", uri="/", response="é"'
                answers.append((await told(reader, writer, f"Authorization: Digest {proof}\r\n")).split()[1])
        assert answers == ["401"] * 6 + ["503"] * 2
        with pytest.raises(CameraRefused):
            await asyncio.to_thread(read, RtspSource(url=server.url("/gate").replace("//", "//guard:right@")), 1)
