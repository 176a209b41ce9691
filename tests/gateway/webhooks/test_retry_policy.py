"""The consequences of an attempt."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from gateway.webhooks.retry_policy import LONGEST_WAIT, WAITS, AttemptResult, MessageFate, judge, retry_after

NOW = datetime(2026, 1, 31, 12, tzinfo=UTC)


def verdict(status=500, *, tries=0, slow=0, after="", chance=0.0):
    return judge(AttemptResult(status=status, retry_after=after), tries=tries, slow=slow, now=NOW, chance=chance)


@pytest.mark.parametrize("status", [200, 201, 202, 204, 299])
def test_2xx_alone_is_success(status):
    assert verdict(status).fate is MessageFate.DELIVERED


@pytest.mark.parametrize("status", [100, 301, 302, 307, 308, 400, 401, 404, 500, 503, 0])
def test_everything_else_is_tried_again(status):
    assert verdict(status).fate is MessageFate.AGAIN


def test_waits_grow_as_published_and_the_eighth_failure_is_the_last():
    assert [verdict(tries=number).wait for number in range(7)] == [5, 300, 1800, 7200, 18_000, 36_000, 36_000]
    assert verdict(tries=len(WAITS)).fate is MessageFate.GIVEN_UP
    assert 5 < verdict(chance=0.9).wait < 6.1


def test_410_ends_the_webhook():
    assert verdict(410).fate is MessageFate.GONE


@pytest.mark.parametrize("status", [429, 502, 504])
def test_an_overloaded_receiver_is_left_alone_for_longer_each_time(status):
    assert [verdict(status, slow=number).pause for number in range(8)] == [5, 10, 20, 40, 80, 160, 300, 300]
    assert verdict(500).pause == 0


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("120", 120), ("0", 1), ("999999999999", LONGEST_WAIT), (format_datetime(NOW + timedelta(minutes=3)), 180),
        (format_datetime(NOW - timedelta(days=3)), 1), ("Sat, 31 Jan 2026 12:01:00 GMT", 60), ("soon", None),
        ("", None),
        ("-5", None), ("1.5", None), ("\u0664", None), ("Sat, 31 Jan 99999 12:01:00 GMT", None),
    ],
)  # fmt: skip
def test_retry_after_is_understood_in_both_forms_and_bounded(text, seconds):
    assert retry_after(text, now=NOW) == seconds


def test_a_wished_wait_counts_for_the_message_and_for_the_queue():
    said = verdict(503, after="900")
    assert (said.wait, said.pause) == (900, 900)
