"""Commands over the fleet: signed, allowed, in time, carried out once, and followed until the gate has moved."""

from __future__ import annotations

import asyncio
import json

import pytest
from far_end_site import GATE, a_barrier, alive
from fleet_desk import ANNA, GONE, GUARD, Desk, desk_at, key, listens
from fleet_scene import NAME, connection, running
from waiting import until

from drivers.contract import GatePosition
from gateway.domain.commands import CommandState
from gateway.domain.errors import GatewayUnreachable
from gateway.fleet.line import FleetLine
from gateway.fleet.operator import command
from gateway.fleet.signed_commands import LATE, Action, FleetCommand, Time, sender_of, signed
from gateway.runtime.clock import SystemClock
from gateway.runtime.supervision import Supervisor


@pytest.fixture
async def desk(server, broker, tmp_path):
    async with desk_at(server.url, tmp_path) as desk:
        await until(lambda: listens(broker))
        yield desk


async def sent(broker, action: Action, *, seed: str = ANNA[0], **more) -> list:
    return [one async for one in command(FleetLine(broker), NAME, seed=seed, action=action, **more)]


async def raw(broker, body: bytes, headers: dict[str, str] | None = None) -> dict:
    return json.loads((await broker.request(NAME.commands, body, headers=headers, timeout=20)).data)


def made(seed: str = ANNA[0], *, before: float = 5, **changed) -> tuple[bytes, dict[str, str]]:
    """A command to open, signed."""
    values = {"id": "command-1", "action": "open", "lane": "entry", "run": "this-run"} | changed
    values["before"] = SystemClock().monotonic() + before
    body = json.dumps(values).encode()
    return body, signed(seed, NAME.commands, body)


@pytest.mark.long("a real NATS server")
async def test_an_open_is_followed_until_the_gate_has_moved(broker, desk):
    replies = await sent(broker, Action.OPEN, lane="entry")
    assert replies[0].state == "recorded"
    assert (replies[-1].state, replies[-1].final) == ("moved", True)
    assert [one.final for one in replies[:-1]] == [False] * (len(replies) - 1)
    await desk.lane.sees(lambda shown: shown.position is GatePosition.OPEN)
    stored = await desk.lane.store.commands.get(f"fleet-anna-{replies[0].id}")
    assert (stored.source, stored.state, stored.device_id) == ("user:anna", CommandState.DONE, GATE)


@pytest.mark.long("a real NATS server")
async def test_the_same_id_answers_with_the_first_result_and_moves_nothing(broker, desk):
    await sent(broker, Action.OPEN, lane="entry", number="one-of-a-kind")
    given = await desk.commands()
    again = await sent(broker, Action.OPEN, lane="entry", number="one-of-a-kind")
    assert [(one.state, one.final) for one in again] == [("moved", True)]
    assert await desk.commands() == given


@pytest.mark.long("a real NATS server")
async def test_copies_that_come_at_once_are_one_command(broker, desk):
    body, headers = made()
    replies = await asyncio.gather(*(raw(broker, body, headers) for _ in range(5)))
    assert {reply["id"] for reply in replies} == {"command-1"}
    await desk.lane.sees(lambda shown: shown.position is GatePosition.OPEN)
    stored = await desk.lane.store.commands.get("fleet-anna-command-1")
    assert stored is not None
    assert len([kind for kind in await desk.lane.kinds() if kind.name == "COMMAND_RECORDED"]) == 1


@pytest.mark.long("a real NATS server")
async def test_what_is_late_or_not_allowed_is_refused_and_moves_nothing(broker, desk):
    for changed, said in (
        ({"before": -0.1}, LATE),
        ({"before": 61}, "more than 60 seconds away"),
        ({"run": "an-earlier-run"}, "started after the command was made"),
        ({"lane": "nowhere"}, "no lane 'nowhere'"),
        ({"id": "short"}, "cannot be read"),
        ({"action": "explode"}, "cannot be read"),
        ({"seed": GUARD[0]}, "lacks can_control_devices"),
        ({"seed": GONE[0]}, "does not exist"),
        ({"seed": key()[0]}, "not signed by a sender"),
    ):
        reply = await raw(broker, *made(**changed))
        assert (reply["state"], reply["final"]) == ("refused", True)
        assert said in reply["detail"]
    assert await desk.commands() == 0


@pytest.mark.long("a real NATS server")
async def test_a_command_that_was_changed_on_the_way_or_meant_for_another_gateway_is_refused(broker, desk):
    body, headers = made()
    for other in (body.replace(b"open", b"close"), body + b" "):
        assert "not signed" in (await raw(broker, other, headers))["detail"]
    elsewhere = signed(ANNA[0], "cmd.north.gate-2", body)
    assert "not signed" in (await raw(broker, body, elsewhere))["detail"]
    assert "not signed" in (await raw(broker, body))["detail"]
    assert await desk.commands() == 0


@pytest.mark.long("a real NATS server")
async def test_a_stop_is_never_late_and_acts_once(broker, desk):
    body, headers = made(action="stop", run="an-earlier-run", before=-100)
    first = await raw(broker, body, headers)
    assert first["state"] in ("recorded", "refused")
    again = await raw(broker, body, headers)
    assert again["final"] or again["state"] == "recorded"
    assert await desk.commands() <= 1


@pytest.mark.long("a real NATS server")
async def test_a_gateway_that_is_away_gets_nothing_then_or_later(server, broker, store):
    with pytest.raises(GatewayUnreachable, match=r"north\.gate-1 is away: the command was not sent"):
        await sent(broker, Action.OPEN, lane="entry")


@pytest.mark.long("a real NATS server")
async def test_what_the_network_holds_back_is_refused_when_it_comes(server, relay, broker, tmp_path):
    async with (
        a_barrier() as (barrier, _, port),
        alive(tmp_path, barrier=barrier, port=port) as lane,
        Supervisor(clock=SystemClock()) as supervisor,
    ):
        desk = Desk(lane, supervisor)
        line = connection(f"nats://127.0.0.1:{relay.port}", desk.down)
        await lane.sees(lambda shown: shown.position is GatePosition.CLOSED)
        async with running(line.run()):
            await until(lambda: listens(broker))
            body, headers = made(before=0.3)
            relay.hold()
            answer = asyncio.get_running_loop().create_task(raw(broker, body, headers))
            await asyncio.sleep(0.4)  # the command's life must be over
            relay.let_go()
            assert (await answer)["detail"] == LATE
            assert await desk.commands() == 0


@pytest.mark.long("a real NATS server")
async def test_a_standing_order_a_snapshot_and_a_reload(broker, desk):
    (held,) = await sent(broker, Action.HOLD, lane="entry", reason="delivery")
    assert held.state == "done"
    await desk.lane.sees(lambda shown: "delivery" in shown.order_text)
    (lifted,) = await sent(broker, Action.HOLD, lane="entry", order=None)
    assert lifted.state == "done"
    (shown,) = await sent(broker, Action.SNAPSHOT, seed=GUARD[0])
    assert shown.result == {"headline": "All lanes work"}
    (reloaded,) = await sent(broker, Action.RELOAD)
    assert (reloaded.detail, desk.reloaded_by) == ("nothing is different in the site file", ["user:anna"])
    (changed,) = await sent(broker, Action.EDIT)
    assert (changed.state, changed.detail) == ("refused", "this desk has no site file")
    for action in (Action.RELOAD, Action.EDIT):
        (denied,) = await sent(broker, action, seed=GUARD[0])
        assert (denied.state, denied.detail) == ("refused", "the sender's account lacks *")


def test_a_deadline_is_in_the_gateways_own_time():
    command = FleetCommand(id="12345678", action="open", lane="entry", run="a", before=10)
    assert command.why_late(Time(run="a", uptime=9.9)) == ""
    assert command.why_late(Time(run="a", uptime=10)) == LATE
    assert command.why_late(Time(run="b", uptime=0))


def test_a_signature_of_nonsense_is_nobodys():
    for headers in ({}, {"Fleet-Sender": "U"}, {"Fleet-Sender": ANNA[1], "Fleet-Signature": "é"}):
        assert sender_of(headers, "cmd.a.b", b"{}") == ""
    assert sender_of(signed(ANNA[0], "cmd.a.b", b"{}"), "cmd.a.b", b"{}") == ANNA[1]
    with pytest.raises(ValueError, match="seed"):
        signed("nonsense", "cmd.a.b", b"{}")
