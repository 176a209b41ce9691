"""Short declarations of operations that central answers, and their models."""

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
    """Declare an operation of central with JSON bodies; with `page`, the answer is an HTML page."""
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
    """Declare an operation of central that answers with a file of one of these media types."""
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
    """Declare an operation of central that takes a multipart form with a file."""
    return replace(relayed(method, path, rule, resource, purpose), body_type=MULTIPART)


def signing_in(method: Method, path: str, purpose: str, *, form: bool = False) -> Operation:
    """Declare an operation of central that may begin a session; `form`: a browser sends an HTML form."""
    step = relayed(method, path, NO_SESSION, "session", purpose, answer=ExternalSignInAnswer)
    return replace(step, signs_in=True, body_type=FORM if form else JSON, refuses=(*step.refuses, 403))


def posts(
    prefix: str,
    rule: Rule,
    resource: str,
    purposes: Iterable[tuple[str, str]],
    *,
    page: bool = False,
    reads: Collection[str] | Literal["all"] = (),
) -> tuple[Operation, ...]:
    """Declare POST operations that share a rule.

    Args:
        prefix: the beginning of their paths.
        rule: their rule.
        resource: the field that is null in their error envelope.
        purposes: for each operation, the rest of its path and its summary.
        page: whether they answer with an HTML page.
        reads: the suffixes of those that change nothing, or "all".
    """
    return tuple(
        relayed("POST", prefix + suffix, rule, resource, purpose, page=page, reads=reads == "all" or suffix in reads)
        for suffix, purpose in purposes
    )


def kept(
    path: str, resource: str, permission: str, noun: str, methods: Iterable[Method] = ("PUT", "PATCH", "DELETE")
) -> tuple[Operation, ...]:
    """Declare creation, change and deletion of records: PUT needs `can_add_<permission>`, PATCH edit, DELETE delete."""
    verbs = {"PUT": ("add", "Create"), "PATCH": ("edit", "Update"), "DELETE": ("delete", "Delete")}
    chosen = ((method, *verbs[method]) for method in methods)
    return tuple(
        relayed(method, path, needs(f"can_{verb}_{permission}"), resource, f"{word} {noun}")
        for method, verb, word in chosen
    )
