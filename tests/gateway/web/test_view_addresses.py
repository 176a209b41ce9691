"""Addresses with a token: footage for players that send no session, and for pages of other origins."""

from __future__ import annotations

import gzip

import pytest

from gateway.web.auth.site_file_accounts import hash_password
from gateway.web.auth.view_tokens import LIFE_SECONDS
from gateway.web.operation import ViewKind
from gateway.web.register.changes import AddAccount, PutRole, RemoveKey
from gateway.web.register.socket import ask

PAGE = {"Origin": "https://player.example"}
SIGHT = frozenset({"can_view_cameras", "can_view_camera_events"})


async def addresses(house, user="chief"):
    _, cameras = await house.call("/v1/camera/list", {}, user=user)
    _, event = await house.call("/v1/camera/event", {"id": house.camera_event_id}, user=user)
    return cameras["cameras"][0]["hls_url"], event["event"]["vod_url"], event["event"]["clip_url"]


async def got(house, url, *, method="GET", **headers):
    """As a player that knows nothing but the address."""
    house.client.cookie_jar.clear()
    sent = {"Accept-Encoding": "identity"} | {name.replace("_", "-"): value for name, value in headers.items()}
    async with house.client.request(method, url, headers=sent, auto_decompress=False) as answer:
        return answer.status, await answer.read(), answer.headers


def named(playlist: bytes) -> list[str]:
    return [line for line in playlist.decode().splitlines() if line and not line.startswith("#")]


async def followed(house, master):
    """Every address that a playlist leads to."""
    found = [master]
    for file in range(2):
        status, text, _ = await got(house, found[file])
        assert status == 200
        lines = named(text)
        assert lines
        found += [f"{found[file].rpartition('/')[0]}/{line}" for line in lines]
    return found


async def test_the_token_leads_from_the_playlist_to_the_last_segment(house, footage):
    live, vod, clip = await addresses(house)
    for master in (live, vod):
        token = master.partition("?")[2]
        found = await followed(house, master)
        assert all(address.endswith(f"?{token}") for address in found)
        status, body, _ = await got(house, found[-1])
        assert (status, body) == (200, footage.segment.read_bytes())
    status, body, _ = await got(house, clip, Range="bytes=0-99")
    assert (status, body) == (206, footage.clip.read_bytes()[:100])


async def test_a_session_needs_no_token_and_its_playlists_have_none(house):
    headers = await house.sign_in()
    _, text, _ = await got(house, f"{house.url}/v1/camera/live/201/master.m3u8", **headers)
    assert named(text) == ["index.m3u8"]


async def test_every_camera_event_of_the_list_has_its_addresses(house):
    _, listed = await house.call("/v1/camera/event/list", {})
    for event in listed["events"]:
        for url in (event["clip_url"], event["vod_url"]):
            assert (await got(house, url))[0] == 200


async def test_a_page_of_any_origin_may_play_by_a_token_and_by_nothing_else(house):
    for url in await addresses(house):
        for method, status in (("GET", 200), ("HEAD", 200), ("OPTIONS", 204)):
            found, _, headers = await got(house, url, method=method, **PAGE)
            assert found == status
            assert headers["Access-Control-Allow-Origin"] == "*"
            assert "Access-Control-Allow-Credentials" not in headers
            assert headers["Cross-Origin-Resource-Policy"] == "cross-origin"
        assert "Range" in headers["Access-Control-Allow-Headers"]
        assert "GET" in headers["Access-Control-Allow-Methods"]
        session = await house.sign_in()
        for method in ("GET", "OPTIONS"):
            _, _, headers = await got(house, url.partition("?")[0], method=method, **PAGE, **session)
            assert "Access-Control-Allow-Origin" not in headers
            assert headers["Cross-Origin-Resource-Policy"] == "same-origin"


async def test_a_refusal_can_be_read_by_the_page_that_asked(house):
    live, _, _ = await addresses(house)
    status, body, headers = await got(house, live[:-4] + "AAAA", **PAGE)
    assert status == 403
    assert b"no longer good" in body
    assert headers["Access-Control-Allow-Origin"] == "*"


async def test_a_token_opens_one_camera_or_one_camera_event(house):
    live, vod, clip = await addresses(house)
    token = {name: url.partition("?")[2] for name, url in (("live", live), ("vod", vod))}
    base = f"{house.url}/v1/camera"
    other = house.camera_event_id + 1
    for path, carried in (
        ("live/202/master.m3u8", token["live"]),
        ("live/201/master.m3u8", token["vod"]),
        (f"event/vod/{house.camera_event_id}/master.m3u8", token["live"]),
        (f"event/vod/{other}/master.m3u8", token["vod"]),
        (f"event/clip/{other}", token["vod"]),
        ("live/201/master.m3u8", "token="),
    ):
        assert (await got(house, f"{base}/{path}?{carried}"))[0] == 403, path
    for path in ("thumbnail/201", "status/201", f"event/thumbnail/{house.camera_event_id}"):
        assert (await got(house, f"{base}/{path}?{token['live']}"))[0] == 500, path
    assert (await got(house, clip.partition("?")[0] + "?" + token["vod"]))[0] == 200


async def test_a_token_that_is_not_good_is_refused_beside_a_session_too(house):
    session = await house.sign_in()
    assert (await got(house, f"{house.url}/v1/camera/live/201/master.m3u8?token=x", **session))[0] == 403


async def test_an_address_has_a_life(house):
    found = await addresses(house)
    house.clock.pushed += LIFE_SECONDS[ViewKind.LIVE] / 24  # the session ends by being left alone for an hour
    assert [(await got(house, url))[0] for url in found] == [200] * 3
    for _ in range(24):
        house.clock.pushed += LIFE_SECONDS[ViewKind.LIVE] / 24
        await house.call("/v1/camera/list", {})
    assert [(await got(house, url))[0] for url in found] == [403] * 3


async def test_signing_out_ends_the_addresses(house):
    found = await addresses(house)
    await house.call("/v1/auth/logout", {})
    assert [(await got(house, url))[0] for url in found] == [403] * 3


async def test_the_addresses_go_with_the_permission(house, tmp_path):
    run = tmp_path / "run"
    await ask(PutRole(name="sight", permissions=SIGHT), run_folder=run)
    await ask(AddAccount(username="eve", password_hash=hash_password("eve"), role="sight"), run_folder=run)
    live, vod, clip = await addresses(house, "eve")
    assert [(await got(house, url))[0] for url in (live, vod, clip)] == [200] * 3
    await ask(PutRole(name="sight", permissions=frozenset({"can_view_cameras"})), run_folder=run)
    assert (await got(house, vod))[0] == 403
    assert (await got(house, clip))[0] == 403
    await ask(PutRole(name="sight", permissions=frozenset()), run_folder=run)
    assert (await got(house, live))[0] == 403


async def test_a_program_is_told_an_address_for_any_player(house, tmp_path):
    status, stream = await house.program("GET", "/api/v1/video/stream/201?protocol=hls")
    assert (status, stream["protocol"]) == (200, "hls")
    assert stream["stream_url"].startswith(f"{house.url}/v1/camera/live/201/master.m3u8?token=")
    assert (await got(house, stream["stream_url"]))[0] == 200
    assert (await house.program("GET", "/api/v1/video/stream/201?protocol=rtsp"))[0] == 400
    await ask(RemoveKey(name="till"), run_folder=tmp_path / "run")
    assert (await got(house, stream["stream_url"]))[0] == 403


@pytest.mark.parametrize(
    ("accepted", "zipped"),
    [("gzip, deflate", True), ("br;q=1.0, GZIP;q=0.5", True), ("*", True), ("identity", False), ("gzip;q=0", False)],
)
async def test_playlists_are_compressed_for_those_who_take_it(house, accepted, zipped):
    live, vod, _ = await addresses(house)
    for url in (live, vod, vod.replace("master", "index")):
        _, plain, bare = await got(house, url)
        status, body, headers = await got(house, url, Accept_Encoding=accepted)
        assert status == 200
        assert (headers.get("Content-Encoding") == "gzip") is zipped
        assert (gzip.decompress(body) if zipped else body) == plain
        assert headers["Vary"] == "Accept-Encoding"
        assert (headers["ETag"] == bare["ETag"]) is not zipped
        assert (await got(house, url, Accept_Encoding=accepted, If_None_Match=headers["ETag"]))[0] == 304


async def test_no_log_has_a_token(house, caplog):
    caplog.set_level(0)
    found = await addresses(house)
    for url in (*found, *(f"{url}x" for url in found)):
        await got(house, url)
    house.recording.show(condition="unreachable")
    await got(house, found[2])
    assert not any(url.partition("token=")[2] in caplog.text for url in found)
