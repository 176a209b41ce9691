"""Evidence: files that people add to camera events, and links by which anybody may fetch a file for a limited time."""

from __future__ import annotations

import re
import secrets
from collections import deque
from pathlib import Path
from typing import Annotated, Literal
from urllib.parse import quote

from aiohttp import web
from pydantic import BaseModel, ConfigDict, Field

from drivers.settings import following
from gateway.domain.errors import NotFoundError
from gateway.domain.events import Event, EventKind, Scalar
from gateway.domain.evidence import Evidence, EvidenceLink, KeptAs, Labels, download_name, shown_in_place, shown_name
from gateway.domain.passages import CameraEvent
from gateway.runtime.clock import Stamp, iso_utc
from gateway.store import Entry, TooMany
from gateway.texts import Words, text
from gateway.web.answers import Answer
from gateway.web.auth.callers import Caller
from gateway.web.auth.viewers import maker_of
from gateway.web.context import InterfaceContext
from gateway.web.families import Family, operation
from gateway.web.http.addresses import address_of, public_origin
from gateway.web.http.bodies import Body, Id, Text, validated
from gateway.web.http.errors import RequestRefused
from gateway.web.http.files import as_guarded_file
from gateway.web.http.uploads import Form, UploadPlaces, receive_form
from gateway.web.operation import ADMINISTRATORS, MULTIPART, OPEN, VIEW_FOOTAGE, needs

_SHA256 = "^([0-9a-fA-F]{64})?$"

LONGEST_LINK_MINUTES = 30 * 24 * 60


class EvidenceForm(Body):
    """The fields of an upload beside its `file`. `id` is the camera event's, the site's or central's."""

    id: Annotated[int, Field(ge=0, le=2**63 - 1, strict=False)]
    name: Text = Field(default="", description="the file's own name when it is left out")
    description: Text = ""
    kept_as: Literal["transaction", "incident"] = Field(
        default="incident", description="for how long it is kept: as footage of this class"
    )
    sha256: Annotated[str, following(_SHA256, "must be 64 hexadecimal digits")] = Field(
        default="", json_schema_extra={"pattern": _SHA256}, description="what must come out"
    )


# For the description only: the file is streamed, so that no instance is made.
class EvidenceUpload(EvidenceForm):
    """The whole form."""

    file: Annotated[str, Field(json_schema_extra={"format": "binary"})]


class EvidenceRecord(BaseModel):
    """A file that was added to a camera event. `type` is what its bytes say."""

    model_config = ConfigDict(frozen=True)

    id: int
    central_id: int | None
    camera_event_id: int
    name: str
    description: str
    type: str
    kept_as: str
    size: int
    sha256: str
    date_at: str
    username: str
    at_central: bool
    missing: bool


class EvidenceAnswer(Answer):
    """The stored evidence."""

    evidence: EvidenceRecord


class EvidenceAccessBody(Body):
    """A request for a link valid for `minutes`; or, with `revoke`, to revoke one link or all of this evidence.

    An administrator revokes anybody's links, others their own. A link also ends with its maker's right to make it.
    """

    minutes: Annotated[int, Field(strict=True, ge=1, le=LONGEST_LINK_MINUTES)] = 60
    revoke: Annotated[bool, Field(strict=True)] = False
    link_id: Id | None = None


class EvidenceAccess(BaseModel):
    """A link, or the number of revoked links. The address is shown only once; anybody who has it can fetch the file."""

    model_config = ConfigDict(frozen=True)

    evidence_id: int
    link_id: int | None = None
    url: str = ""
    token: str = ""
    expires_at: str | None = None
    revoked: int = 0


class EvidenceAccessAnswer(Answer):
    """The link."""

    access: EvidenceAccess


def evidence_record(evidence: Evidence) -> EvidenceRecord:
    """Return evidence as the interface's model."""
    return EvidenceRecord(
        id=evidence.id,
        central_id=evidence.central_id,
        camera_event_id=evidence.camera_event_id,
        name=evidence.name,
        description=evidence.description,
        type=evidence.media_type,
        kept_as=evidence.kept_as.value,
        size=evidence.size,
        sha256=evidence.sha256,
        date_at=iso_utc(evidence.created_at),
        username=evidence.username,
        at_central=evidence.delivered,
        missing=evidence.missing,
    )


_TOKEN = re.compile(r"[A-Za-z0-9_-]{43}")
_FILE = "/v1/camera/event/evidence/file/"
_MINUTE = 60_000_000
_SAME_USE_SECONDS = 600.0
_WINDOW_SECONDS = 60.0
_MOST_USES = 60  # per link within the window, since each use is an event on disk
_MOST_USES_KNOWN = 1000
_PLAIN = re.compile(r"[^A-Za-z0-9._-]+")


class EvidenceFamily(Family):
    """The handlers of `/v1/camera/event/evidence`."""

    def __init__(self, context: InterfaceContext) -> None:
        super().__init__(context)
        self._places = UploadPlaces()
        self._uses: dict[tuple[int, str], float] = {}
        self._told: deque[tuple[int, float]] = deque(maxlen=_MOST_USES_KNOWN)

    @operation(
        "POST",
        "/v1/camera/event/evidence",
        needs("can_add_camera_events"),
        "evidence",
        purpose="Upload evidence",
        body=EvidenceUpload,
        body_type=MULTIPART,
    )
    async def _upload(self, request: web.Request, caller: Caller) -> EvidenceAnswer:
        await self.context.writes.admit()
        async with self._places.one(), self.context.recording.evidence_files.receive() as incoming:
            form = await receive_form(request, incoming, before_file=self._refuse_early)
            said = validated(form.fields, EvidenceForm)
            camera_event = await self._camera_event(said.id)
            await incoming.finish()
            if said.sha256 and said.sha256.lower() != incoming.sha256:
                raise RequestRefused(400, "sha256: the file that came has another one; nothing of it was kept")
            labels = Labels(
                name=shown_name(said.name or form.filename or ""),
                description=said.description,
                kept_as=KeptAs(said.kept_as),
                username=caller.username,
            )
            try:
                kept = await incoming.keep(camera_event, labels)
            except TooMany as error:
                raise RequestRefused(409, "this camera event has as much evidence as it may have") from error
        return EvidenceAnswer(evidence=evidence_record(kept))

    async def _refuse_early(self, form: Form) -> None:
        """Refuse an unknown camera event before the file is received, if `id` precedes the file in the form."""
        if "id" in form.fields:
            await self._camera_event(validated(form.fields, EvidenceForm).id)

    @operation(
        "POST",
        "/v1/camera/event/evidence/{id}/access",
        VIEW_FOOTAGE,
        "access",
        purpose="Create an evidence access link, or take links back",
    )
    async def _access(
        self, evidence_id: int, wanted: EvidenceAccessBody, request: web.Request, caller: Caller
    ) -> EvidenceAccessAnswer:
        evidence = await self._evidence(evidence_id)
        now = self.context.clock.wall()
        if wanted.revoke:
            return EvidenceAccessAnswer(access=await self._revoked(evidence, wanted.link_id, caller, now))
        token = secrets.token_urlsafe(32)
        until = now.micros + wanted.minutes * _MINUTE
        draft = EvidenceLink(0, evidence.id, caller.username, now.micros, until, maker=maker_of(caller))
        try:
            link = await self.context.store.evidence.add_link(draft, token)
        except TooMany as error:
            raise RequestRefused(409, "this evidence has as many links as it may have; revoke some") from error
        await self._tell(
            EventKind.EVIDENCE_LINKED,
            evidence,
            now,
            text("event.evidence_linked", who=caller.username, evidence=str(evidence.id), until=iso_utc(until)),
            {"link_id": link.id},
        )
        access = EvidenceAccess(
            evidence_id=evidence.id,
            link_id=link.id,
            url=f"{public_origin(request)}{_FILE}{token}",
            token=token,
            expires_at=iso_utc(until),
        )
        return EvidenceAccessAnswer(access=access)

    async def _revoked(self, evidence: Evidence, link_id: int | None, caller: Caller, now: Stamp) -> EvidenceAccess:
        only = None if caller.may(ADMINISTRATORS) else (caller.username, maker_of(caller))
        revoked = await self.context.store.evidence.revoke(evidence.id, link_id=link_id, made_by=only, now=now.micros)
        if link_id is not None and not revoked:
            yours = "" if only is None else " that you made"
            raise NotFoundError(f"evidence {evidence.id} has no valid link {link_id}{yours}")
        if revoked:
            said = text(
                "event.evidence_link_revoked", who=caller.username, count=str(revoked), evidence=str(evidence.id)
            )
            await self._tell(EventKind.EVIDENCE_LINK_REVOKED, evidence, now, said, {"revoked": revoked})
        return EvidenceAccess(evidence_id=evidence.id, link_id=link_id, revoked=revoked)

    # Open, because the token in the address is the permission.
    @operation(
        "GET",
        "/v1/camera/event/evidence/file/{token}",
        OPEN,
        "evidence",
        head=True,
        purpose="The file of an evidence access link",
        answer_type="application/octet-stream",
    )
    async def _file(self, token: str, request: web.Request) -> web.StreamResponse:
        now = self.context.clock.wall()
        link = await self.context.store.evidence.link(token) if _TOKEN.fullmatch(token) else None
        good = link is not None and link.is_good(now=now.micros)
        if link is None or not good or not await self.context.auth.viewers.makers.may(link, VIEW_FOOTAGE):
            raise NotFoundError("there is no such link, or it is good no more")
        evidence = await self._evidence(link.evidence_id)
        path = self.context.recording.evidence_files.path(evidence)
        await self._note_use(request, link, evidence, now)
        return _as_evidence(path, evidence)

    async def _note_use(self, request: web.Request, link: EvidenceLink, evidence: Evidence, now: Stamp) -> None:
        """Record the use of a link as an event. Range requests for later parts belong to the use before them.

        Raises StoreError, so that no file is sent whose use cannot be recorded, and RequestRefused (429) for a link
        that is used too often.
        """
        address = address_of(request)
        seen, tick = (link.id, address), self.context.clock.monotonic()
        further = not request.headers.get("Range", "bytes=0-").startswith("bytes=0-")
        if further and tick - self._uses.get(seen, float("-inf")) < _SAME_USE_SECONDS:
            self._uses[seen] = tick
            return
        if sum(number == link.id and tick - at < _WINDOW_SECONDS for number, at in self._told) >= _MOST_USES:
            raise RequestRefused(429, "this link is used too often; try again later", headers={"Retry-After": "60"})
        self._told.append((link.id, tick))
        await self._tell(
            EventKind.EVIDENCE_OPENED,
            evidence,
            now,
            text("event.evidence_opened", evidence=str(evidence.id), address=address, who=link.username),
            {"link_id": link.id, "address": address},
        )
        self._uses.pop(seen, None)
        self._uses[seen] = tick
        while len(self._uses) > _MOST_USES_KNOWN:
            self._uses.pop(next(iter(self._uses)))

    async def _tell(
        self, kind: EventKind, evidence: Evidence, now: Stamp, said: Words, data: dict[str, Scalar]
    ) -> None:
        facts: dict[str, Scalar] = {"evidence_id": evidence.id, "camera_event_id": evidence.camera_event_id, **data}
        event = Event(kind=kind, date_at=now.micros, clock_trusted=now.trusted, text=said, data=facts)
        await self.context.store.journal.record(Entry(events=(event,)))

    async def _camera_event(self, camera_event_id: int) -> CameraEvent:
        known = await self.context.store.camera_events.get(camera_event_id)
        if known is None:
            raise NotFoundError(f"there is no camera event {camera_event_id}")
        return known

    async def _evidence(self, evidence_id: int) -> Evidence:
        known = await self.context.store.evidence.get(evidence_id)
        if known is None:
            raise NotFoundError(f"there is no evidence {evidence_id}")
        return known


def _as_evidence(path: Path, evidence: Evidence) -> web.FileResponse:
    """Serve the file. A browser shows harmless media types and offers the rest for download."""
    name = download_name(evidence.name, evidence.media_type)
    plain = _PLAIN.sub("_", name)
    kind = "inline" if shown_in_place(evidence.media_type) else "attachment"
    disposition = f"{kind}; filename=\"{plain}\"; filename*=UTF-8''{quote(name, safe='')}"
    return as_guarded_file(path, evidence.media_type, disposition=disposition)
