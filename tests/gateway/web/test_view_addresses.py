"""Addresses with a token: footage for players that send no session, and for pages of other origins."""

from __future__ import annotations

import gzip
import re

import pytest

from gateway.web.auth.accounts import hash_password
from gateway.web.auth.view_tokens import LIFE_SECONDS
from gateway.web.operation import ViewKind
from gateway.web.register.changes import AddAccount, PutRole, RemoveKey
from tests.gateway.web.setups.local import ask

PAGE = {"Origin": "https://player.example"}
SIGHT = frozenset({"can_view_cameras", "can_view_camera_events"})


async def addresses(gateway, user="chief"):
    _, cameras = await gateway.call("/v1/camera/list", {}, user=user)
    _, event = await gateway.call("/v1/camera/event", {"id": gateway.camera_event_id}, user=user)
    return cameras["cameras"][0]["hls_url"], event["event"]["vod_url"], event["event"]["clip_url"]


async def got(gateway, url, *, method="GET", **headers):
    """As a player that knows nothing but the address."""
    gateway.client.cookie_jar.clear()
    sent = {"Accept-Encoding": "identity"} | {name.replace("_", "-"): value for name, value in headers.items()}
    async with gateway.client.request(method, url, headers=sent, auto_decompress=False) as answer:
        return answer.status, await answer.read(), answer.headers


def named(playlist: bytes) -> list[str]:
    lines = playlist.decode().splitlines()
    inside = [found[1] for line in lines if (found := re.search(r'URI="([^"]*)"', line))]
    return inside + [line for line in lines if line and not line.startswith("#")]


async def followed(gateway, master):
    """Every address that a playlist leads to."""
    found = [master]
    for file in range(2):
        status, text, _ = await got(gateway, found[file])
        assert status == 200
        lines = named(text)
        assert lines
        found += [f"{found[file].rpartition('/')[0]}/{line}" for line in lines]
    return found


async def test_the_token_leads_from_the_playlist_to_the_last_segment(gateway, footage):
    live, vod, clip = await addresses(gateway)
    for master in (live, vod):
        token = master.partition("?")[2]
        found = await followed(gateway, master)
        assert all(address.endswith(f"?{token}") for address in found)
        status, body, _ = await got(gateway, found[-1])
        assert (status, body) == (200, footage.segment.read_bytes())
        if master is live:
            assert [address.partition("?")[0].rpartition("/")[2] for address in found[2:4]] == ["7.0.ts", "8.0.ts"]
            status, body, headers = await got(gateway, found[2])
            assert (status, body) == (200, footage.segment.read_bytes()[188:564])
            assert headers["Content-Type"] == "video/MP2T"
            status, body, headers = await got(gateway, found[2], method="HEAD")
            assert (status, body, headers["Content-Length"]) == (200, b"", "376")
    status, body, _ = await got(gateway, clip, Range="bytes=0-99")
    assert (status, body) == (206, footage.clip.read_bytes()[:100])


async def test_a_reload_that_waits_for_what_will_not_come_is_refused(gateway):
    live, _, _ = await addresses(gateway)
    index = live.replace("master.m3u8", "index.m3u8")
    for directives, status in (
        ("_HLS_msn=8&_HLS_part=0&_HLS_skip=YES", 200), ("_HLS_msn=11", 400), ("_HLS_part=1", 400), ("_HLS_msn=-1", 400),
        ("_HLS_msn=x", 400), ("_HLS_msn=99999999999999999999", 400), ("_HLS_msn=8&_HLS_part=x", 400),
    ):  # fmt: skip
        assert (await got(gateway, f"{index}&{directives}"))[0] == status, directives
    status, text, _ = await got(gateway, live.replace("master.m3u8", "classic.m3u8"))
    assert status == 200
    assert b"EXT-X-PART" not in text


async def test_a_session_needs_no_token_and_its_playlists_have_none(gateway):
    headers = await gateway.sign_in()
    _, text, _ = await got(gateway, f"{gateway.url}/v1/camera/live/201/master.m3u8", **headers)
    assert named(text) == ["index.m3u8"]


async def test_every_camera_event_of_the_list_has_its_addresses(gateway):
    _, listed = await gateway.call("/v1/camera/event/list", {})
    for event in listed["events"]:
        for url in (event["clip_url"], event["vod_url"]):
            assert (await got(gateway, url))[0] == 200


async def test_a_page_of_any_origin_may_play_by_a_token_and_by_nothing_else(gateway):
    for url in await addresses(gateway):
        for method, status in (("GET", 200), ("HEAD", 200), ("OPTIONS", 204)):
            found, _, headers = await got(gateway, url, method=method, **PAGE)
            assert found == status
            assert headers["Access-Control-Allow-Origin"] == "*"
            assert "Access-Control-Allow-Credentials" not in headers
            assert headers["Cross-Origin-Resource-Policy"] == "cross-origin"
        assert "Range" in headers["Access-Control-Allow-Headers"]
        assert "GET" in headers["Access-Control-Allow-Methods"]
        session = await gateway.sign_in()
        for method in ("GET", "OPTIONS"):
            _, _, headers = await got(gateway, url.partition("?")[0], method=method, **PAGE, **session)
            assert "Access-Control-Allow-Origin" not in headers
            assert headers["Cross-Origin-Resource-Policy"] == "same-origin"


async def test_a_refusal_can_be_read_by_the_page_that_asked(gateway):
    live, _, _ = await addresses(gateway)
    status, body, headers = await got(gateway, live[:-4] + "AAAA", **PAGE)
    assert status == 403
    assert b"no longer good" in body
    assert headers["Access-Control-Allow-Origin"] == "*"


async def test_a_token_opens_one_camera_or_one_camera_event(gateway):
    live, vod, clip = await addresses(gateway)
    token = {name: url.partition("?")[2] for name, url in (("live", live), ("vod", vod))}
    base = f"{gateway.url}/v1/camera"
    other = gateway.camera_event_id + 1
    for path, carried in (
        ("live/202/master.m3u8", token["live"]),
        ("live/201/master.m3u8", token["vod"]),
        (f"event/vod/{gateway.camera_event_id}/master.m3u8", token["live"]),
        (f"event/vod/{other}/master.m3u8", token["vod"]),
        (f"event/clip/{other}", token["vod"]),
        ("live/201/master.m3u8", "token="),
    ):
        assert (await got(gateway, f"{base}/{path}?{carried}"))[0] == 403, path
    for path in ("thumbnail/201", "status/201", f"event/thumbnail/{gateway.camera_event_id}"):
        assert (await got(gateway, f"{base}/{path}?{token['live']}"))[0] == 500, path
    assert (await got(gateway, clip.partition("?")[0] + "?" + token["vod"]))[0] == 200


async def test_a_token_that_is_not_good_is_refused_beside_a_session_too(gateway):
    session = await gateway.sign_in()
    assert (await got(gateway, f"{gateway.url}/v1/camera/live/201/master.m3u8?token=x", **session))[0] == 403


async def test_an_address_has_a_life(gateway):
    found = await addresses(gateway)
    gateway.clock.pushed += LIFE_SECONDS[ViewKind.LIVE] / 24  # the session ends by being left alone for an hour
    assert [(await got(gateway, url))[0] for url in found] == [200] * 3
    for _ in range(24):
        gateway.clock.pushed += LIFE_SECONDS[ViewKind.LIVE] / 24
        await gateway.call("/v1/camera/list", {})
    assert [(await got(gateway, url))[0] for url in found] == [403] * 3


async def test_signing_out_ends_the_addresses(gateway):
    found = await addresses(gateway)
    await gateway.call("/v1/auth/logout", {})
    assert [(await got(gateway, url))[0] for url in found] == [403] * 3


async def test_the_addresses_go_with_the_permission(gateway, tmp_path):
    run = tmp_path / "run"
    await ask(PutRole(name="sight", permissions=SIGHT), run_folder=run)
    await ask(AddAccount(username="eve", password_hash=hash_password("eve"), role="sight"), run_folder=run)
    live, vod, clip = await addresses(gateway, "eve")
    assert [(await got(gateway, url))[0] for url in (live, vod, clip)] == [200] * 3
    await ask(PutRole(name="sight", permissions=frozenset({"can_view_cameras"})), run_folder=run)
    assert (await got(gateway, vod))[0] == 403
    assert (await got(gateway, clip))[0] == 403
    await ask(PutRole(name="sight", permissions=frozenset()), run_folder=run)
    assert (await got(gateway, live))[0] == 403


async def test_a_program_is_told_an_address_for_any_player(gateway, tmp_path):
    status, stream = await gateway.program("GET", "/api/v1/video/stream/201?protocol=hls")
    assert (status, stream["protocol"]) == (200, "hls")
    assert stream["stream_url"].startswith(f"{gateway.url}/v1/camera/live/201/master.m3u8?token=")
    assert (await got(gateway, stream["stream_url"]))[0] == 200
    assert (await gateway.program("GET", "/api/v1/video/stream/201?protocol=rtsp"))[0] == 400
    await ask(RemoveKey(name="till"), run_folder=tmp_path / "run")
    assert (await got(gateway, stream["stream_url"]))[0] == 403


@pytest.mark.parametrize(
    ("accepted", "zipped"),
    [("gzip, deflate", True), ("br;q=1.0, GZIP;q=0.5", True), ("*", True), ("identity", False), ("gzip;q=0", False)],
)
async def test_playlists_are_compressed_for_those_who_take_it(gateway, accepted, zipped):
    live, vod, _ = await addresses(gateway)
    for url in (live, vod, vod.replace("master", "index")):
        _, plain, bare = await got(gateway, url)
        status, body, headers = await got(gateway, url, Accept_Encoding=accepted)
        assert status == 200
        assert (headers.get("Content-Encoding") == "gzip") is zipped
        assert (gzip.decompress(body) if zipped else body) == plain
        assert headers["Vary"] == "Accept-Encoding"
        assert (headers["ETag"] == bare["ETag"]) is not zipped
        assert (await got(gateway, url, Accept_Encoding=accepted, If_None_Match=headers["ETag"]))[0] == 304


async def test_no_log_has_a_token(gateway, caplog):
    caplog.set_level(0)
    found = await addresses(gateway)
    for url in (*found, *(f"{url}x" for url in found)):
        await got(gateway, url)
    gateway.recording.show(condition="unreachable")
    await got(gateway, found[2])
    assert not any(url.partition("token=")[2] in caplog.text for url in found)
