"""Discovery for MCP clients, and sign-in by identity providers.

Clients use these before they have a session, so none is needed, except for the administration of the providers. When
one of them signs somebody in, the gateway begins a session of its own (`gateway.web.auth.external_sign_in`).
"""

from __future__ import annotations

from gateway.web.operation import NO_SESSION, Operation, needs
from gateway.web.relayed.rows import AuthorizationServer, ProtectedResource, file_of, relayed, signing_in

_PROVIDERS = needs("can_edit_settings", "can_edit_users")

WELL_KNOWN: tuple[Operation, ...] = (
    relayed(
        "GET",
        "/.well-known/oauth-authorization-server",
        NO_SESSION,
        "",
        "Authorization server metadata for MCP clients",
        answer=AuthorizationServer,
    ),
    relayed(
        "GET",
        "/.well-known/oauth-protected-resource",
        NO_SESSION,
        "",
        "Protected-resource discovery for MCP clients",
        answer=ProtectedResource,
    ),
)

OPERATIONS: tuple[Operation, ...] = (
    *WELL_KNOWN,
    signing_in("POST", "/v1/auth/oauth2", "Establish a session by configured external sign-in"),
    signing_in("POST", "/v1/sso/authorize", "Initiate SSO login"),
    signing_in("POST", "/v1/sso/callback", "OAuth2 callback"),
    signing_in("POST", "/v1/sso/saml/login", "Initiate SAML login"),
    signing_in("POST", "/v1/sso/saml/acs", "SAML assertion consumer", form=True),
    signing_in("POST", "/v1/sso/saml/exchange", "Exchange a one-time SAML handoff code"),
    signing_in("GET", "/v1/sso/saml/login", "Initiate SAML login"),
    file_of(
        "GET",
        "/v1/sso/saml/metadata",
        NO_SESSION,
        "metadata",
        "SAML service-provider metadata",
        "application/samlmetadata+xml",
        "application/xml",
    ),
    relayed("POST", "/v1/sso/admin/providers", _PROVIDERS, "providers", "List SSO providers", reads=True),
    relayed("PUT", "/v1/sso/admin/provider", _PROVIDERS, "provider", "Create an SSO provider"),
    relayed("PATCH", "/v1/sso/admin/provider", _PROVIDERS, "provider", "Update an SSO provider"),
    relayed("DELETE", "/v1/sso/admin/provider", _PROVIDERS, "provider", "Delete an SSO provider"),
)
