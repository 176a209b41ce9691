"""`edge-gateway init` as an installer meets it: by options alone, and in a terminal."""

from __future__ import annotations

import asyncio
import re
import ssl
import tomllib
from pathlib import Path

import pytest
from aiohttp import ClientSession
from running_gateway import typed
from running_house import at_work
from terminal import Terminal

from gateway.cli.init import questions
from gateway.cli.site_fragment import Findings, FoundCamera, FoundLine, FoundUnit, fragment
from gateway.domain.errors import ConfigError
from gateway.runtime.clock import SystemClock
from gateway.site import load
from gateway.site.new_site import NewCentral, NewSite, site_text
from gateway.site.own_authority import own_certificates
from simulation.far_ends.central.accounts import totp

PASSWORD = "correct horse"
SECRET = "JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP"


def modes(folder):
    return {str(path.relative_to(folder)): path.stat().st_mode & 0o777 for path in folder.rglob("*") if path.is_file()}


@pytest.fixture
def init(tmp_path):
    """Types the command with options; a password and an authenticator are in files."""
    password, authenticator = tmp_path / "password", tmp_path / "authenticator"
    password.write_text(f"{PASSWORD}\n")
    authenticator.write_text(f"{SECRET}\n")

    def call(*options):
        where = (tmp_path / "etc" / "site.toml", "--data", tmp_path / "data")
        return typed("init", *where, "--password", password, "--authenticator", authenticator, "--no-search", *options)

    return call


def test_options_alone_make_a_site_that_check_takes(init, tmp_path):
    central = tmp_path / "central"
    central.write_text("at central\n")
    site = tmp_path / "etc" / "site.toml"
    result = init("--name", 'North "car" park', "--zone", "America/Toronto", "--address", "gate.example.com",
                  "--central", "https://central.example.com", "--central-password", central)  # fmt: skip
    assert (result.returncode, result.stderr) == (0, "")
    assert "https://gate.example.com:8443/status/" in result.stdout
    assert len(re.findall("[▄▀█ ]{20,}", result.stdout)) > 10
    assert len(re.findall(r"^  ([0-9A-F]{2}:){31}[0-9A-F]{2}$", result.stdout, re.MULTILINE)) == 2
    assert typed("check", site).returncode == 0
    known = load(site)
    assert (known.site.name, known.site.timezone, known.api.host_names) == (
        'North "car" park', "America/Toronto", ("gate.example.com",),
    )  # fmt: skip
    assert known.central is not None
    assert typed("users", "list", "--data", tmp_path / "data").stdout == (
        "technician  administrator, second factor, 10 recovery codes left\n"
    )
    secrets = ("secrets/central-password", "tls/key.pem", "tls/authority-key.pem")
    found = modes(tmp_path / "etc")
    assert {name: found[name] for name in secrets} == dict.fromkeys(secrets, 0o600)
    assert not any(mode & 0o027 for mode in modes(tmp_path / "data").values())
    text = site.read_text() + result.stdout
    assert not [secret for secret in (PASSWORD, SECRET, "at central") if secret in text]


async def test_the_gateway_serves_its_page_by_what_init_made(init, tmp_path):
    assert (await asyncio.to_thread(init, "--address", "127.0.0.1")).returncode == 0
    site = tmp_path / "etc" / "site.toml"
    site.write_text(site.read_text().replace('host = "0.0.0.0"', 'host = "127.0.0.1"').replace("8443", "0"))
    trusted = ssl.create_default_context(cafile=tmp_path / "etc" / "tls" / "authority.pem")
    async with at_work(tmp_path / "etc", tmp_path / "data", {}) as gateway, ClientSession() as client:
        url = f"https://127.0.0.1:{await gateway.serves()}/status/"
        async with client.get(url, ssl=trusted) as answer:
            assert "<html" in await answer.text()


def test_a_site_file_that_is_there_is_never_changed(init, tmp_path):
    site = tmp_path / "etc" / "site.toml"
    site.parent.mkdir()
    site.write_text("mine")
    result = init()
    assert result.returncode == 2
    assert "exists already and is not changed" in result.stderr
    assert (site.read_text(), [path.name for path in site.parent.iterdir()]) == ("mine", ["site.toml"])
    assert not (tmp_path / "data").exists()


@pytest.mark.parametrize(
    ("option", "value", "says"),
    [
        ("--name", " ", "no blank at either end"),
        ("--zone", "Mars/Olympus", "there is no time zone"),
        ("--address", "https://gate", "is no address of this machine"),
        ("--address", "0.0.0.0", "is no address of this machine"),
        ("--port", "99999", "is no port"),
        ("--central", "central.example.com", "central's address"),
        ("--account", "", "the name of an account"),
        ("--key", "key.pem", "belong together"),
        ("--central", "https://central.example.com", "needs --central-password"),
    ],
    ids=[
        "blank name",
        "zone",
        "url as address",
        "any address",
        "port",
        "central",
        "account",
        "key alone",
        "no password",
    ],
)
def test_a_wrong_option_gets_one_sentence_and_changes_nothing(init, tmp_path, option, value, says):
    result = init(option, value)
    assert result.returncode == 2
    assert says in result.stderr
    assert result.stderr.count("\n") == 1
    assert not (tmp_path / "etc").exists()


def test_an_attempt_that_was_broken_off_is_taken_up_again(init, tmp_path):
    assert init("--no-second-factor").returncode == 0
    (tmp_path / "etc" / "site.toml").unlink()
    before = (tmp_path / "etc" / "tls" / "authority.pem").read_bytes()
    result = init("--name", "Again")
    assert (result.returncode, result.stderr) == (0, "")
    assert "keeps its password" in result.stdout
    assert (tmp_path / "etc" / "tls" / "authority.pem").read_bytes() == before
    assert "administrator, second factor" in typed("users", "list", "--data", tmp_path / "data").stdout


def test_ones_own_certificate_is_served_and_a_wrong_pair_is_refused(init, tmp_path):
    one, other = (
        own_certificates(site="x", names=("a.example.com",), at_micros=1_800_000_000_000_000) for _ in range(2)
    )
    certificate, key = tmp_path / "c.pem", tmp_path / "k.pem"
    certificate.write_bytes(one.served)
    key.write_bytes(other.key)
    refused = init("--certificate", certificate, "--key", key)
    assert refused.returncode == 2
    assert "does not belong to the certificate" in refused.stderr
    assert not (tmp_path / "etc" / "site.toml").exists()
    key.write_bytes(one.key)
    assert init("--certificate", certificate, "--key", key).returncode == 0
    assert (tmp_path / "etc" / "tls" / "certificate.pem").read_bytes() == one.served
    assert not (tmp_path / "etc" / "tls" / "authority.pem").exists()


@pytest.mark.parametrize(
    "look", ["--no-search", pytest.param("--search", marks=pytest.mark.long("it searches the network for 3 s"))]
)
def test_a_person_is_asked_with_defaults_and_again_after_a_wrong_answer(tmp_path, look):
    site = tmp_path / "etc" / "site.toml"
    with Terminal("init", site, "--data", tmp_path / "data", look) as terminal:
        terminal.hears(r"Name of the site \[\S+\]: ")
        terminal.types("North")
        terminal.hears(r"Time zone \[\S+\]: ")
        terminal.types("Mars")
        terminal.hears(r"there is no time zone 'Mars'.*Time zone \[\S+\]: ")
        terminal.types("")
        for question in (
            r"for browsers \[\S+\]: ",
            r"Port of the page \[8443\]: ",
            "empty for none",
            r"\[technician\]",
        ):
            terminal.hears(question)
            terminal.types("")
        terminal.hears("New password of technician: ")  # its blank comes once nothing typed is shown or thrown away
        terminal.types(PASSWORD)
        terminal.hears("Once more: ")
        terminal.types(PASSWORD)
        secret = terminal.hears(r"type this secret: ([A-Z2-7 ]+)")[1].replace(" ", "")
        terminal.hears("shows now")
        terminal.types(totp(secret, SystemClock().wall().micros // 1_000_000))
        terminal.hears("The page is at https://")
        assert terminal.ends() == 0
    assert load(site).site.name == "North"


def test_what_was_found_is_in_the_file_as_comments():
    units = (FoundUnit(2, "reads", "EB barrier\n[[lanes]]"),)
    found = fragment(
        Findings(
            (FoundLine("serial:/dev/serial/by-id/usb-a", units=units),), (FoundCamera("10.0.0.9", "Axis", "mDNS"),)
        )
    )
    text = site_text(new_site(found=found, central=NewCentral(url="https://c.example.com", username="a")))
    assert sorted(tomllib.loads(text)) == ["api", "central", "format", "site", "storage"]
    lines = text[text.index("# Found here") : text.index("# A device is")].splitlines()[1:]
    taken = tomllib.loads("\n".join(line.removeprefix("# ") for line in lines))
    assert [link["url"] for link in taken["links"]] == ["serial:/dev/serial/by-id/usb-a"]
    assert (taken["devices"][0]["unit"], taken["cameras"][0]["url"]) == (2, "rtsp://10.0.0.9/axis-media/media.amp")


def new_site(**more):
    given = {
        "name": "North",
        "timezone": "UTC",
        "host": "::",
        "host_names": (),
        "port": 8443,
        "certificate": "c",
        "key": "k",
    }
    return NewSite(**given | more)


@pytest.mark.parametrize("name", ['a "b" \\ c', "é\u007f", "日本"], ids=["quotes", "control", "wide"])
def test_any_name_is_read_back_as_it_was(name):
    assert tomllib.loads(site_text(new_site(name=name)))["site"]["name"] == name


@pytest.mark.parametrize(
    ("asked", "good"), [("gate.example.com", True), ("192.0.2.7", True), ("other.example.com", False)]
)
def test_the_authority_vouches_for_the_sites_names_alone(tmp_path, asked, good):
    made = own_certificates(
        site="North", names=("gate.example.com", "192.0.2.7"), at_micros=SystemClock().wall().micros
    )
    for name in ("authority", "served", "key"):
        (tmp_path / name).write_bytes(getattr(made, name))
    server, client = (
        ssl.create_default_context(ssl.Purpose.CLIENT_AUTH),
        ssl.create_default_context(cafile=tmp_path / "authority"),
    )
    server.load_cert_chain(tmp_path / "served", tmp_path / "key")
    client.verify_flags |= ssl.VERIFY_X509_STRICT
    assert shakes_hands(server, client, asked) is good


def test_a_certificate_is_renewed_for_the_same_names_and_key(tmp_path):
    long_ago = SystemClock().wall().micros - 900 * 86_400_000_000
    made, tls = own_certificates(site="North", names=("gate.example.com",), at_micros=long_ago), tmp_path / "tls"
    tls.mkdir()
    for name, data in (("authority", made.authority), ("authority-key", made.authority_key),
                       ("certificate", made.served), ("key", made.key)):  # fmt: skip
        (tls / f"{name}.pem").write_bytes(data)
    assert "ends in -101 days" in typed("certificate", tmp_path / "site.toml").stdout
    assert "ends in 799 days" in typed("certificate", tmp_path / "site.toml", "--renew").stdout
    server = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    server.load_cert_chain(tls / "certificate.pem", tls / "key.pem")
    assert shakes_hands(server, ssl.create_default_context(cafile=tls / "authority.pem"), "gate.example.com")


def test_a_certificate_of_others_is_not_renewed(tmp_path):
    one, other = (own_certificates(site="x", names=("a.example.com",), at_micros=1_800_000_000_000_000) for _ in "ab")
    tls = tmp_path / "tls"
    tls.mkdir()
    refused = typed("certificate", tmp_path / "site.toml", "--renew")
    assert (refused.returncode, "cannot be used" in refused.stderr) == (2, True)
    for name, data in (
        ("authority", one.authority),
        ("authority-key", one.authority_key),
        ("certificate", other.served),
    ):
        (tls / f"{name}.pem").write_bytes(data)
    refused = typed("certificate", tmp_path / "site.toml", "--renew")
    assert (refused.returncode, "was not made by" in refused.stderr) == (2, True)
    assert (tls / "certificate.pem").read_bytes() == other.served


def shakes_hands(server, client, name):
    there, back = ssl.MemoryBIO(), ssl.MemoryBIO()
    ends = [client.wrap_bio(back, there, server_hostname=name), server.wrap_bio(there, back, server_side=True)]
    done = 0
    for _ in range(10):
        done = 0
        for end in ends:
            try:
                end.do_handshake()
                done += 1
            except ssl.SSLWantReadError:
                continue
            except ssl.SSLCertVerificationError:
                return False
    return done == 2


def test_this_machines_zone_and_address_are_good_answers():
    assert questions.time_zone(questions.zone_of_this_machine())
    assert questions.address(questions.address_of_this_machine())


def test_a_file_that_is_no_certificate_is_refused_and_kept_nowhere(init, tmp_path):
    certificate = tmp_path / "c.pem"
    certificate.write_text("not a certificate")
    refused = init("--certificate", certificate, "--key", certificate)
    assert (refused.returncode, refused.stderr) == (
        2, f"edge-gateway: {certificate} is not a certificate in PEM form\n",
    )  # fmt: skip
    assert not list((tmp_path / "etc" / "tls").iterdir())


@pytest.mark.parametrize(("address", "host"), [("2001:db8::1", "::"), ("192.0.2.7", "0.0.0.0")])
def test_the_page_listens_where_its_address_says(init, tmp_path, address, host):
    assert init("--address", address, "--no-second-factor").returncode == 0
    assert load(tmp_path / "etc" / "site.toml").api.host == host


def test_a_secret_that_is_not_utf_8_is_refused_and_a_byte_order_mark_is_no_part_of_it(tmp_path):
    file = tmp_path / "secret"
    file.write_bytes("café horse".encode("latin-1"))
    with pytest.raises(ConfigError, match="is not text in UTF-8"):
        questions.secret_in(file)
    file.write_bytes("café horse\r\n".encode("utf-8-sig"))
    assert questions.secret_in(file) == "café horse"


def test_an_empty_secret_is_refused(tmp_path):
    empty = Path(tmp_path / "empty")
    empty.touch()
    with pytest.raises(ConfigError, match="is empty"):
        questions.secret_in(empty)
