"""Fixtures of the web's tests: each module of `setups` holds those of one thing."""

from tests.gateway.web.setups.accounts import cheap_hash, costly, hashed
from tests.gateway.web.setups.browser import browser, browser_page
from tests.gateway.web.setups.footage import footage
from tests.gateway.web.setups.relayed import central_accounts, far_central, relayed
from tests.gateway.web.setups.running_gateway import gateway, open_gateway

__all__ = [
    "browser",
    "browser_page",
    "central_accounts",
    "cheap_hash",
    "costly",
    "far_central",
    "footage",
    "gateway",
    "hashed",
    "open_gateway",
    "relayed",
]
