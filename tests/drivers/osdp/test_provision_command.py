"""`edge-gateway osdp provision` against libosdp's own reader on a pseudo-terminal."""

import asyncio

import pytest
from forked import done

from gateway.site import load

pytestmark = pytest.mark.long("processes, and the seconds in which libosdp gives up")

SITE = """
[site]
name = "North"
[[links]]
id = "osdp"
url = "serial:{line}"
[[devices]]
id = 201
name = "North reader"
driver = "osdp-reader"
link = "osdp"
address = 7
key = "north-reader-key"
"""


async def provision(site, device="201"):
    ended = await asyncio.to_thread(done, "gateway", "osdp", "provision", site, device)
    return ended.returncode, ended.stdout, ended.stderr


async def test_a_key_is_made_once_and_the_site_is_good_with_it(peripherals, tmp_path):
    site = tmp_path / "site.toml"
    site.write_text(SITE.format(line=peripherals.path))
    await peripherals.plug_in({"address": 7, "key": None})

    code, out, err = await provision(site)
    assert (code, err) == (0, "")
    assert "North reader has its own key now" in out
    place = tmp_path / "secrets" / "north-reader-key"
    assert place.stat().st_mode & 0o777 == 0o600
    key = place.read_text()
    assert key.strip() not in out
    assert load(site)

    code, out, err = await provision(site)
    assert code == 2
    assert "has a key already" in err
    assert "If the reader was replaced" in err
    assert place.read_text() == key


async def test_a_reader_that_takes_no_key_is_told_with_the_reason(peripherals, tmp_path):
    site = tmp_path / "site.toml"
    site.write_text(SITE.format(line=peripherals.path))
    await peripherals.plug_in({"address": 8, "key": None})
    code, out, err = await provision(site)
    assert (code, out) == (1, "")
    assert "North reader accepted no key: no reply comes from it" in err
    assert not (tmp_path / "secrets" / "north-reader-key").exists()
    code, _, err = await provision(site, "202")
    assert code == 1
    assert "device 202 is not an OSDP reader" in err
