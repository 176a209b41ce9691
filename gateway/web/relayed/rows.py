"""The rows of `operations.toml` made into operations, and the models of what central takes and answers."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue

from gateway.web.operation import FORM, JSON, MULTIPART, NO_SESSION, UNCONFIRMED, Operation, Rule

_TABLE = Path(__file__).with_name("operations.toml")


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


_Answer = Literal["plain", "sign-in", "authorization server", "protected resource", "page"]
_RULES: Mapping[str, Rule] = {"no session": NO_SESSION, "unconfirmed": UNCONFIRMED}
_BODY_TYPES = {"json": JSON, "form": FORM, "upload": MULTIPART}
_ANSWERS: Mapping[_Answer, type[BaseModel] | None] = {
    "plain": RelayedAnswer,
    "sign-in": ExternalSignInAnswer,
    "authorization server": AuthorizationServer,
    "protected resource": ProtectedResource,
    "page": None,
}


class _Row(BaseModel):
    """A row of `operations.toml`, whose head says what each field means."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    method: Literal["GET", "POST", "PUT", "PATCH", "DELETE"]
    path: Annotated[str, Field(pattern="^/")]
    needs: Annotated[str, Field(pattern=r"^(no session|unconfirmed|can_\w+(( or | and )can_\w+)*)$")]
    may_need: tuple[Annotated[str, Field(pattern=r"^can_\w+$")], ...] = ()
    resource: str
    purpose: Annotated[str, Field(min_length=1)]
    reads: bool = False
    body: Literal["json", "form", "upload"] = "json"
    answer: _Answer | Annotated[tuple[str, ...], Field(min_length=1)] = "plain"

    @property
    def rule(self) -> Rule:
        """The permission rule."""
        groups = tuple(tuple(group.split(" or ")) for group in self.needs.split(" and "))
        return replace(_RULES.get(self.needs, Rule(groups=groups)), depending=self.may_need)

    @property
    def operation(self) -> Operation:
        """The declaration of the operation."""
        page, signs_in = self.answer == "page", self.answer == "sign-in"
        if isinstance(self.answer, tuple):
            model, types = None, self.answer
        else:
            model, types = _ANSWERS[self.answer], ("text/html" if page else JSON,)
        return Operation(
            self.method,
            self.path,
            self.rule,
            self.resource,
            purpose=self.purpose,
            body_type=_BODY_TYPES[self.body],
            answer=model,
            answer_type=types[0],
            other_types=types[1:],
            refuses=(403,) if signs_in else (),
            reads=self.reads,
            answered_by="central",
            page=page,
            signs_in=signs_in,
        )


def operations() -> tuple[Operation, ...]:
    """Read the operations of `operations.toml`, in its order."""
    families = tomllib.loads(_TABLE.read_text("utf-8"))
    return tuple(
        _Row.model_validate(dict(zip(("method", "path"), name.split(" "), strict=True)) | fields).operation
        for rows in families.values()
        for name, fields in rows.items()
    )
