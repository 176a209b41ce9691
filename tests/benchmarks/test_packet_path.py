"""The work of each picture between the camera's bytes and the recording's: compiled, beside the same in Python.

In memory, without sockets and files, in processor time, in turns.
"""

from __future__ import annotations

import statistics
import time
from dataclasses import replace

import pytest
from both_codes import use
from figures import show
from steady_cameras import RATE, encoded

from drivers.rtsp.client.connection import packet_runs
from drivers.rtsp.compiled import compiled
from drivers.rtsp.frames import TICKS_PER_SECOND, VideoCodec
from drivers.rtsp.packetizer import LARGEST_PACKET, PAYLOAD_TYPE, Packetizer
from drivers.rtsp.sdp import Encoding
from drivers.rtsp.video_track import VideoTrack
from gateway.camera_worker.transport_stream import TransportMuxer

ROUNDS = 20
PIECE = 524_288
"""The bytes of an unwatched camera that are read at a time."""


@pytest.fixture(scope="module")
def frames():
    return encoded()


@pytest.mark.benchmark
@pytest.mark.parametrize("packet_bytes", [LARGEST_PACKET, 8_000])
def test_packets_of_a_picture(frames, packet_bytes, monkeypatch):
    packetizer = Packetizer(ssrc=1, sequence=100, timestamp=0, largest=packet_bytes)
    sent = bytearray()
    for number, frame in enumerate(frames):
        ticks = number * TICKS_PER_SECOND // RATE
        for packet in packetizer.packets(replace(frame, pts=ticks, dts=ticks)):
            sent += b"$\0" + len(packet).to_bytes(2, "big") + packet
    taken: dict[str, list[float]] = {"python": [], "compiled": []}
    for _ in range(ROUNDS):
        written = []
        for code, times in taken.items():
            use(code, monkeypatch)
            begun = time.thread_time()
            written.append(recorded(memoryview(sent), compiled(packet_runs) if code == "compiled" else packet_runs))
            times.append(time.thread_time() - begun)
        assert written[0] == written[1] > sum(len(frame.data) for frame in frames)
    ours, python = (statistics.median(taken[code]) / len(frames) * 1e6 for code in ("compiled", "python"))
    show(f"packets of a picture, {packet_bytes:,} bytes each", ours, "µs", peer=python, beside="in Python", aim=0.6)


def recorded(sent: memoryview, find) -> int:
    """The size of the transport stream of all pictures in these bytes."""
    track = VideoTrack(encodings={PAYLOAD_TYPE: Encoding("H264", TICKS_PER_SECOND)}, lossy=False, now=0.0)
    muxer = TransportMuxer(codec=VideoCodec.H264)
    at, written = 0, 0
    for number, until in enumerate([*range(PIECE, len(sent), PIECE), len(sent)], 1):
        runs, at = find(sent, at, until, {0})
        for _, packets in runs:
            written += sum(len(muxer.mux(frame, frame.data)) for frame in track.frames(packets, float(number)))
    return written
