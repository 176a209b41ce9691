"""Behind a proxy: its word for address and scheme counts where the site file trusts it, and nowhere else."""

from __future__ import annotations

import ssl

import pytest
from certificates import write_pair
from tls_proxy import tls_proxy

from gateway.domain.events import EventKind
from tests.gateway.web.setups.site import SITE

UNCHECKED = ssl.create_default_context()
UNCHECKED.check_hostname, UNCHECKED.verify_mode = False, ssl.CERT_NONE
RIGHT = {"username": "chief", "password": "chief"}
WRONG = {"username": "chief", "password": "wrong"}


@pytest.fixture
async def behind(open_gateway, tmp_path):
    """Opens a gateway behind a proxy that ends TLS; its address, and the gateway."""
    pair = write_pair(tmp_path, stem="proxy")
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(pair.certificate, pair.key)

    def opened(trusted):
        api = SITE.api.model_copy(update={"trusted_proxies": trusted})
        return open_gateway(site=SITE.model_copy(update={"api": api})), context

    return opened


async def sign_in(gateway, url, account, *, address, **headers):
    headers = {"X-Test-From": address, **headers}
    async with gateway.client.post(f"{url}/v1/auth/login", json=account, headers=headers, ssl=UNCHECKED) as answer:
        return answer.status, answer.headers.get("Set-Cookie", ""), await answer.json()


async def test_wrong_passwords_of_one_address_lock_nobody_out_elsewhere(behind):
    opening, context = behind(("127.0.0.1",))
    async with opening as gateway, tls_proxy(gateway.url, tls=context) as proxy:
        for _ in range(6):
            assert (await sign_in(gateway, proxy, WRONG, address="203.0.113.9"))[0] == 404
        assert (await sign_in(gateway, proxy, RIGHT, address="203.0.113.9"))[0] == 429
        assert (await sign_in(gateway, proxy, RIGHT, address="198.51.100.7"))[0] == 200
        _, listed = await gateway.call("/v1/event/list", {"types": [EventKind.SIGN_IN_REFUSED]})
        assert "203.0.113.9" in listed["events"][0]["description"]


async def test_an_address_that_a_client_made_up_does_not_count(behind):
    opening, context = behind(("127.0.0.0/8",))
    async with opening as gateway, tls_proxy(gateway.url, tls=context) as proxy:
        for number in range(6):
            lie = {"X-Forwarded-For": f"192.0.2.{number}"}
            assert (await sign_in(gateway, proxy, WRONG, address="203.0.113.9", **lie))[0] == 404
        lie = {"X-Forwarded-For": "192.0.2.99"}
        assert (await sign_in(gateway, proxy, RIGHT, address="203.0.113.9", **lie))[0] == 429
        assert (await sign_in(gateway, proxy, RIGHT, address="198.51.100.7"))[0] == 200


async def test_the_cookie_goes_over_tls_alone_where_a_trusted_proxy_ends_it(behind):
    for trusted, secure in ((("127.0.0.1",), True), ((), False), (("192.0.2.1",), False)):
        opening, context = behind(trusted)
        async with opening as gateway, tls_proxy(gateway.url, tls=context) as proxy:
            _, cookie, _ = await sign_in(gateway, proxy, RIGHT, address="198.51.100.7")
            assert ("Secure" in cookie) is secure
            direct = {"X-Forwarded-Proto": "https"} if not trusted else {}
            _, cookie, _ = await sign_in(gateway, gateway.url, RIGHT, address="", **direct)
            assert "Secure" not in cookie


async def test_nobody_else_is_believed(behind):
    opening, _ = behind(("192.0.2.1",))
    async with opening as gateway:
        for number in range(6):
            lie = {"X-Forwarded-For": f"198.51.100.{number}"}
            assert (await sign_in(gateway, gateway.url, WRONG, address="", **lie))[0] == 404
        lie = {"X-Forwarded-For": "198.51.100.99"}
        assert (await sign_in(gateway, gateway.url, RIGHT, address="", **lie))[0] == 429


async def test_links_bear_the_scheme_that_the_client_speaks(behind):
    opening, context = behind(("127.0.0.1",))
    async with opening as gateway, tls_proxy(gateway.url, tls=context) as proxy:
        headers = {**await gateway.sign_in(), "Host": "gate.internal"}
        async with gateway.client.post(
            f"{proxy}/v1/camera", json={"id": 201}, headers=headers, ssl=UNCHECKED
        ) as answer:
            told = await answer.json()
        assert told["camera"]["stream"].startswith("https://gate.internal/v1/camera/whep/201?token=")


async def test_the_page_behind_a_proxy_that_changes_the_host_may_write(behind):
    opening, context = behind(("127.0.0.1",))
    async with opening as gateway, tls_proxy(gateway.url, tls=context, host="127.0.0.1:9") as proxy:
        token = (await gateway.sign_in())["SessionID"]
        gateway.client.cookie_jar.clear()
        for site, status in (("same-origin", 200), ("cross-site", 403)):
            headers = {"Cookie": f"session={token}", "Origin": proxy, "Sec-Fetch-Site": site}
            async with gateway.client.post(
                f"{proxy}/v1/device/open", json={"id": 101}, headers=headers, ssl=UNCHECKED
            ) as answer:
                assert answer.status == status


async def test_hosts_of_one_ipv6_network_are_counted_together(behind):
    opening, context = behind(("127.0.0.1",))
    async with opening as gateway, tls_proxy(gateway.url, tls=context) as proxy:
        for number in range(6):
            assert (await sign_in(gateway, proxy, WRONG, address=f"2001:db8::{number}"))[0] == 404
        assert (await sign_in(gateway, proxy, RIGHT, address="2001:db8::99"))[0] == 429
        assert (await sign_in(gateway, proxy, RIGHT, address="2001:db8:0:1::1"))[0] == 200
