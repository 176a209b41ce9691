"""Warnings for a valid but suspicious site file; `check` and the log show them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

from drivers.device import Device
from gateway.site.addresses import endpoint_of, is_loopback
from gateway.site.api_section import ApiSection
from gateway.site.fault import SiteFault
from gateway.site.faults import of_section
from gateway.site.models import Site
from gateway.site.roles import Role

_USUAL_SPEEDS = (300, 600, 1200, 1800, 2400, 4800, 9600, 14400, 19200, 28800, 38400, 57600, 76800, 115200, 230400)
_FAST_SPEEDS = (250_000, 256_000, 460_800, 500_000, 576_000, 921_600)
_SPEEDS = (*_USUAL_SPEEDS, *_FAST_SPEEDS, 56_000, 128_000)
_CHANGING_PORT = re.compile(r"/dev/tty(USB|ACM)\d+")


def doubts(site: Site, find: Callable[[str], Path | None]) -> Iterator[SiteFault]:
    """Yield warnings for a valid but suspicious file, each with its place. `find` returns a profile's file by name."""
    yield from _api_doubts(site.api)
    yield from _link_doubts(site)
    yield from _device_doubts(site, find)
    yield from _lane_doubts(site)
    if not site.lanes:
        yield SiteFault("lanes", "the file has no lanes, so no gate opens; add [[lanes]]")
    for index, schedule in enumerate(site.schedules):
        for number, window in enumerate(schedule.windows):
            if window.start == window.end and (window.start.hour or window.start.minute):
                at = f"{window.start:%H:%M}"
                message = f"from {at} to {at} is 24 hours, until {at} of the next day"
                yield SiteFault(f"schedules[{index}].windows[{number}]", message)
    mqtt = site.mqtt
    if mqtt is not None and not mqtt.is_encrypted and not mqtt.endpoint().is_this_machine():
        message = "events and the password cross the network unencrypted; write mqtts:// if the broker has it"
        yield SiteFault("mqtt.url", message)
    endpoint = site.backup.endpoint or ""
    if endpoint.startswith("http://") and not endpoint_of(endpoint, schemes=("http",)).is_this_machine():
        yield SiteFault(
            "backup.endpoint", "backups name people and go there unencrypted; write https:// if the store has it"
        )
    central = site.central
    if central is not None and central.url.startswith("http://") and not central.endpoint().is_this_machine():
        message = "passwords and cards go to central unencrypted; write https:// if central has it"
        yield SiteFault("central.url", message)


def _api_doubts(api: ApiSection) -> Iterator[SiteFault]:
    if api.listens_on != api.host:
        message = (
            f"{api.host} has no TLS, so the interface is served on {api.listens_on} alone:"
            " write [api.tls] with certificate and key, or plain_http = true if passwords may cross it unencrypted"
        )
        yield SiteFault("api.host", message)
    if api.plain_http and api.tls is None and not is_loopback(api.host):
        message = "passwords and sessions cross the network unencrypted; write [api.tls] with certificate and key"
        yield SiteFault("api.plain_http", message)
    if api.plain_http and api.tls is not None:
        yield SiteFault("api.plain_http", "has no effect beside [api.tls]: the interface is served over HTTPS only")


def _link_doubts(site: Site) -> Iterator[SiteFault]:
    for index, link in enumerate(site.links):
        if link.kind != "serial":
            continue
        path = str(link.line())
        if _CHANGING_PORT.fullmatch(path):
            message = f"{path} may name another adapter after a restart; use its name under /dev/serial/by-id/…"
            yield SiteFault(f"links[{index}].url", message)
        if link.baud not in _SPEEDS:
            near = min(_SPEEDS, key=lambda speed: abs(speed - link.baud))
            yield SiteFault(f"links[{index}].baud", f"{link.baud} is not a usual speed; did you mean {near}?")


def _device_doubts(site: Site, find: Callable[[str], Path | None]) -> Iterator[SiteFault]:
    """Yield the warnings that the devices' drivers declare: on their line, and beside others there."""
    links = {link.id: (index, link) for index, link in enumerate(site.links)}
    before: dict[str, list[tuple[int, Device]]] = {}
    for index, device in enumerate(site.devices):
        place, (number, link) = f"devices[{index}]", links[device.link]
        line = site.named_line(link)
        told = (SiteFault(f"links[{number}]", message) for message in device.line_doubts(line, find))
        yield from of_section(place, device, told)
        for earlier, other in before.setdefault(device.link, []):
            beside = device.doubts_beside(other, earlier, find)
            yield from of_section(place, device, (SiteFault(f"{place}.{key}", why) for key, why in beside))
        before[device.link].append((index, device))


def _lane_doubts(site: Site) -> Iterator[SiteFault]:
    arming: dict[tuple[int, str], int] = {}
    for index, lane in enumerate(site.lanes):
        for one in lane.ordered_inputs:
            if one.role is Role.SAFETY and one.ref in lane.points(Role.CLOSING):
                message = "is the closing loop, a safety point anyway; did you mean a photocell?"
                yield SiteFault(f"lanes[{index}].{one.place}", message)
        for ref in (one.ref for one in lane.ordered_inputs if one.spec.waits):
            first = arming.setdefault((ref.device, ref.point), index)
            if first != index:
                message = (
                    f"device {ref.device}'s {ref.point!r} arms lanes[{first}] too: a vehicle on it waits in both lanes"
                )
                yield SiteFault(f"lanes[{index}]", message)
