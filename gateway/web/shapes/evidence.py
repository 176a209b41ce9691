"""Evidence: files that people add to camera events, and the links under which they are handed out."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from gateway.domain.evidence import Exhibit
from gateway.runtime.clock import iso_utc
from gateway.web.http.bodies import Body, Id, Text, following
from gateway.web.shapes.answers import Answer

_SHA256 = "^([0-9a-fA-F]{64})?$"

LONGEST_LINK_MINUTES = 30 * 24 * 60


class EvidenceForm(Body):
    """The fields of an upload beside its `file`. `id` is of the camera event, the site's or central's."""

    id: Annotated[int, Field(ge=0, le=2**63 - 1, strict=False)]
    name: Text = Field(default="", description="the file's own name when it is left out")
    description: Text = ""
    kept_as: Literal["transaction", "incident"] = Field(
        default="incident", description="for how long it is kept: as footage of this class"
    )
    sha256: Annotated[str, following(_SHA256, "must be 64 hexadecimal digits")] = Field(
        default="", json_schema_extra={"pattern": _SHA256}, description="what must come out"
    )


class EvidenceUpload(EvidenceForm):
    """The whole form as it is described; the file is streamed, so that this is never built."""

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
    """What was kept."""

    evidence: EvidenceRecord


class EvidenceAccessBody(Body):
    """For how long a link is good; or, with `revoke`, that links are taken back: one, or all of this evidence."""

    minutes: Annotated[int, Field(strict=True, ge=1, le=LONGEST_LINK_MINUTES)] = 60
    revoke: Annotated[bool, Field(strict=True)] = False
    link_id: Id | None = None


class EvidenceAccess(BaseModel):
    """A link, or how many were taken back. Whoever has the address has the file: it is shown this once."""

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


def evidence_record(exhibit: Exhibit) -> EvidenceRecord:
    """An exhibit as the interface shows it."""
    return EvidenceRecord(
        id=exhibit.id,
        central_id=exhibit.central_id,
        camera_event_id=exhibit.camera_event_id,
        name=exhibit.name,
        description=exhibit.description,
        type=exhibit.media_type,
        kept_as=exhibit.kept_as.value,
        size=exhibit.size,
        sha256=exhibit.sha256,
        date_at=iso_utc(exhibit.created_at),
        username=exhibit.username,
        at_central=exhibit.delivered,
        missing=exhibit.missing,
    )
