"""The running field: the tasks of lines and drivers, and their replacement when the site file changes."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

import structlog

from drivers.contract import Driver, Report, Reports
from gateway.app.devices import Field
from gateway.runtime.supervision import Progress, Supervisor

_Key = TypeVar("_Key")
_Value = TypeVar("_Value")
log = structlog.get_logger(__name__)

_END_SECONDS = 10.0
"""The longest wait for tasks to end: a driver needs time to release its outputs on a line that does not answer."""


@dataclass(kw_only=True, eq=False)
class RunningField:
    """The tasks of the site's lines and devices.

    Lines are started first and end last, so that drivers can release their outputs.

    Attributes:
        field: the present lines and drivers.
        progress: the watchdog's record of progress; lines that are closed are removed from it.
    """

    field: Field
    progress: Progress

    def __post_init__(self) -> None:
        self._lines: Supervisor | None = None
        self._devices: Supervisor | None = None
        self._reports: Reports | None = None
        self._line_tasks: dict[str, asyncio.Task[None]] = {}
        self._device_tasks: dict[int, asyncio.Task[None]] = {}
        self._listener_tasks: dict[str, asyncio.Task[None]] = {}

    def start_lines(self, supervisor: Supervisor) -> None:
        """Start the lines. They must outlive the drivers, which release their outputs last."""
        self._lines = supervisor
        self._start_lines(supervisor, self.field.lines.keys())

    def start(self, supervisor: Supervisor, *, reports: Reports) -> None:
        """Start the drivers; they report to `reports`."""
        self._devices, self._reports = supervisor, reports
        self._start_drivers(supervisor, listeners=self.field.listeners, drivers=self.field.drivers)

    async def halt(self, *, links: Collection[str], devices: Collection[int]) -> None:
        """End the drivers of these devices, which release their outputs, and then these lines."""
        drivers = list(_taken(self._device_tasks, devices))
        await ended([*drivers, *_taken(self._listener_tasks, links)])
        lines = list(_taken(self._line_tasks, links))
        for name in links:
            self.progress.forget(f"bus {name}")
        await ended(lines)

    def change(self, changed: Field) -> None:
        """Take over a changed field: start its lines and drivers that do not run yet. The others keep running."""
        self.field = changed
        if self._lines is None or self._devices is None:
            return  # not started yet: `start` will use the changed field
        self._start_lines(self._lines, changed.lines.keys() - self._line_tasks.keys())
        self._start_drivers(
            self._devices,
            listeners=changed.listeners.keys() - self._listener_tasks.keys(),
            drivers=[driver for driver in changed.drivers if driver.device_id not in self._device_tasks],
        )

    async def close_unused(self) -> None:
        """End the lines that no device uses any more."""
        unused = self._line_tasks.keys() - self.field.lines.keys()
        unheard = self._listener_tasks.keys() - self.field.listeners.keys()
        await self.halt(links=unused | unheard, devices=())

    def _start_lines(self, supervisor: Supervisor, names: Iterable[str]) -> None:
        for name in sorted(names):
            self._line_tasks[name] = supervisor.keep(f"line-{name}", self.field.lines[name].run)

    def _start_drivers(self, supervisor: Supervisor, *, listeners: Iterable[str], drivers: Iterable[Driver]) -> None:
        for name in sorted(listeners):
            listener = self.field.listeners[name]
            self._listener_tasks[name] = supervisor.keep(f"listener-{name}", listener.run)
        for driver in drivers:
            run = partial(driver.run, self._report)
            self._device_tasks[driver.device_id] = supervisor.keep(f"device-{driver.device_id}", run)

    def _report(self, one: Report) -> None:
        if self._reports is None:
            raise AssertionError("drivers report once they were started")
        self._reports(one)
        for gate in self.field.limited:
            for due in gate.hear(one):
                self._reports(due)


def _taken(tasks: dict[_Key, _Value], keys: Iterable[_Key]) -> Iterator[_Value]:
    """Remove the values of these keys, and yield them."""
    for key in list(keys):
        if key in tasks:
            yield tasks.pop(key)


async def ended(tasks: list[asyncio.Task[None]]) -> None:
    """Cancel tasks and wait until they have ended, at most 10 s; log those that have not."""
    for task in tasks:
        task.cancel()
    if tasks:
        _, alive = await asyncio.wait(tasks, timeout=_END_SECONDS)
        if alive:
            log.error("parts_do_not_end", parts=[task.get_name() for task in alive])
