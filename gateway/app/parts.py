"""Parts of the daemon that are built from the site file, the data folder and the buses."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from drivers.bus.bus import Bus
from drivers.contract import GatePosition
from drivers.device import ReaderDevice
from drivers.modbus.profile import load_unit_profile
from drivers.modbus.section import ModbusDevice
from gateway.app.contexts import LanesContext, ServicesContext
from gateway.central.pull.card_notices import CardNotices
from gateway.domain.errors import ConfigError
from gateway.lanes.snapshots import DeviceSnapshot
from gateway.lines.frames import ModbusUnit, PolledLine
from gateway.recording import Recording
from gateway.recording.recording import RecordingPlaces
from gateway.runtime.clock import SystemClock
from gateway.runtime.data_folder import MEDIA_MARKER, media_fault
from gateway.site import Site, find_profile, profile_folders
from gateway.site.edits import Edit, edited, inverse
from gateway.site.running_site import Reloaded
from gateway.store import Store
from gateway.webhooks.client import ReceiverClient
from gateway.webhooks.registry import WebhookRegistry
from gateway.webhooks.sender import WebhookSender

if TYPE_CHECKING:
    from gateway.fleet.wiring import FleetParts
    from gateway.mqtt.mirror import Mirror
    from gateway.proof_package.of_events import ProofPackages


_MOVING = frozenset({GatePosition.OPENING, GatePosition.CLOSING})

Once = Callable[[str, Coroutine[Any, Any, None]], asyncio.Task[None]]
"""Runs work once, in a named task of the services."""


def mirror_of(context: ServicesContext) -> Mirror | None:
    """Build the mirror for the site in force; None without `[mqtt]`. Raises ConfigError for a missing secret."""
    section, base = context.site().mqtt, context.base
    if section is None:
        return None
    from gateway.mqtt.line import Broker  # noqa: PLC0415  # most gateways start without it
    from gateway.mqtt.mirror import Mirror, Topics  # noqa: PLC0415  # likewise

    endpoint, topics = section.endpoint(), Topics(f"{section.topic}/{section.site}/{section.gateway}")
    return Mirror(
        broker=Broker(
            host=endpoint.host,
            port=endpoint.port,
            is_encrypted=section.is_encrypted,
            client_id=topics.root,
            username=section.username,
            password=base.run.secrets.get(section.password) if section.password else None,
            certificate=section.certificate,
            key=section.key,
            ca_file=section.ca_file,
        ),
        topics=topics,
        site_name=lambda: context.site().site.name,
        lanes=base.lanes.lanes,
        verdict=context.verdict,
        store=base.store,
        clock=base.clock,
    )


@dataclass(frozen=True, slots=True)
class WebhookParts:
    """The sender of webhooks, their registry, and the HTTP client of both. Call `client.close` at the end."""

    client: ReceiverClient
    sender: WebhookSender
    registry: WebhookRegistry


def recording_of(base: LanesContext) -> Recording:
    """Build the recording of a site's cameras."""
    folder = base.run.folder
    return Recording(
        site=base.run.loaded.site,
        store=base.store,
        places=RecordingPlaces(
            media=folder.media,
            run_folder=folder.run,
            media_fault=partial(media_fault, folder.path),
            marker=MEDIA_MARKER,
        ),
        clock=base.clock,
        progress=base.progress,
        secrets=base.run.secrets,
    )


def proof_packages_of(base: LanesContext, recording: Recording, *, site_name: Callable[[], str]) -> ProofPackages:
    """Build the maker of proof packages."""
    from gateway.proof_package.of_events import ProofPackages  # noqa: PLC0415  # lanes start without it

    folder = base.run.folder.path
    return ProofPackages.of(base.store, recording=recording, folder=folder, site_name=site_name, clock=base.clock)


def webhooks_of(site: Site, *, store: Store, clock: SystemClock) -> WebhookParts:
    """Build the parts that send a site's events to webhooks. Raises OSError for an unreadable `ca_file`."""
    limits = site.webhooks
    client = ReceiverClient(allowed=limits.networks(), ca_file=limits.ca_file, timeout_seconds=limits.timeout_seconds)
    return WebhookParts(
        client=client,
        sender=WebhookSender(webhooks=store.webhooks, client=client, clock=clock),
        registry=WebhookRegistry(webhooks=store.webhooks, client=client, clock=clock),
    )


def polled_lines(
    site: Site, buses: Mapping[str, Bus], *, site_path: Path, devices: Callable[[], Iterable[DeviceSnapshot]]
) -> dict[str, PolledLine]:
    """Return the polled lines by the id of their link; `devices` returns snapshots, which show the gates that move."""
    folders = profile_folders(site, site_path)
    return {name: _polled(site, name, bus, folders, devices) for name, bus in buses.items()}


def _polled(
    site: Site,
    name: str,
    bus: Bus,
    folders: tuple[Path, ...],
    devices: Callable[[], Iterable[DeviceSnapshot]],
) -> PolledLine:
    own = [device for device in site.devices if device.link == name]
    units = [(number.value, device) for device in own if (number := device.number()) is not None]
    return PolledLine(
        bus=bus,
        framing=next((device.framing for device in own if isinstance(device, ModbusDevice)), None),
        names={unit: tuple(one.name for number, one in units if number == unit) for unit, _ in units},
        card_units=frozenset(unit for unit, one in units if isinstance(one, ReaderDevice)),
        devices={
            one.id: ModbusUnit(one.unit, one.framing, load_unit_profile(path))
            for one in own
            if isinstance(one, ModbusDevice) and (path := find_profile(one.profile, folders)) is not None
        },
        is_moving=partial(_is_moving, frozenset(device.id for device in own), devices),
    )


def _is_moving(ids: frozenset[int], devices: Callable[[], Iterable[DeviceSnapshot]]) -> bool:
    return any(device.device_id in ids and device.position in _MOVING for device in devices())


def fleet_parts(context: ServicesContext, once: Once) -> FleetParts | None:
    """Build the parts for the site in force; None without `[fleet]`. Raises ConfigError for a missing secret."""
    site, base = context.site(), context.base
    if site.fleet is None:
        return None
    from gateway.fleet.commands_down import CommandDesk  # noqa: PLC0415  # as below
    from gateway.fleet.offered_files import FileMaker  # noqa: PLC0415  # as below
    from gateway.fleet.wiring import FleetParts  # noqa: PLC0415  # most gateways start without the library

    reach = _Reach(context)
    files = FileMaker(bundle=lambda: context.support().make(), recording=context.recording, proofs=context.proofs)
    return FleetParts.of(
        site.fleet,
        site_name=site.site.name,
        version=version("edge-gateway"),
        secrets=base.run.secrets,
        store=base.store,
        verdict=context.verdict,
        desk=CommandDesk(
            lanes=base.lanes,
            permissions=reach.permissions,
            reload=lambda by: context.site_file.reload(by=by),
            edit=reach.edit,
            tried=context.site_file.outcome,
            files=files,
            start=once,
            notices=reach.notices,
        ),
        clock=base.clock,
    )


@dataclass(frozen=True, slots=True)
class _Reach:
    """Parts of the services that commands of the fleet reach."""

    context: ServicesContext

    async def edit(self, by: str, edits: Sequence[Edit]) -> tuple[Reloaded, tuple[Edit, ...]]:
        """Change the site file on trial; return the edits that take it back. Raises ConfigError."""
        site_file = self.context.site_file
        try:
            text, _, _ = await site_file.look()
        except OSError as error:
            raise ConfigError(f"the site file cannot be read: {error.strerror}") from error
        changed = edited(text, edits)
        back = inverse(text, edits)
        return await site_file.reload(by=by, text=changed), back

    async def permissions(self, account: str) -> frozenset[str] | None:
        """Return the permissions of an account of the site; None if it may not sign in. Raises StoreError."""
        accounts = await self.context.base.store.accounts.all()
        stored = next((one for one in accounts if one.username == account), None)
        return None if stored is None or stored.disabled else stored.permissions

    def notices(self) -> CardNotices | None:
        """Return the line to central, which fetches noticed cards; None without central."""
        return None if (sync := self.context.central.parts.sync) is None else sync.notices
