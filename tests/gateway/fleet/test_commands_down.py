"""Commands over the fleet: signed, allowed, in time, carried out once, and followed until the gate has moved."""

from __future__ import annotations

import asyncio
import json

import pytest
from at_work import running
from far_end_site import GATE, a_barrier, alive
from fleet_desk import ANNA, GONE, GUARD, Desk, desk_at, key, listens
from fleet_scene import NAME, connection
from waiting import until

from drivers.contract import GatePosition
from gateway.domain.commands import CommandState
from gateway.domain.errors import GatewayUnreachable
from gateway.fleet.line import FleetLine
from gateway.fleet.names import FleetName
from gateway.fleet.operator import command
from gateway.fleet.signed_commands import ASK_NONCE, LATE, Action, sender_of, signed
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


async def made(broker, seed: str = ANNA[0], **changed) -> tuple[bytes, dict[str, str]]:
    """A command to open, signed."""
    values = {"id": "command-1", "action": "open", "lane": "entry", "seconds": 5} | changed
    values.setdefault("nonce", (await raw(broker, ASK_NONCE))["nonce"])
    body = json.dumps(values).encode()
    return body, signed(seed, NAME.commands, body)


async def test_an_open_is_followed_until_the_gate_has_moved(broker, desk):
    replies = await sent(broker, Action.OPEN, lane="entry")
    assert replies[0].state == "recorded"
    assert (replies[-1].state, replies[-1].final) == ("moved", True)
    assert [one.final for one in replies[:-1]] == [False] * (len(replies) - 1)
    await desk.lane.sees(lambda shown: shown.position is GatePosition.OPEN)
    stored = await desk.lane.store.commands.get(f"fleet-anna-{replies[0].id}")
    assert (stored.source, stored.state, stored.device_id) == ("user:anna", CommandState.DONE, GATE)


async def test_the_same_id_answers_with_the_first_result_and_moves_nothing(broker, desk):
    await sent(broker, Action.OPEN, lane="entry", number="one-of-a-kind")
    given = await desk.commands()
    again = await sent(broker, Action.OPEN, lane="entry", number="one-of-a-kind")
    assert [(one.state, one.final) for one in again] == [("moved", True)]
    assert await desk.commands() == given


async def test_copies_that_come_at_once_are_one_command(broker, desk):
    body, headers = await made(broker)
    replies = await asyncio.gather(*(raw(broker, body, headers) for _ in range(5)))
    assert {reply["id"] for reply in replies} == {"command-1"}
    await desk.lane.sees(lambda shown: shown.position is GatePosition.OPEN)
    stored = await desk.lane.store.commands.get("fleet-anna-command-1")
    assert stored is not None
    assert len([kind for kind in await desk.lane.kinds() if kind.name == "COMMAND_RECORDED"]) == 1


async def test_what_is_late_or_not_allowed_is_refused_and_moves_nothing(broker, desk):
    for changed, said in (
        ({"seconds": 1e-6}, LATE),
        ({"seconds": 61}, "cannot be read"),
        ({"seconds": -1}, "cannot be read"),
        ({"nonce": "of.an.earlier-run"}, "started after the command was made"),
        ({"lane": "nowhere"}, "no lane 'nowhere'"),
        ({"id": "short"}, "cannot be read"),
        ({"action": "explode"}, "cannot be read"),
        ({"seed": GUARD[0]}, "lacks can_control_devices"),
        ({"seed": GONE[0]}, "does not exist"),
        ({"seed": key()[0]}, "not signed by a sender"),
    ):
        reply = await raw(broker, *await made(broker, **changed))
        assert (reply["state"], reply["final"]) == ("refused", True)
        assert said in reply["detail"]
    assert await desk.commands() == 0


async def test_a_command_that_was_changed_on_the_way_or_meant_for_another_gateway_is_refused(broker, desk):
    body, headers = await made(broker)
    for other in (body.replace(b"open", b"close"), body + b" "):
        assert "not signed" in (await raw(broker, other, headers))["detail"]
    elsewhere = signed(ANNA[0], "cmd.north.gate-2", body)
    assert "not signed" in (await raw(broker, body, elsewhere))["detail"]
    assert "not signed" in (await raw(broker, body))["detail"]
    assert await desk.commands() == 0


async def test_a_stop_is_never_late_and_acts_once(broker, desk):
    body, headers = await made(broker, action="stop", nonce="of.an.earlier-run")
    first = await raw(broker, body, headers)
    assert first["state"] in ("recorded", "refused")
    again = await raw(broker, body, headers)
    assert again["final"] or again["state"] == "recorded"
    assert await desk.commands() <= 1


async def test_a_gateway_that_is_away_gets_nothing_then_or_later(server, broker, store):
    with pytest.raises(GatewayUnreachable, match=r"north\.gate-1 is away: the command was not sent"):
        await sent(broker, Action.OPEN, lane="entry")


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
            body, headers = await made(broker, seconds=0.3)
            relay.hold()
            answer = asyncio.get_running_loop().create_task(raw(broker, body, headers))
            await asyncio.sleep(0.4)  # the command's life must be over
            relay.let_go()
            assert (await answer)["detail"] == LATE
            assert await desk.commands() == 0


async def test_a_standing_order_a_snapshot_and_a_reload(broker, desk):
    (held,) = await sent(broker, Action.HOLD, lane="entry", reason="delivery")
    assert held.state == "done"
    await desk.lane.sees(lambda shown: "delivery" in str(shown.order_text))
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


async def test_a_nonce_is_good_for_one_command(broker, desk):
    nonce = (await raw(broker, ASK_NONCE))["nonce"]
    assert (await raw(broker, *await made(broker, action="snapshot", nonce=nonce)))["state"] == "done"
    again = await raw(broker, *await made(broker, action="snapshot", nonce=nonce))
    assert again["state"] == "done", "the same command gets its first result"
    other = await raw(broker, *await made(broker, id="command-2", nonce=nonce))
    assert (other["state"], "used for another command" in other["detail"]) == ("refused", True)
    assert await desk.commands() == 0


@pytest.mark.parametrize(
    "told",
    [
        lambda nonce: {"nonce": f"{int(nonce.split('.')[0]) + 85_000_000}.{nonce.split('.', 1)[1]}"},
        lambda nonce: {"nonce": nonce, "run": "this-run", "uptime": 1e9},
        lambda nonce: {"nonce": nonce.replace(".", "9.", 1)},
    ],
    ids=["a later date", "a time beside it", "another number"],
)
async def test_no_server_makes_a_command_live_longer(broker, desk, told):
    """A server answers in the gateway's name, takes the signed command, and delivers it after its deadline."""
    taken: list = []
    true = (await raw(broker, ASK_NONCE))["nonce"]

    async def server(message) -> None:
        if message.data == ASK_NONCE:
            await message.respond(json.dumps(told(true)).encode())
        else:
            taken.append(message)

    between = FleetName("north", "between")
    await broker.subscribe(between.commands, cb=server)
    asking = command(FleetLine(broker), between, seed=ANNA[0], action=Action.OPEN, lane="entry", seconds=0.3)
    waiting = asyncio.get_running_loop().create_task(anext(asking))
    await until(lambda: taken)
    await asyncio.sleep(0.4)  # the command's life must be over
    body = taken[0].data
    reply = await raw(broker, body, signed(ANNA[0], NAME.commands, body))  # as if it had been signed for this gateway
    assert (reply["state"], await desk.commands()) == ("refused", 0)
    waiting.cancel()


async def test_a_take_back_of_edits_that_the_gateway_did_not_give_is_refused(broker, desk):
    edit = {"section": "lanes", "id": "entry", "values": {"hold_open_schedule": "always"}}
    for seal in ("", "0" * 64):
        asked = await made(
            broker, id=f"command-{len(seal)}", action="edit", edits=[edit], undoes="command-1", seal=seal
        )
        reply = await raw(broker, *asked)
        assert (reply["state"], "not those that this gateway gave" in reply["detail"]) == ("refused", True)


def test_a_signature_of_nonsense_is_nobodys():
    for headers in ({}, {"Fleet-Sender": "U"}, {"Fleet-Sender": ANNA[1], "Fleet-Signature": "é"}):
        assert sender_of(headers, "cmd.a.b", b"{}") == ""
    assert sender_of(signed(ANNA[0], "cmd.a.b", b"{}"), "cmd.a.b", b"{}") == ANNA[1]
    with pytest.raises(ValueError, match="seed"):
        signed("nonsense", "cmd.a.b", b"{}")
