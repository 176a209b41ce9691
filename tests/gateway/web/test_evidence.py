"""Evidence over real sockets: uploads whole or not at all, and links that hand out a file for a while."""

from __future__ import annotations

import asyncio
import hashlib
from io import BytesIO
from urllib.parse import urlsplit

import pytest
from aiohttp import ClientSession, FormData, UnixConnector
from structlog.testing import capture_logs
from waiting import until

from gateway.domain.events import EventKind
from gateway.recording.evidence_files import FOLDER
from gateway.store import EventFilter
from gateway.web.register.changes import AddAccount, PutRole, RemoveAccount, SetDisabled, SetRole
from tests.gateway.web.setups.local import ask

UPLOAD = "/v1/camera/event/evidence"
JPEG = b"\xff\xd8\xff\xe0" + b"picture" * 1000
BOUNDARY = "b0"
FILE_PART = b'Content-Disposition: form-data; name="file"; filename="a"\r\n\r\n'


def form(camera_event_id, content=JPEG, *, filename="scene.jpg", **fields):
    made = FormData(quote_fields=False)
    made.add_field("id", str(camera_event_id))
    for name, value in fields.items():
        made.add_field(name, value)
    made.add_field("file", BytesIO(content), filename=filename, content_type="text/html")
    return made


@pytest.fixture
def upload(gateway):
    async def send(data, *, user="chief", **headers):
        held = await gateway.sign_in(user) if user else {}
        async with gateway.client.post(gateway.url + UPLOAD, data=data, headers=held | headers) as answer:
            return answer.status, await answer.json()

    return send


@pytest.fixture
def uploaded(gateway, upload):
    async def make(content=JPEG, **fields):
        status, answer = await upload(form(gateway.camera_event_id, content, **fields))
        assert status == 200, answer
        return answer["evidence"]

    return make


@pytest.fixture
def linked(gateway):
    async def make(evidence_id, body=None):
        status, answer = await gateway.call(f"{UPLOAD}/{evidence_id}/access", body or {})
        assert status == 200, answer
        return answer["access"]

    return make


async def fetched(gateway, url, *, method="GET", **headers):
    async with gateway.client.request(method, url, headers=headers) as answer:
        return answer.status, answer.headers, await answer.read()


async def of_kind(gateway, kind):
    return (await gateway.store.events.page(EventFilter(types=(int(kind),)))).events


async def test_an_upload_is_kept_and_shown_with_its_camera_event(gateway, upload, tmp_path):
    status, answer = await upload(
        form(gateway.camera_event_id, description="Dent in the door", kept_as="transaction", name="Door.jpg")
    )
    assert status == 200
    evidence = answer["evidence"]
    digest = hashlib.sha256(JPEG).hexdigest()
    assert evidence["id"] >= 2_000_000_000
    assert {
        name: evidence[name] for name in ("name", "description", "type", "kept_as", "size", "sha256", "username")
    } == {
        "name": "Door.jpg",
        "description": "Dent in the door",
        "type": "image/jpeg",
        "kept_as": "transaction",
        "size": len(JPEG),
        "sha256": digest,
        "username": "chief",
    }
    row = await gateway.store.evidence.get(evidence["id"])
    assert (tmp_path / FOLDER / row.file).read_bytes() == JPEG
    (event,) = await of_kind(gateway, EventKind.EVIDENCE_ADDED)
    assert digest in event.data
    again = await upload(form(gateway.camera_event_id))
    assert again[1]["evidence"]["id"] == evidence["id"]


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ("../../etc/passwd", "passwd"),
        ("C:\\temp\\a.jpg", "a.jpg"),
        ("\u202egpj.exe", "gpj.exe"),
        ("..", "evidence"),
        ("", "evidence"),
        ("x" * 300 + ".jpg", "x" * 116 + ".jpg"),
    ],
)
async def test_a_file_name_is_never_a_path(uploaded, tmp_path, given, shown):
    evidence = await uploaded(filename=given or None) if given else await uploaded(name="\x07")
    assert evidence["name"] == shown or not given
    assert all(len(path.name) == 32 for path in (tmp_path / FOLDER).iterdir())


@pytest.mark.parametrize(
    ("sent", "shown"),
    [
        (rb'filename="C:\x\y.jpg"', "y.jpg"),  # as a browser's form has it: nothing is escaped
        (rb'filename="C:\\x\\y.jpg"', "y.jpg"),
        (rb'filename="say \"hi\".jpg"', 'say "hi".jpg'),
        (rb"filename=y.jpg", "y.jpg"),
        (rb"filename*=UTF-8''%C3%A9.jpg", "\N{LATIN SMALL LETTER E WITH ACUTE}.jpg"),
    ],
)
async def test_a_name_that_another_program_sent_is_read_as_it_meant(gateway, sent, shown):
    body = (
        f'--b0\r\nContent-Disposition: form-data; name="id"\r\n\r\n{gateway.camera_event_id}\r\n'
        '--b0\r\nContent-Disposition: form-data; name="file"; '
    ).encode() + sent + b"\r\n\r\n" + JPEG + b"\r\n--b0--\r\n"  # fmt: skip
    headers = {**await gateway.sign_in(), "Content-Type": "multipart/form-data; boundary=b0"}
    async with gateway.client.post(gateway.url + UPLOAD, data=body, headers=headers) as answer:
        assert (await answer.json())["evidence"]["name"] == shown


async def test_what_cannot_be_taken_is_said_and_leaves_nothing(gateway, upload, tmp_path):
    known = gateway.camera_event_id
    twice = form(known)
    twice.add_field("file", b"second", filename="b.jpg")
    without = FormData()
    without.add_field("id", str(known))
    without.add_field("note", "no file", content_type="text/plain")
    late = FormData()
    late.add_field("file", JPEG, filename="a.jpg")
    late.add_field("id", "999")
    nameless = FormData()
    nameless.add_field("file", JPEG, filename="a.jpg")
    many = form(known, **{f"f{number}": "x" for number in range(20)})
    cases = [
        (form("999"), 404, "camera event 999"),
        (late, 404, "camera event 999"),
        (nameless, 400, "id: is missing"),
        (form("abc"), 400, "id: must be"),
        (form(-1), 400, "id: must be"),
        (form(known, kept_as="for ever"), 400, "kept_as: must be"),
        (form(known, sha256="0" * 64), 400, "sha256: the file that came has another one"),
        (form(known, sha256="x"), 400, "sha256"),
        (form(known, b""), 400, "file: is empty"),
        (form(known, b"x" * 3_000_001), 413, "file: is larger"),
        (form(known, description="x" * 9000), 400, "description: is too long"),
        (form(known, description="x" * 2000), 400, "description: "),
        (twice, 400, "one file is taken at a time"),
        (without, 400, "file: is missing"),
        (many, 400, "too many fields"),
    ]
    for data, status, words in cases:
        found, answer = await upload(data)
        assert (found, answer["success"], answer["evidence"]) == (status, False, None), words
        assert words in answer["error"], answer
    assert list((tmp_path / FOLDER).iterdir()) == []
    assert await gateway.store.evidence.all() == ()


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"not a form",
        b"--b0\r\n",
        b"--b0--\r\n",
        b'--b0\r\nContent-Disposition: form-data; name="file"; filename="a"\r\n\r\nno end',
        b"--b0\r\nContent-Transfer-Encoding: base64\r\n" + FILE_PART + b"aGk=\r\n--b0--\r\n",
        b"--b0\r\n\r\nno name\r\n--b0--\r\n",
        b'--b0\r\nContent-Disposition: form-data; name="file"; filename="a"\r\n\r\nx\r\n--b1--\r\n',
        b"--b0\r\nContent-Type: multipart/mixed; boundary=c\r\n\r\n--c\r\n\r\nx\r\n--c--\r\n--b0--\r\n",
        b"--b0\r\nContent-Length: 99999\r\n" + FILE_PART + b"x\r\n--b0--\r\n",
    ],
)
async def test_a_form_that_is_none_is_refused(gateway, upload, tmp_path, raw):
    status, answer = await upload(raw, **{"Content-Type": f"multipart/form-data; boundary={BOUNDARY}"})
    assert status == 400, answer
    assert answer["evidence"] is None
    assert list((tmp_path / FOLDER).iterdir()) == []


async def test_another_media_type_or_no_boundary_is_refused(upload):
    for kind in ("application/json", "multipart/form-data", "multipart/form-data; boundary=" + "b" * 80):
        status, answer = await upload(b"{}", **{"Content-Type": kind})
        assert status == 400, kind
        assert "multipart" in answer["error"]


async def test_an_upload_that_breaks_off_leaves_nothing(gateway, tmp_path):
    headers = await gateway.sign_in()
    place = urlsplit(gateway.url)
    head = (
        f"POST {UPLOAD} HTTP/1.1\r\nHost: localhost\r\nSessionID: {headers['SessionID']}\r\nContent-Length: 2000000\r\n"
        f"Content-Type: multipart/form-data; boundary={BOUNDARY}\r\n\r\n"
        f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="id"\r\n\r\n{gateway.camera_event_id}\r\n'
        f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="file"; filename="a"\r\n\r\n'
    )
    _, writer = await asyncio.open_connection(place.hostname, place.port)
    writer.write(head.encode() + b"x" * 1_500_000)
    await writer.drain()
    await until(lambda: any((tmp_path / FOLDER).iterdir()))
    writer.close()
    await until(lambda: not any((tmp_path / FOLDER).iterdir()))
    assert await gateway.store.evidence.all() == ()


async def test_only_whoever_may_uploads_and_links(gateway, upload, uploaded):
    assert (await upload(form(gateway.camera_event_id), user=""))[1]["error"] == "authentication required"
    status, answer = await upload(form(gateway.camera_event_id), user="guard")
    assert (status, answer["evidence"]) == (500, None)
    assert "can_add_camera_events" in answer["error"]
    evidence = await uploaded()
    for user, words in (("", "authentication required"), ("guard", "can_view_camera_events")):
        status, answer = await gateway.call(f"{UPLOAD}/{evidence['id']}/access", {}, user=user)
        assert (status, answer["access"]) == (500, None)
        assert words in answer["error"]


async def test_a_link_hands_out_the_file_to_anybody(gateway, uploaded, linked):
    evidence = await uploaded()
    access = await linked(evidence["id"], {"minutes": 5})
    assert access["url"] == f"{gateway.url}{UPLOAD}/file/{access['token']}"
    status, headers, body = await fetched(gateway, access["url"])
    assert (status, body) == (200, JPEG)
    assert headers["Content-Type"] == "image/jpeg"
    assert headers["Content-Disposition"].startswith('inline; filename="scene.jpg"')
    assert headers["Content-Security-Policy"].startswith("sandbox; default-src 'none'")
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["Cache-Control"] == "private, no-store"
    status, headers, body = await fetched(gateway, access["url"], Range="bytes=4-10")
    assert (status, body) == (206, JPEG[4:11])
    assert headers["Content-Range"] == f"bytes 4-10/{len(JPEG)}"
    status, headers, _ = await fetched(gateway, access["url"], method="HEAD")
    assert (status, headers["Content-Length"]) == (200, str(len(JPEG)))
    assert (await fetched(gateway, access["url"], Range=f"bytes={len(JPEG)}-"))[0] == 416


async def test_what_a_browser_could_run_is_saved_under_a_harmless_name(gateway, uploaded, linked):
    page = b"<html><script>alert(1)</script></html>"
    for content, name, kind, shown in (
        (page, "page.html", "text/plain", "page.html.txt"),
        (b"MZ\x90\x00" * 50, "tool.exe", "application/octet-stream", "tool.exe.bin"),
        (
            b"%PDF-1.7 \x00",
            "a;x=ü'.pdf",
            "application/pdf",
            "filename=\"a_x_.pdf\"; filename*=UTF-8''a%3Bx%3D%C3%BC%27.pdf",
        ),
    ):
        access = await linked((await uploaded(content, filename=name))["id"])
        status, headers, body = await fetched(gateway, access["url"])
        assert (status, body) == (200, content)
        assert headers["Content-Type"].partition(";")[0] == kind
        assert headers["Content-Disposition"].startswith("attachment; ")
        assert shown in headers["Content-Disposition"]


async def test_a_video_may_be_played_and_nothing_else(gateway, footage, uploaded, linked):
    access = await linked((await uploaded(footage.clip.read_bytes(), filename="clip.mp4"))["id"])
    _, headers, body = await fetched(gateway, access["url"])
    assert (headers["Content-Type"], body) == ("video/mp4", footage.clip.read_bytes())
    policy = headers["Content-Security-Policy"]
    assert policy.startswith("sandbox allow-same-origin; default-src 'none'; media-src 'self'")
    assert "script" not in policy


async def test_each_use_is_an_event_and_parts_of_one_use_are_one(gateway, uploaded, linked):
    access = await linked((await uploaded())["id"])
    for wanted in ("bytes=0-99", "bytes=100-199", "bytes=200-"):
        assert (await fetched(gateway, access["url"], Range=wanted))[0] == 206
    assert len(await of_kind(gateway, EventKind.EVIDENCE_OPENED)) == 1
    assert (await fetched(gateway, access["url"]))[0] == 200
    uses = await of_kind(gateway, EventKind.EVIDENCE_OPENED)
    assert len(uses) == 2
    assert "127.0.0.1" in uses[0].description
    assert all(access["token"] not in event.description + event.data for event in uses)
    other = await linked(access["evidence_id"])
    assert (await fetched(gateway, other["url"], Range="bytes=100-"))[0] == 206
    assert len(await of_kind(gateway, EventKind.EVIDENCE_OPENED)) == 3


async def test_links_end_by_time_and_by_being_taken_back(gateway, uploaded, linked):
    evidence = await uploaded()
    one, two, three = [await linked(evidence["id"], {"minutes": minutes}) for minutes in (5, 60, 60)]
    gateway.clock.pushed += 5 * 60 + 1
    assert (await fetched(gateway, one["url"]))[0] == 404
    back = await linked(evidence["id"], {"revoke": True, "link_id": two["link_id"]})
    assert (back["revoked"], back["token"], back["url"]) == (1, "", "")
    assert (await fetched(gateway, two["url"]))[0] == 404
    assert (await fetched(gateway, three["url"]))[0] == 200
    assert (await gateway.call(f"{UPLOAD}/{evidence['id']}/access", {"revoke": True, "link_id": 999}))[0] == 404
    assert (await linked(evidence["id"], {"revoke": True}))["revoked"] == 1
    assert (await fetched(gateway, three["url"]))[0] == 404
    assert (await linked(evidence["id"], {"revoke": True}))["revoked"] == 0
    assert len(await of_kind(gateway, EventKind.EVIDENCE_LINK_REVOKED)) == 2


async def test_bad_links_and_bad_wishes(gateway, uploaded):
    evidence = await uploaded()
    for token in ("x", "A" * 43, "..%2f..%2fsite.db", "A" * 5000):
        status, _, body = await fetched(gateway, f"{gateway.url}{UPLOAD}/file/{token}")
        assert status == 404, token
    for body, place in (
        ({"minutes": 0}, "minutes"),
        ({"minutes": 10**6}, "minutes"),
        ({"minutes": "5"}, "minutes"),
        ({"revoke": 1}, "revoke"),
        ({"revoke": True, "link_id": "x"}, "link_id"),
    ):
        status, answer = await gateway.call(f"{UPLOAD}/{evidence['id']}/access", body)
        assert (status, answer["error"].partition(":")[0]) == (400, place)
    assert (await gateway.call(f"{UPLOAD}/999/access", {}))[0] == 404


async def test_no_token_is_on_disk(gateway, uploaded, linked, tmp_path):
    access = await linked((await uploaded())["id"])
    written = b"".join(path.read_bytes() for path in tmp_path.glob("site.db*"))
    assert access["token"].encode() not in written


async def test_an_unexpected_error_does_not_put_a_token_into_the_log(gateway, uploaded, linked, monkeypatch):
    access = await linked((await uploaded())["id"])

    def broken(evidence):
        raise RuntimeError("broken")

    monkeypatch.setattr(gateway.recording.evidence_files, "path", broken)
    with capture_logs() as logged:
        assert (await fetched(gateway, access["url"]))[0] == 500
    assert [entry["path"] for entry in logged] == [f"{UPLOAD}/file/{{token}}"]
    assert access["token"] not in str(logged)


async def test_deleting_a_camera_event_takes_its_evidence_and_links_along(gateway, uploaded, linked, tmp_path):
    evidence = await uploaded()
    access = await linked(evidence["id"])
    shown = (await gateway.call("/v1/camera/event", {"id": gateway.camera_event_id}))[1]["event"]
    assert [item["id"] for item in shown["evidence"]] == [evidence["id"]]
    listed = (await gateway.call("/v1/camera/event/list", {}))[1]["events"]
    assert listed[0]["evidence"] == shown["evidence"]
    status, answer = await gateway.call("/v1/camera/event", {"id": gateway.camera_event_id}, method="DELETE")
    assert (status, answer["event"]["evidence"][0]["sha256"]) == (200, evidence["sha256"])
    assert (await fetched(gateway, access["url"]))[0] == 404
    assert list((tmp_path / FOLDER).iterdir()) == []
    assert await gateway.store.evidence.bytes_kept() == 0
    (told,) = await of_kind(gateway, EventKind.CAMERA_EVENT_DELETED)
    assert evidence["sha256"] in told.data


async def test_a_link_that_is_used_without_end_is_slowed_down(gateway, uploaded, linked):
    evidence = await uploaded(b"small")
    access, other = await linked(evidence["id"]), await linked(evidence["id"])
    found = [(await fetched(gateway, access["url"]))[0] for _ in range(62)]
    assert found == [200] * 60 + [429] * 2
    assert (await fetched(gateway, other["url"]))[0] == 200
    gateway.clock.pushed += 61
    assert (await fetched(gateway, access["url"]))[0] == 200


@pytest.fixture
async def makers(gateway, cheap_hash, tmp_path):
    """Two accounts that may make links, with roles of their own, and a way to change accounts as the command does."""

    async def change(*changes):
        for each in changes:
            answer = await ask(each, run_folder=tmp_path / "run")
            assert not answer.error, answer

    for name in ("eve", "adam"):
        await change(
            PutRole(name=f"role-{name}", permissions=frozenset({"can_view_camera_events"})),
            AddAccount(username=name, password_hash=cheap_hash(name), role=f"role-{name}"),
        )
    return change


async def link_of(gateway, evidence, user, **wanted):
    status, answer = await gateway.call(f"{UPLOAD}/{evidence['id']}/access", wanted, user=user)
    assert status == 200, answer
    return answer["access"]


def _again(cheap_hash):
    return AddAccount(username="eve", password_hash=cheap_hash("other"), role="role-eve")


@pytest.mark.parametrize(
    ("lost", "back"),
    [
        ([SetDisabled(username="eve", disabled=True)], [SetDisabled(username="eve", disabled=False)]),
        ([RemoveAccount(username="eve")], "another person of that name"),
        ([PutRole(name="idle", permissions=frozenset()), SetRole(username="eve", role="idle")], None),
        ([PutRole(name="role-eve", permissions=frozenset({"can_view_cameras"}))], None),
    ],
    ids=["disabled", "removed", "role", "permission"],
)
async def test_a_link_ends_with_its_makers_right(gateway, makers, uploaded, cheap_hash, lost, back):
    evidence = await uploaded()
    by_eve, by_adam = [await link_of(gateway, evidence, user) for user in ("eve", "adam")]
    assert (await fetched(gateway, by_eve["url"]))[0] == 200
    await makers(*lost)
    status, _, body = await fetched(gateway, by_eve["url"])
    assert (status, JPEG in body) == (404, False)
    assert (await fetched(gateway, by_eve["url"], method="HEAD"))[0] == 404
    assert (await fetched(gateway, by_adam["url"]))[0] == 200
    if back is not None:
        await makers(*([_again(cheap_hash)] if isinstance(back, str) else back))
        assert (await fetched(gateway, by_eve["url"]))[0] == 404


async def test_only_its_maker_or_an_administrator_revokes_a_link(gateway, makers, uploaded):
    evidence = await uploaded()
    one, two, three = [await link_of(gateway, evidence, user) for user in ("eve", "eve", "chief")]
    assert (await link_of(gateway, evidence, "adam", revoke=True))["revoked"] == 0
    status, answer = await gateway.call(
        f"{UPLOAD}/{evidence['id']}/access", {"revoke": True, "link_id": one["link_id"]}, user="adam"
    )
    assert status == 404
    assert answer["error"] == f"evidence {evidence['id']} has no valid link {one['link_id']} that you made"
    assert [(await fetched(gateway, link["url"]))[0] for link in (one, two, three)] == [200, 200, 200]
    assert (await link_of(gateway, evidence, "eve", revoke=True, link_id=one["link_id"]))["revoked"] == 1
    assert [(await fetched(gateway, link["url"]))[0] for link in (one, two, three)] == [404, 200, 200]
    assert (await link_of(gateway, evidence, "chief", revoke=True))["revoked"] == 2


async def test_a_link_of_the_local_socket_is_revoked_by_no_account_of_that_name(gateway, makers, uploaded, tmp_path):
    """Nobody at the machine itself has an account; an account that is called alike is somebody else."""
    evidence = await uploaded()
    here = UnixConnector(path=str(tmp_path / "run" / "interface.sock"))
    async with (
        ClientSession(connector=here) as local,
        local.post(f"http://127.0.0.1{UPLOAD}/{evidence['id']}/access", json={}) as answer,
    ):
        link = (await answer.json())["access"]
    assert (await link_of(gateway, evidence, "eve", revoke=True))["revoked"] == 0
    async with gateway.client.get(f"{gateway.url}{urlsplit(link['url']).path}") as answer:
        assert answer.status == 200
