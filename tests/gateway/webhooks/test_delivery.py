"""Each event reaches each receiver at least once, under one id and well signed, whatever the receiver does."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import json
import random

from waiting import until

from gateway.domain.events import EventKind
from gateway.store.webhooks import feed_webhooks
from gateway.webhooks import sender


async def test_an_announcement_is_as_the_interface_says_and_signed_in_both_ways(site, receiving):
    receiver = await receiving()
    await site.hook(receiver.url)
    event_id = await site.happened(user_id="17", card_id=4)
    await until(lambda: receiver.got)
    got = receiver.got[0]
    body = json.loads(got.body)
    assert set(body) == {"id", "type", "timestamp", "data"}
    assert (body["type"], body["data"]["event_id"]) == ("access.granted", event_id)
    assert {name: body["data"][name] for name in ("device_id", "user_id", "location")} == {
        "device_id": "101",
        "user_id": "17",
        "location": "Main entry",
    }
    assert got.is_signed()
    assert got.headers["webhook-id"] == body["id"]
    signed = f"{body['id']}.{got.headers['webhook-timestamp']}.".encode() + got.body
    proof = hmac.new(b"secret-of-the-tests-long", signed, hashlib.sha256).digest()
    assert got.headers["webhook-signature"] == f"v1,{base64.b64encode(proof).decode()}"


async def test_only_the_types_that_were_asked_for_are_sent(site, receiving):
    receiver = await receiving()
    webhook = await site.hook(receiver.url, "access.denied", "device.disconnected")
    await site.happened(EventKind.ACCESS_GRANTED)
    wanted = {await site.happened(EventKind.ACCESS_DENIED), await site.happened(EventKind.DEVICE_LOST)}
    await site.happened(EventKind.FORCED_OPEN)
    await site.happened(EventKind.GATE_OPENED)
    await site.settled(webhook)
    assert {got.event_id for got in receiver.got} == wanted


async def test_each_event_arrives_though_half_of_the_tries_fail(site, receiving):
    receiver, dice = await receiving(), random.Random(5)
    bad = [500, 404, 302, 503, (503, {"Retry-After": "1"}), 429, None]
    receiver.answer = lambda _got, _count: dice.choice(bad) if dice.random() < 0.5 else 200
    webhook = await site.hook(receiver.url)
    sent = {await site.happened(description=f"card {number}") for number in range(40)}
    known = await site.settled(webhook)
    ids: dict[int, set[str]] = {}
    for got in receiver.got:
        ids.setdefault(got.event_id, set()).add(got.id)
        assert got.is_signed()
    assert ids.keys() == sent
    assert all(len(names) == 1 for names in ids.values())
    assert (known.books.accepted, known.books.delivered + known.books.failed) == (40, 40)
    bodies = {(got.event_id, got.body) for got in receiver.got}
    assert len(bodies) == 40  # the same bytes at every try


async def test_tries_end_after_eight_and_what_was_given_up_is_replayed_under_its_id(site, receiving):
    receiver = await receiving()
    receiver.answer = lambda _got, _count: 500
    webhook = await site.hook(receiver.url)
    await site.happened()

    async def given_up() -> bool:
        return (await site.known(webhook)).books.failed == 1

    await until(given_up)
    assert len(receiver.got) == 8
    known = await site.known(webhook)
    assert (known.failing, known.tries) == ("the receiver answered 500", 8), "also once nothing waits any more"
    receiver.answer = lambda _got, _count: 200
    assert await site.registry.replay(webhook.id, since=None, until=None) == 1
    known = await site.settled(webhook)
    assert (known.books.delivered, known.books.failed, known.failing) == (1, 0, "")
    assert len({got.id for got in receiver.got}) == 1


async def test_a_slow_receiver_delays_no_other(site, receiving):
    slow, quick = await receiving(), await receiving()
    slow.wait = 5.0  # longer than a try may take
    slow_hook, quick_hook = await site.hook(slow.url), await site.hook(quick.url)
    for number in range(20):
        await site.happened(description=f"card {number}")
    await until(lambda: len(quick.answered) == 20)
    await site.settled(quick_hook)
    assert (await site.known(slow_hook)).books.waiting == 20

    async def timed_out() -> bool:
        return "no answer within 1 s" in (await site.known(slow_hook)).error

    await until(timed_out)


async def test_a_receiver_that_is_only_slow_gets_each_event_once_and_loses_nothing(opened, receiving, tmp_path):
    async with opened(tmp_path, timeout=60.0) as site:
        receiver = await receiving()
        receiver.wait = 0.2  # far less than a try may take
        webhook = await site.hook(receiver.url)
        told = [await site.happened(description=f"card {number}") for number in range(12)]
        known = await site.settled(webhook)
    assert (known.books.accepted, known.books.delivered, known.books.failed) == (12, 12, 0)
    assert (known.disabled, known.error) == ("", "")
    assert sorted(got.event_id for got in receiver.got) == sorted(told), "none was sent a second time"
    assert all(got.is_signed() for got in receiver.got)


async def test_410_disables_and_enabling_goes_on_with_what_waits(site, receiving):
    receiver = await receiving()
    receiver.answer = lambda _got, _count: 410
    webhook = await site.hook(receiver.url)
    first = await site.happened()

    async def disabled() -> bool:
        return bool((await site.known(webhook)).disabled)

    await until(disabled)
    await site.happened(description="while it is disabled")
    assert len(receiver.got) == 1
    told = await site.store.events.latest(limit=5)
    assert any(event.type == EventKind.WEBHOOK_DISABLED and "410" in event.description for event in told)
    receiver.answer = lambda _got, _count: 200
    await site.registry.enable(webhook.id, by="user:chief")
    known = await site.settled(webhook)
    assert known.disabled == ""
    assert set(receiver.answered) == {got.id for got in receiver.got if got.event_id == first}


async def test_429_holds_back_the_whole_queue_for_as_long_as_the_receiver_wishes(opened, receiving, tmp_path):
    async with opened(tmp_path, pace=lambda seconds: min(seconds, 0.8)) as site:
        receiver = await receiving()
        receiver.answer = lambda _got, count: (429, {"Retry-After": "3600"}) if count == 1 else 200
        webhook = await site.hook(receiver.url)
        for number in range(5):
            await site.happened(description=f"card {number}")
        await until(lambda: receiver.got)
        begun = site.clock.monotonic()
        await asyncio.sleep(0.3)  # without the wish, the others would have come
        assert len(receiver.got) == 1
        await site.settled(webhook)
        assert site.clock.monotonic() - begun > 0.5
        assert len(receiver.answered) == 5


async def test_what_waits_is_tried_at_once_when_a_receiver_is_back_after_long(opened, receiving, tmp_path, monkeypatch):
    monkeypatch.setattr(sender, "LONG_FAILURE", 0.2)
    async with opened(tmp_path, pace=lambda seconds: 1000 * seconds) as site:
        receiver = await receiving()
        webhook = await site.hook(receiver.url)
        receiver.answer = lambda _got, _count: 200
        await site.happened()
        await site.settled(webhook)
        receiver.answer = lambda _got, _count: 500
        for number in range(3):
            await site.happened(description=f"card {number}")
        await until(lambda: len(receiver.got) == 4)
        await asyncio.sleep(0.25)  # it has failed for long from then on
        receiver.answer = lambda _got, _count: 200
        await site.happened(description="it is back")
        known = await site.settled(webhook)  # the next tries would have been hours later
        assert known.books.delivered == 5
        assert [got.event_id for got in receiver.got[:4]] == sorted(got.event_id for got in receiver.got[:4])


async def test_a_redirection_is_a_failure_and_is_not_followed(site, receiving):
    receiver, other = await receiving(), await receiving()
    receiver.answer = lambda _got, count: (307, {"Location": other.url}) if count == 1 else 200
    webhook = await site.hook(receiver.url)
    await site.happened()
    await site.settled(webhook)
    assert (len(receiver.got), other.got) == (2, [])


async def test_what_waits_is_sent_after_a_restart(opened, receiving, tmp_path):
    async with opened(tmp_path) as site:
        receiver = await receiving()
        receiver.answer = lambda _got, _count: 500
        webhook = await site.hook(receiver.url)
        sent = {await site.happened(description=f"card {number}") for number in range(5)}
        await until(lambda: len(receiver.got) >= 2)
    receiver.answer = lambda _got, _count: 200
    async with opened(tmp_path) as site:
        await site.settled(webhook)
    assert {got.event_id for got in receiver.got if got.id in receiver.answered} == sent


async def test_a_full_backlog_drops_the_oldest_and_books_and_events_say_so(opened, receiving, tmp_path, monkeypatch):
    monkeypatch.setattr(feed_webhooks, "__kwdefaults__", {"most": 10})
    async with opened(tmp_path) as site:
        receiver = await receiving()
        webhook = await site.hook(receiver.url)
        await site.stop()
        sent = [await site.happened(description=f"card {number}") for number in range(25)]
        known = await site.known(webhook)
        assert (known.books.accepted, known.books.dropped, known.books.waiting) == (25, 15, 10)
        told = [event.type for event in await site.store.events.latest(limit=50)]
        assert told.count(EventKind.WEBHOOK_BACKLOG_FULL) == 1
    async with opened(tmp_path) as site:
        await site.settled(webhook)
    assert {got.event_id for got in receiver.got} == set(sent[15:])


async def test_what_happened_since_a_moment_is_sent_again_under_the_same_ids(site, receiving):
    receiver = await receiving()
    webhook = await site.hook(receiver.url)
    begun = site.clock.wall().micros
    sent = {await site.happened(description=f"card {number}") for number in range(5)}
    await site.settled(webhook)
    first = {got.id for got in receiver.got}
    assert await site.registry.replay(webhook.id, since=begun, until=None) == 5
    known = await site.settled(webhook)
    assert known.books.delivered == 10
    assert {got.id for got in receiver.got} == first
    assert {got.event_id for got in receiver.got[5:]} == sent


async def test_five_days_of_failure_disable_and_silence_does_not(opened, receiving, tmp_path):
    class Pushed:
        """The system's clock, days ahead."""

        def __init__(self, clock) -> None:
            self.clock, self.days, self.trusted = clock, 0.0, True

        def monotonic(self):
            return self.clock.monotonic()

        def wall(self):
            stamp = self.clock.wall()
            return type(stamp)(stamp.micros + int(self.days * 86_400_000_000), trusted=self.trusted)

    from gateway.runtime.clock import SystemClock

    clock = Pushed(SystemClock())
    async with opened(tmp_path, clock=clock) as site:
        receiver = await receiving()
        receiver.answer = lambda _got, _count: 500
        webhook = await site.hook(receiver.url)

        async def fails_once_more() -> None:
            before = len(receiver.got)
            await site.happened()

            async def tried() -> bool:
                # An earlier message, tried again, may be what is too much: then this one is not sent any more.
                return len(receiver.got) > before or bool((await site.known(webhook)).disabled)

            await until(tried)
            stamp = clock.wall().micros

            async def noted() -> bool:
                known = await site.known(webhook)
                return bool(known.disabled) or (known.failed_at or 0) >= stamp - 1_000_000

            if clock.trusted:
                await until(noted)

        await fails_once_more()
        clock.days = 9.0  # nothing was tried for nine days: the count begins anew
        await fails_once_more()
        assert (await site.known(webhook)).disabled == ""
        for _ in range(9):
            clock.days += 0.6
            await fails_once_more()

        async def disabled() -> bool:
            return "five days" in (await site.known(webhook)).disabled

        await until(disabled)


async def test_the_secret_is_in_no_text_of_a_webhook(site, receiving):
    receiver = await receiving()
    webhook = await site.hook(receiver.url)
    assert webhook.secret not in repr(webhook)
    assert webhook.secret not in repr(await site.known(webhook))
