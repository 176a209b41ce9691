"""The client against the simulated central, over real sockets."""

from __future__ import annotations

import asyncio
import contextlib
import shutil
import socket
import ssl
import subprocess
import time
from dataclasses import replace

import pytest
from lacks import lacks
from set_machine import PushedClock
from structlog.testing import capture_logs
from waiting import until

from gateway.central.central_link import notices
from gateway.central.client import session
from gateway.central.client.answers import CentralDenied, CentralFailed, SignInRefused
from gateway.central.client.connections import BODY_LIMIT, impatient_socket
from gateway.central.client.session import UsedCodes
from gateway.central.pull.pull import PullProblem, PullReport
from gateway.central.relay import CentralRelay
from gateway.domain.errors import CentralRefused, CentralUnavailable
from gateway.domain.problems import ProblemKind as K
from gateway.runtime.clock import SystemClock
from simulation.far_ends.central import Central, CentralAccount, Chances, Faults, seed_site
from simulation.far_ends.central.accounts import totp

SECRET = "JBSWY3DPEHPK3PXP"


def make_certificate(folder):
    """A certificate for 127.0.0.1 and its key in the folder."""
    folder.mkdir(exist_ok=True)
    if shutil.which("openssl") is None:
        lacks("Debian's openssl is missing")
    command = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -keyout key.pem"
    command += " -out cert.pem -subj /CN=central -addext subjectAltName=IP:127.0.0.1"
    subprocess.run(command.split(), cwd=folder, check=True, capture_output=True)


def sign_ins(central):
    return [request.status for request in central.requests if request.path == "/v1/auth/login"]


async def devices(client):
    return await client.call("POST", "/v1/device/list", {})


async def test_many_callers_share_one_sign_in_and_its_session(central, client):
    answers = await asyncio.gather(*(devices(client) for _ in range(12)))
    assert {answer["count"] for answer in answers} == {3}
    assert sign_ins(central) == [200]
    assert client.state.reachable is True
    assert client.state.signed_in_at is not None


async def test_an_expired_session_is_renewed_once_for_all(central, client):
    await devices(client)
    central.expire_sessions()
    await asyncio.gather(*(devices(client) for _ in range(8)))
    assert sign_ins(central) == [200, 200]


async def test_no_more_than_four_requests_are_under_way(central, client):
    await devices(client)
    central.requests.clear()
    central.faults = Faults(paths="/v1/device", latency_seconds=0.2)
    began = time.monotonic()
    await asyncio.gather(*(devices(client) for _ in range(6)))
    assert time.monotonic() - began >= 0.4, "six at once would have taken half as long"


async def test_authentication_required_even_after_a_sign_in_is_denied(central, client):
    await devices(client)
    central.faults = Faults(chances=Chances(unauthenticated=1))
    with pytest.raises(CentralDenied, match="POST /v1/device/list"):
        await devices(client)
    assert sign_ins(central) == [200, 200]


async def test_a_missing_permission_is_denied_and_named_after_one_fresh_sign_in(central, client):
    central.faults = Faults(deny="can_view_devices")
    with capture_logs() as logs:
        for _ in range(3):
            with pytest.raises(CentralDenied, match="can_view_devices"):
                await devices(client)
    assert sign_ins(central) == [200, 200]
    assert central.open_sessions == 1
    assert client.state.reachable is True
    assert client.state.not_permitted == (("POST /v1/device/list", "permission denied: can_view_devices"),)
    assert [line["event"] for line in logs] == ["central_does_not_permit"]
    await client.call("POST", "/v1/camera/list", {})
    assert client.state.not_permitted
    central.faults = Faults()
    await devices(client)
    assert client.state.not_permitted == ()


async def test_a_permission_that_was_given_meanwhile_is_had_at_once(central, client):
    """Central may keep the permissions of the moment of the sign-in with its session."""
    await devices(client)
    real = central.sign_in.session_of

    def of_then(request):
        session = real(request)
        if session is not None and session.token == tokens[0]:
            return replace(session, account=replace(session.account, permissions=frozenset()))
        return session

    tokens = list(central.sessions.open)
    central.sign_in.session_of = of_then
    assert (await devices(client))["count"] == 3
    assert sign_ins(central) == [200, 200]
    assert client.state.not_permitted == ()


async def test_a_failed_renewal_leaves_the_session_that_was(central, client):
    await devices(client)
    central.faults = Faults(deny="can_view_devices")
    real = central.sessions.sign_in
    central.sessions.sign_in = lambda *_: None
    with pytest.raises(CentralDenied, match="can_view_devices"):
        await devices(client)
    central.sessions.sign_in = real
    await client.call("POST", "/v1/camera/list", {})
    assert sign_ins(central) == [200, 404]


async def test_wrong_credentials_are_denied_once_and_central_is_then_left_alone(central, connect):
    client = connect(password="wrong pony")
    results = await asyncio.gather(*(devices(client) for _ in range(5)), return_exceptions=True)
    assert {type(result) for result in results} == {SignInRefused}
    with pytest.raises(CentralDenied):
        await devices(client)
    assert sign_ins(central) == [404]
    assert "wrong pony" not in client.state.last_error + "".join(map(str, results))
    told_in = "the file /etc/edge-gateway/secrets/central: change that, then run edge-gateway reload"
    (notice,) = notices(client.state, None, clock_alert_seconds=60, unreadable_events=0, password_in=told_in)
    assert notice.kind is K.CENTRAL_SIGN_IN_REFUSED
    assert str(notice.text) == f"{results[0]}; its password is in {told_in}"


async def test_a_refused_sign_in_is_told_once_and_over_with_the_next_that_is_taken(central, connect):
    clock = PushedClock()
    client = connect(clock=clock)
    central.put_account(CentralAccount("gateway", "another horse"))
    with pytest.raises(CentralDenied) as refused:
        await devices(client)
    report = PullReport(
        at=clock.wall(), problems=(PullProblem.of(refused.value), PullProblem("access cards did not come"))
    )
    told = list(notices(client.state, report, clock_alert_seconds=60, unreadable_events=0))
    assert [notice.kind for notice in told] == [K.CENTRAL_SIGN_IN_REFUSED, K.CENTRAL_LIST_INCOMPLETE]
    central.put_account(CentralAccount("gateway", "right horse"))
    clock.pushed = 120
    await devices(client)
    assert list(notices(client.state, None, clock_alert_seconds=600, unreadable_events=0)) == []


async def test_a_second_factor_without_its_secret_is_refused_clearly(central, connect):
    with pytest.raises(CentralDenied, match="name its secret as 'totp'"):
        await devices(connect(username="guard", password="guard"))
    assert central.open_sessions == 0


@pytest.fixture
async def strict_central(monkeypatch):
    """Takes the code of the three seconds that it is, once. Its clock begins a second before the next ones."""
    monkeypatch.setattr(session, "STEP_SECONDS", 3)
    monkeypatch.setattr(session, "ON_THE_WAY_SECONDS", 0)
    ahead = PushedClock()
    ahead.stepped = (2 - ahead.wall().micros / 1e6) % 3
    service = Central(clock=ahead, accounts=(CentralAccount("guard", "guard", mfa_secret=SECRET),))
    seed_site(service.tables, now=ahead.wall(), devices={101: "D", 102: "D", 103: "D"}, cameras={}, cards=0)
    sent, sessions = [], service.sessions

    def validate(known, code):
        now = ahead.wall().micros // 1_000_000
        sent.append(code)
        if code != totp(SECRET, now // 3 * 30) or sent.count(code) > 1:
            return False
        known.complete = True
        return True

    sessions.validate = validate
    service.codes = sent
    await service.start()
    yield service
    await service.stop()


async def test_the_second_factor_is_proven_each_time_with_another_code(strict_central, connect):
    client = connect(url=strict_central.url, username="guard", password="guard", totp_secret="JBSW Y3DP EHPK 3PXP")
    for _ in range(2):  # the second within the same half minute
        answers = await asyncio.gather(*(devices(client) for _ in range(4)))
        assert {answer["count"] for answer in answers} == {3}
        strict_central.expire_sessions()
    assert sign_ins(strict_central) == [200, 200]
    assert len(strict_central.codes) == len(set(strict_central.codes)) == 2


async def test_a_code_is_not_sent_again_after_a_restart(strict_central, connect, store):
    for _ in range(2):
        client = connect(
            url=strict_central.url,
            username="guard",
            password="guard",
            totp_secret=SECRET,
            used_codes=UsedCodes(notes=store.notes),
        )
        assert (await devices(client))["count"] == 3
        await client.close()
    assert len(strict_central.codes) == len(set(strict_central.codes)) == 2


async def test_the_code_is_of_centrals_time(central, connect):
    """This machine's clock may be wrong; the answer to the sign-in tells what central's shows."""
    client = connect(username="guard", password="guard", totp_secret=SECRET, clock=PushedClock(stepped=400))
    assert (await devices(client))["count"] == 3
    assert -402 < client.state.clock_offset.seconds < -398


async def test_a_wrong_secret_is_told_without_it_and_central_left_alone(central, connect):
    client = connect(username="guard", password="guard", totp_secret="GEZDGNBVGY3TQOJQ")
    for _ in range(3):
        with pytest.raises(CentralDenied, match="refuses the second factor") as caught:
            await devices(client)
        assert "GEZDGN" not in str(caught.value)
    assert len([request for request in central.requests if request.path == "/v1/auth/mfa"]) == 1
    assert central.open_sessions == 0


async def test_a_secret_that_is_none_is_told(connect):
    with pytest.raises(CentralDenied, match="not base32"):
        await devices(connect(username="guard", password="guard", totp_secret="0189!"))


async def test_a_refusal_names_operation_and_reason(client):
    with pytest.raises(CentralRefused, match=r"POST /v1/device: device 5 not found"):
        await client.call("POST", "/v1/device", {"id": 5})
    assert client.state.reachable is True


async def test_a_failure_of_centrals_own_is_not_a_loss(central, client):
    central.faults = Faults(error="json", paths="/v1/device")
    with pytest.raises(CentralFailed, match="database is unavailable"):
        await devices(client)
    assert client.state.reachable is True


@pytest.mark.parametrize("fault", [{"error": "text"}, {"error": "portal"}, {"down": True}])
async def test_unusable_answers_are_unavailable(central, client, fault):
    await devices(client)
    central.faults = Faults(**fault)
    with pytest.raises(CentralUnavailable):
        await devices(client)
    assert client.state.reachable is False
    central.faults = Faults()
    await devices(client)
    assert client.state.reachable is True
    assert client.state.last_error == ""


@pytest.mark.parametrize("fault", [{"latency_seconds": 600}, {"slow_body_seconds": 600}])
async def test_slow_answers_end_at_the_time_out(central, connect, fault):
    client = connect(timeout_seconds=0.3)
    await devices(client)
    central.faults = Faults(**fault)
    with pytest.raises(CentralUnavailable, match=r"within 0.3 s"):
        await devices(client)
    central.faults = Faults()


async def test_loss_and_recovery_are_logged_once_each(central, client):
    with capture_logs() as logs:
        await devices(client)
        await central.stop()
        for _ in range(3):
            with pytest.raises(CentralUnavailable):
                await devices(client)
        await central.start()
        for _ in range(3):
            await devices(client)
    assert [line["event"] for line in logs] == ["central_lost", "central_recovered"]


async def test_a_failed_sign_in_is_shared_but_the_next_call_tries_again(central, client):
    central.faults = Faults(paths="/v1/auth/login", error="text", latency_seconds=0.1)
    results = await asyncio.gather(*(devices(client) for _ in range(4)), return_exceptions=True)
    assert all(type(result) is CentralUnavailable for result in results)
    assert sign_ins(central) == [500]
    central.faults = Faults()
    await devices(client)


async def test_a_cancelled_sign_in_leaves_the_way_free(central, client):
    central.faults = Faults(paths="/v1/auth/login", latency_seconds=1)
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(devices(client), 0.1)
    central.faults = Faults()
    await devices(client)


async def test_an_answer_that_is_too_large_is_cut_off(central, client):
    central.tables.devices.put({"id": 999, "name": "x" * (BODY_LIMIT + 1)})
    with pytest.raises(CentralFailed, match="larger than"):
        await devices(client)
    assert client.state.reachable is True


async def test_redirects_are_not_followed(connect):
    reached = []

    async def answer(reader, writer):
        reached.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(b"HTTP/1.1 302 Found\r\nLocation: /elsewhere\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}")
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with server:
        client = connect(url=f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}")
        with pytest.raises(CentralUnavailable, match="302"):
            await devices(client)
    assert len(reached) == 1


async def test_the_key_is_sent(central, client):
    with contextlib.suppress(CentralRefused):
        await client.call("PUT", "/v1/camera/event", {}, key="abc-1")
    assert central.requests[-1].key == "abc-1"


async def test_close_signs_out_and_ends_calls(central, connect):
    client = connect()
    await devices(client)
    assert central.open_sessions == 1
    await client.close()
    assert central.open_sessions == 0
    with pytest.raises(CentralUnavailable, match="closed"):
        await devices(client)


async def test_close_does_not_wait_for_an_absent_central(central, connect, monkeypatch):
    monkeypatch.setattr("gateway.central.client.client.LOGOUT_SECONDS", 0.3)
    client = connect(timeout_seconds=600)
    await devices(client)
    central.faults = Faults(latency_seconds=600)
    await client.close()
    central.faults = Faults()


async def test_only_centrals_own_ca_is_trusted(tmp_path, central, connect):
    make_certificate(tmp_path)
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(tmp_path / "cert.pem", tmp_path / "key.pem")
    await central.stop()
    await central.start(tls=tls)
    trusting = connect(url=central.url, ca_file=str(tmp_path / "cert.pem"))
    assert (await devices(trusting))["success"] is True
    with pytest.raises(CentralUnavailable):
        await devices(connect(url=central.url))
    with pytest.raises(CentralUnavailable, match="CA file"):
        await devices(connect(url=central.url, ca_file=str(tmp_path / "none.pem")))
    await trusting.close()


async def serve_as(central, folder):
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(folder / "cert.pem", folder / "key.pem")
    await central.stop()
    await central.start(tls=tls)


def replace_file(there, other):
    beside = there.with_name("beside.pem")
    shutil.copyfile(other, beside)
    beside.replace(there)


async def test_a_ca_file_that_was_replaced_counts_for_the_next_connection(tmp_path, central, connect):
    for name in ("old", "new"):
        make_certificate(tmp_path / name)
    trusted = tmp_path / "ca.pem"
    shutil.copyfile(tmp_path / "old" / "cert.pem", trusted)
    await serve_as(central, tmp_path / "old")
    client = connect(url=central.url, ca_file=str(trusted))
    assert (await devices(client))["success"] is True
    await serve_as(central, tmp_path / "new")
    for _ in range(2):
        with pytest.raises(CentralUnavailable):
            await devices(client)
    trusted.write_text("half a file")
    for _ in range(2):  # what cannot be used leaves what was
        with pytest.raises(CentralUnavailable):
            await devices(client)
    replace_file(trusted, tmp_path / "new" / "cert.pem")
    with contextlib.suppress(CentralUnavailable):  # the one that finds out
        await devices(client)
    assert (await devices(client))["success"] is True
    await serve_as(central, tmp_path / "old")
    with pytest.raises(CentralUnavailable):
        await devices(client)  # the old one is trusted no more
    await client.close()


async def test_a_ca_file_is_read_again_when_asked_and_ends_no_request_under_way(tmp_path, central, connect):
    for name in ("old", "new"):
        make_certificate(tmp_path / name)
    trusted = tmp_path / "ca.pem"
    shutil.copyfile(tmp_path / "old" / "cert.pem", trusted)
    await serve_as(central, tmp_path / "old")
    client = connect(url=central.url, ca_file=str(trusted))
    await devices(client)
    central.faults = Faults(latency_seconds=0.2)
    async with asyncio.TaskGroup() as group:
        under_way = group.create_task(devices(client))
        replace_file(trusted, tmp_path / "new" / "cert.pem")
        await client.trust.renew()
    assert under_way.result()["success"] is True
    central.faults = Faults()
    await serve_as(central, tmp_path / "new")
    assert (await devices(client))["success"] is True, "the first connection after it"
    await client.close()


class Standing(SystemClock):
    """No time goes by."""

    def monotonic(self) -> float:
        return 0.0


@pytest.fixture
def dead_end():
    """A port where no connection is ever made: its queue is full, so that the kernel answers nobody."""
    with socket.socket() as taken, contextlib.ExitStack() as others:
        taken.bind(("127.0.0.1", 0))
        taken.listen(0)
        for _ in range(4):
            other = others.enter_context(socket.socket())
            other.setblocking(False)
            with contextlib.suppress(BlockingIOError):
                other.connect(taken.getsockname())
        yield taken.getsockname()[1]


async def test_a_line_that_is_dead_is_not_waited_for_as_long_as_an_answer(dead_end, connect):
    client = connect(url=f"http://127.0.0.1:{dead_end}", timeout_seconds=120, connect_seconds=0.2, clock=Standing())
    async with asyncio.timeout(60):  # half of what an answer may take
        with pytest.raises(CentralUnavailable, match=r"no connection within 0\.2 s"):
            await devices(client)
        with pytest.raises(CentralUnavailable, match="silent a moment ago"):
            await client.call_for("POST", "/v1/auth/login", {}, token=None)
    assert client.away()


async def test_after_a_time_out_people_wait_no_more_until_the_probe_finds_central(central, connect, running):
    client = connect(timeout_seconds=0.5, clock=Standing())
    central.faults = Faults(latency_seconds=30)
    with pytest.raises(CentralUnavailable, match="no answer within"):
        await client.call_for("POST", "/v1/auth/login", {}, token=None)
    asked = len(central.requests)
    for _ in range(20):
        with pytest.raises(CentralUnavailable, match="silent a moment ago"):
            await client.call_for("POST", "/v1/auth/login", {}, token=None)
    assert len(central.requests) == asked
    central.faults = Faults()
    async with running(CentralRelay(client=client, url=central.url).run()):
        await until(lambda: not client.away())
    answer = await client.call_for(
        "POST", "/v1/auth/login", {"username": "gateway", "password": "right horse"}, token=None
    )
    assert answer["success"] is True


def test_what_nobody_acknowledges_ends_the_connection():
    with impatient_socket((socket.AF_INET, socket.SOCK_STREAM, 0, "", ("127.0.0.1", 1))) as made:
        assert made.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT) == 6000
