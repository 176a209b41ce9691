"""Card notices of the fleet reach the line to central; without the line they count as ended."""

from __future__ import annotations

import json

from at_work import running
from fleet_scene import NAME, connection
from waiting import until

from gateway.domain.server_lines import ConnectionState
from gateway.fleet.commands_down import CardsDown


class Central:
    """The line to central, as far as notices reach it."""

    def __init__(self) -> None:
        self.taken: list[tuple[tuple[int, ...], int | None]] = []
        self.losses = 0

    def take(self, card_ids, *, number) -> None:
        self.taken.append((tuple(card_ids), number))

    def lost(self) -> None:
        self.losses += 1


async def test_notices_arrive_and_nonsense_does_not(broker, relay):
    central = Central()
    line = connection(f"nats://127.0.0.1:{relay.port}", CardsDown(fleet_name=NAME, taker=lambda: central))
    async with running(line.run()):

        async def arrives() -> bool:
            await broker.publish(NAME.cards, b'{"ids": [], "number": 1}')
            return bool(central.taken)

        await until(arrives)
        too_many = json.dumps({"ids": [*range(1, 6002)]}).encode()
        for body in (b"nonsense", b'{"ids": ["x"]}', too_many, b'{"ids": [7, 4002], "number": 2}'):
            await broker.publish(NAME.cards, body)
        await until(lambda: central.taken[-1] == ((7, 4002), 2))
        assert {ids for ids, _ in central.taken} == {(), (7, 4002)}
        assert central.losses == 3  # each may have named a card
        await relay.cut()
        await until(lambda: line.status().state is ConnectionState.AWAY)
        assert central.losses == 4


async def test_a_site_without_central_takes_no_notice(server, broker):
    line = connection(server.url, CardsDown(fleet_name=NAME, taker=lambda: None))
    async with running(line.run()):
        await until(lambda: line.status().state is ConnectionState.CONNECTED)
        await broker.publish(NAME.cards, b'{"ids": [7]}')
        await broker.flush()
        assert line.status().state is ConnectionState.CONNECTED
