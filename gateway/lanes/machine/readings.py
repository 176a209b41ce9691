"""What readers read: cards, PINs and plates, and for which vehicle it counts. Part of the machine.

Only a vehicle on an arming loop may ask, and only from its own side of a two-way lane.
"""

from __future__ import annotations

from dataclasses import replace

from drivers.contract import Feedback, GatePosition, PointState
from gateway.domain.credentials import Credential
from gateway.domain.events import EventKind
from gateway.lanes.machine import messages as m
from gateway.lanes.machine import visits
from gateway.lanes.machine.plates import Reading
from gateway.lanes.machine.rules import LaneRules, Side, Vend
from gateway.lanes.machine.state import AwaitedPin, EarlyCard, LaneState
from gateway.lanes.machine.transition import Turn, named
from gateway.lanes.machine.vehicles import Visit
from gateway.lanes.snapshots import Phase

_LONGEST_PIN = 16
_END, _CLEAR = "#", "*"
_TOLD_SECONDS = 15.0
_MOST_TOLD = 16


def card_read(turn: Turn, event: m.CardRead) -> None:
    """A reader of the lane read a card."""
    phase, reader_id, credential = turn.state.phase, event.reader_id, event.credential
    if phase is Phase.DECIDING:
        visit = turn.state.visit
        if visit is None or visit.credential != credential:
            _ignored(turn, reader_id, "while another one was being decided on", credential)
        return
    if phase in visits.HAS_RIGHT_OF_WAY:
        if not _queue(turn, reader_id, credential):
            _ignored(turn, reader_id, f"while {_WAY_IS_GIVEN}", credential)
        return
    _turn_to_reader(turn, reader_id)
    visit = turn.state.visit
    if visit is not None and _stands(turn, visit.side):
        _presented_unless_suppressed(turn, visit, reader_id, credential)
    elif _may_come(turn, reader_id):
        _hold(turn, EarlyCard(reader_id, credential, until=turn.now.at + turn.rules.card_early))
    else:
        _ignored(turn, reader_id, _why_nobody_stands(turn), credential)


def keys_typed(turn: Turn, event: m.KeysTyped) -> None:
    """Keys of a keypad: the PIN of the card read before. `#` ends it, `*` begins it anew; other keys do not count."""
    awaited, visit = turn.state.awaited_pin, turn.state.visit
    if awaited is None or visit is None or visit.asked_by != event.reader_id or turn.state.phase is not Phase.ARMED:
        return
    keys, ended = awaited.keys, False
    for key in event.keys:
        if key == _CLEAR:
            keys = ""
        elif key == _END or (key.isdigit() and len(keys) + 1 >= min(turn.rules.pin_length, _LONGEST_PIN)):
            keys, ended = keys + ("" if key == _END else key), True
            break
        elif key.isdigit():
            keys += key
    if ended and keys:
        turn.set(awaited_pin=None, note="")
        _ask(turn, visit, awaited.credential, pin=keys)
    else:
        turn.set(awaited_pin=replace(awaited, keys=keys))


def plate_read(turn: Turn, event: m.PlateRead) -> None:
    """A plate camera read a plate: a vote for the vehicle on the arming loop, or for one that is about to be there."""
    state, rules = turn.state, turn.rules
    reading = Reading(event.camera_id, event.plate, event.confidence, event.vehicle, event.at, event.cards)
    votes, stands = state.votes, state.phase in {Phase.ARMED, Phase.DECIDING}
    if event.direction == "leaving" and not rules.two_way:
        if stands:
            _plate_ignored(turn, reading, "the camera says that it leaves")
    elif event.confidence < rules.plate_least:
        if stands and not votes.readings:
            _plate_ignored(turn, reading, f"{event.confidence:.2f} sure, and {rules.plate_least:g} is wanted")
    elif state.phase in visits.HAS_RIGHT_OF_WAY:
        _read_while_one_passes(turn, reading)
    elif stands and (why := votes.why_not(reading)):
        _plate_ignored(turn, reading, why)
    else:
        turn.set(votes=votes.heard(reading, settle=rules.plate_settle, sure=rules.plate_sure))


def _read_while_one_passes(turn: Turn, reading: Reading) -> None:
    """It is of the vehicle that passes, or of the one behind, on the loop or about to be; in doubt of nobody."""
    state, rules, visit = turn.state, turn.rules, turn.state.visit
    another = state.votes.whose_else(reading) or state.votes.is_anothers(reading)
    released = visit is not None and visit.arming_released
    behind = visit is not None and released and _stands(turn, visit.side)
    comes = behind or (released and state.phase is Phase.PASSING)
    if comes and another and reading.plate not in (plate for plate, _ in _told(turn)):
        turn.set(votes_behind=state.votes_behind.heard(reading, settle=rules.plate_settle, sure=rules.plate_sure))
    elif another or (behind and not state.votes.readings):
        _plate_ignored(turn, reading, _WAY_IS_GIVEN)
    else:
        turn.set(votes=state.votes.heard(reading, settle=rules.plate_settle, sure=rules.plate_sure))


def watch(turn: Turn) -> None:
    """Cards that were read before their vehicle was seen, plates that were read long enough, PINs that did not come."""
    _watch_early(turn)
    _watch_early_plates(turn)
    _watch_second(turn)
    state, now = turn.state, turn.now.at
    if state.phase is not Phase.ARMED or state.visit is None:
        return
    awaited = state.awaited_pin
    if awaited is not None:
        if now >= awaited.until:
            turn.set(awaited_pin=None)
            _missing(turn, state.visit, f"no PIN within {turn.rules.pin_patience:g} s", "pin_missing")
        return
    best = state.votes.best()
    if best is None or now < state.votes.due or not _stands(turn, state.visit.side) or turn.rules.pin:
        return  # where a PIN is wanted, a plate opens nothing; a blocked one still stops its card
    if _is_suppressed(turn):
        return
    credential = Credential(plate=best.plate)
    visit = replace(state.visit, credential=credential, decision=None, asked_by=best.camera_id)
    turn.set(votes=state.votes.taken(best))
    if state.locked_down:
        turn.set(visit=visit)
        visits.deny_locked(turn, visit)
    else:
        _ask(turn, visit, credential)


def deadlines(rules: LaneRules, state: LaneState) -> tuple[float, ...]:
    """When `watch` has something to do."""
    early = (state.early.until,) if state.early is not None else ()
    if state.phase is Phase.IDLE:
        early = (*early, *(reading.at + rules.plate_early for reading in state.votes.readings))
    second = (state.second_until,) if state.second_until is not None else ()
    if state.phase is not Phase.ARMED:
        return early
    if state.closing.is_on() and state.votes.readings:
        early = (*early, state.closing.since + rules.input_stuck)
    return (*early, *second, state.awaited_pin.until if state.awaited_pin is not None else state.votes.due)


def _presented(turn: Turn, visit: Visit, reader_id: int, credential: Credential) -> None:
    """The vehicle on the arming loop shows this card."""
    visit = replace(visit, credential=credential, decision=None, asked_by=reader_id)
    turn.set(early=None)
    if turn.state.locked_down:
        turn.set(visit=visit)
        visits.deny_locked(turn, visit)
    elif turn.rules.pin:
        turn.set(visit=visit, note="waiting for the PIN")
        turn.commands.append(m.Show(reader_id, Feedback.AWAITING))
        turn.set(awaited_pin=AwaitedPin(credential, until=turn.now.at + turn.rules.pin_patience))
    else:
        _ask(turn, visit, credential)


def _presented_unless_suppressed(turn: Turn, visit: Visit, reader_id: int, credential: Credential) -> None:
    if not _is_suppressed(turn):
        _presented(turn, visit, reader_id, credential)
        return
    turn.set(early=None, note=f"{named(credential)} does not count {_COMES_OUT}")
    turn.commands.append(m.Show(reader_id, Feedback.DENIED))
    _ignored(turn, reader_id, _COMES_OUT, credential)


def _is_suppressed(turn: Turn) -> bool:
    """Whether a vehicle stands behind the closed gate that came there first: opened for another, it would come out.

    A closing loop that counts as stuck tells of no vehicle.
    """
    state, rules = turn.state, turn.rules
    if rules.two_way or state.gate.position is not GatePosition.CLOSED or not state.closing.is_on():
        return False
    return state.closing.since < state.arming.since and turn.now.at < state.closing.since + rules.input_stuck


def _may_come(turn: Turn, reader_id: int) -> bool:
    """Whether a vehicle may be about to be seen at this reader: nobody is on its loop, nor in the lane unasked."""
    side = Side.FAR if reader_id in turn.rules.far_readers else Side.NEAR
    intruder = turn.state.intruder
    return (intruder is None or intruder.shut) and not turn.state.loop(side).is_on()


def _hold(turn: Turn, early: EarlyCard) -> None:
    """Keep a card until the next look at the loop. Another card in its stead ends it; the same one again does not."""
    before = turn.state.early
    if before is not None and before.credential != early.credential:
        _ignored(turn, before.reader_id, _why_nobody_stands(turn), before.credential)
    turn.set(early=early)


def _watch_early(turn: Turn) -> None:
    early = turn.state.early
    if early is None:
        return
    if turn.state.phase is Phase.ARMED:
        _turn_to_reader(turn, early.reader_id)
        visit = turn.state.visit
        if visit is not None and _stands(turn, visit.side):
            _presented_unless_suppressed(turn, visit, early.reader_id, early.credential)
            return
    intruder = turn.state.intruder
    if turn.now.at >= early.until or (intruder is not None and not intruder.shut):
        turn.set(early=None)
        _ignored(turn, early.reader_id, _why_nobody_stands(turn), early.credential)


def _watch_early_plates(turn: Turn) -> None:
    """Plates whose vehicle did not come onto the loop."""
    state = turn.state
    if state.phase is not Phase.IDLE or not state.votes.readings:
        return
    votes = state.votes.recent(since=turn.now.at - turn.rules.plate_early)
    if votes.readings == state.votes.readings:
        return
    gone = state.votes.readings[: len(state.votes.readings) - len(votes.readings)]
    turn.set(votes=votes)
    if not votes.readings:
        _plate_ignored(turn, max(gone, key=lambda one: one.confidence), _why_nobody_stands(turn))


def _watch_second(turn: Turn) -> None:
    """A first credential whose second did not come. A new first one may follow."""
    state = turn.state
    if state.second_until is None or state.phase is not Phase.ARMED or turn.now.at < state.second_until:
        return
    turn.set(second_until=None)
    if state.visit is not None:
        _missing(turn, state.visit, f"no second card or plate within {turn.rules.second_within:g} s", "second_missing")


def _ask(turn: Turn, visit: Visit, credential: Credential, *, pin: str = "") -> None:
    number = turn.state.decisions + 1
    turn.set(decisions=number)
    turn.enter(Phase.DECIDING, visit)
    plates = turn.state.votes.sure(turn.rules.plate_least)
    turn.commands.append(m.Decide(number, credential, turn.direction(visit.side), visit.arrived, pin, plates))


def _queue(turn: Turn, reader_id: int, credential: Credential) -> bool:
    """In a counted lane the vehicle behind may ask while the one before it passes; whether it does."""
    state, visit = turn.state, turn.state.visit
    if turn.rules.vend is not Vend.COUNTED or visit is None or turn.rules.pin or state.locked_down:
        return False
    if not visit.arming_released or not _stands(turn, visit.side) or state.queued is not None:
        return False
    number = state.decisions + 1
    behind = Visit(
        arrived=turn.now.stamp,
        credential=credential,
        vehicle_seen=True,
        side=visit.side,
        asked_by=reader_id,
    )
    turn.set(decisions=number, queued=(number, behind))
    turn.commands.append(m.Decide(number, credential, turn.direction(behind.side), behind.arrived))
    return True


def _turn_to_reader(turn: Turn, reader_id: int) -> None:
    """In a two-way lane with readers on both sides, the vehicle at this reader is the one that asks."""
    visit, rules = turn.state.visit, turn.rules
    if visit is None or turn.state.phase is not Phase.ARMED or not rules.far_readers:
        return
    side = Side.FAR if reader_id in rules.far_readers else Side.NEAR
    if side is not visit.side and not turn.is_leaving(side):
        turn.set(votes=turn.state.votes.ended(turn.now.at, passed=False), awaited_pin=None)
        turn.set(visit=Visit(arrived=turn.now.stamp, vehicle_seen=turn.state.loop(side).is_on(), side=side))


def _stands(turn: Turn, side: Side) -> bool:
    return turn.state.loop(side).fresh(turn.now.at, turn.rules.stale) is PointState.ON


def _missing(turn: Turn, visit: Visit, text: str, reason: str) -> None:
    """What was to follow a reading did not come in time."""
    who, shown = named(visit.credential), visit.credential.shown() if visit.credential else ""
    turn.set(note=f"{who} denied: {text}")
    turn.commands.append(m.Show(visit.asked_by, Feedback.DENIED))
    turn.tell(
        EventKind.ACCESS_DENIED,
        f"{who}: {text}",
        filmed_from=turn.now.stamp.micros,
        credential=shown,
        reason=reason,
    )


_COMES_OUT = "while a vehicle that came the other way is on the closing loop"
_WAY_IS_GIVEN = "a vehicle already has its right of way"
_NO_VEHICLE = "without a vehicle on the arming loop"
_LOOP_UNKNOWN = "while the arming loop is not known: its device does not answer"


def _why_nobody_stands(turn: Turn) -> str:
    loops = (turn.state.loop(side).fresh(turn.now.at, turn.rules.stale) for side in turn.sides())
    return _LOOP_UNKNOWN if PointState.UNKNOWN in loops else _NO_VEHICLE


def _ignored(turn: Turn, reader_id: int, reason: str, credential: Credential) -> None:
    text = f"{named(credential)} was read {reason}"
    kind = EventKind.CARD_IGNORED
    if reason == _LOOP_UNKNOWN:
        kind = EventKind.READING_UNUSABLE
        turn.set(note=text)
        turn.commands.append(m.Show(reader_id, Feedback.DENIED))
    turn.tell(kind, text, device_id=reader_id, credential=credential.shown())


def _plate_ignored(turn: Turn, reading: Reading, reason: str) -> None:
    """Tell of a plate that is left out, once in a while: cameras repeat themselves."""
    told = _told(turn)
    if reading.plate in (plate for plate, _ in told):
        return
    turn.set(ignored=(*told[1 - _MOST_TOLD :], (reading.plate, turn.now.at)))
    text = f"plate {reading.plate} does not count: {reason}"
    kind = EventKind.READING_UNUSABLE if reason == _LOOP_UNKNOWN else EventKind.PLATE_IGNORED
    turn.tell(kind, text, device_id=reading.camera_id, credential=reading.plate)


def _told(turn: Turn) -> tuple[tuple[str, float], ...]:
    return tuple(one for one in turn.state.ignored if turn.now.at < one[1] + _TOLD_SECONDS)
