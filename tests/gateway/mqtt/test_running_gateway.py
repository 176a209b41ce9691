"""A gateway with `[mqtt]`: from its start, over a change of the section, to its stop."""

from __future__ import annotations

import json
import signal

import pytest
from mosquitto import listener, mosquitto
from running_gateway import SITE, RunningGateway
from waiting import wait_until

from gateway.domain.events import EventKind

pytestmark = pytest.mark.long("a real broker")

SECTION = """
[mqtt]
url = "mqtt://127.0.0.1:{port}"
site = "north"
gateway = "gate-1"
topic = "{topic}"
username = "gate"
password = "gate"
"""
SECRET = "hush-hush-hush"


def test_it_is_there_moves_with_its_section_and_says_when_it_goes(tmp_path):
    with mosquitto(tmp_path / "broker") as broker, listener(broker) as heard:
        wait_until(lambda: heard.is_there)
        site = tmp_path / "site.toml"
        site.write_text(SITE + SECTION.format(port=broker.port, topic="yard"))
        with RunningGateway(tmp_path, "--data", "data", EDGE_GATEWAY_SECRET_GATE=SECRET) as gateway:
            gateway.serves()
            wait_until(lambda: heard.payloads("yard/north/gate-1/verdict"))
            assert json.loads(heard.payloads("yard/north/gate-1/verdict")[-1])["site"] == "Small"
            assert heard.payloads("yard/north/gate-1/status") == ["online"]
            site.write_text(SITE + SECTION.format(port=broker.port, topic="gates"))
            gateway.process.send_signal(signal.SIGHUP)
            wait_until(lambda: EventKind.SITE_CHANGED in types(heard.payloads("gates/north/gate-1/event")))
            assert heard.payloads("yard/north/gate-1/status") == ["online", "offline"]
            assert heard.payloads("gates/north/gate-1/status") == ["online"]
            assert gateway.end() == 0
            wait_until(lambda: heard.payloads("gates/north/gate-1/status") == ["online", "offline"])
            assert SECRET not in gateway.heard


def types(events: list[str]) -> list[int]:
    return [json.loads(one)["type"] for one in events]
