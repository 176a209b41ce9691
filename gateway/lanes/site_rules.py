"""What the site file tells a lane's machine."""

from __future__ import annotations

from gateway.lanes.machine.rules import LaneRules, Vend
from gateway.site import LaneSection, Site


def lane_rules(site: Site, lane: LaneSection, *, boot: str) -> LaneRules:
    """The rules of this lane. `boot` distinguishes this run's command ids from all others."""
    return LaneRules(
        lane_id=lane.id,
        direction=lane.direction,
        gate_id=lane.gate,
        boot=boot,
        safety_points=len(lane.safety),
        safety_names=_safety_names(site, lane),
        cameras=lane.cameras,
        closes_itself=lane.closes == "device",
        command_life=site.policy.command_seconds,
        stale=site.policy.stale_seconds,
        opening=lane.opening_seconds,
        closing=lane.closing_seconds,
        waiting=lane.waiting_seconds,
        back_out=lane.back_out_seconds,
        clear=lane.clear_seconds,
        clear_after_loss=lane.clear_after_loss_seconds,
        two_way=lane.direction == "two-way",
        vend=Vend(lane.vend),
        fire_input=lane.fire is not None,
        local_input=lane.local is not None,
        far_readers=frozenset(lane.far_readers),
        held_open=lane.held_open_seconds,
        forced=lane.forced_seconds,
        vehicle_stuck=lane.vehicle_stuck_seconds,
        input_stuck=lane.stuck_seconds,
        card_early=lane.card_early_seconds,
        pin=lane.pin,
        pin_length=lane.pin_digits,
        pin_patience=lane.pin_seconds,
        second_within=lane.second_seconds,
        plate_settle=lane.plate_settle_seconds,
        plate_sure=lane.plate_sure,
        plate_least=lane.plate_least,
        plate_early=lane.plate_early_seconds,
        clip_before=site.events.clip_before_seconds,
        clip_after=site.events.clip_after_seconds,
    )


def _safety_names(site: Site, lane: LaneSection) -> tuple[str, ...]:
    """What the site file calls them; with their device where that is not enough to tell them apart."""
    devices = {device.id: device.name for device in site.devices}
    points = [ref.point for ref in lane.safety]
    return tuple(
        ref.point if points.count(ref.point) == 1 else f"{ref.point} of {devices.get(ref.device, ref.device)}"
        for ref in lane.safety
    )
