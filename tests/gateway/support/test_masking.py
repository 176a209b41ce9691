"""The mask of the log: the texts that it hides, and those that it leaves alone."""

from __future__ import annotations

import json

import pytest

from gateway.runtime.redaction import Redaction
from gateway.support.masking import Masking


@pytest.mark.parametrize(
    "text",
    [
        "nothing answers at 192.168.10.12:38029",
        "rtsp://10.0.0.5:8554/camera/201 refuses",
        "tcp://converter.site.example:4196 hung up",
        "[::1]:8480 and localhost:8490",
        "port 8480 is in use",
        "at most 10000 entries, within 5000 ms, of 65536 bytes",
        "no answer for 86400 s",
        "a limit of 1500",
        "9600 baud",
    ],
)
def test_limits_and_ports_stay(text):
    masking = Masking(Redaction())
    assert masking.happening(text) == text
    assert json.loads(masking.log_line(json.dumps({"event": text}))) == {"event": text}


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("card 4012 denied", "card *** denied"),
        ("card 0014012 denied", "card ***12 denied"),
        ("holder card:4012", "holder card:***"),
        ("card 001,35329: unknown", "card 001,***: unknown"),
        ("card 5000 stays", "card *** stays"),
        ("10.0.0.5:99999", "10.0.0.5:***"),
        ("read as 38029:8480", "read as ***:***"),
    ],
)
def test_numbers_of_cards_go(text, shown):
    assert Masking(Redaction()).happening(text) == shown
