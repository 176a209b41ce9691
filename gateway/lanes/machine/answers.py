"""Answers to readings: what the reader shows, the lane's note and the event. Part of the machine.

Only this module makes a reader show something. The driver turns it into lights and sounds; see `Feedback`.
"""

from __future__ import annotations

from enum import StrEnum

from drivers.contract import Feedback
from gateway.domain.access import Decision, Reason
from gateway.domain.credentials import Credential
from gateway.domain.events import EventKind
from gateway.domain.grants import listed_id
from gateway.lanes.machine import messages as m
from gateway.lanes.machine.state.readings import ToldReading
from gateway.lanes.machine.state.visits import Visit
from gateway.lanes.machine.transition import Transition, form_of, named
from gateway.texts import Text, Words, text


class Ignored(StrEnum):
    """The reason why a reading does not count."""

    OTHER_DECIDED = "other_decided"
    WAY_GIVEN = "way_given"
    COMES_OUT = "comes_out"
    NO_VEHICLE = "no_vehicle"
    LOOP_UNKNOWN = "loop_unknown"

    @property
    def words(self) -> Text:
        """The reason in words that follow what was read."""
        return text(f"ignored.{self}")


def decided(lane: Transition, visit: Visit) -> None:
    """Answer the reading of this visit by its decision: granted, denied, or a second credential is awaited."""
    decision = visit.decision
    if decision is None:
        return
    who, why = named(visit.credential), decision.words()
    raw = visit.credential.read_as() if visit.credential else ""
    unknown = decision.reason is Reason.UNKNOWN_CREDENTIAL
    awaits = decision.reason is Reason.SECOND_CREDENTIAL_AWAITED
    kind, feedback = EventKind.ACCESS_DENIED, Feedback.DENIED
    if not decision.granted and _is_denied_again(lane, visit, decision.reason):
        return
    if decision.granted:
        kind, feedback = EventKind.ACCESS_GRANTED, Feedback.GRANTED
    elif awaits:
        kind, feedback = EventKind.SECOND_AWAITED, Feedback.AWAITING
    _show(lane, visit.asked_by, feedback)
    lane.put(lane.state.readings.awaiting_second(lane.now.at + lane.rules.lane.second_seconds if awaits else None))
    if not decision.granted:
        lane.note(
            text("read.awaits", credential=who, why=why) if awaits else text("read.denied", credential=who, why=why)
        )
    lane.tell(
        kind,
        _told(who, decision, raw if unknown else ""),
        filmed_from=lane.now.stamp.micros if kind is EventKind.ACCESS_DENIED else None,
        credential=visit.shown,
        form=form_of(visit.credential),
        read_as=raw,
        card_id=listed_id(decision.card),
        user_id=decision.card.owner if decision.card else "",
        reader=visit.asked_by,
        grant=decision.grant,
        holder=decision.holder,
        opens=decision.opens,
        reason=decision.reason,
        trace=decision.traced(),
    )


def _told(who: Text, decision: Decision, raw: str) -> Text:
    if raw:
        return text("event.decided_as_read", credential=who, why=decision.words(), raw=raw)
    if decision.granted and decision.card and decision.card.holder:
        return text("event.decided_of", credential=who, holder=decision.card.holder, why=decision.words())
    return text("event.decided", credential=who, why=decision.words())


def denied(lane: Transition, visit: Visit, why: Words, *, reason: str) -> None:
    """Deny a visit without a decision; `reason` is the code of `why`."""
    who = named(visit.credential)
    if _is_denied_again(lane, visit, reason):
        return
    lane.note(text("read.denied", credential=who, why=why))
    _show(lane, visit.asked_by, Feedback.DENIED)
    lane.tell(
        EventKind.ACCESS_DENIED,
        text("event.decided", credential=who, why=why),
        filmed_from=lane.now.stamp.micros,
        credential=visit.shown,
        form=form_of(visit.credential),
        reader=visit.asked_by,
        reason=reason,
    )


def denied_locked(lane: Transition, visit: Visit) -> None:
    """Deny a visit while the lane is locked down."""
    denied(lane, visit, lane.state.locked_down, reason="locked_down")


def pin_awaited(lane: Transition, reader_id: int) -> None:
    """Ask for the PIN of the card that was read here."""
    lane.note(text("read.pin_awaited"))
    _show(lane, reader_id, Feedback.AWAITING)


def ignored(lane: Transition, reader_id: int, credential: Credential, why: Ignored) -> None:
    """Record that a card did not count. The reader shows nothing."""
    if not _was_told(lane, reader_id, credential, why):
        _record_ignored(lane, reader_id, credential, why)


def _record_ignored(lane: Transition, reader_id: int, credential: Credential, why: Ignored) -> None:
    said = _was_read(credential, why)
    lane.tell(EventKind.CARD_IGNORED, said, device_id=reader_id, credential=credential.shown())


def suppressed(lane: Transition, reader_id: int, credential: Credential, why: Ignored) -> None:
    """Refuse a card before which another vehicle must come out."""
    if _was_told(lane, reader_id, credential, why):
        return
    lane.note(text("read.does_not_count", credential=named(credential), why=why.words))
    _show(lane, reader_id, Feedback.DENIED)
    _record_ignored(lane, reader_id, credential, why)


def unusable(lane: Transition, reader_id: int, credential: Credential, why: Ignored) -> None:
    """Refuse a card because the lane does not know whether a vehicle is there."""
    if _was_told(lane, reader_id, credential, why):
        return
    said = _was_read(credential, why)
    lane.note(said)
    _show(lane, reader_id, Feedback.DENIED)
    lane.tell(EventKind.READING_UNUSABLE, said, device_id=reader_id, credential=credential.shown())


def _was_read(credential: Credential, why: Ignored) -> Text:
    return text("read.was_read", credential=named(credential), why=why.words)


def _was_told(lane: Transition, reader_id: int, credential: Credential, reason: str) -> bool:
    """Return whether the same was recorded of a card that has been at the reader since; otherwise remember it.

    A plate is never held to a camera.
    """
    if credential.plate:
        return False
    told = ToldReading(reader_id, credential, reason)
    if told in lane.state.readings.told:
        return True
    lane.put(lane.state.readings.with_told(told))
    return False


def _is_denied_again(lane: Transition, visit: Visit, reason: str) -> bool:
    """Return whether the card was denied to this vehicle for this reason before, and has been at the reader since."""
    if visit.credential is None:
        return False
    return _was_told(lane, visit.asked_by, visit.credential, f"{reason} {visit.arrived.micros}")


def _show(lane: Transition, reader_id: int, feedback: Feedback) -> None:
    """Show this at the reader; nowhere for 0, since nothing was read."""
    if reader_id:
        lane.commands.append(m.Show(reader_id, feedback))
