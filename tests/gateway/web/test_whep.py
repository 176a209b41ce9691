"""WHEP as players meet it: every status, with a real WebRTC peer at the other end and nothing between but loopback."""

from __future__ import annotations

import asyncio
import re
import socket
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from fractions import Fraction

import aioice
import pytest
from aiortc import RTCConfiguration, RTCPeerConnection, RTCSessionDescription
from aiortc.mediastreams import MediaStreamError
from aiortc.rtp import RtcpByePacket, RtcpSdesPacket, RtcpSrPacket, unwrap_rtx
from stopwatch import Stopwatch
from waiting import until
from webrtc_peers import ask_for_keyframe, listen, vanish

from drivers.rtsp.frames import VideoCodec
from drivers.rtsp.server import testcard
from gateway.camera_worker.live_feed import LiveFeed, LiveView
from gateway.camera_worker.views import Views
from gateway.domain.errors import NotFoundError, OfferUnanswered
from gateway.domain.viewing import LiveViewing, OpenView, TrickleView
from gateway.web.auth import viewers
from gateway.web.register.changes import AddAccount, PutRole, RemoveAccount, RemoveKey, SetDisabled
from tests.gateway.web.setups.local import ask

FRAGMENT = "application/trickle-ice-sdpfrag"


class LiveHere:
    """The views of camera 201, in this process."""

    def __init__(self, views: Views) -> None:
        self._views = views
        self.expected: list[int] = []
        self._looks = asyncio.Queue()

    async def looked(self, times: int) -> None:
        """Wait until views were looked at so often from now on."""
        while not self._looks.empty():
            self._looks.get_nowait()
        for _ in range(times):
            await self._looks.get()

    async def expect(self, camera_id):
        self.expected.append(camera_id)

    async def open(self, camera_id, offer, *, address):
        if camera_id != 201:
            raise NotFoundError(f"this site has no camera {camera_id}")
        return await self._views.open(OpenView(camera_id=camera_id, address=address, offer=offer))

    async def trickle(self, camera_id, view, *, tags, fragment):
        await self._views.trickle(view, TrickleView(tags=tags, fragment=fragment))

    async def look(self, camera_id, view):
        self._looks.put_nowait(view)
        self._views.look(view)

    async def end(self, camera_id, view):
        self._views.end(view)


class Live:
    """A gateway whose camera 201 sends a test picture, ten a second."""

    def __init__(self, gateway, feed: LiveFeed, views: Views) -> None:
        self.gateway = gateway
        self.feed = feed
        self.views = views
        self.url = f"{gateway.url}/v1/camera/whep/201"

    async def ask(self, method, url, body="", *, user="chief", media_type="application/sdp", **headers):
        carried = await self.gateway.sign_in(user) if user else {}
        async with self.gateway.client.request(
            method, url, data=body.encode(), headers={**carried, "Content-Type": media_type, **headers}
        ) as answer:
            return answer.status, await answer.text(), answer.headers

    async def stream(self) -> str:
        _, answer = await self.gateway.call("/v1/camera", {"id": 201})
        return answer["camera"]["stream"]


@pytest.fixture
def live(open_gateway):
    """Opens the gateway with a living camera. `frames` gives the camera's frames, group by group."""

    @asynccontextmanager
    async def opened(frames=None, *, most=2):
        card = testcard.TestCard(
            name="T", time_code=lambda: "0", width=320, height=180, rate=Fraction(10), monotonic=lambda: 0.0
        )
        feed = LiveFeed(loop=asyncio.get_running_loop())

        async def sends():
            while True:
                for frame in frames() if frames else card.encode():
                    feed.offer([frame])
                await asyncio.sleep(0.1)  # the pace of the camera

        async with asyncio.TaskGroup() as tasks:
            views = Views(feed_of=lambda camera_id: feed if camera_id == 201 else None, tasks=tasks)
            views.allow(LiveViewing(addresses=("127.0.0.1",), viewers_per_camera=most))
            sending = tasks.create_task(sends())
            async with open_gateway(viewing=LiveHere(views)) as gateway:
                await until(feed.group)
                yield Live(gateway, feed, views)
            sending.cancel()
            views.end_all()

    return opened


class Player:
    """A WebRTC peer that receives video."""

    def __init__(self) -> None:
        self.connection = RTCPeerConnection(RTCConfiguration(iceServers=[]))
        self._receiver = self.connection.addTransceiver("video", "recvonly").receiver

    async def __aenter__(self):
        await self.connection.setLocalDescription(await self.connection.createOffer())
        return self

    async def __aexit__(self, *exc_info):
        await self.connection.close()

    @property
    def offer(self) -> str:
        return self.connection.localDescription.sdp

    async def take(self, answer: str) -> None:
        await self.connection.setRemoteDescription(RTCSessionDescription(answer, "answer"))

    async def pictures(self, number: int) -> list:
        async with asyncio.timeout(30):
            return [await self._receiver.track.recv() for _ in range(number)]

    async def ended(self) -> None:
        async with asyncio.timeout(30):
            while True:
                try:
                    await self._receiver.track.recv()
                except MediaStreamError:
                    return


async def test_a_session_is_created_watched_and_ended(live):
    async with live() as site, Player() as player:
        status, answer, headers = await site.ask("POST", site.url, player.offer)
        assert status == 201, answer
        assert headers["Content-Type"] == "application/sdp"
        assert headers["Location"].startswith("/v1/camera/whep/201/")
        assert len(headers["Location"].rsplit("/", 1)[1]) >= 40
        assert headers["ETag"].startswith('"')
        assert headers["Access-Control-Allow-Origin"] == "*"
        for name in ("ETag", "Link", "Location"):
            assert name in headers["Access-Control-Expose-Headers"]
        assert "a=sendonly" in answer
        assert "a=rtcp-mux" in answer
        assert "a=group:BUNDLE" in answer
        assert "a=candidate:" in answer
        assert "VP8" not in answer
        await player.take(answer)
        pictures = await player.pictures(12)
        assert {(picture.width, picture.height) for picture in pictures} == {(320, 180)}
        times = [picture.pts for picture in pictures]
        assert times == sorted(set(times))
        location = site.gateway.url + headers["Location"]
        assert (await site.ask("DELETE", location, user=""))[0] == 200
        await player.ended()
        assert (await site.ask("DELETE", location, user=""))[0] == 404
        await until(lambda: not site.feed.viewers)
        assert site.views.count == 0


async def test_a_token_lets_a_player_without_a_session_in(live):
    async with live() as site:
        stream = await site.stream()
        assert site.gateway.recording.viewing.expected == [201], "what the viewer needs is made ready"
        bearer = stream.rsplit("=", 1)[1]
        for url, headers in ((stream, {}), (site.url, {"Authorization": f"Bearer {bearer}"})):
            async with Player() as player:
                status, answer, _ = await site.ask("POST", url, player.offer, user="", **headers)
                assert status == 201, answer
        async with Player() as player:
            elsewhere = stream.replace("/201?", "/202?")
            assert (await site.ask("POST", elsewhere, player.offer, user=""))[0] == 401
            site.gateway.clock.pushed += 301
            assert (await site.ask("POST", stream, player.offer, user=""))[0] == 401


@pytest.mark.parametrize("by_token", [False, True])
async def test_a_view_ends_with_the_session_that_opened_it(live, by_token, monkeypatch):
    monkeypatch.setattr(viewers, "CHECK_SECONDS", 0.05)
    async with live() as site, Player() as player:
        stream = await site.stream()
        url, headers, user = (stream, {}, "") if by_token else (site.url, {}, "chief")
        status, answer, told = await site.ask("POST", url, player.offer, user=user, **headers)
        assert status == 201, answer
        await player.take(answer)
        await player.pictures(3)
        site.gateway.clock.pushed += 400  # a token's time to begin is over: the view goes on
        async with asyncio.timeout(15):
            await site.gateway.recording.viewing.looked(10)  # by then idle connections are closed, too
        assert site.views.count == 1
        await site.gateway.call("/v1/auth/logout", {})
        async with asyncio.timeout(15):
            await player.ended()
        assert (await site.ask("DELETE", site.gateway.url + told["Location"], user=""))[0] == 404


async def test_a_view_ends_with_the_key_account_or_permission_behind_it(live, tmp_path, cheap_hash, monkeypatch):
    """Each viewer of camera 201 loses the right in another way; the one who keeps it watches on."""
    monkeypatch.setattr(viewers, "CHECK_SECONDS", 0.05)
    run, sees = tmp_path / "run", frozenset({"can_view_cameras"})
    taken_away = {
        "eve": PutRole(name="role-eve", permissions=frozenset()),
        "bob": SetDisabled(username="bob", disabled=True),
        "ann": RemoveAccount(username="ann"),
        "till": RemoveKey(name="till"),
    }
    async with live(most=5) as site, AsyncExitStack() as players:
        for name in ("eve", "bob", "ann"):
            await ask(PutRole(name=f"role-{name}", permissions=sees), run_folder=run)
            await ask(AddAccount(username=name, password_hash=cheap_hash(name), role=f"role-{name}"), run_folder=run)
        _, told = await site.gateway.program("GET", "/api/v1/video/stream/201", key="till")
        watching = {}
        for name in (*taken_away, "chief"):
            player = watching[name] = await players.enter_async_context(Player())
            url, user = (told["stream_url"], "") if name == "till" else (site.url, name)
            status, answer, _ = await site.ask("POST", url, player.offer, user=user)
            assert status == 201, (name, answer)
            await player.take(answer)
            await player.pictures(3)
        assert site.views.count == 5
        for change in taken_away.values():
            assert not (await ask(change, run_folder=run)).error
        async with asyncio.timeout(15):
            for name in taken_away:
                await watching[name].ended()
        assert site.views.count == 1
        await watching["chief"].pictures(12)


async def test_who_may_not_watch_is_told(live):
    async with live() as site, Player() as player:
        status, _, headers = await site.ask("POST", site.url, player.offer, user="")
        assert (status, headers["WWW-Authenticate"]) == (401, "Bearer")
        assert headers["Access-Control-Allow-Origin"] == "*"
        status, text, _ = await site.ask("POST", site.url, player.offer, user="", Authorization="Bearer zzz")
        assert status == 401
        status, text, _ = await site.ask("POST", site.url, player.offer, user="guard")
        assert status == 403
        assert "can_view_cameras" in text
        assert (await site.ask("POST", f"{site.gateway.url}/v1/camera/whep/999", player.offer))[0] == 404


async def test_another_type_or_what_is_no_offer_is_refused(live):
    async with live() as site, Player() as player:
        status, _, headers = await site.ask("POST", site.url, player.offer, media_type="application/json")
        assert (status, headers["Accept-Post"]) == (415, "application/sdp")
        spoilt = (
            "",
            "hello",
            "v=0\r\n",
            "v=0\r\nm=video 9 UDP/TLS/RTP/SAVPF 96\r\na=recvonly\r\n",
            player.offer.replace("a=recvonly", "a=sendonly"),
            re.sub(r"m=video \d+", "m=video x", player.offer),
            player.offer.replace("a=fingerprint:", "a=x:"),
            "v=0\r\n" + "a=" * 5000,
        )
        for offer in spoilt:
            status, text, _ = await site.ask("POST", site.url, offer)
            assert status == 400, (status, text, offer[:200])
        assert site.feed.viewers == 0


async def test_a_viewer_without_h264_is_told(live):
    async with live() as site, Player() as player:
        status, text, _ = await site.ask("POST", site.url, player.offer.replace("H264/90000", "H261/90000"))
        assert status == 406
        assert "H.264" in text


@pytest.mark.parametrize(
    "spoil", [(r"profile-level-id=\w+", "profile-level-id=640c1f"), ("packetization-mode=1", "x=1")]
)
async def test_a_viewer_without_the_baseline_profile_is_told(live, spoil):
    async with live() as site, Player() as player:
        status, text, _ = await site.ask("POST", site.url, re.sub(*spoil, player.offer))
        assert status == 406
        assert "baseline profile" in text


async def test_a_viewer_that_names_no_direction_gets_pictures(live):
    async with live() as site, Player() as player:
        status, answer, _ = await site.ask("POST", site.url, player.offer.replace("a=recvonly\r\n", ""))
        assert status == 201, answer
        await player.take(answer)
        assert len(await player.pictures(3)) == 3


async def test_a_camera_that_sends_nothing_is_a_conflict_for_now(live):
    async with live() as site, Player() as player:
        site.feed.lost()
        status, text, headers = await site.ask("POST", site.url, player.offer)
        if status == 201:  # the next keyframe came in between
            pytest.skip("the camera sent a keyframe just then")
        assert (status, headers["Retry-After"]) == (409, "5")
        assert "sends no pictures" in text


async def test_pictures_that_webrtc_cannot_carry_are_named(live):
    card = testcard.TestCard(name="T", time_code=lambda: "0", width=320, height=180, rate=Fraction(10))
    frames = [frame for _ in range(4) for frame in card.encode()]
    reordered = [replace(frame, pts=pts) for frame, pts in zip(frames[:3], (0, 9, 6), strict=True)]
    h265 = [replace(frames[0], codec=VideoCodec.H265)]
    for sent, named in ((reordered, "B-frames"), (h265, "H.265")):
        async with live(lambda sent=sent: sent) as site, Player() as player:
            status, text, _ = await site.ask("POST", site.url, player.offer)
            assert status == 406
            assert named in text
            assert "live_url" in text


async def test_viewers_are_bounded(live):
    async with live(most=1) as site, Player() as player, Player() as other:
        assert (await site.ask("POST", site.url, player.offer))[0] == 201
        status, _, headers = await site.ask("POST", site.url, other.offer)
        assert (status, headers["Retry-After"]) == (503, "10")


@pytest.mark.parametrize(
    "seconds",
    [pytest.param(1.0, marks=pytest.mark.long("ten real seconds, of which the standard speaks")), 0.1],
)
async def test_a_viewer_that_vanished_frees_its_place_within_ten_seconds(live, monkeypatch, seconds):
    """Its consent is looked for every `seconds`."""
    async with live(most=1) as site, Player() as player, Player() as other:
        status, answer, _ = await site.ask("POST", site.url, player.offer)
        assert status == 201
        await player.take(answer)
        await player.pictures(3)
        assert (aioice.ice.CONSENT_INTERVAL, aioice.ice.CONSENT_FAILURES) == (1.0, 5)
        monkeypatch.setattr(aioice.ice, "CONSENT_INTERVAL", seconds)
        monkeypatch.setattr(aioice.ice, "CONSENT_FAILURES", 5 * seconds)
        vanish(player.connection)
        watch = Stopwatch()

        async def is_let_in():
            return (await site.ask("POST", site.url, other.offer))[0] != 503

        await until(is_let_in)
        assert seconds < 1.0 or watch.seconds() < 10.0


async def test_candidates_come_later(live):
    async with live() as site, Player() as player:
        candidates = [line for line in player.offer.splitlines() if line.startswith("a=candidate:")]
        bare = "\r\n".join(line for line in player.offer.splitlines() if "candidate" not in line) + "\r\n"
        ufrag = next(line for line in player.offer.splitlines() if line.startswith("a=ice-ufrag:"))
        status, answer, headers = await site.ask("POST", site.url, bare)
        assert status == 201
        location, tag = site.gateway.url + headers["Location"], headers["ETag"]
        fragment = "\r\n".join(
            [ufrag, "a=ice-pwd:x", "m=video 9 RTP/AVP 0", "a=mid:0", *candidates, "a=end-of-candidates", ""]
        )

        async def patch(text=fragment, media_type=FRAGMENT, **more):
            return (await site.ask("PATCH", location, text, user="", media_type=media_type, **more))[0]

        assert await patch() == 428
        assert await patch(**{"If-Match": '"other"'}) == 412
        assert await patch(media_type="application/sdp", **{"If-Match": tag}) == 415
        assert await patch("nothing", **{"If-Match": tag}) == 400
        assert await patch(fragment.replace(ufrag, "a=ice-ufrag:new1"), **{"If-Match": "*"}) == 422
        await player.take(answer)
        assert await patch(**{"If-Match": tag}) == 204
        assert len(await player.pictures(3)) == 3
        assert (await site.ask("PATCH", location + "x", fragment, media_type=FRAGMENT, **{"If-Match": tag}))[0] == 404


async def test_pages_of_other_origins_may_ask_first(live):
    async with live() as site:
        status, _, headers = await site.ask("OPTIONS", site.url, user="")
        assert (status, headers["Accept-Post"]) == (204, "application/sdp")
        assert headers["Access-Control-Allow-Origin"] == "*"
        assert "Access-Control-Allow-Credentials" not in headers
        for word in ("PATCH", "DELETE", "POST"):
            assert word in headers["Access-Control-Allow-Methods"]
        for word in ("Authorization", "Content-Type", "If-Match"):
            assert word in headers["Access-Control-Allow-Headers"]
        assert (await site.ask("OPTIONS", site.url + "/abc", user=""))[0] == 204
        assert (await site.ask("PUT", site.url, "x"))[0] == 405
        assert (await site.ask("GET", site.url))[0] == 405


async def test_a_viewer_that_lost_pictures_gets_a_keyframe_at_once(live, monkeypatch):
    """The library's own encoders heed such a request; pictures of a camera are begun again from the newest group."""
    async with live() as site, Player() as player:
        _, answer, _ = await site.ask("POST", site.url, player.offer)
        await player.take(answer)
        await player.pictures(3)
        restarted = asyncio.Event()
        begin = LiveView.restart
        monkeypatch.setattr(LiveView, "restart", lambda view: (restarted.set(), begin(view)))
        await ask_for_keyframe(player.connection)
        async with asyncio.timeout(30):
            await restarted.wait()
        assert len(await player.pictures(12)) == 12


async def test_packets_that_a_viewer_lost_are_sent_again(live):
    """With two viewers, of whom one loses a tenth: the other gets each packet once."""
    async with live() as site, Player() as player, Player() as other:
        heard = listen(player.connection, loses=lambda packet: packet.sequence_number % 10 == 3)
        also = listen(other.connection)
        for each in (player, other):
            _, answer, _ = await site.ask("POST", site.url, each.offer)
            await each.take(answer)
        await other.pictures(3)

        def repaired() -> bool:
            """A receiver cannot miss what came before its first packet."""
            if not heard.packets:
                return False
            stream, first = heard.packets[0].ssrc, heard.packets[0].sequence_number
            lost = [packet for packet in heard.lost if packet.ssrc == stream and packet.sequence_number > first]
            again = [unwrap_rtx(packet, 0, stream) for packet in heard.packets if packet.ssrc != stream]
            found = {packet.sequence_number: packet.payload for packet in again}
            return len(lost) >= 3 and all(found.get(each.sequence_number) == each.payload for each in lost[:3])

        await until(repaired)

        def each_once() -> bool:
            """A busy machine may lose some of the other's too: they come again, and only they."""
            stream = also.packets[0].ssrc
            whole = [packet if packet.ssrc == stream else unwrap_rtx(packet, 0, stream) for packet in also.packets]
            numbers = sorted(packet.sequence_number for packet in whole)
            return [number - numbers[0] for number in numbers] == list(range(len(numbers)))

        await until(each_once)


async def test_a_viewer_gets_reports_and_a_goodbye(live):
    async with live() as site, Player() as player:
        heard = listen(player.connection)
        _, answer, headers = await site.ask("POST", site.url, player.offer)
        await player.take(answer)

        def reports(kind):
            return [report for report in heard.reports if isinstance(report, kind)]

        await until(lambda: len(reports(RtcpSrPacket)) >= 2)
        first, second = reports(RtcpSrPacket)[:2]
        assert first.ssrc == heard.packets[0].ssrc
        assert 0 < first.sender_info.packet_count < second.sender_info.packet_count
        assert first.sender_info.rtp_timestamp in {packet.timestamp for packet in heard.packets}
        assert second.sender_info.ntp_timestamp - first.sender_info.ntp_timestamp >= 2**32, "a second apart"
        assert reports(RtcpSdesPacket)[0].chunks[0].ssrc == first.ssrc
        await site.ask("DELETE", site.gateway.url + headers["Location"], user="")
        await until(lambda: reports(RtcpByePacket))


async def test_nothing_is_sent_to_places_that_are_not_the_viewers_own(live):
    """RFC 8445, 19.5.1: a viewer names victims, in its offer and later. Its own places, of less priority, are asked."""
    loop = asyncio.get_running_loop()
    async with live() as site, Player() as player, AsyncExitStack() as places:
        ears = [places.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM)) for _ in range(4)]
        named = []
        for number, ear in enumerate(ears):
            ear.bind((f"127.0.0.{2 - number % 2}", 0))
            ear.setblocking(False)
            host, port = ear.getsockname()
            named.append(f"a=candidate:{number} 1 udp {2130706431 - number} {host} {port} typ host\r\n")
        offer = player.offer.replace("a=end-of-candidates\r\n", "")
        status, answer, headers = await site.ask(
            "POST", site.url, f"{offer}{named[0]}{named[1]}a=end-of-candidates\r\n"
        )
        assert status == 201, answer
        ufrag = next(line for line in player.offer.splitlines() if line.startswith("a=ice-ufrag:"))
        status, told, _ = await site.ask(
            "PATCH",
            site.gateway.url + headers["Location"],
            f"{ufrag}\r\na=ice-pwd:x\r\nm=video 9 RTP/AVP 0\r\na=mid:0\r\n{named[2]}{named[3]}",
            user="",
            media_type=FRAGMENT,
            **{"If-Match": headers["ETag"]},
        )
        assert status == 204, told
        async with asyncio.timeout(20):
            for own in (ears[1], ears[3]):
                await loop.sock_recv(own, 4000)
        for victim in (ears[0], ears[2]):
            with pytest.raises(BlockingIOError):
                victim.recv(4000)
        await player.take(answer)
        await player.pictures(5)


async def test_offers_that_are_never_followed_by_a_connection_take_two_places_of_a_camera_at_most(live):
    """Others watch while somebody sends offer after offer, and who gave up too early has the newest of their own."""
    async with live() as site, Player() as player:
        names = []
        for _ in range(20):
            status, _, headers = await site.ask("POST", site.url, player.offer)
            assert status == 201
            names.append(headers["Location"].rpartition("/")[2])
        await until(lambda: site.feed.viewers == 2)
        for name in names[-2:]:
            site.views.look(name)


class SilentWorker:
    """Views of a worker that never answers an offer."""

    async def expect(self, camera_id):
        pass

    async def open(self, camera_id, offer, *, address):
        raise OfferUnanswered("the camera worker does not answer")


async def test_offers_that_no_worker_answers_make_their_account_wait(open_gateway):
    """An offer that stops a worker stops the recording of its cameras, so it is not tried again and again."""
    async with open_gateway(viewing=SilentWorker()) as gateway:
        headers = await gateway.sign_in() | {"Content-Type": "application/sdp"}

        async def status():
            url = f"{gateway.url}/v1/camera/whep/201"
            async with gateway.client.post(url, data="v=0", headers=headers) as answer:
                return answer.status, int(answer.headers["Retry-After"])

        assert [await status() for _ in range(3)] == [(503, 5), (503, 5), (429, 2)]
        gateway.clock.pushed += 3
        assert await status() == (503, 5)
        assert await status() == (429, 4)
