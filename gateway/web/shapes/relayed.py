"""Bodies and answers of the operations that central answers.

The interface publishes none of their fields beside the ones here, so central may take and send others too. The gateway
relays bodies as they are and never validates with these models; they only describe.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue


class RelayedFields(BaseModel):
    """A JSON body for central. Its installed version decides which fields it takes."""

    model_config = ConfigDict(extra="allow")


class SamlResponseForm(BaseModel):
    """The form that a SAML identity provider lets the browser send, as the SAML HTTP POST binding has it."""

    SAMLResponse: str
    RelayState: str | None = None


class RelayedUpload(BaseModel):
    """A form with a file for central. Its installed version decides which other fields it takes."""

    file: Annotated[str, Field(json_schema_extra={"format": "binary"})]


class RelayedAnswer(BaseModel):
    """Central's answer. Read `success` as well as the status."""

    model_config = ConfigDict(extra="allow")

    success: bool
    error: str | None = None


class RelayedRefusal(BaseModel):
    """A refusal of central's, or of the gateway where central did not answer."""

    model_config = ConfigDict(extra="allow")

    success: Literal[False]
    error: str


class ExternalSignInAnswer(RelayedAnswer):
    """Central's answer to a step of an external sign-in. The last step brings `session`, a session of the gateway."""

    session: str | None = None
    user: JsonValue = None
    role: JsonValue = None
    servers: JsonValue = None


class AuthorizationServer(BaseModel):
    """Authorization server metadata, as RFC 8414 has it."""

    model_config = ConfigDict(extra="allow")

    issuer: str


class ProtectedResource(BaseModel):
    """Protected resource metadata, as RFC 9728 has it."""

    model_config = ConfigDict(extra="allow")

    resource: str
