"""The operations of the simulated central for people: companies, figures, documents, discovery.

Every operation that only central answers is here, with its permission. Those that this installation lacks say so.
"""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass

from aiohttp import BodyPartReader, web
from aiohttp.http_exceptions import HttpProcessingError
from pydantic import Field

from gateway.runtime.clock import Stamp, iso_utc
from gateway.web.operation import Operation
from gateway.web.relayed import OPERATIONS as RELAYED
from simulation.far_ends.central.answers import (
    AUTHENTICATION_REQUIRED,
    JsonObject,
    Refusal,
    failure,
    parse_body,
    success,
)
from simulation.far_ends.central.bodies import Empty, Pages, RecordId, RequestBody
from simulation.far_ends.central.records import Table
from simulation.far_ends.central.tables import Tables

UPLOAD = "/v1/document/upload"
_LARGEST_DOCUMENT = 64 * 1024 * 1024
_PIECE = 64 * 1024


class _Company(RequestBody):
    name: str = Field(min_length=1, max_length=200)
    city: str = ""


class _ChangedCompany(RequestBody):
    id: int
    name: str | None = Field(default=None, min_length=1, max_length=200)
    city: str | None = None


@dataclass(frozen=True, slots=True)
class _Document:
    name: str
    media_type: str
    content: bytes


Answer = Callable[[web.Request, Stamp], Awaitable[web.StreamResponse]]


class Office:
    """The operations, by method and path."""

    def __init__(self, *, tables: Tables) -> None:
        self._tables = tables
        self._companies = Table(noun="company", first_id=300)
        self._documents: dict[int, _Document] = {}
        self._answers: Mapping[tuple[str, str], Answer] = {
            ("GET", "/.well-known/oauth-authorization-server"): self._authorization_server,
            ("GET", "/.well-known/oauth-protected-resource"): self._protected_resource,
            ("POST", "/v1/companies"): self._company,
            ("POST", "/v1/companies/list"): self._list_companies,
            ("PUT", "/v1/companies"): self._add_company,
            ("PATCH", "/v1/companies"): self._change_company,
            ("DELETE", "/v1/companies"): self._remove_company,
            ("POST", "/v1/analytics/entries"): self._entries,
            ("PUT", UPLOAD): self._upload,
            ("GET", "/v1/document/{id}/download"): self._download,
        }

    def operations(self) -> tuple[Operation, ...]:
        """Return all these operations."""
        return RELAYED

    async def answer(self, operation: Operation, request: web.Request, at: Stamp) -> web.StreamResponse:
        """Answer a caller who has the permission."""
        handle = self._answers.get((operation.method, operation.path))
        if handle is None:
            return _json(failure(operation.resource or "data", "this installation does not have this"), status=404)
        try:
            return await handle(request, at)
        except Refusal as refusal:
            return _json(failure(operation.resource or "data", refusal.message), status=refusal.status)

    async def _authorization_server(self, request: web.Request, _: Stamp) -> web.StreamResponse:
        issuer = str(request.url.origin())
        return _json(
            {
                "issuer": issuer,
                "authorization_endpoint": f"{issuer}/oauth/authorize",
                "token_endpoint": f"{issuer}/oauth/token",
                "response_types_supported": ["code"],
                "code_challenge_methods_supported": ["S256"],
            }
        )

    async def _protected_resource(self, request: web.Request, _: Stamp) -> web.StreamResponse:
        issuer = str(request.url.origin())
        return _json({"resource": f"{issuer}/mcp", "authorization_servers": [issuer]})

    async def _company(self, request: web.Request, _: Stamp) -> web.StreamResponse:
        asked = parse_body(await request.read(), RecordId)
        return _json(success("company", self._companies.find(asked.id)))

    async def _list_companies(self, request: web.Request, _: Stamp) -> web.StreamResponse:
        asked = parse_body(await request.read(), Pages)
        found = self._companies.page(None, page=asked.page, limit=min(asked.page_limit, self._tables.page_cap))
        return _json({"success": True, "companies": [*found.records], "count": found.count, "error": None})

    async def _add_company(self, request: web.Request, at: Stamp) -> web.StreamResponse:
        new = parse_body(await request.read(), _Company)
        return _json(success("company", self._companies.add({**new.model_dump(), "created_at": iso_utc(at.micros)})))

    async def _change_company(self, request: web.Request, _: Stamp) -> web.StreamResponse:
        changed = parse_body(await request.read(), _ChangedCompany)
        fields = changed.model_dump(exclude_none=True, exclude={"id"})
        return _json(success("company", self._companies.change(changed.id, fields)))

    async def _remove_company(self, request: web.Request, _: Stamp) -> web.StreamResponse:
        return _json(success("company", self._companies.remove(parse_body(await request.read(), RecordId).id)))

    async def _entries(self, request: web.Request, _: Stamp) -> web.StreamResponse:
        parse_body(await request.read(), Empty)
        return _json({"success": True, "analytics": {"entries": len(self._tables.entries)}, "error": None})

    async def _upload(self, request: web.Request, at: Stamp) -> web.StreamResponse:
        """Read a multipart form with one part `file`."""
        if request.content_type != "multipart/form-data":
            raise Refusal(400, "file: the body must be multipart/form-data")
        try:
            received = await _document(request)
        except (ValueError, KeyError, AssertionError, RuntimeError, HttpProcessingError) as error:
            # what aiohttp raises for a form that is none
            raise Refusal(400, "file: the body is no whole multipart form") from error
        number = len(self._documents) + 1
        self._documents[number] = received
        document: JsonObject = {
            "id": number,
            "name": received.name,
            "size": len(received.content),
            "sha256": hashlib.sha256(received.content).hexdigest(),
            "created_at": iso_utc(at.micros),
        }
        return _json(success("document", document))

    async def _download(self, request: web.Request, _: Stamp) -> web.StreamResponse:
        number = request.match_info["id"]
        document = self._documents.get(int(number)) if number.isdecimal() else None
        if document is None:
            raise Refusal(404, f"document {number} not found")
        response = web.StreamResponse(headers={"Content-Type": document.media_type})
        response.headers["Content-Disposition"] = f'attachment; filename="{document.name}"'
        response.content_length = len(document.content)
        await response.prepare(request)
        for start in range(0, len(document.content), _PIECE):
            await response.write(document.content[start : start + _PIECE])
        return response


async def _document(request: web.Request) -> _Document:
    """Read the single part of a form."""
    part = await (await request.multipart()).next()
    if not isinstance(part, BodyPartReader) or part.name != "file" or not part.filename:
        raise Refusal(400, "file: is missing")
    content = bytearray()
    while piece := await part.read_chunk(_PIECE):
        content += piece
        if len(content) > _LARGEST_DOCUMENT:
            raise Refusal(413, "file: is larger than 64 MiB")
    return _Document(part.filename, part.headers.get("Content-Type", "application/octet-stream"), bytes(content))


def refusal_of(operation: Operation, permissions: frozenset[str] | None) -> web.Response | None:
    """Return the refusal of a caller with these permissions (None: no session); None when the call is allowed."""
    resource = operation.resource or "data"
    if operation.rule.session and permissions is None:
        return _json(failure(resource, AUTHENTICATION_REQUIRED), status=500)
    if group := operation.rule.missing(permissions or frozenset()):
        return _json(failure(resource, f"permission denied: {' or '.join(group)}"), status=500)
    return None


def _json(answer: JsonObject, *, status: int = 200) -> web.Response:
    return web.json_response(answer, status=status)
