"""Declarations of the operations that central answers: a line each."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue

from gateway.web.operation import FORM, JSON, MULTIPART, NO_SESSION, Operation, Rule, needs


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


Method = Literal["GET", "POST", "PUT", "PATCH", "DELETE"]


def relayed(
    method: Method,
    path: str,
    rule: Rule,
    resource: str,
    purpose: str,
    *,
    page: bool = False,
    reads: bool = False,
    answer: type[BaseModel] = RelayedAnswer,
) -> Operation:
    """Return one operation of central's that takes and answers JSON; a page is HTML."""
    return Operation(
        method,
        path,
        rule,
        resource,
        purpose=purpose,
        reads=reads,
        answer=None if page else answer,
        answer_type="text/html" if page else JSON,
        answered_by="central",
        page=page,
    )


def file_of(
    method: Method,
    path: str,
    rule: Rule,
    resource: str,
    purpose: str,
    *media_types: str,
    reads: bool = True,
) -> Operation:
    """Return one operation of central's that answers with a file of one of these types."""
    first, *others = media_types
    return Operation(
        method,
        path,
        rule,
        resource,
        purpose=purpose,
        reads=reads and method == "POST",
        answer_type=first,
        other_types=tuple(others),
        answered_by="central",
    )


def upload(method: Method, path: str, rule: Rule, resource: str, purpose: str) -> Operation:
    """Return one operation of central's that takes a form with a file."""
    return replace(relayed(method, path, rule, resource, purpose), body_type=MULTIPART)


def signing_in(method: Method, path: str, purpose: str, *, form: bool = False) -> Operation:
    """Return one operation of central's that may begin a session; `form`: a browser sends it as a form."""
    step = relayed(method, path, NO_SESSION, "session", purpose, answer=ExternalSignInAnswer)
    return replace(step, signs_in=True, body_type=FORM if form else JSON)


def posts(
    prefix: str,
    rule: Rule,
    resource: str,
    purposes: Iterable[tuple[str, str]],
    *,
    page: bool = False,
    reads: Collection[str] | Literal["all"] = (),
) -> tuple[Operation, ...]:
    """POST operations that share their rule: what comes after the prefix, and what it is for; which of them read."""
    return tuple(
        relayed("POST", prefix + suffix, rule, resource, purpose, page=page, reads=reads == "all" or suffix in reads)
        for suffix, purpose in purposes
    )


def kept(
    path: str, resource: str, permission: str, noun: str, methods: Iterable[Method] = ("PUT", "PATCH", "DELETE")
) -> tuple[Operation, ...]:
    """Declare creation, change and deletion of records, each with its permission, as `can_add_<permission>`."""
    verbs = {"PUT": ("add", "Create"), "PATCH": ("edit", "Update"), "DELETE": ("delete", "Delete")}
    chosen = ((method, *verbs[method]) for method in methods)
    return tuple(
        relayed(method, path, needs(f"can_{verb}_{permission}"), resource, f"{word} {noun}")
        for method, verb, word in chosen
    )
