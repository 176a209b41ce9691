"""The page's snapshot: the snapshots of lanes, recording, central and store, serialised as they are.

The page reads these fields by name, so that a renamed field must be renamed in the page too.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any

from pydantic import PlainSerializer

from gateway.domain.access import Decision, Reason, words_of
from gateway.domain.events import EventKind, RecordedEvent, Severity
from gateway.domain.footage import Extent, Missing, extent_of
from gateway.domain.passages import CameraEvent
from gateway.domain.printed import enrolment
from gateway.domain.server_lines import BrokerStatus, CentralStatus, FleetStatus
from gateway.domain.wall_time import WallMicros
from gateway.lanes.snapshots import AreaSnapshot, DeviceSnapshot, LaneSnapshot
from gateway.problems.problem import Problem, SitePart
from gateway.recording import CameraSnapshot, Recording
from gateway.recording.forecast import StorageForecast
from gateway.runtime.clock import iso_utc
from gateway.store import Books
from gateway.store.footage.camera_events import CameraEvents
from gateway.texts import Words, from_json, keyed, listed, text
from gateway.web.answers import OutboxBooks
from gateway.web.auth.callers import Caller
from gateway.web.operation import (
    ADD_CARDS,
    ADMINISTRATORS,
    CONTROL_DEVICES,
    DELETE_CARDS,
    EDIT_CARDS,
    EDIT_ENTRIES,
    EDIT_SETTINGS,
    VIEW_CAMERAS,
    VIEW_CARDS,
    VIEW_DEVICES,
    VIEW_EVENTS,
    VIEW_FOOTAGE,
)
from gateway.web.problems import problem_fields


@dataclass(frozen=True, slots=True)
class DemoCard:
    """A card that the demo's page can present: the reading that the reader would send, and a label."""

    card: str
    label: str


@dataclass(frozen=True, slots=True)
class DemoState:
    """The cards that the demo's page offers."""

    cards: tuple[DemoCard, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class FootageState:
    """A camera event that belongs to an event.

    Attributes:
        missing: the missing parts, in words.
        said: the same by key and arguments, by the field's name; None if nothing is missing.
        moment: seconds from the begin of the kept footage to the event.
    """

    id: int
    camera_id: int
    ready: bool
    footage: Extent
    missing: str
    said: Mapping[str, Any] | None
    moment: float


@dataclass(frozen=True, kw_only=True, slots=True)
class ReadState:
    """The reading of a card or plate on which an access decision was made.

    Attributes:
        credential: the reading, as shown to people.
        form: "card" or "plate"; "" for an event of a release that did not record it.
        reason: the code of the decision's reason.
        why: the reason as a sentence; "" for a code without one.
        card_id: the card that matches the reading; None for none.
        enrol: if no card matches, the fields of a new card that would match; else empty.
    """

    credential: str
    form: str
    reason: str
    why: Words
    card_id: int | None
    enrol: Mapping[str, str]

    @property
    def is_unknown(self) -> bool:
        """True if no card matches the reading."""
        return self.reason == Reason.UNKNOWN_CREDENTIAL


@dataclass(frozen=True, slots=True)
class RuleState:
    """One rule of an access decision, in words, and whether it failed."""

    text: str
    failed: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class EventState:
    """An event.

    Attributes:
        said: key and arguments of its name and description, by the field's name; without those that are not known.
        passed_back: the card that anti-passback refused, whose state can be forgotten; else None.
    """

    id: int
    type: int
    category: int
    severity: str
    name: str
    description: str
    said: Mapping[str, Any]
    date_at: WallMicros
    clock_trusted: bool
    lane_id: str
    trace: tuple[RuleState, ...]
    passed_back: int | None
    read: ReadState | None
    footage: tuple[FootageState, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class GatewayState:
    """The gateway itself. `headline` is the verdict in a few words; `store_failing` why commits fail now, else ""."""

    site: str
    timezone: str
    version: str
    started_at: WallMicros
    ready: bool
    headline: Words
    store_failing: str
    clock_trusted: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class UserState:
    """The page's user, and the controls that the page offers to them."""

    username: str
    role: str
    central: bool
    view_devices: bool
    control_devices: bool
    correct_counts: bool
    view_cameras: bool
    view_events: bool
    view_footage: bool
    edit_settings: bool
    administrator: bool
    view_cards: bool
    add_cards: bool
    edit_cards: bool
    delete_cards: bool


_REASONS = frozenset(Reason)


def outbox_books(books: Books) -> OutboxBooks:
    """Return the outbox's counts, and whether they balance."""
    return OutboxBooks(
        accepted=books.accepted,
        delivered=books.delivered,
        dropped=books.dropped,
        waiting=books.waiting,
        parked=books.parked,
        replaced=books.replaced,
        oldest_at=None if books.oldest_at is None else iso_utc(books.oldest_at),
        balance=books.balance(),
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class Snapshot:
    """Everything that the page shows, except the present time `now`, which the stream adds for computing ages."""

    user: UserState | None = None
    gateway: GatewayState
    problems: tuple[Annotated[Problem, PlainSerializer(problem_fields)], ...]
    lanes: tuple[LaneSnapshot, ...]
    areas: tuple[AreaSnapshot, ...]
    devices: tuple[DeviceSnapshot, ...]
    cameras: tuple[CameraSnapshot, ...]
    storage: StorageForecast | None
    events: tuple[EventState, ...]
    central: CentralStatus | None
    fleet: FleetStatus | None
    broker: BrokerStatus | None
    books: Annotated[Books, PlainSerializer(outbox_books)] | None
    demo: DemoState | None

    def visible_to(self, user: UserState) -> Snapshot:
        """Return a copy with only the parts that the user may see."""
        return replace(
            self,
            user=user,
            problems=tuple(problem for problem in self.problems if _may_see(user, problem.part)),
            lanes=self.lanes if user.view_devices else (),
            areas=self.areas if user.view_devices else (),
            devices=self.devices if user.view_devices else (),
            cameras=self.cameras if user.view_cameras else (),
            storage=self.storage if user.view_cameras else None,
            events=visible_events(self.events, user),
            demo=self.demo if user.control_devices else None,
        )


def user_state(caller: Caller) -> UserState:
    """Return the page's user with the controls that the operations' rules allow."""
    return UserState(
        username=caller.username,
        role=caller.role,
        central=caller.central,
        view_devices=caller.may(VIEW_DEVICES),
        control_devices=caller.may(CONTROL_DEVICES),
        correct_counts=caller.may(EDIT_ENTRIES),
        view_cameras=caller.may(VIEW_CAMERAS),
        view_events=caller.may(VIEW_EVENTS),
        view_footage=caller.may(VIEW_FOOTAGE),
        edit_settings=caller.may(EDIT_SETTINGS),
        administrator=caller.may(ADMINISTRATORS),
        view_cards=caller.may(VIEW_CARDS),
        add_cards=caller.may(ADD_CARDS),
        edit_cards=caller.may(EDIT_CARDS),
        delete_cards=caller.may(DELETE_CARDS),
    )


def footage_state(item: CameraEvent, missing: Sequence[Missing] | None) -> FootageState:
    """Return the page's form of a camera event; `missing` is None while footage may still come."""
    extent: Extent = "coming" if missing is None else extent_of(missing, item.pinned_from, item.pinned_until)
    said = listed(
        [text("footage.missing", seconds=f"{(gap.end - gap.begin) / 1e6:.1f}", why=gap.why) for gap in missing or ()]
    )
    if extent == "none" and missing:
        said = text("footage.none", why=missing[0].why)
    moment = max(0.0, (item.date_at - item.pinned_from) / 1e6)
    return FootageState(
        id=item.id,
        camera_id=item.camera_id,
        ready=item.ready,
        footage=extent,
        missing=str(said),
        said={"missing": keyed(said)} if said else None,
        moment=round(moment, 1),
    )


def event_state(event: RecordedEvent, footage: tuple[FootageState, ...]) -> EventState:
    """Return the page's form of an event, with its footage."""
    return EventState(
        id=event.id,
        type=event.type,
        category=event.category,
        severity=Severity(event.subcategory).name.lower(),
        name=event.name,
        description=event.description,
        said=_said(event),
        date_at=event.date_at,
        clock_trusted=event.clock_trusted,
        lane_id=event.lane_id,
        trace=tuple(RuleState(line, Decision.rule_failed(line)) for line in event.trace),
        passed_back=_passed_back(event),
        read=read_of(event),
        footage=footage,
    )


def _said(event: RecordedEvent) -> Mapping[str, Any]:
    """Return the key and arguments of an event's name and, if they were stored, of its description."""
    said = {"description": from_json(event.said, event.description)} if event.said else {}
    known = event.type in EventKind.__members__.values()
    return {**said, "name": keyed(EventKind(event.type).words)} if known else said


def read_of(event: RecordedEvent) -> ReadState | None:
    """Return the reading on which an access decision was made; None for other events."""
    if event.type not in {EventKind.ACCESS_GRANTED, EventKind.ACCESS_DENIED} or '"credential"' not in event.data:
        return None
    data = json.loads(event.data)
    shown, reason, card_id = (data.get(name) for name in ("credential", "reason", "card_id"))
    form = str(data.get("form") or "")
    plate = shown if form == "plate" else ""
    return ReadState(
        credential=str(shown),
        form=form,
        reason=str(reason or ""),
        why=words_of(Reason(reason)) if reason in _REASONS else "",
        card_id=card_id if isinstance(card_id, int) else None,
        enrol=enrolment(str(shown), read_as=data.get("read_as") or "", plate=str(plate))
        if reason == Reason.UNKNOWN_CREDENTIAL
        else {},
    )


def _passed_back(event: RecordedEvent) -> int | None:
    if event.type != EventKind.ACCESS_DENIED or '"anti_passback"' not in event.data:
        return None
    data = json.loads(event.data)
    card_id = data.get("card_id")
    return card_id if data.get("reason") == "anti_passback" and isinstance(card_id, int) else None


def _may_see(user: UserState, part: SitePart) -> bool:
    if part in {SitePart.LANE, SitePart.LINE, SitePart.DEVICE}:
        return user.view_devices
    return user.view_cameras if part is SitePart.CAMERA else True


def visible_events(events: tuple[EventState, ...], user: UserState) -> tuple[EventState, ...]:
    """Return the events that the user may see, without their footage if the user may not see that."""
    if not user.view_events:
        return ()
    return events if user.view_footage else tuple(replace(event, footage=()) for event in events)


@dataclass(frozen=True, kw_only=True)
class EventStates:
    """The conversion of stored events to the page's events, with the camera events that belong to them."""

    camera_events: CameraEvents
    recording: Recording

    async def of(self, events: Sequence[RecordedEvent]) -> tuple[EventState, ...]:
        """Return the page's form of these events, in the same order. Raises StoreError."""
        footage: defaultdict[int, list[FootageState]] = defaultdict(list)
        camera_events = await self.camera_events.of_events(tuple(event.id for event in events))
        missing = await self.recording.missing(item for item in camera_events if item.ready)
        for item in camera_events:
            footage[item.event_id].append(footage_state(item, missing.get(item.id)))
        return tuple(event_state(event, tuple(footage[event.id])) for event in events)
