"""`[mqtt]`: encrypted except where somebody says otherwise, and topics that no broker refuses."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from gateway.site import MqttSection, Site, check, difference, doubtful
from gateway.site.load import LoadedSite

MQTT = {"url": "mqtts://broker.example.com", "site": "north", "gateway": "gate-1", "username": "gate", "password": "p"}


def site(**mqtt) -> Site:
    return Site.model_validate({"site": {"name": "North"}, "mqtt": MQTT | mqtt})


def test_brokers_have_their_usual_ports():
    assert str(MqttSection.model_validate(MQTT).endpoint()) == "broker.example.com:8883"
    assert MqttSection.model_validate(MQTT | {"url": "MQTTS://broker.example.com"}).is_encrypted
    assert str(MqttSection.model_validate(MQTT | {"url": "mqtt://127.0.0.1"}).endpoint()) == "127.0.0.1:1883"


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"url": "mqtt://broker.example.com"}, "must be mqtts://…, or plain_mqtt = true"),
        ({"url": "mqtts://me:hunter2@broker.example.com"}, "must not hold credentials"),
        ({"url": "https://broker.example.com"}, "must be mqtts://… or mqtt://…"),
        ({"url": "mqtts://broker..example.com"}, "must be mqtts://… or mqtt://…"),
        ({"certificate": "own.pem"}, "'certificate' and 'key' belong together"),
        ({"url": "mqtt://[::1]", "certificate": "own.pem", "key": "own.key"}, "'certificate' needs mqtts://…"),
        ({"username": None}, "'username' is missing"),
        ({"site": "North Yard"}, "small letters"),
        ({"gateway": "gate/1"}, "small letters"),
        *(({"topic": topic}, "should match pattern") for topic in ("", "a/#", "+", "/a", "a/", "a//b", "$SYS")),
    ],
)
def test_what_is_wrong_is_named_and_not_repeated(changed, said):
    with pytest.raises(ValidationError, match=said.replace("…", ".")) as refused:
        MqttSection.model_validate(MQTT | changed)
    assert "hunter2" not in "".join(error["msg"] for error in refused.value.errors())


def test_a_plain_line_is_an_explicit_choice_and_doubted(tmp_path):
    path = tmp_path / "site.toml"
    path.write_text("")
    plain = list(doubtful(site(url="mqtt://broker.example.com", plain_mqtt=True), path))
    assert any(said.startswith("mqtt.url: events and the password cross the network unencrypted") for said in plain)
    assert not any("mqtt" in said for said in doubtful(site(), path))


def test_authorities_that_cannot_be_used_are_told(tmp_path):
    path = tmp_path / "site.toml"
    path.write_text("")
    (said,) = (one for one in doubtful(site(ca_file=str(path)), path) if "mqtt" in one)
    assert said.endswith("until this is fixed there is no line to the MQTT broker")


def test_a_broker_on_the_gateways_own_port_is_a_fault():
    (fault,) = check(site(url="mqtt://127.0.0.1:8480"))
    assert fault.place == "mqtt.url"


def test_a_change_concerns_the_line_to_the_broker_alone():
    found = difference(LoadedSite(site()), LoadedSite(site(topic="yard")))
    assert (found.mqtt, found.fleet, found.central, found.interface, found.refused) == (True, False, False, False, ())
    assert difference(LoadedSite(site()), LoadedSite(site())).mqtt is False
    secret = {"p": "old"}, {"p": "new"}
    assert difference(*(LoadedSite(site(), secrets=one) for one in secret)).mqtt is True
