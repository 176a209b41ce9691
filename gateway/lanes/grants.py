"""Grants given and revoked by people and their programs."""

from __future__ import annotations

import secrets
from dataclasses import dataclass

from gateway.domain.commands import actor
from gateway.domain.errors import CommandRefused, NotFoundError, StoreError
from gateway.domain.events import Event, EventKind
from gateway.domain.grants import Grant
from gateway.runtime.clock import Clock, Stamp
from gateway.site import LaneSection, Site
from gateway.store.cards.grants import Grants, NewGrant
from gateway.texts import Text, text

MOST_GRANTS = 10_000
_DIGITS = 12


@dataclass(frozen=True, kw_only=True)
class SiteGrants:
    """Grants of people and their programs. A code is digits only, so that it can be typed or printed as a barcode."""

    site: Site
    grants: Grants
    clock: Clock

    def lane_of(self, device_id: int) -> LaneSection:
        """Return the lane that a device serves.

        Raises NotFoundError for a device of no lane, CommandRefused for a device that serves several lanes.
        """
        lanes = [lane for lane in self.site.lanes if device_id in lane.devices]
        if len(lanes) > 1:  # an input module may be of many lanes; a gate or reader says which one is meant
            lanes = [lane for lane in lanes if device_id in (lane.gate, *lane.readers)]
            if len(lanes) != 1:
                names = {device.id: device.name for device in self.site.devices}
                name = names.get(device_id, f"device {device_id}")
                raise CommandRefused(text("refused.device_of_several_lanes", device=name))
        if not lanes:
            raise NotFoundError(text("refused.device_of_no_lane", device=str(device_id)))
        return lanes[0]

    def current(self) -> tuple[Grant, ...]:
        """Return the grants that are valid now, the newest first."""
        return self.grants.current(now=self.clock.wall().micros)

    async def give(self, *, user_id: str, device_id: int, length: int | None, by: str) -> Grant:
        """Let a user pass a device's lane for `length` micros, None for until revoked. Return once it is on disk.

        Raises NotFoundError and CommandRefused as `lane_of` does, CommandRefused when there are `MOST_GRANTS` already,
        and StoreError when the grant cannot be recorded: then it was not given.
        """
        lane, stamp = self.lane_of(device_id), self.clock.wall()
        until = None if length is None else stamp.micros + length
        new = NewGrant(
            access_id=_code(),
            user_id=user_id,
            device_id=device_id,
            lane_id=lane.id,
            given_at=stamp.micros,
            valid_until=until,
            given_by=by,
        )
        said = _given(by, user_id, lane, length)
        told = _event(EventKind.GRANT_GIVEN, said, stamp, lane, device_id, user_id=user_id, by=by)
        grant = await self.grants.give(new, event=told, most=MOST_GRANTS, forgets=stamp.trusted)
        if grant is None:
            raise CommandRefused(text("refused.too_many_grants", count=str(MOST_GRANTS)))
        return grant

    async def revoke(self, access_id: str, *, by: str) -> None:
        """Revoke a grant, so that it opens nothing from now on. A revoked grant stays revoked.

        Raises NotFoundError for an unknown id, StoreError when the revocation is in force but could not be recorded.
        """
        grant, stamp = await self.grants.get(access_id), self.clock.wall()
        if grant is None:
            raise NotFoundError(text("refused.grant_unknown"))
        lane = next((lane for lane in self.site.lanes if lane.id == grant.lane_id), None)
        where = lane.name if lane else grant.lane_id
        said = text("event.grant_revoked", who=actor(by), number=grant.number, user=grant.user_id, lane=where)
        about: dict[str, str | int | None] = {"user_id": grant.user_id, "by": by, "grant": grant.number}
        told = _event(EventKind.GRANT_REVOKED, said, stamp, lane, grant.device_id, **about)
        try:
            await self.grants.revoke(access_id, by=by, now=stamp.micros, event=told)
        except StoreError as error:
            raise StoreError(text("refused.revocation_unrecorded")) from error


def _code() -> str:
    """Make a random code that nobody can guess at a reader. It starts with no 0: some readers drop leading zeros."""
    return str(secrets.randbelow(9) + 1) + "".join(str(secrets.randbelow(10)) for _ in range(_DIGITS - 1))


def _given(by: str, user_id: str, lane: LaneSection, length: int | None) -> Text:
    if length is None:
        return text("event.grant_given", who=actor(by), user=user_id, lane=lane.name)
    hours = f"{length / 3_600_000_000:g}"
    return text("event.grant_given_for", who=actor(by), user=user_id, lane=lane.name, hours=hours)


def _event(
    kind: EventKind, said: Text, stamp: Stamp, lane: LaneSection | None, device_id: int, **data: str | int | None
) -> Event:
    return Event(
        kind=kind,
        date_at=stamp.micros,
        clock_trusted=stamp.trusted,
        text=said,
        device_id=device_id,
        lane_id=lane.id if lane is not None else "",
        data=data,
    )
