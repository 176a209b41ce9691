"""The site file about webhooks."""

from __future__ import annotations

from ipaddress import ip_network

import pytest

from gateway.site import Secrets, SiteFaults, load


def read(tmp_path, section):
    path = tmp_path / "site.toml"
    path.write_text(f'[site]\nname = "North"\n[webhooks]\n{section}\n')
    return load(path, secrets=Secrets(folder=tmp_path, environ={}))


def test_addresses_and_networks_are_read(tmp_path):
    site = read(tmp_path, 'private_receivers = ["192.168.1.20", "10.0.5.0/24", "fd00::/64"]')
    assert site.webhooks.networks() == tuple(map(ip_network, ("192.168.1.20/32", "10.0.5.0/24", "fd00::/64")))


@pytest.mark.parametrize(
    ("section", "fault"),
    [
        ('private_receivers = ["till.local"]', "'till.local' is not an address or network"),
        ('private_receivers = ["10.0.5.1/24"]', "is not an address or network"),
        ('private_receivers = ["0.0.0.0/0"]', "every address"),
        ('private_receivers = "10.0.5.1"', "webhooks.private_receivers"),
        ("timeout_seconds = 90", "webhooks.timeout_seconds"),
        ('ca_file = "nowhere.pem"', "webhooks.ca_file: nowhere.pem"),
        ("retries = 3", "webhooks.retries: unknown key"),
    ],
)
def test_faults_are_named_with_their_place(tmp_path, section, fault):
    with pytest.raises(SiteFaults) as faults:
        read(tmp_path, section)
    assert any(fault in line for line in faults.value.lines())
