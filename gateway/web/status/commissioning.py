"""Commissioning of lanes: steps that the gateway observes or a person judges, kept as a signed record."""

from __future__ import annotations

import asyncio
import json
from base64 import b64encode
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Annotated

from aiohttp import web
from pydantic import Field

from gateway.domain.errors import NotFoundError, StoreError
from gateway.domain.events import Event, EventKind
from gateway.domain.writes import JsonObject
from gateway.lanes import LaneSnapshot
from gateway.lanes.commissioning import Commissioning, StepOutcome
from gateway.proof_package import SiteKey
from gateway.runtime.clock import iso_utc
from gateway.runtime.durable_files import write_durably
from gateway.store import Entry
from gateway.texts import keyed, text
from gateway.web.answers import Answer, AnswerPart
from gateway.web.auth.callers import Caller
from gateway.web.context import InterfaceContext
from gateway.web.families import Family, operation
from gateway.web.http.bodies import Body, Text, Word, Yes
from gateway.web.http.errors import RequestRefused
from gateway.web.http.files import as_file
from gateway.web.operation import CONTROL_DEVICES, VIEW_EVENTS

_MAY = CONTROL_DEVICES & VIEW_EVENTS
_TYPE = "application/json"
_MOST_SHOWN = 20


Note = Annotated[Text, Field(max_length=500)]


class CommissioningOf(Body):
    """The lane to commission. If its commissioning has begun already, it begins again from the first step."""

    lane_id: Text


class Judgement(Body):
    """A person's judgement of a step: whether it passed, and a note of what was seen."""

    lane_id: Text
    step: Word
    passed: Yes
    note: Note = ""


class CommissioningEnd(Body):
    """The lane whose record is to be signed and kept, with a note on the whole."""

    lane_id: Text
    note: Note = ""


class StepShown(AnswerPart):
    """A step: what to do, whether a person judges it, and its outcome with what was seen and by whom.

    `said` has the key and arguments of its texts, by the fields' names.
    """

    name: str
    title: str
    todo: str
    by_person: bool
    outcome: StepOutcome
    seen: str
    by: str
    said: JsonObject


class LaneCommissioning(AnswerPart):
    """The commissioning of a lane that is in progress, if any, and the records of earlier ones, newest first."""

    begun: str | None
    by: str
    steps: tuple[StepShown, ...]
    is_complete: bool
    records: tuple[JsonObject, ...]


class CommissioningAnswer(Answer):
    """The commissioning of a lane."""

    commissioning: LaneCommissioning


@dataclass(slots=True)
class _Begun:
    """A commissioning in progress: its steps, and when and by whom it was begun."""

    steps: Commissioning
    at: str
    by: str


class StatusCommissioning(Family):
    """The handlers of `/status/commissioning/…`. A restart forgets what is in progress; records are kept for good."""

    def __init__(self, context: InterfaceContext) -> None:
        super().__init__(context)
        self._begun: dict[str, _Begun] = {}

    @operation("GET", "/status/commissioning/lane/{lane}", _MAY, "commissioning")
    async def _get(self, lane: str) -> CommissioningAnswer:
        return await self._state(self._lane(lane))

    @operation("POST", "/status/commissioning/begin", _MAY, "commissioning")
    async def _begin(self, wanted: CommissioningOf, caller: Caller) -> CommissioningAnswer:
        lane = self._lane(wanted.lane_id)
        rules = self.context.lanes.incident(lane.lane_id).rules
        steps = Commissioning(rules, can_stop=lane.can_stop, since=self.context.clock.monotonic())
        self._begun[lane.lane_id] = _Begun(steps, iso_utc(self.context.clock.wall().micros), caller.username)
        return await self._state(lane)

    @operation("POST", "/status/commissioning/judge", _MAY, "commissioning")
    async def _judge(self, wanted: Judgement, caller: Caller) -> CommissioningAnswer:
        lane = self._lane(wanted.lane_id)
        begun = self._of(lane)
        try:
            begun.steps.judge(wanted.step, passed=wanted.passed, note=wanted.note.strip(), by=caller.username)
        except KeyError as error:
            raise NotFoundError(text("refused.step_unknown", lane=lane.lane_id, step=wanted.step)) from error
        return await self._state(lane)

    @operation("POST", "/status/commissioning/finish", _MAY, "commissioning")
    async def _finish(self, wanted: CommissioningEnd, caller: Caller) -> CommissioningAnswer:
        """Sign and keep the record, and record an event. Raises RequestRefused (409) while a step waits."""
        lane = self._lane(wanted.lane_id)
        begun = self._of(lane)
        begun.steps.take(self.context.lanes.incident(lane.lane_id))
        waiting = [str(step.title) for step, result in begun.steps.results if result.outcome is StepOutcome.WAITING]
        if waiting:
            raise RequestRefused(409, text("refused.steps_waiting", why="; ".join(waiting)))
        stamp = self.context.clock.wall()
        record = {
            "site": self.context.site.site.name,
            "lane": lane.lane_id,
            "lane_name": lane.name,
            "gateway": version("edge-gateway"),
            "begun": begun.at,
            "begun_by": begun.by,
            "finished": iso_utc(stamp.micros),
            "finished_by": caller.username,
            "clock_trusted": stamp.trusted,
            "note": wanted.note.strip(),
            "steps": [step.model_dump(mode="json", exclude={"said"}) for step in _steps(begun.steps)],
        }
        failed = sum(result.outcome is StepOutcome.FAILED for _, result in begun.steps.results)
        name = f"{lane.lane_id}_{iso_utc(stamp.micros).replace(':', '-')}.json"
        await asyncio.to_thread(self._keep, name, record)
        count = len(begun.steps.results)
        event = Event(
            kind=EventKind.LANE_COMMISSIONED,
            date_at=stamp.micros,
            clock_trusted=stamp.trusted,
            text=text("event.lane_commissioned", passed=count - failed, count=count),
            lane_id=lane.lane_id,
            data={"record": name, "username": caller.username, "failed": failed},
        )
        await self.context.store.journal.record(Entry(events=(event,)))
        del self._begun[lane.lane_id]
        return await self._state(lane)

    @operation("GET", "/status/commissioning/file/{file}", _MAY, "record", answer_type=_TYPE)
    async def _file(self, file: str) -> web.StreamResponse:
        path = self._folder / file
        if path.name != file or path.suffix != ".json" or not path.is_file():
            raise NotFoundError(text("refused.commissioning_unknown"))
        answer = as_file(path, _TYPE)
        answer.headers["Content-Disposition"] = f'attachment; filename="{path.name}"'
        return answer

    @property
    def _folder(self) -> Path:
        return self.context.data / "commissioning"

    def _lane(self, lane_id: str) -> LaneSnapshot:
        found = next((lane for lane in self.context.lanes.lanes() if lane.lane_id == lane_id), None)
        if found is None:
            raise NotFoundError(text("refused.lane_unknown", lane=lane_id))
        return found

    def _of(self, lane: LaneSnapshot) -> _Begun:
        if lane.lane_id not in self._begun:
            raise RequestRefused(409, text("refused.commissioning_not_begun"))
        return self._begun[lane.lane_id]

    async def _state(self, lane: LaneSnapshot) -> CommissioningAnswer:
        records = tuple(await asyncio.to_thread(self._records, lane.lane_id))
        begun = self._begun.get(lane.lane_id)
        if begun is None:
            shown = LaneCommissioning(begun=None, by="", steps=(), is_complete=False, records=records)
        else:
            begun.steps.take(self.context.lanes.incident(lane.lane_id))
            complete = begun.steps.is_complete
            shown = LaneCommissioning(
                begun=begun.at, by=begun.by, steps=_steps(begun.steps), is_complete=complete, records=records
            )
        return CommissioningAnswer(commissioning=shown)

    def _records(self, lane_id: str) -> list[JsonObject]:
        found: list[JsonObject] = []
        for path in sorted(self._folder.glob(f"{lane_id}_*.json"), reverse=True):
            record = json.loads(path.read_bytes())["record"]
            if record["lane"] == lane_id and len(found) < _MOST_SHOWN:
                found.append({"file": path.name, **record})
        return found

    def _keep(self, name: str, record: dict[str, object]) -> None:
        key = SiteKey.of(self.context.data)
        signed = json.dumps(record, sort_keys=True, separators=(",", ":"), ensure_ascii=True).encode()
        kept = {
            "record": record,
            "signature": b64encode(key.sign(signed)).decode(),
            "public_key": key.public_pem.decode(),
            "fingerprint": key.fingerprint,
        }
        try:
            self._folder.mkdir(mode=0o750, exist_ok=True)
            write_durably(self._folder / name, json.dumps(kept, indent=1).encode())
        except OSError as error:
            raise StoreError(text("refused.commissioning_unwritten", why=str(error.strerror))) from error


def _steps(steps: Commissioning) -> tuple[StepShown, ...]:
    return tuple(
        StepShown(
            name=step.name,
            title=str(step.title),
            todo=str(step.todo),
            by_person=step.by_person,
            outcome=result.outcome,
            seen=str(result.seen),
            by=result.by,
            said={"title": keyed(step.title), "todo": keyed(step.todo), "seen": keyed(result.seen)},
        )
        for step, result in steps.results
    )
