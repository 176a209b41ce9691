"""Addresses: what a URL occupies, and no part of a bad one is repeated."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.site.addresses import Endpoint, endpoint_of, line_of, listening_host, origin_of


@pytest.mark.parametrize(
    ("url", "line"),
    [
        ("tcp://192.0.2.10:502", Endpoint("192.0.2.10", 502)),
        ("tcp://Gate.Local:4001", Endpoint("gate.local", 4001)),
        ("tcp://[2001:db8::1]:502", Endpoint("2001:db8::1", 502)),
        ("serial:/dev/ttyUSB0", "/dev/ttyUSB0"),
        ("serial:///dev/ttyUSB0", "/dev/ttyUSB0"),
        ("serial:/dev/serial/../ttyUSB0", "/dev/ttyUSB0"),
        ("serial:/dev/serial/by-id/usb-A#1?x", "/dev/serial/by-id/usb-A#1?x"),
    ],
)
def test_what_a_link_occupies(url, line):
    assert line_of(url) == line


@pytest.mark.parametrize(
    "url",
    ["", "tcp://host", "tcp://host:0", "tcp://host:70000", "tcp://:502", "tcp://host:502/x", "tcp://host:502?x", "tcp://[::1",
     "serial:", "serial:dev/ttyS0", "serial://host/dev/ttyS0", "serial:/dev/", "udp://host:502", "/dev/ttyS0"],
)  # fmt: skip
def test_what_no_link_is(url):
    with pytest.raises(ValueError, match="must "):
        line_of(url)


def test_ports_a_scheme_has_by_itself():
    assert endpoint_of("https://Central.example.com/x", schemes=("http", "https")) == Endpoint(
        "central.example.com", 443
    )
    assert endpoint_of("rtsp://192.0.2.20/stream1", schemes=("rtsp",)).port == 554


@pytest.mark.parametrize(
    "url",
    [
        "rtsp://u:hunter2@x/",
        "rtsp://hunter2@x/",
        "rtsp://u:hun/ter2@x:99999999/",
        "ftp://hunter2/",
        "rtsp://x:hunter2/",
    ],
)
def test_a_refusal_repeats_nothing_of_the_url(url):
    with pytest.raises(ValueError, match="must ") as caught:
        endpoint_of(url, schemes=("rtsp",))
    assert "hun" not in str(caught.value)


@pytest.mark.parametrize("host", ["a..b", ".", "b" * 64, "a b", "a\0b", "-a"])
def test_a_host_that_no_name_server_can_be_asked_for(host):
    with pytest.raises(ValueError, match="must be rtsp"):
        endpoint_of(f"rtsp://{host}/", schemes=("rtsp",))


@pytest.mark.parametrize("host", ["cam_1", "cam-1.local.", "kamera-tür.example", "192.0.2.1", "[fe80::1%25eth0]"])
def test_a_host_that_can_be_asked_for(host):
    assert endpoint_of(f"rtsp://{host}/", schemes=("rtsp",)).port == 554


@pytest.mark.parametrize(
    ("host", "own"),
    [
        ("localhost", True),
        ("127.0.0.1", True),
        ("127.9.9.9", True),
        ("::1", True),
        ("0.0.0.0", True),
        ("192.0.2.1", False),
    ],
)
def test_this_machine(host, own):
    assert Endpoint(host, 1).is_this_machine() is own


@given(st.text(max_size=40))
def test_any_text_is_taken_or_refused(text):
    for prefix in ("", "tcp://", "serial:", "serial:/"):
        try:
            line = line_of(prefix + text)
        except ValueError:
            continue
        assert isinstance(line, Endpoint) or line.startswith("/")


@pytest.mark.parametrize("host", ["127.0.0.1", "0.0.0.0", "::", "fe80::1", "localhost", "gate-1.example.com", "gate."])
def test_hosts_to_listen_on(host):
    assert listening_host(host) == host


@pytest.mark.parametrize(
    "host", ["", "http://0.0.0.0", "0.0.0.0:8480", "999.1.1.1", "1.2.3", "a b", "-gate", "gate..example", "[::]", "*"]
)
def test_what_nobody_can_listen_on(host):
    with pytest.raises(ValueError, match="without port"):
        listening_host(host)


@pytest.mark.parametrize(
    ("url", "origin"),
    [
        ("https://gate.example.com", "https://gate.example.com"),
        ("https://Gate.example.com/", "https://gate.example.com"),
        ("http://192.0.2.1:8480", "http://192.0.2.1:8480"),
        ("https://[2001:DB8::1]:8443/", "https://[2001:db8::1]:8443"),
    ],
)
def test_a_public_address(url, origin):
    assert origin_of(url) == origin


@pytest.mark.parametrize(
    "url",
    [
        "gate.example.com", "https://", "https://gate.example.com/north", "https://x/?a=1", "https://x/#a",
        "ftp://x", "https://u:hunter2@x", "https://x:0", "https://x:99999", "https://a b", "https://x\r\nSet-Cookie: y",
        'https://x"y', "https://-x", "",
    ],
)  # fmt: skip
def test_what_no_public_address_is(url):
    with pytest.raises(ValueError, match=r"must |port 0") as caught:
        origin_of(url)
    assert "hunter2" not in str(caught.value)
