import os
import socket
import threading

import pytest

from drivers.rtsp.client.connection import ReadBuffers, RtspConnection
from drivers.rtsp.errors import CameraUnreachable


def connected():
    """A connection to a camera's socket, and that socket."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        connection = RtspConnection(
            host="127.0.0.1",
            port=server.getsockname()[1],
            encrypted=False,
            account=None,
            seconds=10.0,
            buffers=ReadBuffers(),
        )
        connection.open()
        camera, _ = server.accept()
    connection.channels = {0, 1}
    return connection, camera


def packet(channel, size):
    return bytes((0x24, channel)) + size.to_bytes(2, "big") + bytes(size)


def test_packets_come_by_channel_in_their_order():
    connection, camera = connected()
    with camera:
        camera.sendall(packet(0, 10) + packet(0, 11) + b"rubbish" + packet(1, 12) + packet(7, 3) + packet(0, 13))
        came = []
        while sum(len(packets) for _, packets in came) < 4:
            came += [(channel, [len(one) for one in packets]) for channel, packets in connection.read()]
        connection.close()
    sizes = [(channel, size) for channel, packets in came for size in packets]
    assert sizes == [(0, 10), (0, 11), (1, 12), (0, 13)]


@pytest.mark.parametrize("pieces", [1, 7, 5_000])
def test_packets_of_unknown_channels_are_skipped_whatever_they_hold(pieces):
    """The camera sends a channel that nobody asked for, whose packets look like others and announce long ones."""
    connection, camera = connected()
    connection.gather(1, 0.2)
    other = b"$\x06" + (400).to_bytes(2, "big") + packet(0, 0) * 25 + (b"$\0\xff\xff" + b"RTSP/1.0 200 OK\r\n\r\n") * 10
    other = other[:404].ljust(404, b"$")
    sent = b"".join(packet(0, 100 + number) + other for number in range(20)) + packet(1, 12)
    came = []
    with camera:
        for at in range(0, len(sent), pieces):
            camera.sendall(sent[at : at + pieces])
            if pieces > 1 or at % 300 == 0:
                came += [(channel, len(one)) for channel, packets in connection.read() for one in packets]
        while len(came) < 21 and (more := connection.read()):
            came += [(channel, len(one)) for channel, packets in more for one in packets]
        connection.close()
    assert came == [*((0, 100 + number) for number in range(20)), (1, 12)]
    assert connection.answers() == []


def test_noise_that_announces_a_long_packet_costs_no_packet_behind_it():
    connection, camera = connected()
    with camera:
        camera.sendall(packet(0, 10) + b"$\x09\x00\x30 noise" + packet(0, 11) * 20 + packet(1, 12))
        came = []
        while sum(len(packets) for _, packets in came) < 22:
            came += [(channel, [len(one) for one in packets]) for channel, packets in connection.read()]
        connection.close()
    assert [size for _, packets in came for size in packets] == [10, *[11] * 20, 12]


def test_what_is_gathered_comes_when_there_is_enough_of_it_or_when_the_time_is_over():
    connection, camera = connected()
    with camera:
        connection.gather(20_000, 60.0)
        came = []
        reading = threading.Thread(target=lambda: came.extend(connection.read()))
        reading.start()
        for _ in range(25):
            camera.sendall(packet(0, 1_000))
        reading.join(30)
        assert not reading.is_alive()
        assert sum(len(packets) for _, packets in came) >= 19
        while came:  # what is left of the 25, then a read in silence
            connection.gather(200_000, 0.05)
            came = connection.read()
        connection.close()


def test_what_came_before_a_read_began_counts_as_gathered():
    connection, camera = connected()
    with camera:
        connection.gather(20_000, 60.0)
        camera.sendall(packet(0, 1_000) * 12)
        came = []
        reading = threading.Thread(target=lambda: came.extend(connection.read()))
        reading.start()
        reading.join(0.3)
        assert reading.is_alive()
        camera.sendall(packet(0, 1_000) * 10)
        reading.join(10)
        assert not reading.is_alive()
        assert sum(len(packets) for _, packets in came) == 22
        connection.close()


def test_no_more_is_gathered_than_the_kernel_has_room_for():
    connection, camera = connected()
    with camera:
        with socket.socket(fileno=os.dup(connection.fileno())) as same:
            same.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 20_000)
        connection.gather(262_144, 60.0)
        camera.sendall(packet(0, 1_000) * 40)
        assert connection.read()  # which would wait for ever if all of it were waited for
        connection.close()


@pytest.mark.parametrize("said", [b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n", b"\x00\x01\x02" * 50])
def test_what_answers_in_another_language_is_named(said):
    connection, camera = connected()
    with camera:
        camera.sendall(said)
        sequence = connection.send("OPTIONS", "rtsp://camera/")
        with pytest.raises(CameraUnreachable, match="does not speak RTSP"):
            connection.wait_for(sequence, seconds=0.3)
        connection.close()


def test_noise_before_the_answer_is_no_other_language():
    connection, camera = connected()
    with camera:
        camera.sendall(b"rubbish" + b"RTSP/1.0 200 OK\r\nCSeq: 1\r\n\r\n")
        assert connection.wait_for(connection.send("OPTIONS", "rtsp://camera/")).status == 200
        connection.close()
