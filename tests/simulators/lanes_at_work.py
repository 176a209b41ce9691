"""The lanes of a site at work, with the real drivers of its devices, over a store in a folder."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Collection, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

from drivers.bus.wire import Trace
from gateway.app.devices import build_field
from gateway.app.running_field import RunningField
from gateway.domain.credentials import Card
from gateway.lanes import Lanes
from gateway.runtime.clock import Clock, SystemClock
from gateway.runtime.supervision import Progress, Supervisor
from gateway.site import Secrets, Site
from gateway.store import Store
from gateway.store.cards.cards import StoredCard


@asynccontextmanager
async def lanes_at_work(
    folder: Path,
    site: Site,
    *,
    clock: Clock | None = None,
    cards: Iterable[Card] = (),
    devices: Collection[int] | None = None,
    traces: Mapping[str, Trace] | None = None,
) -> AsyncIterator[tuple[Lanes, Store]]:
    """The lanes with their store, lines and drivers, from start to stop.

    `devices`: those whose drivers work, None for all. `traces`: called with every byte of a line, by the line's name.
    """
    clock = clock or SystemClock()
    field = build_field(site, site_path=folder / "site.toml", clock=clock, secrets=Secrets(folder=folder, environ={}))
    for name, trace in (traces or {}).items():
        field.buses[name].wire.trace = trace
    working_drivers = tuple(one for one in field.drivers if devices is None or one.device_id in devices)
    running = RunningField(field=replace(field, drivers=working_drivers), progress=Progress(clock=clock))
    store = Store(folder=folder, site_name=site.site.name, sends=False)
    await store.open()
    try:
        async with Supervisor(clock=clock) as lasting:
            lasting.keep("store", store.run)
            await store.cards.apply(put=[StoredCard(card, "{}") for card in cards], now=0)
            lanes = Lanes(
                site=site,
                field=field,
                store=store,
                clock=clock,
                progress=Progress(clock=clock),
                boot=f"{time.monotonic_ns():x}",
            )
            lasting.keep("recorder", lanes.recorder.run)
            await lanes.areas.recall()
            await lanes.resume()
            async with Supervisor(clock=clock) as lines:
                running.start_lines(lines)
                async with Supervisor(clock=clock) as working:
                    lanes.start(working)
                    running.start(working, reports=lanes.report)
                    yield lanes, store
            assert await lanes.recorder.drained(within=30)
    finally:
        await store.close()
