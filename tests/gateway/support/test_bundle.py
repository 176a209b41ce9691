"""The support bundle holds none of the secrets that are planted everywhere, and what is needed all the same."""

from __future__ import annotations

import asyncio
import io
import json
import tarfile

import pytest
from hypothesis import given
from hypothesis import strategies as st
from running_gateway import SITE as BARE_SITE
from running_gateway import RunningGateway, typed

from gateway.domain.events import EventKind
from gateway.problems.problem import Problem, ProblemKind, SitePart
from gateway.runtime.redaction import Redaction
from gateway.support.masking import Masking
from tests.gateway.web.conftest import *  # noqa: F403 (its fixtures: the interface over a real store)

PASSWORD = "Umbrella-77-tree"
RTSP = "Camera$pass-31"
OSDP_KEY = "00112233445566778899aabbccddeeff"
TOTP_SEED = "JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP"
TOKEN = "eyJhbGciOiJIUzI1NiJ9abcdefghijklmnopqrstuvwxyz0123"
PIN = "4711"
CARD = "00111572"
COMMENT = "remember-the-milk"
QUERY = "xK9-query-secret"
PLANTED = (PASSWORD, RTSP, OSDP_KEY, TOTP_SEED, TOKEN, CARD, COMMENT, QUERY)
SITE = (
    BARE_SITE
    + f"""
# the old password was {COMMENT}
[[api.accounts]]
username = "chief"
password = "chief"   # {COMMENT}
[[links]]
id = "readers"
url = "serial:/dev/serial/by-id/usb-FTDI_FT232R_USB_UART_A50285BI-if00-port0"
[[devices]]
id = 105
name = 'Reader\\'   # {COMMENT}
driver = "osdp-reader"
link = "readers"
address = 1
key = "reader-key"
[[cameras]]
id = 201
name = "Yard \\"A\\" \\\\"   # {COMMENT} "
url = "rtsp://127.0.0.1:1/stream?channel={QUERY}"
username = "gate"
password = "camera"
"""
)
SECRETS = {
    "EDGE_GATEWAY_SECRET_CHIEF": PASSWORD,
    "EDGE_GATEWAY_SECRET_CAMERA": RTSP,
    "EDGE_GATEWAY_SECRET_READER_KEY": OSDP_KEY,
}


def files_of(content: bytes) -> dict[str, str]:
    with tarfile.open(fileobj=io.BytesIO(content), mode="r:gz") as tar:
        read = {entry.name.partition("/")[2]: tar.extractfile(entry) for entry in tar.getmembers()}
        return {name: file.read().decode() for name, file in read.items() if file is not None}


def assert_none_in(files, planted=PLANTED):
    for name, text in files.items():
        for secret in planted:
            assert secret.lower() not in text.lower(), (name, secret)


async def test_none_of_what_is_planted_in_the_store_and_the_log_is_in_it(open_gateway, tmp_path):
    redaction = Redaction()
    redaction.hide(PASSWORD)
    (tmp_path / "site.toml").write_text(SITE)
    log = [
        json.dumps({"event": "signed_in", "timestamp": "2026-01-01T12:00:00Z", "session": TOKEN, "user": "chief"}),
        json.dumps({"event": "camera_lost", "error": f"rtsp://gate:{RTSP}@10.0.0.9/live?token={QUERY} is away"}),
        json.dumps({"event": "card", "number": CARD, "bits": 111572, "text": f"card {CARD} with PIN {PIN}"}),
        f"no JSON, but {PASSWORD} and {OSDP_KEY} and otpauth://totp/site?secret={TOTP_SEED}",
    ]
    async with open_gateway(redaction=redaction, log=log) as gateway:
        await gateway.happened(f"card {CARD} was let in at Main entry, PIN {PIN}, with {TOKEN} and {TOTP_SEED}")
        await gateway.happened(
            f"https://gate:{RTSP}@till.example/hook?key={QUERY} was not taken", kind=EventKind.ACCESS_GRANTED,
            data={"number": CARD, "pin": PIN},
        )  # fmt: skip
        gateway.problems.append(
            Problem(
                kind=ProblemKind.CAMERA_UNREACHABLE, part=SitePart.CAMERA, id="201", name="Yard",
                text=f"rtsp://gate:{RTSP}@10.0.0.9/live?{QUERY} does not answer", since=1,
            )
        )  # fmt: skip
        headers = await gateway.sign_in()
        async with gateway.client.get(f"{gateway.url}/status/bundle", headers=headers) as answer:
            assert answer.status == 200
            assert answer.content_type == "application/gzip"
            files = files_of(await answer.read())
        status, _ = await gateway.call("/status/bundle", method="GET", user="guard")
        assert status == 500
    session = headers["SessionID"]
    assert_none_in(files, (*PLANTED, session, "key-of-till"))
    for name in ("events.json", "log.txt"):
        assert PIN not in files[name]
    assert {
        "README.txt", "clock.json", "disk.json", "events.json", "frames.json", "gateway.json", "incidents.json",
        "journal.txt", "load.json", "log.txt", "scans.json", "site.toml", "state.json", "verdict.json", "versions.json",
    } == set(files)  # fmt: skip
    assert "card ***72 was let in at Main entry" in files["events.json"]
    assert json.loads(files["verdict.json"])["problems"][0]["kind"] == "camera_unreachable"
    assert json.loads(files["state.json"])["devices"][0]["name"] == "Entry barrier"
    assert "2026-01-01T12:00:00Z" in files["log.txt"]


@pytest.mark.long("starts a gateway; the test before asks one in this process")
async def test_a_running_gateway_gives_none_away(tmp_path):
    (tmp_path / "site.toml").write_text(SITE)
    with RunningGateway(tmp_path, "--data", "data", **SECRETS) as running:
        await asyncio.to_thread(running.serves)
        done = await asyncio.to_thread(typed, "bundle", "up.tar.gz", "--data", "data", cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        await asyncio.to_thread(running.end)
    assert (tmp_path / "up.tar.gz").stat().st_mode & 0o777 == 0o600
    files = files_of((tmp_path / "up.tar.gz").read_bytes())
    assert_none_in(files)
    assert 'driver = "osdp-reader"' in files["site.toml"]
    assert "usb-FTDI_FT232R_USB_UART_A50285BI-if00-port0" in files["site.toml"]
    assert "interface_served" in files["log.txt"]
    assert json.loads(files["versions.json"])["packages"]["edge-gateway"]


async def test_a_gateway_that_is_down_gives_none_away(tmp_path):
    (tmp_path / "site.toml").write_text(SITE)
    words = ("bundle", "down.tar.gz", "--data", "data", "--site", "site.toml")
    done = await asyncio.to_thread(typed, *words, cwd=tmp_path, **SECRETS)
    assert (done.returncode, "tells of the machine alone" in done.stderr) == (0, True)
    files = files_of((tmp_path / "down.tar.gz").read_bytes())
    assert_none_in(files)
    assert files["check.txt"] == "the site file is good\n"
    assert json.loads(files["disk.json"])["mounts"]
    refused = await asyncio.to_thread(typed, "bundle", "none/such.tar.gz", "--data", "data", cwd=tmp_path)
    assert (refused.returncode, "cannot be written" in refused.stderr) == (2, True)


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ('key = "reader-key"  # x', "key = '***'"),
        ("pins = [1234, 5678]", "pins = '***'"),
        ('a = { pin = "1", name = "x # y" }', "a = { pin = '***', name = \"x # y\" }"),
        ('name = "Gate 4"', 'name = "Gate 4"'),
        ('url = "rtsp://u:p@h/x?y=z"', 'url = "rtsp://***@h/x?***"'),
    ],
)
def test_lines_of_a_site_file(line, shown):
    assert Masking(Redaction()).site_file(line) == shown + "\n"


@given(st.text(max_size=80), st.text(max_size=80))
def test_a_number_of_a_card_is_never_shown_whole(before, after):
    shown = Masking(Redaction()).happening(f"{before} {CARD} {after}")
    assert shown.count(CARD) == 0
