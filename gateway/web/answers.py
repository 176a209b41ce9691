"""Answers of operations: their base models, and those that commands read too.

A command starts faster for all that is not imported here.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue

from gateway.domain.credentials import CardStatus
from gateway.domain.events import Category, EventKind, Severity
from gateway.domain.server_lines import CentralStatus

Status = Literal["online", "offline", "unknown"]


class AnswerPart(BaseModel):
    """Base of what answers hold. It can be made from an object that has its fields as attributes."""

    model_config = ConfigDict(frozen=True, from_attributes=True)


class Answer(BaseModel):
    """Base of the bodies of successful answers. Each adds its fields to `success`."""

    model_config = ConfigDict(frozen=True)

    success: Literal[True] = True


class Listed(Answer):
    """A list: how many records there are in all, whatever the page holds."""

    count: int


class CursorListed(Listed):
    """A list with cursors. An empty one has no `next_cursor`."""

    next_cursor: int | None = None


class SignedInUser(BaseModel):
    """The account. With `mfa_enabled`, the session has no permissions until its second factor is proven."""

    model_config = ConfigDict(frozen=True, extra="allow")

    mfa_enabled: bool


class LoginAnswer(Answer):
    """The session's token for the client to keep. For an account of central, the other fields are central's own."""

    session: Annotated[str, Field(repr=False)]
    user: SignedInUser
    role: JsonValue
    servers: JsonValue


class CardRecord(BaseModel):
    """An access card: central's record without its PIN, and what the site makes of it.

    Attributes:
        decided_as: the state by which the site decides.
        has_pin: whether the card has a PIN that lanes may ask for.
        sync: whether central has what the site has; `refused` comes with central's words in `sync_error`;
            `taken_back` is said of what was deleted before central ever had it.
        etag: stands for the fields that can be written. A change that sends it as `If-Match` is refused (412) if
            somebody has changed the card meanwhile.
    """

    model_config = ConfigDict(frozen=True, extra="allow")

    id: int | None
    decided_as: CardStatus | None = None
    has_pin: bool = False
    sync: Literal["in_step", "waiting", "refused", "in_doubt", "taken_back"] = "in_step"
    etag: str = ""


class CardAnswer(Answer):
    """One access card. `warnings` tell why it will not open a gate as it is, or not yet."""

    access_card: CardRecord
    warnings: tuple[str, ...] = ()


class CardsAnswer(Listed):
    """Access cards, newest first."""

    access_cards: tuple[CardRecord, ...]


class EventRecord(BaseModel):
    """An event. `data` is JSON text, as the specification has it; the fields after it are the gateway's own.

    A `late` event was recorded more than a minute after its `date_at`, at `recorded_at`: after an outage of the disk,
    once the clock was set, or because it was reported later. It must not be taken for the present state.
    """

    model_config = ConfigDict(frozen=True)

    id: int
    device_id: int
    type: EventKind
    category: Category
    subcategory: Severity
    name: str
    description: str
    date_at: str
    data: str
    lane_id: str
    clock_trusted: bool
    late: bool
    recorded_at: str | None = None


class EventAnswer(Answer):
    """One event."""

    event: EventRecord


class EventsAnswer(CursorListed):
    """Events, newest first.

    A search among very many events stops after a while. Then `complete` is false, `count` counts only matches among the
    events searched so far, and `next_cursor` continues the search, also when nothing was found yet.
    """

    events: tuple[EventRecord, ...]
    complete: Literal[False] | None = None


class ActionAnswer(Answer):
    """Action for a problem on the page: to show a view (`show`), or to call an operation without a body (`post`)."""

    label: str
    show: str
    post: str


class ProblemAnswer(Answer):
    """A problem of the site: what is wrong, since when, what it means for drivers, and what to do.

    `id` is that of its lane, line, device or camera, `subject` the input concerned. `lanes` cannot work because of it.
    `acknowledged_by` has known of it since `acknowledged_at`; nobody is called for it until `silent_until`. `action` is
    what the page offers, or null.
    """

    kind: str
    part: str
    id: str
    name: str
    subject: str
    title: str
    text: str
    lanes: tuple[str, ...]
    since: str
    severity: str
    means: str
    steps: tuple[str, ...]
    action: ActionAnswer | None
    acknowledged_by: str
    acknowledged_at: str | None
    silent_until: str | None


class WebhookCreated(AnswerPart):
    """A new webhook. Its secret is shown only here."""

    id: str
    url: str
    events: tuple[str, ...]
    secret: str


class WebhookRecord(WebhookCreated):
    """A webhook with its secret masked. `waiting`, `delivered`, `failed` and `dropped` count its messages."""

    status: Literal["enabled", "disabled"]
    reason: str
    last_error: str
    created_at: str
    created_by: str
    waiting: int
    delivered: int
    failed: int
    dropped: int


class WebhookList(Answer):
    """Every webhook, oldest first."""

    webhooks: tuple[WebhookRecord, ...]
    count: int


class WebhookEnabled(Answer):
    """A webhook whose messages are sent again."""

    webhook: WebhookRecord


class WebhookNamed(AnswerPart):
    """The id of the webhook that was acted on."""

    id: str


class WebhookReplayed(Answer):
    """The number of messages that are sent again."""

    webhook: WebhookNamed
    count: int


class WebhookTested(Answer):
    """The outcome of a test message; `fault` says why the receiver did not take it."""

    webhook: WebhookNamed
    taken: bool
    fault: str


class WaitingRow(AnswerPart):
    """A record that waits for central.

    Attributes:
        refused: whether central refused it, or nobody knows whether central has it.
        unknown: whether nobody knows whether central has it.
        lost: whether its file was lost at the site before it was sent.
        fields: the fields to send, without the id, and with a PIN masked.
    """

    id: int
    kind: str
    action: str
    record_id: int
    since: str
    tries: int
    refused: bool
    unknown: bool
    lost: bool
    error: str
    fields: dict[str, JsonValue]


class WaitingRows(Answer):
    """A page of waiting records, oldest first. `next` is the number after which to continue, null at the end."""

    waiting: tuple[WaitingRow, ...]
    next: int | None


class WaitingRowAnswer(Answer):
    """A record after an action on it."""

    waiting: WaitingRow


class OutboxBooks(AnswerPart):
    """Counts of records for central by outcome, since when the oldest waits, and whether the counts add up."""

    accepted: int
    delivered: int
    dropped: int
    waiting: int
    parked: int
    replaced: int
    oldest_at: str | None
    balance: bool


class WaitingReason(AnswerPart):
    """A reason why records wait: the error of their last attempt, and the number of records with it."""

    kind: str
    action: str
    error: str
    count: int
    since: str


class BooksAnswer(Answer):
    """The counts of the outbox, and why records wait."""

    books: OutboxBooks
    reasons: tuple[WaitingReason, ...]


class SyncAnswer(Answer):
    """The state of the line to central."""

    sync: CentralStatus


class IncidentFile(AnswerPart):
    """The file of a saved incident; `size` in bytes."""

    name: str
    size: int


class IncidentsAnswer(Answer):
    """The saved incidents, newest first."""

    incidents: tuple[IncidentFile, ...]


class IncidentAnswer(Answer):
    """The incident that was saved."""

    incident: IncidentFile


class LeavesAnswer(Answer):
    """The leaves of a camera's chain between two segments."""

    leaves: tuple[str, ...]
