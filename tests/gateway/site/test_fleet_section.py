"""`[fleet]`: encrypted except on this machine, with credentials, and senders whose keys are keys."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from gateway.site import FleetSection, Secrets, Site, SiteFaults, check, difference, load
from gateway.site.load import LoadedSite

KEY = "UCBAYD5ZQ2ZED3Z7GYBXSRESAVAGGUNFRUKYFHV4YLTI3CJB5L3NIX3D"
FLEET = {"urls": ["tls://fleet.example.com"], "site": "north", "gateway": "gate-1", "credentials": "fleet"}


def site(**fleet) -> Site:
    return Site.model_validate({"site": {"name": "North"}, "fleet": FLEET | fleet if fleet else FLEET})


def test_servers_have_the_usual_port_of_nats():
    assert str(FleetSection.model_validate(FLEET).endpoints()[0]) == "fleet.example.com:4222"


def test_this_machine_needs_neither_tls_nor_credentials():
    section = FleetSection.model_validate({"urls": ["nats://127.0.0.1:4333"], "site": "north", "gateway": "gate-1"})
    assert section.credentials is None


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"urls": ["nats://fleet.example.com"]}, "must be tls://…: unencrypted"),
        ({"urls": ["tls://fleet.example.com", "nats://10.0.0.9"]}, "must be tls://…: unencrypted"),
        ({"urls": ["tls://me:hunter2@fleet.example.com"]}, "must not hold credentials"),
        ({"urls": ["https://fleet.example.com"]}, "must be tls://… or nats://…"),
        ({"urls": []}, "at least 1 item"),
        ({"credentials": None}, "'credentials' is missing"),
        ({"site": "North Yard"}, "small letters"),
        ({"gateway": "gate.1"}, "small letters"),
        ({"senders": [{"key": KEY[:-1] + "A", "account": "anna"}]}, "public NKey of a user"),
        ({"senders": [{"key": "A" + KEY[1:], "account": "anna"}]}, "public NKey of a user"),
        ({"senders": [{"key": KEY, "account": "anna"}, {"key": KEY, "account": "ben"}]}, "has a key twice"),
    ],
)
def test_what_is_wrong_is_named_and_not_repeated(changed, said):
    with pytest.raises(ValidationError, match=said.replace("…", ".")) as refused:
        FleetSection.model_validate(FLEET | changed)
    assert "hunter2" not in "".join(error["msg"] for error in refused.value.errors())


SEED = "SU" + "A" * 56
JWT = "-----BEGIN NATS USER JWT-----\nx\n------END NATS USER JWT------\n"
JWT_SEED = f"-----BEGIN USER NKEY SEED-----\n{SEED}\n------END USER NKEY SEED------\n"


@pytest.mark.parametrize(
    ("secret", "is_key"),
    [(SEED, True), (f" {SEED}\n", True), (JWT + JWT_SEED, True), ("rubbish", False), (JWT, False), (JWT_SEED, False)],
)
def test_credentials_that_are_no_key_are_a_fault_that_does_not_repeat_them(secret, is_key, tmp_path):
    path = tmp_path / "site.toml"
    path.write_text(
        '[site]\nname = "North"\n[fleet]\nurls = ["nats://127.0.0.1"]\nsite = "north"\ngateway = "gate-1"\n'
        'credentials = "fleet"\n'
    )
    secrets = Secrets(folder=tmp_path, environ={"EDGE_GATEWAY_SECRET_FLEET": secret})
    if is_key:
        assert load(path, secrets=secrets).fleet is not None
        return
    with pytest.raises(SiteFaults) as refused:
        load(path, secrets=secrets)
    (line,) = refused.value.lines()
    assert "is neither an NKey seed, SU…, nor the text of a JWT credentials file" in line
    assert SEED not in line


def test_a_server_on_the_gateways_own_port_is_a_fault():
    (fault,) = check(site(urls=["nats://127.0.0.1:8480"], credentials=None))
    assert fault.place == "fleet.urls[0]"


def test_a_change_concerns_the_line_to_the_fleet_alone():
    found = difference(LoadedSite(site()), LoadedSite(site(gateway="gate-2")))
    assert (found.fleet, found.central, found.interface, found.refused) == (True, False, False, ())
    assert difference(LoadedSite(site()), LoadedSite(site())).fleet is False
    secret = {"fleet": "old"}, {"fleet": "new"}
    assert difference(*(LoadedSite(site(), secrets=one) for one in secret)).fleet is True
