"""Cards at the page beside the list: unknown reads, what waits for central, and what was changed on both sides."""

from __future__ import annotations

from gateway.domain.events import EventKind
from gateway.domain.writes import CARD_UPDATE

DAY = 86_400_000_000


async def read(gateway, credential, *, reason="unknown_credential", date_at=None, what="card"):
    data = {"credential": credential, "form": what, "reason": reason}
    return await gateway.happened(
        f"{what} {credential}: refused", kind=EventKind.ACCESS_DENIED, data=data, date_at=date_at
    )


async def test_unknown_reads_of_the_last_day_come_once_each(gateway):
    now = gateway.clock.wall().micros
    await read(gateway, "0001", date_at=now - 2 * DAY)
    await read(gateway, "0002", date_at=now - DAY // 2)
    await read(gateway, "0003", reason="expired")
    await read(gateway, "AB123", what="plate")
    last = await read(gateway, "0002")
    status, answer = await gateway.call("/status/card/unknown", method="GET")
    assert status == 200
    assert [(one["credential"], one["times"], one["enrol"]) for one in answer["reads"]] == [
        ("0002", 2, {"number": "0002"}),
        ("AB123", 1, {"plate": "AB123"}),
    ]
    assert (answer["reads"][0]["event_id"], answer["reads"][0]["lane_id"]) == (last, "entry")


async def test_what_waits_for_central_and_what_changed_on_both_sides(gateway):
    await gateway.store.pending_writes.hold(
        CARD_UPDATE, 4001, {"id": 4001, "note": "n", "pin": "9753"}, now=gateway.clock.wall().micros, sends=True
    )
    for kind in ("access_card", "camera"):
        await gateway.happened(
            f"{kind} 4001 was changed here and at central: note",
            kind=EventKind.CHANGED_ON_BOTH_SIDES,
            data={"kind": kind, "record_id": 4001},
        )
    status, answer = await gateway.call("/status/card/sync", method="GET")
    assert status == 200
    (row,) = answer["sync"]["waiting"]
    assert (row["record_id"], row["action"], row["refused"], row["fields"]["pin"]) == (4001, "update", False, "****")
    (conflict,) = answer["sync"]["conflicts"]
    assert (conflict["card_id"], conflict["text"]) == (4001, "access_card 4001 was changed here and at central: note")
