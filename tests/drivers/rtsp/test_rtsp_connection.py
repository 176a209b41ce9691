import os
import socket
import threading

import pytest

from drivers.rtsp.client.connection import ReadBuffers, RtspConnection
from drivers.rtsp.client.habits import CameraHabits
from drivers.rtsp.errors import CameraEnded, CameraSilent, CameraUnreachable

pytestmark = pytest.mark.usefixtures("each_code")


def connected():
    """A connection to a camera's socket, and that socket."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        connection = RtspConnection(
            host="127.0.0.1",
            port=server.getsockname()[1],
            encrypted=False,
            account=None,
            habits=CameraHabits(),
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
        while len(came) < 21:
            came += [(channel, len(one)) for channel, packets in connection.read() for one in packets]
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


def asked_of(connection, camera, sent, pieces):
    """Return the packets that come, and what the connection answers to requests among `sent`."""
    for at in range(0, len(sent), pieces):
        camera.sendall(sent[at : at + pieces])
    sizes = []
    while len(sizes) < 2:
        sizes += [len(one) for _, packets in connection.read() for one in packets]
    camera.settimeout(5)
    return sizes, camera.recv(65_536)


@pytest.mark.parametrize("pieces", [7, 10_000])
@pytest.mark.parametrize(
    ("request_line", "body", "answered"),
    [
        (b"OPTIONS * RTSP/1.0\r\nCSeq: 5\r\n", b"", b"RTSP/1.0 200 OK\r\nCSeq: 5\r\n"),
        (b"GET_PARAMETER rtsp://c/ RTSP/1.0\nCSeq: 6\nSession: 9\n", b"", b"200 OK\r\nCSeq: 6\r\nSession: 9\r\n"),
        (
            b"ANNOUNCE rtsp://c/ RTSP/1.0\r\nCSeq: 7\r\nContent-Length: 20\r\n",
            b"v=0\r\n$\x00\x00\x05 RTSP/1.0\r\n",
            b"501",
        ),
        (b"PING rtsp://c/ RTSP/1.0\r\nCSeq: 8\r\n", b"", b"501 Not Implemented\r\nCSeq: 8\r\n"),
    ],
)
def test_a_request_of_the_camera_is_answered_and_costs_no_packet(request_line, body, answered, pieces):
    connection, camera = connected()
    end = b"\n" if b"\r" not in request_line else b"\r\n"
    with camera:
        sent = packet(0, 30) + request_line + end + body + packet(0, 31)
        sizes, answer = asked_of(connection, camera, sent, pieces)
        connection.close()
    assert sizes == [30, 31]
    assert answered in answer
    assert answer.count(b"RTSP/1.0") == 1
    assert answer.endswith(b"\r\n\r\n")


@pytest.mark.parametrize("method", ["TEARDOWN", "REDIRECT"])
def test_a_camera_may_end_the_session_itself(method):
    connection, camera = connected()
    with camera:
        camera.sendall(f"{method} rtsp://c/ RTSP/1.0\r\nCSeq: 5\r\n\r\n".encode())
        with pytest.raises(CameraEnded):
            connection.wait_for(0)
        assert camera.recv(100).startswith(b"RTSP/1.0 200 OK\r\nCSeq: 5")
        connection.close()


@pytest.mark.parametrize(
    "noise", [b"NOISE and more ", b"A" * 3_000, b"OPTIONS * HTTP/1.1\r\n\r\n", b"GET\x00 / RTSP/1.0\r\n\r\n"]
)
def test_noise_that_looks_like_a_request_costs_no_packet_behind_it(noise):
    connection, camera = connected()
    with camera:
        camera.sendall(noise + packet(0, 30) + packet(0, 31) + packet(0, 3_000))
        sizes = []
        while len(sizes) < 3:
            sizes += [len(one) for _, packets in connection.read() for one in packets]
        connection.close()
    assert sizes == [30, 31, 3_000]


@pytest.mark.parametrize("number", ["CSeq: 0", "CSeq: 4294967295", "CSeq:", "CSeq: 1 ", "X: y", "CSeq: -1"])
def test_the_answer_to_the_only_request_is_known_without_its_number(number):
    connection, camera = connected()
    with camera:
        sequence = connection.send("OPTIONS", "rtsp://camera/")
        camera.sendall(f"RTSP/1.0 200 OK\r\n{number}\r\n\r\n".encode())
        assert connection.wait_for(sequence).status == 200
        connection.close()


def test_of_several_requests_each_gets_its_answer():
    connection, camera = connected()
    with camera:
        first, second = (connection.send("OPTIONS", "rtsp://camera/") for _ in range(2))
        camera.sendall(f"RTSP/1.0 404 X\r\nCSeq: {second}\r\n\r\nRTSP/1.0 405 X\r\nCSeq: {first}\r\n\r\n".encode())
        assert connection.wait_for(second).status == 404
        connection.close()


def test_an_answer_that_nothing_waits_for_is_dropped_and_a_provisional_one_too():
    connection, camera = connected()
    with camera:
        camera.sendall(b"RTSP/1.0 404 X\r\nCSeq: 1\r\n\r\n" + packet(0, 30))
        while not connection.read():
            pass
        sequence = connection.send("OPTIONS", "rtsp://camera/")
        camera.sendall(b"RTSP/1.0 100 Continue\r\nCSeq: 1\r\n\r\nRTSP/1.0 200 OK\r\nCSeq: 1\r\n\r\n")
        assert connection.wait_for(sequence).status == 200
        connection.close()


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("body", ["v=0\ns=x\n\n", "v=0\r\ns=x\r\n\r\n"])
def test_lines_may_end_with_lf_alone(end, body):
    connection, camera = connected()
    with camera:
        sequence = connection.send("DESCRIBE", "rtsp://camera/")
        lines = ["RTSP/1.0 200 OK", "CSeq: 1", f"Content-Length: {len(body)}", "Public: PLAY,", " GET_PARAMETER"]
        camera.sendall(end.join([*lines, "", ""]).encode() + body.encode() + packet(0, 30))
        answer = connection.wait_for(sequence)
        assert answer.body == body.encode()
        assert answer.headers["public"] == "PLAY, GET_PARAMETER"
        came = connection.read()
        assert [len(one) for _, packets in came for one in packets] == [30]
        connection.close()


def test_a_host_is_reached_by_whichever_address_answers(monkeypatch):
    """Nothing listens at the first of its addresses."""
    with socket.create_server(("127.0.0.1", 0)) as server, socket.socket() as deaf:
        deaf.bind(("127.0.0.2", 0))
        alive = (socket.AF_INET, socket.SOCK_STREAM, 6, "", server.getsockname())
        dead = (socket.AF_INET, socket.SOCK_STREAM, 6, "", deaf.getsockname())
        monkeypatch.setattr(socket, "getaddrinfo", lambda *_args, **_more: [dead, alive])
        connection = RtspConnection(
            host="camera.example", port=554, encrypted=False, account=None, habits=CameraHabits(), seconds=10.0,
            buffers=ReadBuffers(),
        )  # fmt: skip
        connection.open()
        assert connection.remote_host == "127.0.0.1"
        connection.close()


@pytest.mark.parametrize("end", [b"\r\n\r\n", b""])
def test_an_answer_whose_header_is_too_long_is_told_as_that(end):
    connection, camera = connected()
    with camera:
        number = connection.send("DESCRIBE", "rtsp://127.0.0.1/")
        camera.sendall(b"RTSP/1.0 401 Unauthorized\r\nCSeq: 1\r\nWWW-Authenticate: Digest " + b"a" * 60_000 + end)
        with pytest.raises(CameraSilent, match="too long"):
            connection.wait_for(number, seconds=0.2)
        connection.close()
