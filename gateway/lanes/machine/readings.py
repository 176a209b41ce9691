"""Readings of cards, PINs and plates, and the vehicle for which they count. Part of the machine.

Only a vehicle on an arming loop may ask, and only from its own side of a two-way lane.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from drivers.contract import GatePosition, PointState
from gateway.domain.credentials import Credential
from gateway.domain.events import EventKind
from gateway.lanes.machine import answers, visits
from gateway.lanes.machine import messages as m
from gateway.lanes.machine.answers import Ignored
from gateway.lanes.machine.rules import Side
from gateway.lanes.machine.state.inputs import NEVER
from gateway.lanes.machine.state.readings import AwaitedPin, EarlyCard
from gateway.lanes.machine.state.visits import Visit
from gateway.lanes.machine.transition import AT_EACH_STEP, Due, LaneView, Transition
from gateway.lanes.snapshots import Phase
from gateway.texts import text

_LONGEST_PIN = 16
_END, _CLEAR = "#", "*"


def card_read(lane: Transition, event: m.CardRead) -> None:
    """Take a card: decide on it, hold it until its vehicle is seen, or record why it does not count."""
    phase, reader_id, credential = lane.state.visits.phase, event.reader_id, event.credential
    lane.put(lane.state.readings.something_read())
    if not event.held:
        lane.put(lane.state.readings.presented_anew(reader_id, credential))
    elif _awaits_more(lane, reader_id, credential):
        return
    if phase is Phase.DECIDING:
        visit = lane.state.visits.present
        if visit is None or visit.credential != credential:
            _ignored(lane, reader_id, Ignored.OTHER_DECIDED, credential)
        return
    if phase in visits.HAS_RIGHT_OF_WAY:
        if not _queue(lane, reader_id, credential):
            _ignored(lane, reader_id, Ignored.WAY_GIVEN, credential)
        return
    _turn_to_reader(lane, reader_id)
    visit = lane.state.visits.present
    if visit is not None and _stands(lane, visit.side):
        _presented_unless_suppressed(lane, visit, reader_id, credential)
    elif _may_come(lane, reader_id):
        _hold(lane, EarlyCard(reader_id, credential, until=lane.now.at + lane.rules.lane.card_early_seconds))
    else:
        _ignored(lane, reader_id, _why_nobody_stands(lane), credential)


def _awaits_more(lane: Transition, reader_id: int, credential: Credential) -> bool:
    """Return whether this card was read here already for this vehicle, and waits for its PIN or a second one."""
    visit = lane.state.visits.present
    if visit is None or (visit.asked_by, visit.credential) != (reader_id, credential):
        return False
    return lane.rules.lane.pin or lane.state.readings.second_until is not None


def keys_typed(lane: Transition, event: m.KeysTyped) -> None:
    """Add keys to the PIN of the card read before. `#` ends it, `*` begins it anew; other keys do not count."""
    awaited, visit = lane.state.readings.awaited_pin, lane.state.visits.present
    if (
        awaited is None
        or visit is None
        or visit.asked_by != event.reader_id
        or lane.state.visits.phase is not Phase.ARMED
    ):
        return
    keys, ended = awaited.keys, False
    for key in event.keys:
        if key == _CLEAR:
            keys = ""
        elif key == _END or (key.isdigit() and len(keys) + 1 >= min(lane.rules.lane.pin_digits, _LONGEST_PIN)):
            keys, ended = keys + ("" if key == _END else key), True
            break
        elif key.isdigit():
            keys += key
    if ended and keys:
        lane.put(lane.state.readings.awaiting_pin(None))
        lane.note("")
        _ask(lane, visit, awaited.credential, pin=keys)
    else:
        lane.put(replace(lane.state.readings, awaited_pin=replace(awaited, keys=keys)))


def plate_read(lane: Transition, reading: m.PlateRead) -> None:
    """Count a plate as a vote for the vehicle on the arming loop or about to come onto it, or ignore it."""
    lane.put(lane.state.readings.something_read())
    state, rules = lane.state, lane.rules
    votes, stands = state.readings.votes, state.visits.phase in {Phase.ARMED, Phase.DECIDING}
    denied = state.visits.phase is Phase.ARMED  # a plate that was asked there was not let in
    if reading.direction == "leaving" and not rules.two_way:
        if stands:
            _plate_ignored(lane, reading, "the camera says that the vehicle leaves")
    elif reading.confidence < rules.lane.plate_least:
        if stands and not votes.readings:
            _plate_ignored(
                lane,
                reading,
                f"the camera is {reading.confidence:.2f} sure, and the lane needs {rules.lane.plate_least:g}",
            )
    elif state.visits.phase in visits.HAS_RIGHT_OF_WAY:
        _read_while_one_passes(lane, reading)
    elif stands and (why := votes.why_not(reading, denied=denied)):
        _plate_ignored(lane, reading, why)
    else:
        settle, sure = rules.lane.plate_settle_seconds, rules.lane.plate_sure
        lane.put(state.readings.voted(votes.with_reading(reading, settle=settle, sure=sure, denied=denied)))


def _read_while_one_passes(lane: Transition, reading: m.PlateRead) -> None:
    """Count a plate for the vehicle that passes or for the one behind it; in doubt ignore it."""
    state, rules, visit = lane.state, lane.rules, lane.state.visits.present
    another = state.readings.votes.whose_else(reading) or state.readings.votes.is_anothers(reading)
    released = visit is not None and visit.arming_released
    behind = visit is not None and released and _stands(lane, visit.side)
    comes = behind or (released and state.visits.phase is Phase.PASSING)
    readings = state.readings
    if comes and another and not readings.was_reported(reading.plate, lane.now.at):
        votes = readings.votes_behind.with_reading(
            reading, settle=rules.lane.plate_settle_seconds, sure=rules.lane.plate_sure
        )
        lane.put(readings.voted_behind(votes))
    elif another or (behind and not state.readings.votes.readings):
        _plate_ignored(lane, reading, "a vehicle that was let in has not passed yet")
    else:
        votes = readings.votes.with_reading(reading, settle=rules.lane.plate_settle_seconds, sure=rules.lane.plate_sure)
        lane.put(readings.voted(votes))


def due(lane: LaneView) -> Iterator[Due]:
    """Yield the ends of the waits for a vehicle, a PIN and a second credential, and plates due for a decision."""
    if lane.state.readings.early is not None:
        yield AT_EACH_STEP, _follow_early
    if lane.state.readings.early is not None:
        yield lane.state.readings.early.until, _drop_early
    if lane.state.visits.phase is Phase.IDLE and lane.state.readings.votes.readings:
        oldest = min(reading.at for reading in lane.state.readings.votes.readings)
        yield oldest + lane.rules.lane.plate_early_seconds, _drop_early_plates
    if lane.state.visits.phase is not Phase.ARMED:
        return
    if lane.state.readings.second_until is not None:
        yield lane.state.readings.second_until, _second_timed_out
    if lane.state.readings.awaited_pin is not None:
        yield lane.state.readings.awaited_pin.until, _pin_timed_out
    else:
        yield max(lane.state.readings.votes.due, _suppressed_until(lane)), _decide_by_plate


def _pin_timed_out(lane: Transition) -> None:
    lane.put(lane.state.readings.awaiting_pin(None))
    if lane.state.visits.present is not None:
        why = f"no PIN within {lane.rules.lane.pin_seconds:g} s"
        answers.denied(lane, lane.state.visits.present, why, reason="pin_missing")


def _decide_by_plate(lane: Transition) -> None:
    """Decide on the best plate. Where a PIN is required, a plate alone opens nothing, but if blocked stops the card."""
    state, best = lane.state, lane.state.readings.votes.best()
    present = state.visits.present
    if best is None or present is None or not _stands(lane, present.side) or lane.rules.lane.pin:
        return
    credential = Credential(plate=best.plate)
    visit = present.asking(credential, best.camera_id)
    lane.put(state.readings.voted(state.readings.votes.asked_on(best)))
    if state.locked_down:
        lane.put(state.visits.with_present(visit))
        answers.denied_locked(lane, visit)
    else:
        _ask(lane, visit, credential)


def _presented(lane: Transition, visit: Visit, reader_id: int, credential: Credential) -> None:
    """Assign this card to the vehicle on the arming loop: ask for its PIN or a decision, or deny it in a lock-down."""
    visit = visit.asking(credential, reader_id)
    lane.put(lane.state.readings.holding(None))
    if lane.state.locked_down:
        lane.put(lane.state.visits.with_present(visit))
        answers.denied_locked(lane, visit)
    elif lane.rules.lane.pin:
        lane.put(lane.state.visits.with_present(visit))
        answers.pin_awaited(lane, reader_id)
        awaited = AwaitedPin(credential, until=lane.now.at + lane.rules.lane.pin_seconds)
        lane.put(lane.state.readings.awaiting_pin(awaited))
    else:
        _ask(lane, visit, credential)


def _presented_unless_suppressed(lane: Transition, visit: Visit, reader_id: int, credential: Credential) -> None:
    if not _is_suppressed(lane):
        _presented(lane, visit, reader_id, credential)
        return
    lane.put(lane.state.readings.holding(None))
    answers.suppressed(lane, reader_id, credential, Ignored.COMES_OUT)


def _is_suppressed(lane: Transition) -> bool:
    return lane.now.at < _suppressed_until(lane)


def _suppressed_until(lane: LaneView) -> float:
    """Return until when no reading opens the gate: a vehicle was on the closing loop, behind the closed gate, before.

    If the gate opened for this one, the other would come out. A closing loop that counts as stuck shows no vehicle.
    """
    inputs = lane.state.inputs
    was_there = inputs.closing.is_on() and inputs.closing.since < inputs.arming.since
    if lane.rules.two_way or inputs.gate.position is not GatePosition.CLOSED or not was_there:
        return NEVER
    return inputs.closing.since + lane.rules.lane.stuck_seconds


def _may_come(lane: Transition, reader_id: int) -> bool:
    """Return whether a vehicle may soon be seen at this reader: its loop is not on, and no intruder can pass."""
    side = Side.FAR if reader_id in lane.rules.lane.far_readers else Side.NEAR
    intruder = lane.state.intruders.present
    return (intruder is None or intruder.shut) and not lane.state.inputs.loop(side).is_on()


def _hold(lane: Transition, early: EarlyCard) -> None:
    """Hold a card until its vehicle is seen. A different card that was held before is recorded as ignored."""
    before = lane.state.readings.early
    if before is not None and before.credential != early.credential:
        _ignored(lane, before.reader_id, _why_nobody_stands(lane), before.credential)
    lane.put(lane.state.readings.holding(early))


def _follow_early(lane: Transition) -> None:
    """Give a card to the vehicle that it waited for, or drop it because of an intruder."""
    early = lane.state.readings.early
    if early is None:
        return
    if lane.state.visits.phase is Phase.ARMED:
        _turn_to_reader(lane, early.reader_id)
        visit = lane.state.visits.present
        if visit is not None and _stands(lane, visit.side):
            _presented_unless_suppressed(lane, visit, early.reader_id, early.credential)
            return
    intruder = lane.state.intruders.present
    if intruder is not None and not intruder.shut:
        _drop_early(lane)


def _drop_early(lane: Transition) -> None:
    early = lane.state.readings.early
    lane.put(lane.state.readings.holding(None))
    if early is not None:
        _ignored(lane, early.reader_id, _why_nobody_stands(lane), early.credential)


def _drop_early_plates(lane: Transition) -> None:
    """Drop plates whose vehicle did not come onto the arming loop in time."""
    before = lane.state.readings.votes
    votes = before.recent(since=lane.now.at - lane.rules.lane.plate_early_seconds)
    gone = before.readings[: len(before.readings) - len(votes.readings)]
    lane.put(lane.state.readings.voted(votes))
    if gone and not votes.readings:
        _plate_ignored(lane, max(gone, key=lambda one: one.confidence), _why_nobody_stands(lane))


def _second_timed_out(lane: Transition) -> None:
    """Deny a visit whose second credential did not come in time. A new first one may follow."""
    lane.put(lane.state.readings.awaiting_second(None))
    if lane.state.visits.present is not None:
        why = text("read.no_second", seconds=lane.rules.lane.second_seconds)
        answers.denied(lane, lane.state.visits.present, why, reason="second_missing")


def _ask(lane: Transition, visit: Visit, credential: Credential, *, pin: str = "") -> None:
    lane.put(lane.state.readings.asked())
    lane.enter(Phase.DECIDING, visit)
    number, plates = lane.state.readings.decisions, lane.state.readings.votes.sure(lane.rules.lane.plate_least)
    lane.commands.append(m.Decide(number, credential, lane.direction(visit.side), visit.arrived, pin, plates))


def _queue(lane: Transition, reader_id: int, credential: Credential) -> bool:
    """Ask for a decision on the vehicle behind, in a counted lane, while one passes. Return whether it was asked."""
    state, visit = lane.state, lane.state.visits.present
    if lane.rules.lane.vend != "counted" or visit is None or lane.rules.lane.pin or state.locked_down:
        return False
    if not visit.arming_released or not _stands(lane, visit.side) or state.visits.queued is not None:
        return False
    behind = Visit(
        arrived=lane.now.stamp,
        credential=credential,
        vehicle_seen=True,
        side=visit.side,
        asked_by=reader_id,
    )
    lane.put(state.readings.asked())
    number = lane.state.readings.decisions
    lane.put(state.visits.with_queued((number, behind)))
    lane.commands.append(m.Decide(number, credential, lane.direction(behind.side), behind.arrived))
    return True


def _turn_to_reader(lane: Transition, reader_id: int) -> None:
    """Make the vehicle at this reader the present one, in a two-way lane with readers on both sides."""
    visit, rules = lane.state.visits.present, lane.rules
    if visit is None or lane.state.visits.phase is not Phase.ARMED or not rules.lane.far_readers:
        return
    side = Side.FAR if reader_id in rules.lane.far_readers else Side.NEAR
    if side is not visit.side and not lane.is_leaving(side):
        votes = lane.state.readings.votes.ended(lane.now.at, passed=False)
        lane.put(replace(lane.state.readings, votes=votes, awaited_pin=None))
        seen = lane.state.inputs.loop(side).is_on()
        lane.put(lane.state.visits.with_present(Visit(arrived=lane.now.stamp, vehicle_seen=seen, side=side)))


def _stands(lane: Transition, side: Side) -> bool:
    return lane.state.inputs.loop(side).fresh(lane.now.at, lane.rules.policy.stale_seconds) is PointState.ON


def _why_nobody_stands(lane: Transition) -> Ignored:
    loops = (lane.state.inputs.loop(side).fresh(lane.now.at, lane.rules.policy.stale_seconds) for side in lane.sides())
    return Ignored.LOOP_UNKNOWN if PointState.UNKNOWN in loops else Ignored.NO_VEHICLE


def _ignored(lane: Transition, reader_id: int, reason: Ignored, credential: Credential) -> None:
    if reason is Ignored.LOOP_UNKNOWN:
        answers.unusable(lane, reader_id, credential, reason)
        return
    answers.ignored(lane, reader_id, credential, reason)
    if reason is Ignored.NO_VEHICLE:
        lane.put(lane.state.readings.card_unseen(credential))


def _plate_ignored(lane: Transition, reading: m.PlateRead, reason: Ignored | str) -> None:
    """Record that a plate is ignored, at most once in a while: cameras repeat themselves."""
    readings, now = lane.state.readings, lane.now.at
    if readings.was_reported(reading.plate, now):
        return
    lane.put(readings.with_ignored(reading.plate, now))
    why = reason.words if isinstance(reason, Ignored) else reason
    said = text("read.plate_does_not_count", plate=reading.plate, why=why)
    kind = EventKind.READING_UNUSABLE if reason is Ignored.LOOP_UNKNOWN else EventKind.PLATE_IGNORED
    lane.tell(kind, said, device_id=reading.camera_id, credential=reading.plate)
