"""The support bundle of a running gateway."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from gateway.domain.errors import StoreError
from gateway.domain.events import RecordedEvent
from gateway.lanes.incidents import Incidents, SavedIncident
from gateway.lines.site_lines import SiteLines
from gateway.problems.found import SiteState
from gateway.problems.problem import Verdict
from gateway.runtime.clock import Clock, iso_utc
from gateway.store.events.events import Events
from gateway.support import machine
from gateway.support.archive import archive, json_text
from gateway.support.masking import Masking

_EVENTS = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Bundle:
    """A bundle: its file's name, and its content."""

    name: str
    content: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class SupportBundle:
    """The maker of bundles.

    Attributes:
        site_path: the site file.
        data: the data folder.
        verdict, state: the site as it is now.
        lines: its polled lines.
        events: those that are stored.
        incidents: what lanes did around alarms.
        log: the last lines of the log.
        masking: what hides secrets.
        clock: both clocks.
    """

    site_path: Path
    data: Path
    verdict: Callable[[], Verdict]
    state: Callable[[], SiteState]
    lines: SiteLines
    events: Events
    incidents: Incidents
    log: Callable[[], tuple[str, ...]]
    masking: Masking
    clock: Clock

    async def make(self) -> Bundle:
        """Collect and pack it. A store that cannot be read leaves its parts out, and says why."""
        stamp = self.clock.wall()
        told: dict[str, object] = {"now": iso_utc(stamp.micros), "clock_trusted": stamp.trusted}
        events: tuple[RecordedEvent, ...] = ()
        try:
            events = await self.events.latest(limit=_EVENTS)
        except StoreError as error:
            told["events"] = str(error)
        incidents = await self._incidents()
        values = {
            "verdict.json": self.verdict(),
            "state.json": self.state(),
            "frames.json": {name: self.lines.frames.since(name, 0) for name in self.lines.polled},
            "scans.json": {name: self.lines.scans.of(name) for name in self.lines.polled},
            "events.json": [_event(event) for event in events],
            "incidents.json": incidents,
            "gateway.json": told,
        }
        name = f"edge-gateway-{iso_utc(stamp.micros)[:19].replace(':', '')}"
        pack = partial(self._packed, values, name=name, at=stamp.micros // 1_000_000)
        return Bundle(name=f"{name}.tar.gz", content=await asyncio.to_thread(pack))

    async def log_tail(self, most: int) -> tuple[str, ...]:
        """Return the last lines of the log, oldest first, as a bundle has them."""
        lines = self.log()[-most:]
        return await asyncio.to_thread(lambda: tuple(map(self.masking.log_line, lines)))

    async def _incidents(self) -> tuple[SavedIncident, ...]:
        try:
            return await self.incidents.saved()
        except OSError:
            return ()

    def _packed(self, values: dict[str, object], *, name: str, at: int) -> bytes:
        masking = self.masking
        texts = {file: json_text(value, masking) for file, value in values.items()}
        log = "\n".join(map(masking.log_line, self.log()))
        media = self.data / "media"
        return archive(
            {**texts, "log.txt": log, **machine_texts(masking, site_path=self.site_path, folders=(self.data, media))},
            name=name,
            at=at,
            masking=masking,
        )


def machine_texts(masking: Masking, *, site_path: Path, folders: tuple[Path, ...]) -> dict[str, str]:
    """Return what can be told without a running gateway: its site file, its releases, its machine. Blocks."""
    try:
        site = masking.site_file(site_path.read_text("utf-8", "replace"))
    except OSError as error:
        site = f"# {site_path}: {error.strerror}\n"
    return {
        "site.toml": site,
        "versions.json": json_text(machine.versions()),
        "disk.json": json_text(machine.disk(folders)),
        "clock.json": json_text(machine.clock()),
        "load.json": json_text(machine.load()),
        "journal.txt": "\n".join(map(masking.journal_line, machine.journal().splitlines())),
    }


def _event(event: RecordedEvent) -> dict[str, object]:
    """Tell an event without its data, which may name a card."""
    return {
        "id": event.id,
        "at": iso_utc(event.date_at),
        "type": event.type,
        "name": event.name,
        "description": event.description,
        "device": event.device_id,
        "lane": event.lane_id,
    }
