"""Discovery for MCP clients, and sign-in by others than central itself.

The discovery documents are what a client reads before it signs in, so they are relayed without a session. Everything
else needs one, as the interface says of all that it does not call open.
"""

from __future__ import annotations

from gateway.web.catalogue.operation import UNCONFIRMED, Operation, Rule, needs
from gateway.web.catalogue.relayed.row import posts, relayed

_DISCOVERY = Rule(session=False, whole=False, confirmed=False)
_PROVIDERS = needs("can_edit_settings", "can_edit_users")

WELL_KNOWN: tuple[Operation, ...] = (
    relayed(
        "GET",
        "/.well-known/oauth-authorization-server",
        _DISCOVERY,
        "",
        "Authorization server metadata for MCP clients",
    ),
    relayed(
        "GET",
        "/.well-known/oauth-protected-resource",
        _DISCOVERY,
        "",
        "Protected-resource discovery for MCP clients",
    ),
)

OPERATIONS: tuple[Operation, ...] = (
    *WELL_KNOWN,
    relayed(
        "POST",
        "/v1/auth/oauth2",
        UNCONFIRMED,
        "session",
        "Establish a session by configured external sign-in",
        page=True,
    ),
    *posts(
        "/v1/sso/",
        UNCONFIRMED,
        "session",
        (
            ("authorize", "Initiate SSO login"),
            ("callback", "OAuth2 callback"),
            ("saml/login", "Initiate SAML login"),
            ("saml/acs", "SAML assertion consumer"),
            ("saml/exchange", "Exchange a one-time SAML handoff code"),
        ),
        page=True,
    ),
    relayed("GET", "/v1/sso/saml/login", UNCONFIRMED, "session", "Initiate SAML login", page=True),
    relayed("GET", "/v1/sso/saml/metadata", UNCONFIRMED, "metadata", "SAML service-provider metadata"),
    relayed("POST", "/v1/sso/admin/providers", _PROVIDERS, "providers", "List SSO providers", reads=True),
    relayed("PUT", "/v1/sso/admin/provider", _PROVIDERS, "provider", "Create an SSO provider"),
    relayed("PATCH", "/v1/sso/admin/provider", _PROVIDERS, "provider", "Update an SSO provider"),
    relayed("DELETE", "/v1/sso/admin/provider", _PROVIDERS, "provider", "Delete an SSO provider"),
)
